//! Ctrl-C: the first ends the run after the current measurement, the second ends it at once.

use crate::LabError;
use std::{
    io, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};
use tokio::signal::unix::{SignalKind, signal};

/// The exit status of a program that Ctrl-C has ended, by the convention of shells.
pub(super) const STATUS: u8 = 130;

/// Whether there was a Ctrl-C.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts a thread that waits for Ctrl-C.
    ///
    /// # Errors
    ///
    /// The system refuses to report the signal.
    pub(super) fn listen() -> Result<Self, LabError> {
        let failed = |error| LabError::Program {
            program: "listening for Ctrl-C".to_owned(),
            error,
        };
        let interrupted = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&interrupted);
        let (ready, listens) = mpsc::sync_channel(1);
        let listening = thread::Builder::new().name("ctrl-c".to_owned());
        listening
            .spawn(move || listen(&seen, &ready))
            .map_err(failed)?;
        let gone = |_| Err(io::Error::other("the thread ended"));
        listens.recv().unwrap_or_else(gone).map_err(failed)?;
        Ok(Self(interrupted))
    }

    pub(super) fn is_there(&self) -> bool {
        // Relaxed: the flag publishes no other data.
        self.0.load(Ordering::Relaxed)
    }
}

fn listen(seen: &AtomicBool, ready: &mpsc::SyncSender<io::Result<()>>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let listening = runtime.and_then(|runtime| {
        let entered = runtime.enter();
        let interrupts = signal(SignalKind::interrupt())?;
        drop(entered);
        Ok((runtime, interrupts))
    });
    let (runtime, mut interrupts) = match listening {
        Ok(listening) => listening,
        Err(error) => {
            // If the receiver is gone, nothing is measured either.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    runtime.block_on(async {
        while interrupts.recv().await.is_some() {
            if seen.swap(true, Ordering::Relaxed) {
                process::exit(i32::from(STATUS));
            }
            eprintln!("\nnote: ending after this measurement; Ctrl-C again ends at once");
        }
    });
}
