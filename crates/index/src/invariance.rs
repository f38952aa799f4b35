//! Programs that must not compile: every map is invariant in its keys and values.
//!
//! A shared reference to a map can insert. If a reference to a map of `for<'a> fn(&'a str)` could
//! pass for a reference to a map of `fn(&'static str)`, a function that keeps its argument for ever
//! could be inserted, come out as one that takes any string, and be called with a string that is
//! freed later. All types here are `'static`, and no user code is `unsafe`.
//!
//! Each map has two programs for its keys and two for its values. The first of each pair compiles,
//! which shows that the second is refused only because of the one type in which the two differ.

/// The four programs for the map `$map`. `$of` is its type, in terms of the types `K` of its keys
/// and `V` of its values.
macro_rules! invariant {
    ($($map:ident: $of:literal;)*) => { $(
        #[allow(non_snake_case, reason = "it has the name of the map")]
        mod $map {
            program!(KEYS_AS_THEY_ARE: "```", $map, $of, "Key<Wide>, u64", "Key<Wide>, u64");
            program!(
                NARROWED_KEYS: "```compile_fail,E0308",
                $map, $of, "Key<Wide>, u64", "Key<Narrow>, u64"
            );
            program!(VALUES_AS_THEY_ARE: "```", $map, $of, "u64, Wide", "u64, Wide");
            program!(
                NARROWED_VALUES: "```compile_fail,E0308",
                $map, $of, "u64, Wide", "u64, Narrow"
            );
        }
    )* };
}

/// One program: a reference to a map of `$have` is returned as a reference to a map of `$want`.
macro_rules! program {
    ($name:ident: $fence:literal, $map:ident, $of:literal, $have:literal, $want:literal) => {
        #[doc = $fence]
        #[doc = concat!("use tremula_index::{ByteKey, ", stringify!($map), "};")]
        /// type Wide = for<'a> fn(&'a str);
        /// type Narrow = fn(&'static str);
        ///
        /// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        /// struct Key<F>(F);
        ///
        /// impl<F: Ord + Clone + Send + Sync + 'static> ByteKey for Key<F> {
        ///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        ///         read(&[])
        ///     }
        /// }
        ///
        #[doc = concat!("type Map<K, V> = ", $of, ";")]
        ///
        #[doc = concat!("fn pass(map: &Map<", $have, ">) -> &Map<", $want, "> {")]
        ///     map
        /// }
        /// ```
        const $name: () = ();
    };
}

invariant! {
    Art: "Art<K, V>";
    Aspen: "Aspen<K, V>";
    CaTree: "CaTree<K, V>";
    LfcaTree: "LfcaTree<K, V>";
    Locked: "Locked<K, V>";
    Masstree: "Masstree<K, V>";
    OlcBTree: "OlcBTree<K, V>";
    OrderedMap: "OrderedMap<K, V>";
    OrderedSet: "OrderedSet<(K, V)>";
}
