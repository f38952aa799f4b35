//! The percentiles of a latency.

use super::{
    frame::Axis,
    lines::{Line, LineChart, Point},
    look::Look,
};
use crate::{page::markup::number, record::Record};

/// A chart of the figures `{figure}_p50`, `{figure}_p99`, … of these records; `None` if no record
/// has two of them. Both scales are logarithmic: the time, and the fraction that took longer.
pub(in crate::page) fn percentile_chart(
    id: String,
    figure: &str,
    unit: &str,
    records: &[&Record],
) -> Option<LineChart> {
    let mut lines = Vec::new();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for record in records {
        let mut points = Vec::new();
        for (name, &value) in &record.figures {
            let percent = name
                .strip_prefix(figure)
                .and_then(|end| end.strip_prefix("_p"));
            let Some(percent) = percent.and_then(|text| text.parse::<f64>().ok()) else {
                continue;
            };
            if !(0.0..100.0).contains(&percent) || value <= 0.0 {
                continue;
            }
            // The logarithm of how rare a slower one is: 50 %, 99 %, 99.9 % become 0.3, 2 and 3.
            let place = -(1.0 - percent / 100.0).log10();
            if ticks.iter().all(|(at, _)| (at - place).abs() > 1e-9) {
                ticks.push((place, format!("{percent} %")));
            }
            points.push(Point {
                x: place,
                y: value.log10(),
                spread: None,
                is_disturbed: record.is_disturbed(),
                title: format!(
                    "{}: {percent} % took at most {} {unit}",
                    record.engine,
                    number(value)
                ),
            });
        }
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        if points.len() > 1 {
            lines.push(Line {
                engine: record.engine.clone(),
                look: Look::of(&record.engine),
                is_faint: false,
                has_markers: true,
                is_published: false,
                points,
            });
        }
    }
    let values = || {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.y)
    };
    let least = values().reduce(f64::min)?;
    let most = values().reduce(f64::max)?;
    ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (first, last) = (ticks.first()?.0, ticks.last()?.0);
    Some(LineChart {
        id,
        summary: format!("{figure}, percentiles"),
        width: 440.0,
        height: 280.0,
        x: Axis {
            from: first - 0.15,
            to: last + 0.1,
            ticks,
            unit: "part that took no longer".to_owned(),
            has_grid: false,
        },
        y: Axis::decades(
            10_f64.powf(least),
            10_f64.powf(most),
            &format!("{unit}, logarithmic"),
        ),
        lines,
        bands: Vec::new(),
    })
}
