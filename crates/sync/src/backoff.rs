//! Waiting for another thread when there is no lock to sleep on.

/// Waits a little longer at each step: first by spinning, then by yielding the core.
///
/// Use it for waits that another running thread will end soon. Under a checker each step is a
/// yield.
///
/// ```
/// use tremula_sync::Backoff;
///
/// let mut tries = 0;
/// let backoff = Backoff::new();
/// while tries < 3 {
///     tries += 1;
///     backoff.wait();
/// }
/// ```
#[derive(Debug, Default)]
pub struct Backoff {
    #[cfg(not(any(loom, shuttle, sim)))]
    steps: crossbeam_utils::Backoff,
    #[cfg(sim)]
    steps: std::cell::Cell<u32>,
}

impl Backoff {
    /// A back-off that has not waited yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits one step.
    pub fn wait(&self) {
        #[cfg(any(loom, shuttle))]
        crate::thread::yield_now();
        #[cfg(not(any(loom, shuttle, sim)))]
        self.steps.snooze();
        #[cfg(sim)]
        self.snooze();
    }

    /// What `crossbeam_utils::Backoff::snooze` does, in virtual time.
    #[cfg(sim)]
    fn snooze(&self) {
        /// From this step on, a wait yields the core.
        const SPINNING_STEPS: u32 = 6;
        let step = self.steps.get();
        if step <= SPINNING_STEPS {
            (0..1 << step).for_each(|_| crate::spin_loop());
            self.steps.set(step + 1);
        } else {
            crate::thread::yield_now();
        }
    }
}
