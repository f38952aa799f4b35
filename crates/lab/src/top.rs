//! `tremula-lab top`: shows an experiment while it runs.
//!
//! It redraws lines in place, with the crate that draws the progress bar of `tremula-lab run`. They
//! need no alternate screen, so however the program ends, the terminal stays as it was, with the
//! last view above the prompt.

use crate::{
    LabError, Watch, case::Case, contestants::Contestant, live::Live, measure::Sample, plan::Plan,
    record::Record, rounds,
};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How often the view is drawn.
const TICK: Duration = Duration::from_millis(250);

/// How many of the latest results a sparkline shows.
const SPARKS: usize = 24;

/// How many figures of a shape are shown, so that each contestant fits into one line.
const FIGURES: usize = 4;

/// Refuses an output that is no terminal.
///
/// # Errors
///
/// Standard output is no terminal.
pub(crate) fn needs_a_terminal() -> Result<(), LabError> {
    if io::stdout().is_terminal() {
        Ok(())
    } else {
        Err(LabError::NoTerminal)
    }
}

/// Runs the experiment and shows it meanwhile; the view disappears when it is over. `keeper` gets
/// every event, and keeps the records.
///
/// # Errors
///
/// Those of [`rounds::run`].
pub(crate) fn run(
    plan: &Plan,
    contestants: &mut [Contestant],
    keeper: &mut dyn Watch,
) -> Result<(), LabError> {
    let engines = plan.contestants.iter().map(ToString::to_string).collect();
    let view = View::new(plan.experiment.name(), engines);
    let live = Arc::new(Live::default());
    let mut top = Top::start(view, Arc::clone(&live), keeper);
    let done = live.watch(|| rounds::run(plan, contestants, &mut top));
    top.end();
    done.map(|_| ())
}

/// The contents of the view.
struct View {
    experiment: String,
    /// What is measured, in words.
    case: String,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// The line of a contestant.
struct Row {
    engine: String,
    /// Whether it is being measured.
    is_on: bool,
    /// The current million operations a second, if that is known.
    now: Option<f64>,
    /// Its results in this case, in millions a second.
    runs: Vec<f64>,
    /// The figures of its shape, or of its last measurement.
    figures: Vec<(String, f64)>,
}

impl View {
    fn new(experiment: &str, engines: Vec<String>) -> Self {
        let row = |engine| Row {
            engine,
            is_on: false,
            now: None,
            runs: Vec::new(),
            figures: Vec::new(),
        };
        Self {
            experiment: experiment.to_owned(),
            case: String::new(),
            rows: engines.into_iter().map(row).collect(),
            notes: Vec::new(),
        }
    }

    /// A measurement begins. Results of another case are dropped.
    fn measures(&mut self, case: &Case, engine: &str) {
        let distribution = case.distribution.map(|distribution| distribution.name());
        let words = [
            case.workload,
            distribution.unwrap_or_default(),
            case.key_set,
        ];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let case = format!("{}, {} threads", words.join(" "), case.threads);
        let is_new = self.case != case;
        self.case = case;
        for row in &mut self.rows {
            row.is_on = row.engine == engine;
            row.now = None;
            if is_new {
                row.runs.clear();
                row.figures.clear();
            }
        }
    }

    fn sampled(&mut self, engine: &str, sample: &Sample) {
        for row in self.rows.iter_mut().filter(|row| row.engine == engine) {
            row.is_on = false;
            row.now = None;
            row.runs.push(sample.mops());
            if !sample.figures.is_empty() {
                row.figures.clone_from(&sample.figures);
            }
        }
    }

    /// Updates the contestant that is being measured.
    fn seen(&mut self, now: Option<f64>, figures: &[(String, f64)]) {
        for row in self.rows.iter_mut().filter(|row| row.is_on) {
            row.now = now.or(row.now);
            if !figures.is_empty() {
                row.figures = figures.to_vec();
            }
        }
    }

