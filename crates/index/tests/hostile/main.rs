//! Every engine and container under hostile keys and values.
//!
//! `Ord`, `Clone`, `Drop`, `ByteKey` and `KeyHead` are safe traits: their implementations and
//! constants may lie, disagree, change, panic, and call the map. Then answers may be wrong, and an
//! engine may panic and go on. But no memory may be freed twice or used after it was freed, and no
//! operation may hang.
//!
//! Each test is a subject: an engine in one configuration. It runs every *kind* of hostility
//! (`temper.rs`: orders with NaN, or without case, random orders and byte forms, keys that change,
//! panics, drops that call the map …), with several *forms* of the key (`values.rs`: what its
//! constants claim), with several seeds, and each kind in a process of its own. It fails on:
//!
//! - a key or value that is dropped twice or read after its drop: each has a number in a register
//!   (`life.rs`); under AddressSanitizer (`cargo xtask test --only asan`) also on any other use of
//!   freed memory, and on leaks;
//! - keys or values that remain when their map is gone, although nothing panicked;
//! - an operation that has not ended after fifteen seconds, or that calls user code without end and
//!   blocks another thread meanwhile;
//! - a process that crashes or aborts.
//!
//! A failure names the subject, the kind, the form and the seed. To run it again, and see each
//! operation:
//!
//! ```text
//! TREMULA_HOSTILE=nan_less:0:3 cargo test -p tremula-index --test hostile -- \
//!     --exact low_b_tree --nocapture
//! ```
//!
//! `TREMULA_HOSTILE_SEEDS` is the number of seeds. A registered engine is a subject without a line
//! here.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "../support/mod.rs"]
mod support;

mod campaign;
mod layouts;
mod life;
mod rows;
mod subject;
mod temper;
mod values;

use rows::{filled, index, loaded, registered, subject};
use subject::Contained;
use support::{restless, restless_lfca};
use tremula_index::container::BTree;
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::{Engine as Tested, *};
use values::{Key, Value};

/// Kinds that are left out, for the subjects whose names contain this text, and why.
const KNOWN: &[(&str, &[&str])] = &[
    // A `pop` whose key changes meanwhile may restart for ever. It holds no lock.
    ("splitting_lfca_tree_without_heads", &["changing_keys"]),
];

tremula_index::index_engines!(each registered);

index!(restless_ca_tree, [PLAIN], |entries| filled(
    CaTree::<_, _>::with_config(restless()),
    entries
));
index!(
    restless_ca_tree_with_heads,
    [PLAIN HEAD_IS_KEY],
    |entries| filled(
        CaTree::<_, _, ByteHead, BTree<_, _, ByteHead, 4>>::with_config(restless()),
        entries
    )
);
index!(lfca_tree_with_whole_heads, [HEAD_IS_KEY], |entries| filled(
    LfcaTree::<_, _>::new(),
    entries
));
index!(restless_lfca_tree, [PLAIN HEAD_IS_KEY], |entries| filled(
    LfcaTree::<_, _>::with_config(restless_lfca()),
    entries
));
index!(splitting_lfca_tree_without_heads, [PLAIN], |entries| {
    let config = restless_lfca().uncontended(1);
    filled(LfcaTree::<_, _, NoHead>::with_config(config), entries)
});
index!(loaded_b_tree, [PLAIN], |entries| loaded(
    OlcBTree::<_, _>::from_sorted(entries)
));
index!(low_b_tree, [PLAIN HEAD_IS_KEY], |entries| filled(
    OlcBTree::<_, _, ByteHead, 0>::default(),
    entries
));
index!(low_b_tree_without_heads, [PLAIN], |entries| filled(
    OlcBTree::<_, _, NoHead, 0>::default(),
    entries
));
index!(
    art_of_keys_that_claim_a_length,
    [HEAD_IS_KEY CLAIMS_ONE_BYTE CLAIMS_TWO_BYTES CLAIMS_EIGHT_BYTES CLAIMS_TWENTY_BYTES],
    |entries| filled(Art::new(), entries)
);
index!(
    loaded_art,
    [PLAIN HEAD_IS_KEY CLAIMS_ONE_BYTE CLAIMS_TWO_BYTES CLAIMS_EIGHT_BYTES CLAIMS_TWENTY_BYTES],
    |entries| loaded(Art::from_sorted(entries))
);
index!(loaded_masstree, [PLAIN], |entries| loaded(
    Masstree::<_, _>::from_sorted(entries)
));
index!(
    low_masstree,
    [PLAIN HEAD_IS_KEY CLAIMS_ONE_BYTE],
    |entries| filled(Masstree::<_, _, 3>::default(), entries)
);
index!(locked_b_tree, [PLAIN], |entries| filled(
    Locked::<_, _, NoHead, BTree<_, _, NoHead, 4>>::default(),
    entries
));
index!(locked_b_tree_with_heads, [PLAIN], |entries| {
    filled(
        Locked::<_, _, ByteHead, BTree<_, _, ByteHead, 4>>::default(),
        entries,
    )
});

fn narrow_b_tree<const FORM: u8>() -> Contained<FORM, BTree<Key<FORM>, Value, NoHead, 4>> {
    Contained::default()
}

fn headed_b_tree<const FORM: u8>() -> Contained<FORM, BTree<Key<FORM>, Value, ByteHead, 4>> {
    Contained::default()
}

subject!(container_b_tree, [PLAIN], narrow_b_tree);
subject!(container_b_tree_with_heads, [PLAIN HEAD_IS_KEY], headed_b_tree);
