//! The changes of steps over several keys, with what each key was before.

use super::{Edit, Effects, What};
use crate::{Key, Value};
use std::ops::ControlFlow;
use tremula_index::{KeyRange, Transaction, View};

/// The changes of a step that stores entries in their order, of which those with the same key
/// follow each other.
pub(crate) fn puts(
    effects: &Effects<'_>,
    step: &mut dyn Transaction<Key, Value>,
    entries: &[(Key, Value)],
) -> Vec<Edit> {
    if !effects.are_logged() {
        return Vec::new();
    }
    let mut last: Option<&(Key, Value)> = None;
    let each = entries.iter().map(|entry| {
        let (key, value) = entry;
        let mut before = effects.before(None);
        match last.replace(entry).filter(|(earlier, _)| earlier == key) {
            Some((_, earlier)) => before = effects.before(Some(earlier)),
            None if effects.have_before() => {
                step.get_with(key, &mut |old| before = effects.before(Some(old)));
            }
            None => {}
        }
        let what = What::Put(key.clone(), value.clone());
        Edit { what, before }
    });
    each.collect()
}

/// The changes of a step that removes a range, one by one. O(keys of the range).
pub(crate) fn removals(
    effects: &Effects<'_>,
    view: &dyn View<Key, Value>,
    range: KeyRange<'_, Key>,
) -> Vec<Edit> {
    let mut changes = Vec::new();
    view.range(range, &mut |key, value| {
        let what = What::Delete(key.clone());
        let before = effects.before(Some(value));
        changes.push(Edit { what, before });
        ControlFlow::Continue(())
    });
    changes
}