    /// The heading, then a line for each contestant.
    fn lines(&self) -> Vec<String> {
        let width = self.rows.iter().map(|row| row.engine.chars().count());
        let width = width.max().unwrap_or(0);
        let all = self.rows.iter().flat_map(|row| row.runs.iter().copied());
        let most = all.fold(0.0, f64::max);
        let mut lines = vec![format!("{}: {}", self.experiment, self.case)];
        lines.extend(self.rows.iter().map(|row| row.line(width, most)));
        lines
    }
}

impl Row {
    /// Formats the line; `most` is the best result of all, which fills a spark.
    fn line(&self, width: usize, most: f64) -> String {
        let mark = if self.is_on { '>' } else { ' ' };
        let figure = match (self.now, self.runs.last()) {
            (Some(now), _) => format!("{now:9.3} M/s now "),
            (None, Some(last)) => format!("{last:9.3} M/s last"),
            (None, None) => format!("{:>9} M/s     ", "-"),
        };
        let shown = self.figures.iter().take(FIGURES);
        let figures: Vec<_> = shown
            .map(|(name, figure)| format!("{name} {}", short(*figure)))
            .collect();
        let sparks = sparkline(&self.runs, most);
        format!(
            "{mark} {:<width$} {figure}  {sparks:<SPARKS$}  {}",
            self.engine,
            figures.join("  "),
        )
        .trim_end()
        .to_owned()
    }
}

/// A whole number without decimals, any other with two.
fn short(figure: f64) -> String {
    let decimals = if figure.fract() == 0.0 { 0 } else { 2 };
    format!("{figure:.decimals$}")
}

/// The latest values, each relative to `most`.
fn sparkline(values: &[f64], most: f64) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let spark = |value: &f64| {
        // No value exceeds `most`; NaN becomes the lowest level.
        let level = (value / most * LEVELS.len() as f64).ceil() as usize;
        LEVELS[level.clamp(1, LEVELS.len()) - 1]
    };
    let latest = values.len().saturating_sub(SPARKS);
    values[latest..].iter().map(spark).collect()
}

/// The view, and the thread that draws it.
struct Top<'a> {
    view: Arc<Mutex<View>>,
    progress: ProgressBar,
    screen: MultiProgress,
    /// The view is drawn until this is dropped.
    on: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
    keeper: &'a mut dyn Watch,
}

impl<'a> Top<'a> {
    fn start(view: View, live: Arc<Live>, keeper: &'a mut dyn Watch) -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let line = || {
            let style = ProgressStyle::with_template("{wide_msg}").expect("the template is right");
            screen.add(ProgressBar::new_spinner().with_style(style))
        };
        let lines: Vec<_> = view.lines().iter().map(|_| line()).collect();
        let progress = screen.add(ProgressBar::no_length());
        let view = Arc::new(Mutex::new(view));
        let (on, off) = mpsc::channel();
        let ticker = thread::spawn({
            let (view, progress) = (Arc::clone(&view), progress.clone());
            move || {
                let mut speed = Speed::default();
                while off.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    let (now, figures) = (speed.read(&live), live.figures());
                    let mut view = lock(&view);
                    view.seen(now, &figures);
                    for (line, text) in lines.iter().zip(view.lines()) {
                        line.set_message(text);
                    }
                    progress.tick();
                }
            }
        });
        Self {
            view,
            progress,
            screen,
            on: Some(on),
            ticker: Some(ticker),
            keeper,
        }
    }

    /// Ends the drawing, and removes the view.
    fn end(&mut self) {
        drop(self.on.take());
        if let Some(ticker) = self.ticker.take() {
            // If the thread panicked, the panic message was printed.
            let _ = ticker.join();
        }
        // A terminal that has gone needs no error.
        let _ = self.screen.clear();
        for note in lock(&self.view).notes.drain(..) {
            eprintln!("{note}");
        }
    }
}

/// Locks the view. It is consistent whenever it is unlocked, even after a panic.
fn lock(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch for Top<'_> {
    fn begins(&mut self, measurements: u64) {
        self.keeper.begins(measurements);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} left");
        self.progress
            .set_style(style.expect("the template is right"));
        self.progress.set_length(measurements);
    }

    fn measures(&mut self, case: &Case, engine: &str) {
        self.keeper.measures(case, engine);
        lock(&self.view).measures(case, engine);
    }

    fn sampled(&mut self, _case: &Case, engine: &str, sample: &Sample) {
        lock(&self.view).sampled(engine, sample);
    }

    fn wrong(&mut self, case: &Case, fault: &LabError) {
        let note = format!(
            "note: no figure for {}, {}: {fault}",
            case.workload, case.key_set
        );
        lock(&self.view).notes.push(note);
    }

    fn keeps(&mut self, group: &[Record]) -> bool {
        self.keeper.keeps(group)
    }

    fn interrupted(&self) -> bool {
        self.keeper.interrupted()
    }

    fn measured(&mut self) {
        self.keeper.measured();
        self.progress.inc(1);
    }

    fn finished(&mut self, records: &[Record]) -> Result<(), LabError> {
        self.keeper.finished(records)
    }
}

