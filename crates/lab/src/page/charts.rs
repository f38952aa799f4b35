//! Which charts an experiment has.

use super::{
    chart::{Bar, BarChart, TimeLine, percentile_chart, scaling_chart, thread_chart, time_chart},
    markup::{anchor, number},
    study::{Panel, Study, Words, in_order, slice_of},
    values,
};
use crate::record::Record;
use std::collections::BTreeSet;

/// A chart with its caption and note.
pub(super) struct Figure {
    pub(super) caption: String,
    pub(super) svg: String,
    /// Whether it takes the whole width of the page.
    pub(super) is_wide: bool,
    /// What the chart does not show.
    pub(super) note: String,
}

/// Figures that are bytes for each key, and their captions.
const BYTES: [(&str, &str); 1] = [(
    "bytes_per_key_after_removal",
    "bytes per key that stay after all keys are removed",
)];

/// The figures of a shape that are drawn over time; if a series has none of them, all its figures.
const SHAPE: [&str; 4] = ["base_nodes", "contention_splits", "leaves", "route_depth"];

/// Makes the charts of one experiment, and numbers them.
struct Gallery<'a> {
    study: &'a Study<'a>,
    words: Words,
    figures: Vec<Figure>,
}

/// The charts of an experiment, in the order of its panels.
pub(super) fn figures(study: &Study<'_>) -> Vec<Figure> {
    let mut gallery = Gallery {
        study,
        words: Words::of(study.experiment),
        figures: Vec::new(),
    };
    for panel in &study.panels {
        gallery.add_panel(panel);
    }
    gallery.figures
}

