//! The byte forms that `#[derive(ByteKey)]` writes are in the order that the derived `Ord` gives,
//! for types of many shapes, and maps on every engine take such keys.
//!
//! These are the tests of `tremula-derive`, which cannot depend on what its code names.

#[path = "../../index/tests/support/forms.rs"]
mod forms;

use forms::{bytes, forms_agree};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use tremula::{ByteKey, Engine, OrderedMap};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
struct Nothing;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
struct Named {
    text: String,
    number: Reverse<u16>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
struct Short(i16, Option<bool>, [u8; 2]);

/// Field names that the macro uses itself, and keywords.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
struct Awkward {
    out: u8,
    rest: String,
    r#type: u8,
}

/// Methods that the macro's code must not call.
impl Awkward {
    #[allow(dead_code)]
    fn head(&self) -> u64 {
        unreachable!("the trait has a method of this name")
    }

    #[allow(dead_code)]
    fn append_bytes(&self, _: &mut Vec<u8>) {
        unreachable!("the trait has a method of this name")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Plain {
    Low,
    Middle,
    High,
}

/// The discriminants decide, not the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Numbered {
    Last = 70,
    First = -DISTANCE,
    Second,
    Third = 1 << 3,
}

const DISTANCE: isize = 5;

/// An unsigned discriminant that would be negative as an `isize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
#[repr(u64)]
enum Huge {
    Last = u64::MAX,
    First = 3,
    Second = 1 << 62,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
#[repr(i8)]
enum Signed {
    Text(String, u8) = 4,
    Empty = -3,
    Number { value: u32 } = 3,
}

/// All forms have one length: the shorter ones are padded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Padded {
    Nothing,
    Wide(u32),
    Narrow { value: u8 },
    Inner(Plain),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Single {
    Only(u8, String),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Never {}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
struct Generic<A, B = u8, const N: usize = 2>
where
    A: Debug,
{
    first: A,
    others: [B; N],
    last: Option<A>,
}

/// A number of things of the type `T`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
struct Id<T>(u32, PhantomData<T>);

/// Contains itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Tree {
    Leaf(u8),
    Node(Box<Tree>, Box<Tree>),
    Maybe(Option<Box<Tree>>),
    Backwards(Reverse<Box<Tree>>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
enum Nested {
    Named(Named),
    Padded { one: Padded, other: Reverse<Padded> },
    Single(Reverse<Single>, Plain),
    None,
}

mod of_the_index {
    use tremula_index::ByteKey;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
    pub(crate) struct Key(pub(crate) u8, pub(crate) String);
}

mod renamed {
    use tremula as store;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, store::ByteKey)]
    #[byte_key(crate = store)]
    pub(crate) struct Key(pub(crate) String, pub(crate) u8);
}

/// The macro's code does not use these names.
#[allow(dead_code)]
mod names_of_its_own {
    enum Option {}
    struct Vec;
    struct Some;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, tremula::ByteKey)]
    pub(crate) enum Key {
        Some(bool),
        None,
    }
}

/// More variants than a byte distinguishes.
macro_rules! many {
    ($($Variant:ident)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
        enum Many { $($Variant,)* }

        const MANY: &[Many] = &[$(Many::$Variant),*];
    };
}

many! {
    V0 V1 V2 V3 V4 V5 V6 V7 V8 V9 V10 V11 V12 V13 V14 V15 V16 V17 V18 V19 V20 V21 V22 V23 V24 V25
    V26 V27 V28 V29 V30 V31 V32 V33 V34 V35 V36 V37 V38 V39 V40 V41 V42 V43 V44 V45 V46 V47 V48
    V49 V50 V51 V52 V53 V54 V55 V56 V57 V58 V59 V60 V61 V62 V63 V64 V65 V66 V67 V68 V69 V70 V71
    V72 V73 V74 V75 V76 V77 V78 V79 V80 V81 V82 V83 V84 V85 V86 V87 V88 V89 V90 V91 V92 V93 V94
    V95 V96 V97 V98 V99 V100 V101 V102 V103 V104 V105 V106 V107 V108 V109 V110 V111 V112 V113 V114
    V115 V116 V117 V118 V119 V120 V121 V122 V123 V124 V125 V126 V127 V128 V129 V130 V131 V132 V133
    V134 V135 V136 V137 V138 V139 V140 V141 V142 V143 V144 V145 V146 V147 V148 V149 V150 V151 V152
    V153 V154 V155 V156 V157 V158 V159 V160 V161 V162 V163 V164 V165 V166 V167 V168 V169 V170 V171
    V172 V173 V174 V175 V176 V177 V178 V179 V180 V181 V182 V183 V184 V185 V186 V187 V188 V189 V190
    V191 V192 V193 V194 V195 V196 V197 V198 V199 V200 V201 V202 V203 V204 V205 V206 V207 V208 V209
    V210 V211 V212 V213 V214 V215 V216 V217 V218 V219 V220 V221 V222 V223 V224 V225 V226 V227 V228
    V229 V230 V231 V232 V233 V234 V235 V236 V237 V238 V239 V240 V241 V242 V243 V244 V245 V246 V247
    V248 V249 V250 V251 V252 V253 V254 V255 V256 V257 V258 V259
}

fn text() -> impl Strategy<Value = String> {
    "[\\u{0}\\u{1}a\\u{10ffff}]{0,4}"
}

fn plain() -> impl Strategy<Value = Plain> {
    prop_oneof![Just(Plain::Low), Just(Plain::Middle), Just(Plain::High)]
}

fn named() -> impl Strategy<Value = Named> {
    let parts = (text(), 0..3_u16, vec(0..2_u8, 0..4));
    parts.prop_map(|(text, number, bytes)| Named {
        text,
        number: Reverse(number),
        bytes,
    })
}

fn padded() -> impl Strategy<Value = Padded> {
    prop_oneof![
        Just(Padded::Nothing),
        (0..300_u32).prop_map(Padded::Wide),
        (0..3_u8).prop_map(|value| Padded::Narrow { value }),
        plain().prop_map(Padded::Inner),
    ]
}

fn signed() -> impl Strategy<Value = Signed> {
    prop_oneof![
        (text(), any::<u8>()).prop_map(|(text, number)| Signed::Text(text, number)),
        Just(Signed::Empty),
        any::<u32>().prop_map(|value| Signed::Number { value }),
    ]
}

fn single() -> impl Strategy<Value = Single> {
    (0..2_u8, text()).prop_map(|(number, text)| Single::Only(number, text))
}

fn generic() -> impl Strategy<Value = Generic<String>> {
    let parts = (text(), any::<[u8; 2]>(), option::of(text()));
    parts.prop_map(|(first, others, last)| Generic {
        first,
        others,
        last,
    })
}

fn short_generic() -> impl Strategy<Value = Generic<u8, bool, 3>> {
    let parts = (0..2_u8, any::<[bool; 3]>(), any::<Option<u8>>());
    parts.prop_map(|(first, others, last)| Generic {
        first,
        others,
        last,
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = (0..2_u8).prop_map(Tree::Leaf).boxed();
    leaf.prop_recursive(3, 8, 2, |inner| {
        let boxed = inner.prop_map(Box::new);
        prop_oneof![
            (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Tree::Node(a, b)),
            option::of(boxed.clone()).prop_map(Tree::Maybe),
            boxed.prop_map(|tree| Tree::Backwards(Reverse(tree))),
        ]
    })
}

fn nested() -> impl Strategy<Value = Nested> {
    prop_oneof![
        named().prop_map(Nested::Named),
        (padded(), padded()).prop_map(|(one, other)| Nested::Padded {
            one,
            other: Reverse(other)
        }),
        (single(), plain()).prop_map(|(single, plain)| Nested::Single(Reverse(single), plain)),
        Just(Nested::None),
    ]
}

/// Checks the forms of all pairs, by themselves and as parts.
fn keep_their_order<K: ByteKey + Debug>(keys: &[K]) {
    for a in keys {
        for b in keys {
            forms_agree(a, b);
            forms_agree(&(a.clone(), b.clone()), &(b.clone(), a.clone()));
            forms_agree(&Reverse(a.clone()), &Reverse(b.clone()));
        }
    }
}

macro_rules! keep_their_order {
    ($($name:ident: $keys:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(keys in vec($keys, 2..6)) {
                keep_their_order(&keys);
            })*
        }
    };
}

keep_their_order! {
    structs_with_names_keep_their_order: named();
    short_structs_keep_their_order:
        any::<(i16, Option<bool>, [u8; 2])>().prop_map(|(a, b, c)| Short(a, b, c));
    awkward_names_keep_their_order:
        (0..2_u8, text(), 0..2_u8).prop_map(|(out, rest, r#type)| Awkward { out, rest, r#type });
    padded_variants_keep_their_order: padded();
    variants_with_discriminants_and_fields_keep_their_order: signed();
    single_variants_keep_their_order: single();
    generic_structs_keep_their_order: generic();
    short_generic_structs_keep_their_order: short_generic();
    types_that_contain_themselves_keep_their_order: tree();
    nested_types_keep_their_order: nested();
    markers_keep_their_order: (0..3_u32).prop_map(|number| Id(number, PhantomData::<String>));
    keys_of_the_index_keep_their_order:
        (0..2_u8, text()).prop_map(|(number, text)| of_the_index::Key(number, text));
    keys_of_a_renamed_library_keep_their_order:
        (text(), 0..2_u8).prop_map(|(text, number)| renamed::Key(text, number));
}

#[test]
fn plain_enums_keep_their_order() {
    keep_their_order(&[Nothing]);
    keep_their_order(&[Plain::Low, Plain::Middle, Plain::High]);
    keep_their_order(&[
        Numbered::Last,
        Numbered::First,
        Numbered::Second,
        Numbered::Third,
    ]);
    keep_their_order(&[Huge::Last, Huge::First, Huge::Second]);
    keep_their_order(&[
        names_of_its_own::Key::None,
        names_of_its_own::Key::Some(true),
    ]);
    keep_their_order(&MANY[..4]);
    keep_their_order(&MANY[250..]);
    assert!(MANY.is_sorted_by_key(bytes));
}

#[test]
fn lengths_and_heads_are_those_of_the_parts() {
    fn facts<K: ByteKey>() -> (Option<usize>, bool) {
        (K::LENGTH, K::HEAD_IS_KEY)
    }
    assert_eq!(facts::<Nothing>(), (Some(0), true));
    assert_eq!(facts::<Short>(), (Some(6), true));
    assert_eq!(facts::<Named>(), (None, false));
    assert_eq!(facts::<Plain>(), (Some(1), true));
    assert_eq!(facts::<Numbered>(), (Some(1), true));
    assert_eq!(facts::<Many>(), (Some(2), true));
    assert_eq!(facts::<Padded>(), (Some(5), true));
    assert_eq!(facts::<Signed>(), (None, false));
    assert_eq!(facts::<Generic<u8, bool, 3>>(), (Some(6), true));
    assert_eq!(facts::<Generic<u64, bool, 3>>(), (Some(20), false));
    assert_eq!(facts::<Id<String>>(), (Some(4), true));
    assert_eq!(facts::<Tree>(), (None, false));
    assert_eq!(Never::from_head(0), None);
}

#[test]
fn a_form_is_a_tag_and_the_fields() {
    assert_eq!(bytes(&Numbered::First), [0]);
    assert_eq!(bytes(&Numbered::Last), [3]);
    assert_eq!(bytes(&Padded::Nothing), [0, 0, 0, 0, 0]);
    assert_eq!(bytes(&Padded::Narrow { value: 7 }), [2, 7, 0, 0, 0]);
    assert_eq!(bytes(&Single::Only(7, "a".to_owned())), [7, b'a']);
    assert_eq!(bytes(&Many::V259), [1, 3]);
    let numbered = Signed::Text("a".to_owned(), 9);
    assert_eq!(bytes(&numbered), [2, b'a', 0, 0, 9]);
}

/// One step of a model.
#[derive(Clone, Debug)]
enum Step<K> {
    Insert(K, u8),
    Remove(K),
    RemoveRange(K, K),
}

fn steps<K: Clone + Debug>(
    keys: impl Strategy<Value = K> + Clone,
) -> impl Strategy<Value = Vec<Step<K>>> {
    let step = prop_oneof![
        6 => (keys.clone(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => keys.clone().prop_map(Step::Remove),
        1 => (keys.clone(), keys).prop_map(|(low, high)| Step::RemoveRange(low, high)),
    ];
    vec(step, 1..80)
}

/// Takes the steps on a map of each engine and on a `BTreeMap`. It fails if a key gets lost, is
/// taken for another, or is in the wrong place.
fn agree_with_the_model<K: ByteKey + Debug>(steps: &[Step<K>]) {
    for engine in Engine::ALL {
        let map = OrderedMap::with_byte_engine(engine);
        let mut model = BTreeMap::new();
        for step in steps {
            match step.clone() {
                Step::Insert(key, value) => {
                    assert_eq!(
                        map.insert(key.clone(), value),
                        model.insert(key.clone(), value)
                    );
                    assert_eq!(map.get(&key), Some(value), "{engine}: {key:?}");
                }
                Step::Remove(key) => {
                    assert_eq!(map.remove(&key), model.remove(&key), "{engine}: {key:?}");
                    let above = model.range(&key..).next();
                    let above = above.map(|(key, value)| (key.clone(), *value));
                    assert_eq!(map.next(&key), above, "{engine}: above {key:?}");
                }
                Step::RemoveRange(low, high) if low < high => {
                    let before = model.len();
                    model.retain(|key, _| *key < low || *key >= high);
                    let removed = map.remove_range(low.clone()..high.clone());
                    assert_eq!(removed, before - model.len(), "{engine}: {low:?}..{high:?}");
                }
                Step::RemoveRange(..) => {}
            }
        }
        let all: Vec<(K, u8)> = map.iter().collect();
        assert_eq!(all, model.into_iter().collect::<Vec<_>>(), "{engine}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn maps_of_nested_keys_agree_with_a_model(steps in steps(nested().boxed())) {
        agree_with_the_model(&steps);
    }

    #[test]
    fn maps_of_padded_keys_agree_with_a_model(steps in steps(padded().boxed())) {
        agree_with_the_model(&steps);
    }

    #[test]
    fn maps_of_keys_that_contain_themselves_agree_with_a_model(steps in steps(tree().boxed())) {
        agree_with_the_model(&steps);
    }
}

/// What the documentation of the macro shows.
mod shown {
    #[test]
    fn a_book_of_orders() {
        use std::cmp::Reverse;
        use tremula::{ByteKey, Engine, OrderedMap};

        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
        enum Side {
            Buy,
            Sell,
        }

        /// Orders of one side by price, the newest first.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
        struct Order {
            side: Side,
            price: u32,
            time: Reverse<u64>,
        }

        let book = OrderedMap::with_byte_engine(Engine::Art);
        for (price, time) in [(101, 1), (100, 2), (100, 3)] {
            let time = Reverse(time);
            let side = Side::Sell;
            book.insert(Order { side, price, time }, "an order");
        }
        let (first, _) = book.first().unwrap();
        assert_eq!((first.price, first.time), (100, Reverse(3)));
    }

    #[test]
    fn slots_with_owners() {
        use tremula::{ByteKey, Engine, OrderedMap};

        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
        enum Owner {
            System,
            User { id: u32 },
            Group(String, u8),
        }

        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, ByteKey)]
        struct Slot {
            owner: Owner,
            number: u64,
        }

        let slots = OrderedMap::with_byte_engine(Engine::Art);
        for number in [2, 1] {
            let owner = Owner::User { id: 7 };
            slots.insert(Slot { owner, number }, "taken");
        }
        let (owner, number) = (Owner::System, 9);
        slots.insert(Slot { owner, number }, "free");
        let keys: Vec<u64> = slots.iter().map(|(slot, _)| slot.number).collect();
        assert_eq!(keys, [9, 1, 2]);
    }
}

/// Lines without their indentation and the marks of comments, as one text.
fn flush_left(text: &str) -> String {
    let line = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("///").unwrap_or(line);
        format!("{}\n", line.trim())
    };
    text.lines().map(line).collect()
}

/// Finds the documents of the macro where the repository has them: a package of `tremula` has not.
#[test]
fn the_documentation_of_the_macro_shows_code_that_is_tested() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../derive");
    let read = |file: &str| flush_left(&std::fs::read_to_string(folder.join(file)).unwrap());
    let run = flush_left(include_str!("derived_keys.rs"));
    let refused = flush_left(include_str!("../src/refused.rs"));
    let (mut shown, mut shown_refused) = (0, 0);
    for file in ["README.md", "src/lib.rs"] {
        let text = read(file);
        let mut parts = text.split("```");
        parts.next();
        while let Some(block) = parts.next() {
            let (kind, code) = block.split_once('\n').unwrap();
            if kind.starts_with("compile_fail") {
                assert!(refused.contains(block), "{file}: compiles:\n{code}");
                shown_refused += 1;
            } else {
                assert!(run.contains(code), "{file}: in no test:\n{code}");
                shown += 1;
            }
            assert!(parts.next().is_some(), "{file}: a block has no end");
        }
    }
    assert_eq!((shown, shown_refused), (2, 4));
}
