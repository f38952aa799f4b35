//! What a server says while it starts: on a terminal, in its log, and to the system's manager of
//! services.

use crate::huge_pages;
use crate::service::Service;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use std::fs;
use std::time::{Duration, Instant};
use tremula_store::{Folder, Log, Progress, Sequence};

/// How often the log and the manager of services hear of it.
const EVERY: Duration = Duration::from_secs(1);

/// How long the manager of services waits for the next word. A page of the disk takes less.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shows how far a server has come that applies what it has kept.
pub(crate) struct Startup<'a> {
    service: &'a Service,
    bar: ProgressBar,
    snapshot: u64,
    last: Sequence,
    /// The first sequence of the log that was applied.
    first: Option<u64>,
    spoke: Option<Instant>,
}

impl<'a> Startup<'a> {
    /// `folder` and `log` say how much there is. The bar is drawn only on a terminal.
    pub(crate) fn new(service: &'a Service, folder: &Folder, log: &dyn Log) -> Self {
        let newest = folder
            .snapshots()
            .ok()
            .and_then(|all| all.into_iter().next());
        let length = newest.and_then(|path| fs::metadata(path).ok());
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {eta} left") {
            bar.set_style(style);
        }
        Self {
            service,
            bar,
            snapshot: length.map_or(0, |length| length.len()),
            last: log.tail().next.before(),
            first: None,
            spoke: None,
        }
    }

    /// Says how far it has come, if the last word is a second ago.
    pub(crate) fn show(&mut self, progress: Progress) {
        huge_pages::fit();
        let (done, all, text) = match progress {
            Progress::Snapshot(bytes) => {
                let (done, all) = (HumanBytes(bytes), HumanBytes(self.snapshot));
                let text = format!("loading the snapshot: {done} of {all}");
                (bytes, self.snapshot, text)
            }
            Progress::Log(sequence) => {
                let before = *self.first.get_or_insert(sequence.saturating_sub(1));
                let all = self.last.get().saturating_sub(before);
                let done = sequence.saturating_sub(before).min(all);
                let text = format!("applying the log: {done} of {all} effects");
                (done, all, text)
            }
            _ => return,
        };
        self.bar.set_length(all);
        self.bar.set_position(done);
        if self.spoke.is_some_and(|spoke| spoke.elapsed() < EVERY) {
            return;
        }
        self.spoke = Some(Instant::now());
        if self.bar.is_hidden() {
            tracing::info!("{text}");
        }
        self.service.wait_longer(PATIENCE);
        self.service.status(&text);
        self.bar.set_message(text);
    }

    /// Clears the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_log::{Batch, MemoryLog};

    #[test]
    fn how_far_it_has_come_is_counted_from_where_it_began() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(
            directory.path().join(format!("snapshot-{:020}.tremula", 7)),
            [0; 2048],
        )
        .expect("a file");
        let log = MemoryLog::new();
        for _ in 0..10 {
            log.append(&Batch::of(b"record"), None).expect("appended");
        }
        let service = Service::default();
        let mut startup = Startup::new(&service, &Folder::new(directory.path()), &log);
        let mut shown = |progress| {
            startup.spoke = None;
            startup.show(progress);
            (
                startup.bar.position(),
                startup.bar.length(),
                startup.bar.message(),
            )
        };
        let text = |text: &str| text.to_owned();
        assert_eq!(
            shown(Progress::Snapshot(512)),
            (
                512,
                Some(2048),
                text("loading the snapshot: 512 B of 2.00 KiB")
            )
        );
        assert_eq!(
            shown(Progress::Log(7)),
            (1, Some(4), text("applying the log: 1 of 4 effects"))
        );
        assert_eq!(
            shown(Progress::Log(10)),
            (4, Some(4), text("applying the log: 4 of 4 effects"))
        );
    }
}
