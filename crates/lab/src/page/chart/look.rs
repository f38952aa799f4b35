//! What each contestant looks like: its colour, its marker, and whether it is ours.
//!
//! The colours are those of Okabe and Ito ("Color universal design", 2002), which colour-blind
//! readers can distinguish, with a yellow darkened for white paper; the style sheet defines them.
//! Two contestants of one colour in a chart differ in their markers, and rivals have hollow markers
//! and dashed lines.
//! markers and dashed lines.

use crate::contestants::{Side, side_of};
use std::fmt::Write;

/// How a contestant is drawn, in every chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Look {
    /// The number of its colour, from 1 on; the style sheet has the classes `c1`, `c2`, …
    pub(in crate::page) colour: u8,
    pub(in crate::page) marker: Marker,
    /// Whether it is of this project.
    pub(in crate::page) is_ours: bool,
}

/// How many colours there are. The last one, the text's colour, is for baselines.
const COLOURS: u8 = 8;

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum Marker {
    Circle,
    Square,
    Diamond,
    Triangle,
    Wedge,
    Hexagon,
    Cross,
    Plus,
}

const MARKERS: [(&str, Marker); 8] = [
    ("circle", Circle),
    ("square", Square),
    ("diamond", Diamond),
    ("triangle", Triangle),
    ("wedge", Wedge),
    ("hexagon", Hexagon),
    ("cross", Cross),
    ("plus", Plus),
];

use Marker::{Circle, Cross, Diamond, Hexagon, Plus, Square, Triangle, Wedge};

/// The chosen looks, by the structure that a contestant is built on: a table or a variant shares
/// it. Each line has a name, the number of a colour and a marker.
const LOOKS: &str = include_str!("../../../data/looks.tsv");

/// The colour and the marker chosen for a contestant.
///
/// # Panics
///
/// Its line names no colour or no marker. The list is part of the program, and a test reads it.
fn chosen(engine: &str) -> Option<(u8, Marker)> {
    let line = LOOKS.lines().find_map(|line| {
        let (name, look) = line.split_once('\t')?;
        (name == engine).then_some(look)
    });
    let (colour, marker) = line?.split_once('\t')?;
    let marker = MARKERS.into_iter().find(|(name, _)| *name == marker);
    let (_, marker) = marker.expect("a look names a marker");
    Some((colour.parse().expect("a look names a colour"), marker))
}

impl Look {
    /// The look of the contestant with this name. An unknown contestant gets a look computed from
    /// its name.
    pub(in crate::page) fn of(engine: &str) -> Self {
        let is_ours = is_ours(engine);
        let (colour, marker) = chosen(engine).unwrap_or_else(|| {
            let mixed = mixed(engine);
            // The last colour is reserved for baselines.
            let colour = (mixed % u64::from(COLOURS - 1)) as u8 + 1;
            let (_, marker) = MARKERS[(mixed >> 32) as usize % MARKERS.len()];
            (colour, marker)
        });
        Self {
            colour,
            marker,
            is_ours,
        }
    }

    /// The class of the style sheet.
    pub(in crate::page) fn class(self) -> String {
        let side = if self.is_ours { "ours" } else { "rival" };
        format!("c{} {side}", self.colour)
    }
}

/// A number from a name, the same in every run: FNV-1a.
fn mixed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Prefixes of the names of contestants of this project that are no engines.
const OURS: [&str; 7] = [
    "ca_tree_",
    "lfca_tree_",
    "table_",
    "size_of_table_",
    "mailbox_",
    "striped",
    "tremula",
];

/// Whether a contestant is of this project. For a contestant that this lab does not know, its name
/// decides.
pub(in crate::page) fn is_ours(engine: &str) -> bool {
    let is_known = matches!(side_of(engine), Some(Side::Ours | Side::Variant));
    is_known || OURS.iter().any(|start| engine.starts_with(start))
}

/// The length of the longest name in a chart.
const LONGEST_NAME: usize = 26;

/// A name as a chart shows it. A long one keeps its end, because similar names differ there.
pub(in crate::page) fn short(engine: &str) -> String {
    let letters = engine.chars().count();
    if letters <= LONGEST_NAME {
        return engine.to_owned();
    }
    let end = engine.chars().skip(letters + 1 - LONGEST_NAME);
    std::iter::once('…').chain(end).collect()
}

impl Marker {
    /// The outline of the marker around a place.
    pub(in crate::page) fn path(self, x: f64, y: f64, size: f64) -> String {
        let outline: &[(f64, f64)] = match self {
            Circle => {
                let across = 2.0 * size;
                return format!(
                    "M{:.1} {y:.1}a{size} {size} 0 1 0 {across} 0a{size} {size} 0 1 0 -{across} 0z",
                    x - size
                );
            }
            Cross | Plus => {
                let arm = if self == Plus { size * 1.2 } else { size };
                let (dx, dy) = if self == Plus { (0.0, arm) } else { (arm, arm) };
                let (ex, ey) = if self == Plus {
                    (arm, 0.0)
                } else {
                    (arm, -arm)
                };
                return format!(
                    "M{:.1} {:.1}L{:.1} {:.1}M{:.1} {:.1}L{:.1} {:.1}",
                    x - dx,
                    y - dy,
                    x + dx,
                    y + dy,
                    x - ex,
                    y - ey,
                    x + ex,
                    y + ey
                );
            }
            Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            Triangle => &[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
            Wedge => &[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)],
            Hexagon => &[
                (-1.15, 0.0),
                (-0.55, -1.0),
                (0.55, -1.0),
                (1.15, 0.0),
                (0.55, 1.0),
                (-0.55, 1.0),
            ],
        };
        let mut path = String::new();
        for (at, (dx, dy)) in outline.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            write!(path, "{letter}{:.1} {:.1}", x + dx * size, y + dy * size)
                .expect("a string takes all text");
        }
        path + "z"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_within_the_palette_and_no_two_known_of_a_side_are_alike_by_chance() {
        let mut known = std::collections::BTreeSet::new();
        for line in LOOKS.lines() {
            let (name, _) = line.split_once('\t').expect("a look has a name");
            let (colour, marker) = chosen(name).expect("it is chosen");
            assert!((1..=COLOURS).contains(&colour), "{name}");
            assert!(known.insert(name), "{name} twice");
            assert_eq!(Look::of(name).marker, marker);
        }
        let engines = tremula_papers::AnyEngine::ALL.map(|engine| Look::of(engine.name()));
        for (at, look) in engines.iter().enumerate() {
            assert!(look.is_ours && !engines[..at].contains(look), "{look:?}");
        }
    }

    #[test]
    fn unknown_names_have_a_look_too_and_always_the_same() {
        let look = Look::of("something_new");
        assert_eq!(look, Look::of("something_new"));
        assert!((1..COLOURS).contains(&look.colour) && !look.is_ours);
        assert!(is_ours("ca_tree_coarse") && is_ours("tremula_serve"));
        assert_eq!(short("ca_tree"), "ca_tree");
        let long = short("size_of_erlang_ordered_set_central");
        assert_eq!(long, "…rlang_ordered_set_central");
        assert_eq!(long.chars().count(), LONGEST_NAME);
        assert!(!is_ours("congee") && !is_ours("redis_server") && !is_ours("erlang_ets_new"));
    }
}