/// The speed of the current measurement between two looks at it.
#[derive(Default)]
struct Speed {
    /// The number of the measurement, the operations done in it, and when that was seen.
    last: Option<(u64, u64, Instant)>,
}

impl Speed {
    /// Million operations a second since the last look at the same measurement.
    fn read(&mut self, live: &Live) -> Option<f64> {
        let now = Instant::now();
        let last = self.last.take();
        let (which, done) = live.done()?;
        self.last = Some((which, done, now));
        let (before, done_before, then) = last?;
        let since = Sample::new(done.saturating_sub(done_before), now - then);
        (which == before).then(|| since.mops())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::together_sliced;

    fn case(workload: &'static str) -> Case {
        Case {
            workload,
            distribution: None,
            key_set: "rand_int",
            threads: 2,
            keys: 10,
        }
    }

    fn view() -> View {
        View::new("ycsb", vec!["ca_tree".to_owned(), "b_tree".to_owned()])
    }

    fn sample(mops: u64) -> Sample {
        Sample::new(mops * 1_000_000, Duration::from_secs(1))
    }

    #[test]
    fn sparks_are_parts_of_the_most() {
        assert_eq!(sparkline(&[8.0, 4.0, 1.0, 0.0], 8.0), "█▄▁▁");
        assert_eq!(sparkline(&[], 0.0), "");
        assert_eq!(sparkline(&[0.0, f64::NAN], 0.0), "▁▁");
        let many: Vec<_> = (0..100).map(f64::from).collect();
        assert_eq!(sparkline(&many, 99.0).chars().count(), SPARKS);
    }

    #[test]
    fn a_line_tells_speed_results_and_shape() {
        let mut view = view();
        view.measures(&case("c"), "ca_tree");
        assert_eq!(view.lines()[0], "ycsb: c rand_int, 2 threads");
        assert!(
            view.lines()[1].starts_with("> ca_tree"),
            "{:?}",
            view.lines()
        );
        assert!(view.lines()[2].starts_with("  b_tree ") && view.lines()[2].contains("- M/s"));
        view.seen(Some(1.5), &[("base_nodes".to_owned(), 245.0)]);
        let line = &view.lines()[1];
        assert!(
            line.contains("1.500 M/s now") && line.ends_with("base_nodes 245"),
            "{line}"
        );
        view.sampled("ca_tree", &sample(4));
        view.measures(&case("c"), "b_tree");
        view.sampled("b_tree", &sample(2));
        let lines = view.lines();
        assert!(lines[1].contains("4.000 M/s last  █"), "{lines:?}");
        assert!(lines[1].ends_with("base_nodes 245"), "{lines:?}");
        assert!(lines[2].contains("2.000 M/s last  ▄"), "{lines:?}");
        view.measures(&case("e"), "ca_tree");
        assert!(view.lines().iter().all(|line| !line.contains("last")));
    }

    #[test]
    fn what_is_measured_is_seen_while_it_is_measured() {
        let live = Arc::new(Live::default());
        assert_eq!(live.done(), None);
        let mut speeds = Vec::new();
        let mut speed = Speed::default();
        live.watch(|| {
            together_sliced(
                2,
                3,
                Duration::from_millis(5),
                |_, lap| while lap.done(1) {},
                |_| speeds.push(speed.read(&live)),
            )
        });
        assert_eq!((speeds.len(), speeds[0]), (3, None));
        assert!(speeds[1].is_some_and(|mops| mops >= 0.0), "{speeds:?}");
        assert_eq!(live.done(), None, "it is over");
        assert_eq!(speed.read(&live), None);
        together_sliced(
            1,
            1,
            TICK / 100,
            |_, lap| while lap.done(1) {},
            |_| {
                assert_eq!(live.done(), None, "nobody watches");
            },
        );
    }
}
