//! Values over time.

use super::{
    frame::Axis,
    lines::{Band, Line, LineChart, Point},
    look::Look,
};
use crate::page::markup::number;

/// One contestant's values over time.
pub(in crate::page) struct TimeLine {
    pub(in crate::page) engine: String,
    /// The end of a stretch of time, what was done in it, and the value.
    pub(in crate::page) moments: Vec<(f64, String, f64)>,
}

/// Up to this many moments, each has a marker.
const MOST_MARKERS: usize = 24;

/// A chart of these values: `what` is their unit, and `time` that of the horizontal axis. Phases
/// have their names on top, unless the chart above shows them.
pub(in crate::page) fn time_chart(
    id: String,
    what: &str,
    time: &str,
    lines: &[TimeLine],
    names_phases: bool,
) -> LineChart {
    let moments = || lines.iter().flat_map(|line| &line.moments);
    let end = moments().map(|moment| moment.0).fold(0.0, f64::max);
    let most = moments().map(|moment| moment.2).fold(0.0, f64::max);
    let line = |line: &TimeLine| Line {
        engine: line.engine.clone(),
        look: Look::of(&line.engine),
        is_faint: false,
        has_markers: line.moments.len() <= MOST_MARKERS,
        is_published: false,
        points: line
            .moments
            .iter()
            .map(|(at, phase, value)| Point {
                x: *at,
                y: *value,
                spread: None,
                is_disturbed: false,
                title: format!(
                    "{}, {phase}, until {} {time}: {} {what}",
                    line.engine,
                    number(*at),
                    number(*value)
                ),
            })
            .collect(),
    };
    let mut x = Axis::up_to(end, 10, time);
    x.to = if end > 0.0 { end } else { 1.0 };
    x.ticks.retain(|(at, _)| *at <= x.to);
    x.has_grid = false;
    let bands = lines.first().map(|line| bands(line, names_phases));
    LineChart {
        id,
        summary: format!("{what} over time"),
        width: 900.0,
        height: if names_phases { 260.0 } else { 170.0 },
        x,
        y: Axis::up_to(most, 4, what),
        lines: lines.iter().map(line).collect(),
        bands: bands.unwrap_or_default(),
    }
}

/// A band for each phase; every second one is shaded.
fn bands(line: &TimeLine, named: bool) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let (mut begin, mut current) = (0.0, None);
    for (end, phase, _) in &line.moments {
        match bands.last_mut() {
            Some(band) if current == Some(phase) => band.to = *end,
            _ => {
                let is_shaded = bands.len() % 2 == 1;
                bands.push(Band {
                    from: begin,
                    to: *end,
                    name: if named { phase.clone() } else { String::new() },
                    is_shaded,
                });
            }
        }
        current = Some(phase);
        begin = *end;
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_bands_from_one_change_to_the_next() {
        let moment = |at, phase: &str| (at, phase.to_owned(), 1.0);
        let line = TimeLine {
            engine: "ca_tree".to_owned(),
            moments: vec![
                moment(1.0, "fill"),
                moment(2.0, "fill"),
                moment(3.0, "scan"),
                moment(4.0, "fill"),
            ],
        };
        let found: Vec<_> = bands(&line, true)
            .into_iter()
            .map(|band| (band.from, band.to, band.name, band.is_shaded))
            .collect();
        let band = |from, to, name: &str, shaded| (from, to, name.to_owned(), shaded);
        assert_eq!(
            found,
            [
                band(0.0, 2.0, "fill", false),
                band(2.0, 3.0, "scan", true),
                band(3.0, 4.0, "fill", false)
            ]
        );
    }
}
