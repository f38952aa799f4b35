//! Monitors: a message when a mailbox goes down.

use crate::Sender;
use crate::extras::{MonitorList, Notice};
use std::fmt;
use tremula_sync::Arc;

/// A request for a message when a mailbox goes down, see [`Sender::monitor`]. Dropping it does not
/// cancel the request; [`demonitor`](Self::demonitor) does.
pub struct Monitor {
    /// The list that contains the request, and the request's number. `None` if the mailbox was
    /// already down.
    entry: Option<(Arc<MonitorList>, u64)>,
}

impl Monitor {
    /// Cancels the request. `true` if the message has not been sent and will not be.
    pub fn demonitor(self) -> bool {
        let notice = self.entry.and_then(|(list, number)| list.remove(number));
        notice.is_some()
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Monitor").finish_non_exhaustive()
    }
}

impl<T> Sender<T> {
    /// Sends `down` to the watcher's mailbox when this sender's mailbox goes down, that is, when it
    /// is dropped; at once if it is already down.
    ///
    /// The order promise is stronger than Erlang's: the message comes behind everything whose
    /// sending to the watcher ended before the mailbox went down, by any sender. So a watcher that
    /// sees it has seen every message, and every answer, that the owner of the mailbox sent before.
    /// It takes no capacity of a bounded watcher.
    ///
    /// Until then the watcher's mailbox counts one more sender, so it is not disconnected.
    ///
    /// ```
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (to_worker, worker) = mailbox::<u64>(Config::default());
    /// let (to_watcher, mut watcher) = mailbox(Config::default());
    /// let monitor = to_worker.monitor(&to_watcher, "the worker is down");
    /// to_watcher.clone().send("the worker's last word").unwrap();
    /// drop(worker);
    /// assert_eq!(watcher.recv(), Ok("the worker's last word"));
    /// assert_eq!(watcher.recv(), Ok("the worker is down"));
    /// assert!(!monitor.demonitor()); // too late
    /// ```
    pub fn monitor<U: Send + 'static>(&self, watcher: &Sender<U>, down: U) -> Monitor {
        let watcher = watcher.clone();
        let notice: Notice = Box::new(move || {
            // A watcher that is itself down needs no message.
            let _ = watcher.send_behind_all(down);
        });
        let Some(extras) = self.shared.make_extras() else {
            notice();
            return Monitor { entry: None };
        };
        match extras.monitors().add(notice) {
            Ok(number) => Monitor {
                entry: Some((Arc::clone(extras.monitors()), number)),
            },
            Err(notice) => {
                notice();
                Monitor { entry: None }
            }
        }
    }
}
