//! Search kernels inside a node that is read optimistically, which more than one structure uses.

pub(crate) mod bytes;
mod heads;

pub(crate) use heads::{Heads, STRIDE, close, open};
