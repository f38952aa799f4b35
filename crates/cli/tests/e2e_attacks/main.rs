//! Attacks on the server: what a hostile or careless client sends, and what happens then to it and
//! to the others.

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod connections;
mod gather;
mod giving_back;
mod liveness;
mod memory;
mod terms;
mod turns;
mod unread;