impl Gallery<'_> {
    fn id(&self) -> String {
        let number = self.figures.len() + 1;
        format!("chart-{}-{number}", anchor(self.study.experiment))
    }

    fn add(&mut self, caption: String, svg: String, is_wide: bool, note: String) {
        self.figures.push(Figure {
            caption,
            svg,
            is_wide,
            note,
        });
    }

    fn add_panel(&mut self, panel: &Panel<'_>) {
        let counts = panel.thread_counts();
        let has_series = panel.records.iter().any(|record| !record.series.is_empty());
        let weighs = |record: &&Record| record.bytes_per_key.is_some();
        if has_series {
            for &threads in &counts {
                self.add_series(panel, threads);
            }
        } else if panel.has_slices {
            self.add_slices(panel);
        } else if self.study.experiment == "memory" {
            // The table has the speed of the inserts, measured while the allocator counted.
        } else if counts.len() > 1 {
            let chart = thread_chart(self.id(), panel, self.words);
            let faint = chart.faint().join(", ");
            let note = if faint.is_empty() {
                String::new()
            } else {
                format!("Thin and grey: {faint}.")
            };
            self.add(panel.name(), chart.svg(), false, note);
            self.add_published(panel);
        } else {
            let unit = format!("million {} per second", self.words.operations);
            let value = |record: &Record| Some(record.mops);
            self.add_bars(panel, counts[0], &unit, true, value);
        }
        if panel.records.iter().any(weighs) {
            let value = |record: &Record| record.bytes_per_key;
            self.add_bars(panel, counts[0], "bytes per key", false, value);
            for (figure, unit) in BYTES {
                let value = |record: &Record| record.figures.get(figure).copied();
                self.add_bars(panel, counts[0], unit, false, value);
            }
        }
        self.add_percentiles(panel, counts[counts.len() - 1]);
    }

    /// Adds what the originals have published beside what was simulated.
    fn add_published(&mut self, panel: &Panel<'_>) {
        let curves = panel.published();
        if curves.is_empty() {
            return;
        }
        let chart = scaling_chart(self.id(), &panel.name(), self.words, &curves);
        let words = self.words;
        let sources = in_order(curves.iter().map(|(curve, _)| curve.source.name));
        let note = format!(
            "Full lines: simulated. Hollow markers: published. Each relative to itself with the \
             fewest {}, because machines, languages and rows differ. Source: {}.",
            words.threads,
            sources.join("; ")
        );
        let caption = format!("{}: beside what was published", panel.name());
        self.add(caption, chart.svg(), false, note);
    }

    /// Adds bars of a value, with this number of threads. `is_rate` says that the value is that of
    /// `runs`.
    fn add_bars(
        &mut self,
        panel: &Panel<'_>,
        threads: usize,
        unit: &str,
        is_rate: bool,
        value: impl Fn(&Record) -> Option<f64>,
    ) {
        let bar = |record: &Record| {
            let value = value(record)?;
            Some(Bar {
                engine: record.engine.clone(),
                value,
                spread: values::spread(record).filter(|_| is_rate),
                is_disturbed: is_rate && record.is_disturbed(),
                title: if is_rate {
                    values::title(record, self.words)
                } else {
                    format!("{}: {} {unit}", record.engine, number(value))
                },
            })
        };
        let records = panel.with_threads(threads);
        let mut bars: Vec<Bar> = records.into_iter().filter_map(bar).collect();
        if bars.is_empty() {
            return;
        }
        // The best comes first: the greatest rate, or the least bytes.
        bars.sort_by(|one, other| one.value.total_cmp(&other.value));
        let mut caption = format!("{}, {threads} {}", panel.name(), self.threads(threads));
        if is_rate {
            bars.reverse();
        } else {
            caption = format!("{caption}: {unit}");
        }
        let chart = BarChart {
            id: self.id(),
            summary: format!("{unit}: {caption}"),
            unit: unit.to_owned(),
            bars,
        };
        self.add(caption, chart.svg(), false, String::new());
    }

    fn threads(&self, count: usize) -> &'static str {
        let plural = self.words.threads;
        if count == 1 {
            plural.trim_end_matches('s')
        } else {
            plural
        }
    }

    /// Adds the moments of a run: the throughput, and below it the other figures.
    fn add_series(&mut self, panel: &Panel<'_>, threads: usize) {
        let records = panel.with_threads(threads);
        let records: Vec<_> = records.iter().filter(|r| !r.series.is_empty()).collect();
        let line = |record: &Record, value: &dyn Fn(&crate::record::Moment) -> Option<f64>| {
            let moments = record.series.iter().filter_map(|moment| {
                let phase = moment.phase.replace('_', " ");
                Some((moment.seconds, phase, value(moment)?))
            });
            TimeLine {
                engine: record.engine.clone(),
                moments: moments.collect(),
            }
        };
        let caption = format!("{}, {threads} {}", panel.name(), self.threads(threads));
        let rates: Vec<_> = records
            .iter()
            .map(|record| line(record, &|moment| Some(moment.mops)))
            .collect();
        let unit = format!("million {} / s", self.words.operations);
        let chart = time_chart(self.id(), &unit, "seconds", &rates, true);
        self.add(caption.clone(), chart.svg(), true, String::new());
        let seen = records.iter().flat_map(|record| &record.series);
        let mut names: BTreeSet<&str> = seen
            .flat_map(|moment| moment.figures.keys().map(String::as_str))
            .collect();
        if names.iter().any(|name| SHAPE.contains(name)) {
            names.retain(|name| SHAPE.contains(name));
        }
        for name in names {
            let lines: Vec<_> = records
                .iter()
                .map(|record| line(record, &|moment| moment.figures.get(name).copied()))
                .filter(|line| !line.moments.is_empty())
                .collect();
            let what = name.replace('_', " ");
            let chart = time_chart(self.id(), &what, "seconds", &lines, false);
            self.add(
                format!("{caption}: {what}"),
                chart.svg(),
                true,
                String::new(),
            );
        }
    }

    /// Adds the slices of a workload that is measured slice by slice, whatever their threads.
    fn add_slices(&mut self, panel: &Panel<'_>) {
        let line = |engine: &&str| {
            let moment = |record: &Record| {
                let slice = slice_of(&record.workload)?;
                let threads = self.threads(record.threads);
                let phase = format!("{} {threads}", record.threads);
                Some((f64::from(slice), phase, record.mops))
            };
            let mut moments: Vec<_> = panel.of_engine(engine).filter_map(moment).collect();
            moments.sort_by(|one, other| one.0.total_cmp(&other.0));
            TimeLine {
                engine: (*engine).to_owned(),
                moments,
            }
        };
        let lines: Vec<_> = panel.engines().iter().map(line).collect();
        let unit = format!("million {} / s", self.words.operations);
        let chart = time_chart(self.id(), &unit, "slices of the time", &lines, true);
        self.add(panel.name(), chart.svg(), true, String::new());
    }

    /// Adds the percentiles of each latency, with the greatest number of threads.
    fn add_percentiles(&mut self, panel: &Panel<'_>, threads: usize) {
        let records = panel.with_threads(threads);
        let names = records.iter().flat_map(|record| record.figures.keys());
        let timed: BTreeSet<&str> = names.filter_map(|name| name.strip_suffix("_p50")).collect();
        for figure in timed {
            let (what, unit) = match figure.strip_suffix("_ns") {
                Some(what) => (what, "nanoseconds"),
                None => (figure, "as measured"),
            };
            let chart = percentile_chart(self.id(), figure, unit, &records);
            if let Some(chart) = chart {
                let caption = format!(
                    "{} time · {}, {threads} {}",
                    what.replace('_', " "),
                    panel.name(),
                    self.threads(threads)
                );
                self.add(caption, chart.svg(), false, String::new());
            }
        }
    }
}
