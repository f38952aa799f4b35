//! What each contestant looks like: its colour, its marker, and whether it is ours.
//!
//! The colours are those of Okabe and Ito ("Color universal design", 2002), which colour-blind
//! readers tell apart, with their yellow darkened for white paper; the style sheet has them. Two
//! contestants of one colour that meet in a chart differ in their markers, and rivals have hollow
//! markers and dashed lines.

use crate::contestants::{Side, side_of};
use std::fmt::Write;

/// How a contestant is drawn, in every chart alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Look {
    /// The number of its colour, from 1 on: the class of the style sheet is `c1`, `c2`, …
    pub(in crate::page) colour: u8,
    pub(in crate::page) marker: Marker,
    /// Whether it is of this project.
    pub(in crate::page) is_ours: bool,
}

/// How many colours there are. The last is that of the text: what others are measured by.
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

use Marker::{Circle, Cross, Diamond, Hexagon, Plus, Square, Triangle, Wedge};

/// Those that are known, by the structure that they are: a table or a variant is named after it.
const LOOKS: [(&str, u8, Marker); 66] = [
    ("ca_tree_coarse", 3, Wedge),
    ("ca_tree_fine", 7, Cross),
    ("central", 8, Square),
    ("striped", 1, Circle),
    ("size_of_table_set", 5, Diamond),
    ("size_of_table_ordered_set", 2, Square),
    ("size_of_erlang_set_central", 8, Wedge),
    ("size_of_erlang_set_decentralized", 5, Wedge),
    ("size_of_erlang_ordered_set_central", 7, Triangle),
    ("size_of_erlang_ordered_set_decentralized", 2, Triangle),
    ("ca_tree", 1, Circle),
    ("lfca_tree", 5, Diamond),
    ("b_tree", 2, Square),
    ("bw_tree", 4, Triangle),
    ("art", 3, Wedge),
    ("masstree", 6, Hexagon),
    ("skip_list", 7, Cross),
    ("background_skip_list", 7, Plus),
    ("locked", 8, Square),
    ("table_ca_tree", 1, Circle),
    ("table_set", 5, Diamond),
    ("table_b_tree", 2, Square),
    ("table_bw_tree", 4, Triangle),
    ("table_skip_list", 7, Cross),
    ("table_background_skip_list", 7, Plus),
    ("table_locked", 8, Square),
    ("bw_all_on", 4, Triangle),
    ("bw_all_off", 8, Square),
    ("bw_preallocation", 1, Circle),
    ("bw_local_epochs", 2, Hexagon),
    ("bw_fast_consolidation", 3, Wedge),
    ("bw_search_shortcuts", 5, Diamond),
    ("bw_chain_filter", 6, Cross),
    ("mailbox_auto", 1, Circle),
    ("mailbox_on_heap", 5, Diamond),
    ("mailbox_off_heap", 2, Square),
    ("plain_locks", 8, Square),
    ("threading", 2, Square),
    ("local_set", 3, Wedge),
    ("affinity", 1, Circle),
    ("threading_article", 6, Hexagon),
    ("local_set_article", 7, Triangle),
    ("affinity_article", 5, Diamond),
    ("tremula_serve", 1, Circle),
    ("redis_server", 8, Square),
    ("btreemap", 8, Square),
    ("rwlock_btreemap", 8, Wedge),
    ("crossbeam_skiplist", 7, Triangle),
    ("scc_tree_index", 5, Circle),
    ("concurrent_map", 6, Square),
    ("congee", 3, Diamond),
    ("masstree_crate", 6, Hexagon),
    ("ferntree", 2, Circle),
    ("artmap", 3, Triangle),
    ("arctic_map", 4, Diamond),
    ("erlang_ets_old", 8, Diamond),
    ("erlang_ets_new", 1, Triangle),
    ("erlang_ets_set", 5, Wedge),
    ("erlang_off_heap", 2, Triangle),
    ("erlang_on_heap", 5, Wedge),
    ("std_mpsc", 8, Circle),
    ("crossbeam_channel", 6, Hexagon),
    ("kanal", 3, Diamond),
    ("tokio_mpsc", 7, Triangle),
    ("spillway", 4, Circle),
    ("crossfire", 3, Hexagon),
];

impl Look {
    /// Of the contestant with this name. One that is not known gets a look from its name.
    pub(in crate::page) fn of(engine: &str) -> Self {
        let is_ours = is_ours(engine);
        let known = LOOKS.iter().find(|(name, ..)| *name == engine);
        let (colour, marker) = known.map_or_else(
            || {
                let all = [
                    Circle, Square, Diamond, Triangle, Wedge, Hexagon, Cross, Plus,
                ];
                let mixed = mixed(engine);
                // The last colour is for what others are measured by.
                let colour = (mixed % u64::from(COLOURS - 1)) as u8 + 1;
                (colour, all[(mixed >> 32) as usize % all.len()])
            },
            |&(_, colour, marker)| (colour, marker),
        );
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

/// What the names of ours begin with that are no engines by themselves.
const OURS: [&str; 7] = [
    "ca_tree_",
    "lfca_tree_",
    "table_",
    "size_of_table_",
    "mailbox_",
    "striped",
    "tremula",
];

/// Whether a contestant is of this project. One that this lab does not know is, if it is named as
/// ours are.
pub(in crate::page) fn is_ours(engine: &str) -> bool {
    let is_known = matches!(side_of(engine), Some(Side::Ours | Side::Variant));
    is_known || OURS.iter().any(|start| engine.starts_with(start))
}

/// The longest name that is written in a chart.
const LONGEST_NAME: usize = 26;

/// A name as it is written in a chart: of a long one the end, where names that begin alike differ.
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
        for (at, (name, colour, marker)) in LOOKS.iter().enumerate() {
            assert!((1..=COLOURS).contains(colour), "{name}");
            assert!(
                LOOKS[..at].iter().all(|(other, ..)| other != name),
                "{name} twice"
            );
            assert_eq!(Look::of(name).marker, *marker);
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
