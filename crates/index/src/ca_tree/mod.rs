pub type CaTree<K, V> = crate::Locked<K, V>;
