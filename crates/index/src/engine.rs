//! The engines by name, for a program that chooses one at run time.

use crate::key::KeyHead;
use crate::key::built_in::{BuiltIn, BuiltInHead, is_built_in, is_small};
use crate::of_built_in::MakeOfBuiltIn;
use crate::*; // the types that the rows name
use std::{any::type_name, fmt, hash::Hash, marker::PhantomData};

/// What an engine promises of the operations that concern several entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scans {
    /// All of them are linearizable: each sees, or changes, the entries as of one moment.
    OneMoment,
    /// Operations on one key are linearizable. [`scan`](OrderedIndex::scan), `range` and
    /// `remove_range` go from entry to entry, not as of one moment: in order, no key twice, and
    /// every entry that is present throughout is met. `first`, `last`, `next`, `prev`, `pop_first`
    /// and `pop_last` find the neighbour as of one moment, with a value that it had during the
    /// call. `snapshot` returns `None`.
    Ordered,
}

/// What an engine needs of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Keys {
    /// An order, and nothing else. The type's third parameter says where the heads of keys come
    /// from, if there are any ([`KeyHead`]).
    Compared,
    /// Their byte forms ([`ByteKey`]).
    Bytes,
}

/// What an engine promises, and what it needs: facts for code that chooses an engine.
///
/// ```
/// use tremula_index::{Engine, Scans};
///
/// let exact = |engine: Engine| engine.facts().scans == Scans::OneMoment;
/// assert!(Engine::ALL.into_iter().all(exact), "these engines are");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Facts {
    /// What it promises of scans, and of the other operations that concern several entries.
    pub scans: Scans,
    /// What it needs of its keys.
    pub keys: Keys,
    /// Whether its nodes hold each key, beside its head if there are heads. The nodes of the other
    /// engines hold no key that its head determines.
    pub holds_keys: bool,
    /// Whether it has steps over several entries ([`OrderedIndex::transactional`]).
    pub transactional: bool,
}

