//! The Redis protocol: requests in, replies out, versions 2 and 3.

mod inline;
pub(crate) mod number;
mod reply;
mod request;
mod whole;

pub(crate) use number::Digits;
pub(crate) use reply::{Mute, Protocol, Reply, too_long};
#[cfg(test)]
pub(crate) use request::with_line;
pub(crate) use request::{Arguments, KeptRequests, ProtocolError, RequestParser};
pub(crate) use whole::{end_of, spelt};
