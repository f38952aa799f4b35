//! Searching a base node: the hints tell a segment, and then its heads are compared.

use super::base::{BaseRef, GROUP, STRIDE};
use super::keys::{Place, Probe};
use std::ops::Range;
use tremula_index::Storable;
use tremula_index::key::KeyHead;
use tremula_index::kit::{head_is_key, prefetch};

/// How many of a few ascending heads lie below `head`. Nothing is there to be mispredicted, and
/// none of the comparisons waits for another.
#[inline(always)]
fn count_below<const N: usize>(heads: [u64; N], head: u64) -> usize {
    heads
        .into_iter()
        .map(|other| usize::from(other < head))
        .sum()
}

/// How many of some ascending heads, whole groups of them, lie below `head`: the greatest of each
/// group tell the group, and then its heads are looked at.
#[inline(always)]
fn count_below_in_groups(heads: &[u64], head: u64) -> usize {
    let Some(last) = heads.len().checked_sub(GROUP) else {
        return 0;
    };
    let mut start = 0;
    for group in heads[..last].chunks_exact(GROUP) {
        start += GROUP * usize::from(group[GROUP - 1] < head);
    }
    let group = heads[start..].first_chunk::<GROUP>();
    start + group.map_or(0, |group| count_below(*group, head))
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BaseRef<'_, K, V, H> {
    /// How many heads lie below one, by the hints.
    #[inline(always)]
    fn below(self, head: u64) -> usize {
        let segment = count_below_in_groups(self.hints(), head);
        let heads = self.heads();
        // The last segment is as long as the others, and so begins in the one before.
        let Some(last) = heads.len().checked_sub(STRIDE) else {
            return heads.iter().take_while(|other| **other < head).count();
        };
        let start = (segment * STRIDE).min(last);
        let values = self.values().as_ptr().wrapping_add(start);
        prefetch(values);
        prefetch(values.wrapping_add(STRIDE / 2));
        let segment = heads[start..].first_chunk::<STRIDE>();
        start + segment.map_or(0, |segment| count_below_in_groups(segment, head))
    }

    /// How many heads of these places, and in front of them, lie below one.
    #[inline(always)]
    fn below_in(self, places: Range<usize>, head: u64) -> usize {
        if self.has_shortcuts() && places.len() == self.count as usize {
            return self.below(head);
        }
        places.start + self.heads()[places].partition_point(|other| *other < head)
    }

    /// The place of a key among these, or, as an error, where it belongs.
    #[inline(always)]
    pub(super) fn search(
        self,
        probe: &Probe<'_, K, H>,
        places: Range<usize>,
    ) -> Result<usize, usize> {
        let end = places.end;
        let mut first = self.below_in(places, probe.head);
        if head_is_key::<K, H>() {
            let is_there = first < end && self.heads()[first] == probe.head;
            return if is_there { Ok(first) } else { Err(first) };
        }
        let heads = &self.heads()[first..end];
        let mut last = first + heads.partition_point(|head| *head == probe.head);
        while first < last {
            let middle = first.midpoint(last);
            // SAFETY: keys live as long as the nodes that they are in can be read.
            match unsafe { probe.compare(self.key(middle)) } {
                std::cmp::Ordering::Less => last = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => first = middle + 1,
            }
        }
        Err(first)
    }

    /// How many of the first `end` separators lie in front of a place: its child has this index.
    #[inline(always)]
    pub(super) fn child_index(self, place: &Place<'_, K, H>, end: usize) -> usize {
        let all = 0..end;
        match place {
            Place::Start => 0,
            Place::At(probe) if head_is_key::<K, H>() => match probe.head.checked_add(1) {
                Some(above) => self.below_in(all, above),
                None => all.end,
            },
            Place::At(probe) => self.search(probe, all).map_or_else(|at| at, |at| at + 1),
            Place::Before(probe) => self.search(probe, all).unwrap_or_else(|at| at),
            Place::End => all.end,
        }
    }

    /// The child with this index.
    #[inline]
    pub(super) fn child(self, index: usize) -> usize {
        match index.checked_sub(1) {
            None => self.first_child,
            Some(at) => self.values()[at].addr(),
        }
    }
}
