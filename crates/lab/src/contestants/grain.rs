//! Contention-adapting trees that do not adapt; `adaptation` compares them with one that does.

use tremula_index::ca_tree::CaTreeConfig;

/// A fixed grain of a `ca_tree`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FixedGrain {
    /// One base node throughout.
    Coarse,
    /// As many base nodes as `FINE_DEPTH` allows. Each splits after `SPLIT_AFTER` writes, contended
    /// or not, and none is ever joined.
    Fine,
}

/// How many route nodes lie above each base node of a filled fine tree. It gives 256 base nodes,
/// about as many as an adaptive tree has while eight threads update it.
const FINE_DEPTH: usize = 8;

/// How many writes a base node of a fine tree takes before it splits. The number is small, so that
/// the tree reaches its grain soon after filling begins. Where the depth forbids a split, the count
/// starts again from 0.
const SPLIT_AFTER: i32 = 256;

impl FixedGrain {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Coarse, Self::Fine];

    /// The only experiment that the trees take part in.
    pub(crate) const EXPERIMENT: &str = "adaptation";

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coarse => "ca_tree_coarse",
            Self::Fine => "ca_tree_fine",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Coarse => "ca_tree that never splits: one base node",
            Self::Fine => "ca_tree that splits until it has 256 base nodes, and never joins",
        }
    }

    /// The tree's configuration.
    pub(crate) fn config(self) -> CaTreeConfig {
        let adaptive = CaTreeConfig::default();
        let statistics = match self {
            // The statistics cannot reach limits outside these.
            Self::Coarse => adaptive
                .statistics
                .split_above(i32::MAX)
                .join_below(i32::MIN),
            // Each write counts towards a split.
            Self::Fine => adaptive
                .statistics
                .contended(1)
                .uncontended(-1)
                .split_above(SPLIT_AFTER)
                .join_below(i32::MIN),
        };
        CaTreeConfig::default()
            .statistics(statistics)
            .range_discount(0)
            .max_route_depth(match self {
                Self::Coarse => 0,
                Self::Fine => FINE_DEPTH,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_index::{CaTree, OrderedIndex};

    fn base_nodes(grain: FixedGrain, writes: u64) -> u64 {
        let tree = CaTree::<u64, u64>::with_config(grain.config());
        for i in 0..writes {
            tree.insert(i.wrapping_mul(0x9E37_79B9_7F4A_7C15), i);
        }
        // A scan of everything and removals cause no join.
        for i in 0..writes {
            tree.remove(&i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        let figures = tree.shape().figures;
        let [joins, bases] = ["joins", "base_nodes"].map(|name| {
            let found = figures.iter().find(|(figure, _)| *figure == name);
            found.expect("the shape tells it").1
        });
        assert_eq!(joins, 0);
        bases
    }

    #[test]
    fn a_coarse_tree_stays_whole_and_a_fine_one_splits_as_far_as_it_may() {
        assert_eq!(base_nodes(FixedGrain::Coarse, 200_000), 1);
        // Each path has as many route nodes as allowed, once every base node has taken enough
        // writes.
        assert_eq!(base_nodes(FixedGrain::Fine, 200_000), 1 << FINE_DEPTH);
        assert_eq!(base_nodes(FixedGrain::Fine, 100), 1);
    }
}
