//! The claims, a file for each kind of original.

mod adapting;
mod indexes;
mod messages;
mod rivals;
mod servers;
mod shape;
mod tables;

use super::{Claim, Field, Measure, Original, Pick, Rule, Source, Threads};
use shape::{differs, faster, scales, weighs};

/// Every claim.
pub static ALL: [&[Claim]; 6] = [
    &tables::CLAIMS,
    &adapting::CLAIMS,
    &indexes::CLAIMS,
    &messages::CLAIMS,
    &rivals::CLAIMS,
    &servers::CLAIMS,
];