impl Facts {
    /// For the tables of engines in other crates of this family.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(scans: Scans, keys: Keys) -> Self {
        Self {
            scans,
            keys,
            holds_keys: false,
            transactional: false,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn holds_keys(mut self) -> Self {
        self.holds_keys = true;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn transactional(mut self) -> Self {
        self.transactional = true;
        self
    }
}

/// Work to do with an engine whose type is known at compile time: see [`RegisteredEngine::with`].
pub trait WithEngine<K: Ord + Clone, V: Clone> {
    /// The result of the work.
    type Output;

    /// Does the work. `make` makes an empty index of type `I`, in its default configuration.
    fn run<I: OrderedIndex<K, V> + 'static>(self, make: fn() -> I) -> Self::Output;
}

/// Makes an index.
struct Boxed;

impl<K: Ord + Clone, V: Clone> WithEngine<K, V> for Boxed {
    type Output = Box<dyn OrderedIndex<K, V>>;

    fn run<I: OrderedIndex<K, V> + 'static>(self, make: fn() -> I) -> Self::Output {
        Box::new(make())
    }
}

/// An engine from a table of engines, from which a program chooses one by name. [`Engine`] is such
/// a table; other crates have tables with further engines, and code that is generic over this trait
/// takes any of them.
pub trait RegisteredEngine:
    Copy + Eq + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static
{
    /// Every engine of the table, the default one first.
    fn all() -> &'static [Self];

    /// The name by which [`named`](Self::named) finds it.
    fn name(self) -> &'static str;

    /// What the engine promises, and what it needs.
    fn facts(self) -> Facts;

    /// Does `work` with the type of this engine. If the engine uses heads of keys, they come from
    /// the byte forms.
    fn with<K, V, W>(self, work: W) -> W::Output
    where
        K: ByteKey,
        V: Storable,
        W: WithEngine<K, V>;

    /// Does `work` with the type of this engine whose heads of keys come from `H`. Returns `None`,
    /// without doing the work, if the engine needs the byte forms of keys.
    fn with_heads<K, V, H, W>(self, work: W) -> Option<W::Output>
    where
        K: Ord + Storable,
        V: Storable,
        H: KeyHead<K>,
        W: WithEngine<K, V>;

    /// Does `work` with the type of this engine if it needs the byte forms of keys; else returns
    /// `None`.
    #[doc(hidden)]
    fn with_bytes<K, V, W>(self, work: W) -> Option<W::Output>
    where
        K: ByteKey,
        V: Storable,
        W: WithEngine<K, V>;

    /// An empty index of this engine, in its default configuration, for keys with a byte form.
    #[must_use]
    fn create<K: ByteKey, V: Storable>(self) -> Box<dyn OrderedIndex<K, V>> {
        self.with(Boxed)
    }

    /// An empty index of this engine, in its default configuration, for any keys that the engine
    /// can take.
    ///
    /// # Panics
    ///
    /// If the engine needs the byte forms of keys, and `K` is none of the built-in keys that
    /// [`OrderedMap::with_engine`] lists. [`create`](Self::create) takes every key with a byte
    /// form.
    #[must_use]
    fn create_for<K: Ord + Storable, V: Storable>(self) -> Box<dyn OrderedIndex<K, V>> {
        let (facts, is_built_in) = (self.facts(), is_built_in::<K>());
        // Beside a number, its head would tell nothing new, and make the nodes larger.
        let heads_help = is_built_in && !(facts.holds_keys && is_small::<K>());
        match facts.keys {
            Keys::Compared if heads_help => self.with_heads::<K, V, BuiltInHead, _>(Boxed),
            Keys::Compared => self.with_heads::<K, V, key::NoHead, _>(Boxed),
            Keys::Bytes if is_built_in => {
                self.with_bytes::<BuiltIn<K>, V, _>(MakeOfBuiltIn(PhantomData))
            }
            Keys::Bytes => None,
        }
        .unwrap_or_else(|| {
            panic!(
                "the engine `{self}` needs the byte form of a key, and {} is none of the keys \
                 whose form it knows by itself: implement `ByteKey` for it and make the map by \
                 `OrderedMap::with_byte_engine`, or choose an engine that compares keys",
                type_name::<K>()
            )
        })
    }

    /// The engine of this name.
    ///
    /// # Errors
    ///
    /// [`UnknownEngine`] if the table has none.
    fn named(name: &str) -> Result<Self, UnknownEngine> {
        let found = Self::all().iter().find(|engine| engine.name() == name);
        found.copied().ok_or_else(|| UnknownEngine {
            name: name.to_owned(),
            known: Self::all().iter().map(|engine| engine.name()).collect(),
        })
    }
}

/// Expands a table of engines, in which one row says everything about an engine.
///
/// With nothing before the table, it makes an enum of the engines in the order of the rows, with
/// their names, facts and constructors. With `each row` before it, it calls `row!(name, Type, keys,
/// scans);` for each engine, by which a test program gets a test for each.
///
/// The third parameter of a type that is `Compared` says where the heads of keys come from. A row
/// ends with the names of the other facts that are true.
#[doc(hidden)]
#[macro_export]
macro_rules! engines {
    (
        each $row:ident
        $(#[$about:meta])*
        pub enum $Table:ident {
            $($(#[$doc:meta])* $Engine:ident = $name:ident: $Index:ident, $keys:ident, $scans:ident
                $(, $fact:ident)*;)*
        }
    ) => {
        $($row!($name, $Index, $keys, $scans);)*
    };
    (
        $(#[$about:meta])*
        pub enum $Table:ident {
            $($(#[$doc:meta])* $Engine:ident = $name:ident: $Index:ident, $keys:ident, $scans:ident
                $(, $fact:ident)*;)*
        }
    ) => {
        $(#[$about])*
        ///
        /// | engine | type | what it needs of keys (`Keys`) | what its scans promise (`Scans`) |
        /// |---|---|---|---|
        $(#[doc = concat!(
            "| `", stringify!($name), "` | [`", stringify!($Index), "`] | `", stringify!($keys), "` | `",
            stringify!($scans), "` |"
        )])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Table {
            $($(#[$doc])* $Engine,)*
        }

        impl $Table {
            /// Every engine of this table, the default one first. A later version may have more.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$Engine),*];

            /// The name that [`FromStr`](std::str::FromStr) reads.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Engine => stringify!($name),)*
                }
            }

            /// What this engine promises, and what it needs.
            #[must_use]
            pub const fn facts(self) -> $crate::Facts {
                match self {
                    $(Self::$Engine => {
                        $crate::Facts::new($crate::Scans::$scans, $crate::Keys::$keys)$(.$fact())*
                    })*
                }
            }

            /// An empty index of this engine, in its default configuration, for keys with a byte
            /// form. [`OrderedMap::with_engine`]($crate::OrderedMap::with_engine) takes any
            /// `K: Ord`.
            #[must_use]
            pub fn create<K, V>(self) -> Box<dyn $crate::OrderedIndex<K, V>>
            where
                K: $crate::ByteKey,
                V: $crate::Storable,
            {
                $crate::RegisteredEngine::create(self)
            }
        }

        impl $crate::RegisteredEngine for $Table {
            fn all() -> &'static [Self] {
                &Self::ALL
            }

            fn name(self) -> &'static str {
                self.name()
            }

            fn facts(self) -> $crate::Facts {
                self.facts()
            }

            fn with<K, V, W>(self, work: W) -> W::Output
            where
                K: $crate::ByteKey,
                V: $crate::Storable,
                W: $crate::WithEngine<K, V>,
            {
                match self {
                    $(Self::$Engine => work.run(<$Index<K, V>>::new),)*
                }
            }

            fn with_heads<K, V, H, W>(self, work: W) -> Option<W::Output>
            where
                K: Ord + $crate::Storable,
                V: $crate::Storable,
                H: $crate::key::KeyHead<K>,
                W: $crate::WithEngine<K, V>,
            {
                match self {
                    $(Self::$Engine => $crate::engines!(@with_heads $keys, $Index, work),)*
                }
            }

            fn with_bytes<K, V, W>(self, work: W) -> Option<W::Output>
            where
                K: $crate::ByteKey,
                V: $crate::Storable,
                W: $crate::WithEngine<K, V>,
            {
                match self {
                    $(Self::$Engine => $crate::engines!(@with_bytes $keys, $Index, work),)*
                }
            }
        }

        impl std::fmt::Display for $Table {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.name())
            }
        }

        impl std::str::FromStr for $Table {
            type Err = $crate::UnknownEngine;

            fn from_str(name: &str) -> Result<Self, $crate::UnknownEngine> {
                $crate::RegisteredEngine::named(name)
            }
        }
    };
    (@with_heads Compared, $Index:ident, $work:ident) => {
        Some($work.run(<$Index<K, V, H>>::default))
    };
    (@with_heads Bytes, $Index:ident, $work:ident) => {
        None
    };
    (@with_bytes Bytes, $Index:ident, $work:ident) => {
        Some($work.run(<$Index<K, V>>::new))
    };
    (@with_bytes Compared, $Index:ident, $work:ident) => {
        None
    };
}

