//! What a write notes of a key for a listener.

use crate::database::Database;
use crate::effects::Effects;
use crate::notices::Happening;
use crate::{Expiry, Key, Value};

impl Database<'_> {
    /// Notes that a key has a value instead of what was there, perhaps only in memory. To be called
    /// under its lock.
    #[inline]
    pub(crate) fn report_put(
        &self,
        effects: &mut Effects<'_>,
        key: &Key,
        before: Option<&Value>,
        after: Option<Expiry>,
    ) {
        if !effects.are_reported() {
            return;
        }
        let is_over = before.is_some_and(|before| !self.is_alive(before));
        if is_over {
            effects.notice(self.number(), key, Happening::Expired);
        }
        let happening = Happening::Put {
            is_new: is_over || before.is_none(),
            expires: after.is_some(),
        };
        effects.notice(self.number(), key, happening);
    }

    /// Notes that a key is gone which had this value, perhaps only in memory. To be called under
    /// its lock.
    #[inline]
    pub(crate) fn report_removed(&self, effects: &mut Effects<'_>, key: &Key, before: &Value) {
        if !effects.are_reported() {
            return;
        }
        let happening = match self.is_alive(before) {
            true => Happening::Removed,
            false => Happening::Expired,
        };
        effects.notice(self.number(), key, happening);
    }
}
