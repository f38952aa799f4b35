//! Searching a base node: the hints determine a segment, whose heads are then compared.

use super::Position;
use super::base::BaseRef;
use std::ops::Range;
use tremula_index::kit::{STRIDE, SearchKey, Spec, count_below, prefetch};

impl<S: Spec> BaseRef<'_, S> {
    /// How many heads are below `head`, by the hints.
    #[inline(always)]
    fn below(self, head: u64) -> usize {
        let segment = count_below(self.hints(), head);
        let heads = self.heads();
        // The last segment is as long as the others, and so begins within the one before.
        let Some(last) = heads.len().checked_sub(STRIDE) else {
            return heads.iter().take_while(|other| **other < head).count();
        };
        let start = (segment * STRIDE).min(last);
        let values = self.values().as_ptr().wrapping_add(start);
        prefetch(values);
        prefetch(values.wrapping_add(STRIDE / 2));
        let segment = heads[start..].first_chunk::<STRIDE>();
        start + segment.map_or(0, |segment| count_below(segment, head))
    }

    /// How many heads up to the end of `places` are below `head`, if all in front of `places` are.
    #[inline(always)]
    fn below_in(self, places: Range<usize>, head: u64) -> usize {
        if self.has_shortcuts() && places.len() == self.count as usize {
            return self.below(head);
        }
        places.start + self.heads()[places].partition_point(|other| *other < head)
    }

    /// The index of a key among these; as an error, where it would be inserted.
    #[inline(always)]
    pub(super) fn search(
        self,
        probe: &SearchKey<'_, S>,
        places: Range<usize>,
    ) -> Result<usize, usize> {
        let end = places.end;
        let mut first = self.below_in(places, probe.head);
        if S::HEAD_IS_KEY {
            let is_there = first < end && self.heads()[first] == probe.head;
            return if is_there { Ok(first) } else { Err(first) };
        }
        let heads = &self.heads()[first..end];
        let mut last = first + heads.partition_point(|head| *head == probe.head);
        while first < last {
            let middle = first.midpoint(last);
            // SAFETY: keys live as long as their nodes can be read.
            match unsafe { probe.compare(self.key(middle)) } {
                std::cmp::Ordering::Less => last = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => first = middle + 1,
            }
        }
        Err(first)
    }

    /// How many of the first `end` separators lie in front of a position: the index of its child.
    #[inline(always)]
    pub(super) fn child_index(self, position: &Position<'_, S>, end: usize) -> usize {
        let all = 0..end;
        match position {
            Position::First => 0,
            Position::At(probe) if S::HEAD_IS_KEY => match probe.head.checked_add(1) {
                Some(above) => self.below_in(all, above),
                None => all.end,
            },
            Position::At(probe) => self.search(probe, all).map_or_else(|at| at, |at| at + 1),
            Position::Below(probe) => self.search(probe, all).unwrap_or_else(|at| at),
            Position::Last => all.end,
        }
    }

    #[inline]
    pub(super) fn child(self, index: usize) -> usize {
        match index.checked_sub(1) {
            None => self.first_child,
            Some(at) => self.values()[at].addr(),
        }
    }
}