/// The engines of this crate, one per row, to be expanded by [`engines!`](crate::engines).
#[doc(hidden)]
#[macro_export]
macro_rules! index_engines {
    ($($what:tt)*) => {
        $crate::engines! {
            $($what)*
            /// An engine that can stand behind [`OrderedIndex`].
            ///
            /// ```
            /// use tremula_index::Engine;
            ///
            /// let engine: Engine = "ca_tree".parse()?;
            /// let index = engine.create::<u64, &'static str>();
            /// index.insert(1, "one");
            /// assert_eq!(index.get(&1), Some("one"));
            /// # Ok::<(), tremula_index::UnknownEngine>(())
            /// ```
            pub enum Engine {
                /// [`Aspen`]: leaves that compute where a key lies, found by routes.
                Aspen = aspen: Aspen, Compared, OneMoment, transactional;
                /// [`CaTree`]: the contention-adapting search tree.
                CaTree = ca_tree: CaTree, Compared, OneMoment, holds_keys, transactional;
                /// [`LfcaTree`]: the lock-free contention-adapting tree.
                LfcaTree = lfca_tree: LfcaTree, Compared, OneMoment;
                /// [`OlcBTree`]: the B+tree with optimistic lock coupling.
                BTree = b_tree: OlcBTree, Compared, OneMoment, transactional;
                /// [`Art`]: the adaptive radix tree.
                Art = art: Art, Bytes, OneMoment;
                /// [`Masstree`]: the trie of B+trees.
                Masstree = masstree: Masstree, Bytes, OneMoment;
                /// [`Locked`]: one readers-writer lock over a sequential tree.
                Locked = locked: Locked, Compared, OneMoment, holds_keys;
            }
        }
    };
}

index_engines!();

/// No engine has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownEngine {
    /// The name that was asked for.
    pub name: String,
    /// The names of the engines in the table.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "unknown engine '{}'; there are:", self.name)?;
        self.known
            .iter()
            .try_for_each(|engine| write!(out, " {engine}"))
    }
}

impl std::error::Error for UnknownEngine {}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::KeyRange;

    #[test]
    fn an_engine_gives_snapshots_exactly_if_its_facts_promise_one_moment() {
        for engine in Engine::ALL {
            let index = engine.create::<u64, u64>();
            let promised = engine.facts().scans == Scans::OneMoment;
            assert_eq!(
                index.snapshot(KeyRange::all()).is_some(),
                promised,
                "{engine}"
            );
        }
    }

    #[test]
    fn an_engine_has_steps_exactly_if_its_facts_say_so() {
        for engine in Engine::ALL {
            let index = engine.create_for::<u64, u64>();
            let has_steps = index.transactional().is_some();
            assert_eq!(has_steps, engine.facts().transactional, "{engine}");
        }
    }
}
