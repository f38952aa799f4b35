//! Throughput by number of threads, as in the original figures.

use super::{
    frame::Axis,
    lines::{Band, Line, LineChart, Point},
    look::Look,
};
use crate::{
    page::{
        study::{Panel, Words},
        values,
    },
    record::Record,
};

/// Up to this many contestants, every line has its name.
const ALL_NAMED: usize = 8;

/// With more contestants, this many of the others have their names.
const BEST_RIVALS: usize = 3;

/// The lines of all contestants of the panel, on a logarithmic scale of threads.
pub(in crate::page) fn thread_chart(id: String, panel: &Panel<'_>, words: Words) -> LineChart {
    let counts = panel.thread_counts();
    let place = |threads: usize| (threads as f64).log2();
    let (from, to) = (
        place(counts[0]) - 0.15,
        place(counts[counts.len() - 1]) + 0.1,
    );
    let engines = panel.engines();
    let named = named(panel, &engines);
    let mut lines = Vec::new();
    for engine in &engines {
        let mut records: Vec<&Record> = panel.of_engine(engine).collect();
        records.sort_by_key(|record| record.threads);
        let point = |record: &&Record| Point {
            x: place(record.threads),
            y: record.mops,
            spread: values::spread(record),
            is_disturbed: record.is_disturbed(),
            title: values::title(record, words),
        };
        lines.push(Line {
            engine: (*engine).to_owned(),
            look: Look::of(engine),
            is_faint: !named.contains(engine),
            has_markers: true,
            is_published: false,
            points: records.iter().map(point).collect(),
        });
    }
    let most = panel.records.iter().map(|record| {
        let spread = values::spread(record);
        // A faint line shows no spread, and needs no space for one.
        match spread.filter(|_| named.contains(&record.engine.as_str())) {
            Some((_, most)) => most,
            None => record.mops,
        }
    });
    let cores = panel.records[0].made_by.machine.cores;
    let above = counts.iter().copied().find(|&threads| threads > cores);
    let oversubscribed = above.map(|above| {
        let within = counts.iter().rev().find(|&&threads| threads <= cores);
        let begin = within.map_or(from, |&within| f64::midpoint(place(within), place(above)));
        Band {
            from: begin,
            to,
            name: format!("more {} than cores", words.threads),
            is_shaded: true,
        }
    });
    let ticks = counts.iter().map(|&n| (place(n), n.to_string()));
    LineChart {
        id,
        summary: format!(
            "{} against {}: {}",
            words.operations,
            words.threads,
            panel.name()
        ),
        width: 440.0,
        height: 280.0,
        x: Axis {
            from,
            to,
            ticks: ticks.collect(),
            unit: format!("{} (of {} cores)", words.threads, cores),
            has_grid: false,
        },
        y: Axis::up_to(
            most.fold(0.0, f64::max),
            5,
            &format!("million {} per second", words.operations),
        ),
        lines,
        bands: oversubscribed.into_iter().collect(),
    }
}

/// The contestants with a name in the chart: ours, and the best others at the most threads.
fn named<'a>(panel: &Panel<'a>, engines: &[&'a str]) -> Vec<&'a str> {
    if engines.len() <= ALL_NAMED {
        return engines.to_vec();
    }
    let best = |engine: &str| {
        let of_engine = panel.of_engine(engine).max_by_key(|record| record.threads);
        of_engine.map_or(0.0, |record| record.mops)
    };
    let is_ours = |engine: &&str| Look::of(engine).is_ours;
    let (mut named, mut rivals): (Vec<&str>, Vec<&str>) = engines.iter().partition(|e| is_ours(e));
    rivals.sort_by(|one, other| best(other).total_cmp(&best(one)));
    named.extend(rivals.into_iter().take(BEST_RIVALS));
    named
}

impl LineChart {
    /// The contestants whose lines have no name.
    pub(in crate::page) fn faint(&self) -> Vec<&str> {
        let faint = self.lines.iter().filter(|line| line.is_faint);
        faint.map(|line| line.engine.as_str()).collect()
    }
}
