//! Removes keys whose time has come. No command sees such a key any more; what is left of it is
//! memory, a count, and the log. The rows of a table are seen until they are removed here.

use crate::server::Shared;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often keys are looked for whose time has come.
const LOOK: Duration = Duration::from_millis(10);

/// Keys of a database, or of tables, that are removed before others on this thread have their turn:
/// some tens of microseconds.
const SLICE: usize = 64;

/// Removes keys for as long as the server runs.
pub(crate) async fn keep(server: &Shared) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let is_on = || server.expires.load(Relaxed);
        // If the log takes nothing more, they stay, unseen. What is wrong is said elsewhere.
        while is_on() && server.store.expire(SLICE).is_ok_and(|(_, is_more)| is_more) {
            tokio::task::yield_now().await;
        }
        server.store.forward();
    }
}
