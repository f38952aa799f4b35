//! The friendly face of an ordered index.
use crate::CaTree;
use std::marker::PhantomData;
/// placeholder
pub struct OrderedMap<K, V, E = CaTree<K, V>>(E, PhantomData<(K, V)>);
