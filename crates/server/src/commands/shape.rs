//! `SHAPE`: what the index of a database looks like.

use super::{Context, Failure, Outcome, apart};
use crate::resp::{Arguments, number};
use crate::server::Shared;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use tremula_observe::{LONGEST_KEY, WEIGHT_OF_WAIT};
use tremula_store::{Database, Key};

/// Leaves that a reply has at most.
const MOST_LEAVES: usize = 1000;

/// A leaf, ordered by how hot it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    heat: u64,
    low: Vec<u8>,
    entries: Option<usize>,
    waits: u64,
    acquisitions: u64,
}

/// `SHAPE [LEAVES count]`.
///
/// With `LEAVES`, the leaves whose locks were taken and waited for the most since each was made,
/// the hottest first: the lowest key, entries, acquisitions, waits.
pub(super) fn shape(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let number = context.session.database;
    match arguments.len() {
        1 => {
            let look = move |server: &Shared| server.store.database(number).shape();
            apart(context, arguments, look, |context, shape| {
                let reply = &mut *context.reply;
                reply.map(1 + shape.figures.len());
                reply.bulk(b"engine");
                reply.bulk(shape.engine.as_bytes());
                for (name, value) in shape.figures {
                    reply.bulk(name.as_bytes());
                    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
                }
                Ok(())
            })
        }
        3 if arguments.get(1).eq_ignore_ascii_case(b"leaves") => {
            let most = most(arguments.get(2))?;
            let look = move |server: &Shared| hottest(&server.store.database(number), most);
            apart(context, arguments, look, |context, leaves| {
                let leaves = leaves.map_err(Failure::Owned)?;
                let reply = &mut *context.reply;
                reply.array(leaves.len());
                for leaf in leaves {
                    let counted = |count| i64::try_from(count).unwrap_or(i64::MAX);
                    reply.array(4);
                    reply.bulk(&leaf.low);
                    match leaf.entries {
                        Some(entries) => reply.integer(counted(entries as u64)),
                        None => reply.null(),
                    }
                    reply.integer(counted(leaf.acquisitions));
                    reply.integer(counted(leaf.waits));
                }
                Ok(())
            })
        }
        _ => Err(Failure::SYNTAX),
    }
}

fn most(count: &[u8]) -> Result<usize, Failure> {
    let most = number::parse(count).and_then(|count| usize::try_from(count).ok());
    most.filter(|most| (1..=MOST_LEAVES).contains(most))
        .ok_or_else(|| {
            let shown = count[..count.len().min(32)].escape_ascii();
            let text = format!("ERR count is '{shown}'; it is 1 to {MOST_LEAVES}");
            Failure::Owned(text.into_bytes())
        })
}

/// The hottest leaves, the hottest first; else why there are none, as an error.
fn hottest(database: &Database<'_>, most: usize) -> Result<Vec<Leaf>, Vec<u8>> {
    let mut kept = BinaryHeap::new();
    let walked = database.walk_parts(&mut |part| {
        let heat = u64::from(WEIGHT_OF_WAIT)
            .saturating_mul(part.waits)
            .saturating_add(part.acquisitions);
        let is_hot = kept.len() < most
            || kept
                .peek()
                .is_some_and(|Reverse(least): &Reverse<Leaf>| least.heat < heat);
        if is_hot {
            let low = part.low.as_ref().map_or(&[][..], Key::as_bytes);
            kept.push(Reverse(Leaf {
                heat,
                low: low[..low.len().min(LONGEST_KEY)].to_vec(),
                entries: part.entries,
                waits: part.waits,
                acquisitions: part.acquisitions,
            }));
            if kept.len() > most {
                kept.pop();
            }
        }
        ControlFlow::Continue(())
    });
    if walked.is_none() {
        let engine = database.engine();
        let text = format!("ERR {engine} has no leaves with locks of their own");
        return Err(text.into_bytes());
    }
    let sorted = kept.into_sorted_vec().into_iter();
    Ok(sorted.map(|Reverse(leaf)| leaf).collect())
}
