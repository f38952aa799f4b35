//! How throughput changes with the threads, beside what the originals have published.

use super::{
    frame::Axis,
    lines::{Line, LineChart, Point},
    look::Look,
};
use crate::{
    claims::{Curve, Scaled},
    page::{
        markup::{self, number},
        study::Words,
    },
};

/// For each curve two lines, on logarithmic scales: what was simulated, and what was published,
/// each relative to itself with the fewest threads. Expects at least one curve, and none without
/// points.
pub(in crate::page) fn scaling_chart(
    id: String,
    name: &str,
    words: Words,
    curves: &[(&Curve, Vec<Scaled>)],
) -> LineChart {
    let mut lines = Vec::new();
    for (curve, points) in curves {
        lines.push(line(curve.engine.to_owned(), curve, points, words, false));
        let published = format!("{}, published", curve.engine);
        lines.push(line(published, curve, points, words, true));
    }
    let all = || curves.iter().flat_map(|(_, points)| points);
    let figures = || all().flat_map(|point| [point.published, point.here]);
    let mut counts: Vec<usize> = all().map(|point| point.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let ends = [counts[0], counts[counts.len() - 1]].map(place);
    LineChart {
        id,
        summary: format!(
            "{} by {}, relative to the fewest, simulated and published: {name}",
            words.operations, words.threads
        ),
        width: 440.0,
        height: 280.0,
        x: Axis {
            from: ends[0] - 0.15,
            to: ends[1] + 0.1,
            ticks: counts.iter().map(|&n| (place(n), n.to_string())).collect(),
            unit: words.threads.to_owned(),
            has_grid: false,
        },
        y: axis(
            figures().fold(1.0, f64::min),
            figures().fold(1.0, f64::max),
            words,
        ),
        lines,
        bands: Vec::new(),
    }
}

fn place(threads: usize) -> f64 {
    (threads as f64).log2()
}

/// Powers of ten, which are far apart, and between them three times as much.
fn axis(least: f64, most: f64, words: Words) -> Axis {
    let what = format!("{} per second, × the first", words.operations);
    let mut axis = Axis::decades(least, most, &what);
    let threes = axis.ticks.iter().map(|(power, _)| power + 3_f64.log10());
    let threes: Vec<_> = threes
        .filter(|at| *at < axis.to)
        .map(|at| (at, markup::tick(10_f64.powf(at))))
        .collect();
    axis.ticks.extend(threes);
    axis.from = least.log10() - 0.1;
    axis.to = most.log10() + 0.1;
    axis.ticks
        .retain(|(at, _)| (axis.from..=axis.to).contains(at));
    axis
}

fn line(
    engine: String,
    curve: &Curve,
    points: &[Scaled],
    words: Words,
    is_published: bool,
) -> Line {
    let point = |point: &Scaled| {
        let (figure, whose) = if is_published {
            (
                point.published,
                format!("published of {}: {}", curve.what, curve.source.name),
            )
        } else {
            (point.here, "simulated".to_owned())
        };
        Point {
            x: place(point.threads),
            y: figure.log10(),
            spread: None,
            is_disturbed: false,
            title: format!(
                "{}, {} {}: × {}, {whose}",
                curve.engine,
                point.threads,
                words.threads,
                number(figure)
            ),
        }
    };
    Line {
        engine,
        look: Look::of(curve.engine),
        is_faint: false,
        has_markers: true,
        is_published,
        points: points.iter().map(point).collect(),
    }
}
