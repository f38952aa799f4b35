//! `LCS`: the longest common subsequence of two values.
//!
//! The length of it for each pair of beginnings is in a table, which is filled row by row (the
//! method of Wagner and Fischer, 1974). The way back through the table is what both have.

use super::{Context, Failure, Outcome, Step, Work, begin};
use crate::apart::free;
use crate::resp::{Arguments, number};
use tremula_store::{Key, Text, Value};

/// Cells of the table that take about as long to fill as a short command.
const CELLS_PER_UNIT: usize = 1 << 10;

/// What is asked for.
#[derive(Clone, Copy, Default)]
struct Wanted {
    length: bool,
    matches: bool,
    lengths_of_matches: bool,
    least_match: usize,
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]`.
pub(super) fn lcs(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let wanted = options(arguments)?;
    let [one, other] = [1, 2].map(|at| {
        let key = Key::from(arguments.get(at));
        let value = context.database().get(&key);
        let text = value.and_then(|value| context.values().text(&key, &value));
        context.note_lookup(key.as_bytes(), text.is_some());
        text.unwrap_or_else(|| Text::Plain(Value::from(&b""[..])))
    });
    let rows = if wanted.length { 2 } else { one.len() + 1 };
    let cells = rows.checked_mul(other.len() + 1);
    let bytes = cells.and_then(|cells| cells.checked_mul(size_of::<u32>()));
    let most = context.server.live.max_argument.bytes();
    let is_small = u32::try_from(one.len().max(other.len())).is_ok();
    let bytes = bytes.filter(|bytes| is_small && *bytes <= most);
    let bytes = bytes.ok_or(Failure::Text(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    ))?;
    let mut table = Vec::<u32>::new();
    let has_room = context.server.memory.has_room(bytes as u64);
    if !has_room || table.try_reserve_exact(bytes / size_of::<u32>()).is_err() {
        return Err(Failure::OUT_OF_MEMORY);
    }
    table.resize(other.len() + 1, 0);
    let filling = Filling {
        wanted,
        one,
        other,
        table,
        row: 0,
    };
    begin(context, arguments, filling)
}

fn options(arguments: Arguments<'_>) -> Result<Wanted, Failure> {
    let mut wanted = Wanted::default();
    let mut rest = arguments.skip(3);
    while let Some(option) = rest.next() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        if is("idx") {
            wanted.matches = true;
        } else if is("len") {
            wanted.length = true;
        } else if is("withmatchlen") {
            wanted.lengths_of_matches = true;
        } else if is("minmatchlen")
            && let Some(least) = rest.next()
        {
            let least = number::parse(least).ok_or(Failure::NOT_AN_INTEGER)?;
            wanted.least_match = usize::try_from(least).unwrap_or(0);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    if wanted.matches && wanted.length {
        return Err(Failure::Text(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    Ok(wanted)
}

/// A table that is being filled.
struct Filling {
    wanted: Wanted,
    one: Text,
    other: Text,
    /// Rows of a number for each beginning of the other value: the first row is for the empty
    /// beginning of the one. If only the length is asked for, the last row alone.
    table: Vec<u32>,
    /// Bytes of the one value that are done.
    row: usize,
}

/// A part that both values have, by its places in them.
struct Match {
    one: usize,
    other: usize,
    length: usize,
}

impl Work for Filling {
    fn step(&mut self, context: &mut Context<'_>, _: Arguments<'_>) -> Result<Step, Failure> {
        let width = self.other.len() + 1;
        while self.row < self.one.len() {
            let byte = self.one[self.row];
            let above = self.table.len() - width;
            self.table.push(0);
            for at in 1..width {
                let longest = if byte == self.other[at - 1] {
                    self.table[above + at - 1] + 1
                } else {
                    let left = self.table[above + width + at - 1];
                    left.max(self.table[above + at])
                };
                self.table.push(longest);
            }
            if self.wanted.length {
                self.table.drain(..width);
            }
            self.row += 1;
            if context.turn.spend(1 + width / CELLS_PER_UNIT) {
                return Ok(Step::Rest);
            }
        }
        let length = self.table.last().copied().unwrap_or(0);
        if self.wanted.length {
            context.reply.integer(length.into());
            return Ok(Step::Done);
        }
        let (common, matches) = self.way_back();
        let reply = &mut *context.reply;
        if self.wanted.matches {
            let least = self.wanted.least_match;
            let long: Vec<_> = matches.iter().filter(|one| one.length >= least).collect();
            reply.map(2);
            reply.bulk(b"matches");
            reply.array(long.len());
            for found in long {
                reply.array(2 + usize::from(self.wanted.lengths_of_matches));
                for place in [found.one, found.other] {
                    reply.array(2);
                    reply.count(place);
                    reply.count(place + found.length - 1);
                }
                if self.wanted.lengths_of_matches {
                    reply.count(found.length);
                }
            }
            reply.bulk(b"len");
            reply.integer(length.into());
        } else {
            reply.bulk(&common);
        }
        let table = std::mem::take(&mut self.table);
        free(table.capacity() * size_of::<u32>(), table);
        Ok(Step::Done)
    }
}

impl Filling {
    /// What both values have, and its parts, the last one first.
    fn way_back(&self) -> (Vec<u8>, Vec<Match>) {
        let width = self.other.len() + 1;
        let cell = |one: usize, other: usize| self.table[one * width + other];
        let (mut one, mut other) = (self.one.len(), self.other.len());
        let (mut common, mut matches) = (Vec::new(), Vec::<Match>::new());
        let mut goes_on = false;
        while one > 0 && other > 0 {
            if self.one[one - 1] == self.other[other - 1] {
                (one, other) = (one - 1, other - 1);
                common.push(self.one[one]);
                match matches.last_mut() {
                    Some(last) if goes_on => {
                        (last.one, last.other) = (one, other);
                        last.length += 1;
                    }
                    _ => matches.push(Match {
                        one,
                        other,
                        length: 1,
                    }),
                }
                goes_on = true;
            } else {
                goes_on = false;
                if cell(one - 1, other) > cell(one, other - 1) {
                    one -= 1;
                } else {
                    other -= 1;
                }
            }
        }
        common.reverse();
        (common, matches)
    }
}
