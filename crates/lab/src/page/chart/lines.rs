//! Lines: throughput by number of threads or over time, or latency by percentile.

use super::{
    backend::LETTER,
    frame::{Axis, Frame, LETTERS, Margins},
    look::{Look, short},
};
use crate::page::markup::escape;
use std::fmt::Write;

/// A chart of lines.
pub(in crate::page) struct LineChart {
    /// The id of its element.
    pub(in crate::page) id: String,
    /// What it shows, as text for readers who cannot see it.
    pub(in crate::page) summary: String,
    pub(in crate::page) width: f64,
    pub(in crate::page) height: f64,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    /// Named stretches of the horizontal axis.
    pub(super) bands: Vec<Band>,
}

/// The line of one contestant.
pub(super) struct Line {
    pub(super) engine: String,
    pub(super) look: Look,
    /// Whether it is drawn thin and grey, without its name.
    pub(super) is_faint: bool,
    /// Whether it has a marker at each point.
    pub(super) has_markers: bool,
    /// Whether an original has published its points.
    pub(super) is_published: bool,
    pub(super) points: Vec<Point>,
}

pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// The least and the greatest run, if there are several.
    pub(super) spread: Option<(f64, f64)>,
    /// Whether other work had the machine during the measurement.
    pub(super) is_disturbed: bool,
    /// The text shown when the reader points at the point.
    pub(super) title: String,
}

pub(super) struct Band {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) name: String,
    /// Whether its background is shaded.
    pub(super) is_shaded: bool,
}

/// The radius of a marker.
const MARKER: f64 = 3.2;
/// How near the pointer must be to a point to show its title.
const REACH: f64 = 9.0;
/// The size of the names at the ends of lines, and their least distance.
const NAME: f64 = 10.0;
const NAME_STEP: f64 = 11.5;
/// A chart wider than this takes the width of the page, and has this left margin.
const WIDE: f64 = 600.0;
const WIDE_LEFT: f64 = 58.0;
/// From the end of a line to its name.
const NAME_GAP: f64 = 12.0;

impl LineChart {
    /// The element.
    pub(in crate::page) fn svg(&self) -> String {
        let named = self.lines.iter().filter(|line| !line.is_faint);
        let longest = named.map(|line| short(&line.engine).chars().count()).max();
        let names = longest.map_or(0.0, |letters| {
            letters as f64 * LETTER * NAME + NAME_GAP + 4.0
        });
        let ticks = self.y.ticks.iter().map(|(_, text)| text.chars().count());
        // Wide charts stand above each other and share one axis of time, so their left margins must
        // agree.
        let least = if self.width > WIDE { WIDE_LEFT } else { 0.0 };
        let margins = Margins {
            left: (ticks.max().unwrap_or(1) as f64 * LETTER * LETTERS + LETTERS * 1.6 + 10.0)
                .max(least),
            right: names.max(8.0),
            top: if self.bands.is_empty() { 8.0 } else { 20.0 },
            bottom: 2.0 * LETTERS + 12.0,
        };
        let frame = Frame::draw(self.width, self.height, margins, &self.x, &self.y);
        let mut svg = format!(
            "<svg id=\"{}\" class=\"chart lines\" viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-label=\"{}\">",
            self.id,
            frame.width,
            frame.height,
            escape(&self.summary)
        );
        svg += &self.bands(&frame);
        svg += &frame.elements;
        // Lines of this project are drawn last, above the others.
        for faint in [true, false] {
            let of_kind = self.lines.iter().filter(|line| line.is_faint == faint);
            let (ours, others): (Vec<_>, Vec<_>) = of_kind.partition(|line| line.look.is_ours);
            for line in others.into_iter().chain(ours) {
                svg += &line.svg(&frame);
            }
        }
        svg += &self.names(&frame);
        svg + "</svg>"
    }

    fn bands(&self, frame: &Frame) -> String {
        let mut svg = String::new();
        for band in &self.bands {
            let (from, to) = (frame.x(band.from), frame.x(band.to));
            let (top, width) = (frame.top, to - from);
            let class = if band.is_shaded {
                "band shaded"
            } else {
                "band"
            };
            let middle = f64::midpoint(from, to);
            write!(
                svg,
                "<g class=\"{class}\"><rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{:.1}\"/><text x=\"{middle:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text></g>",
                frame.bottom - top,
                top - 6.0,
                escape(&band.name)
            )
            .expect("a string takes all text");
        }
        svg
    }

    /// The names of the lines at their ends, moved apart where they would meet.
    fn names(&self, frame: &Frame) -> String {
        let mut names: Vec<(f64, f64, &Line)> = Vec::new();
        for line in self.lines.iter().filter(|line| !line.is_faint) {
            if let Some(last) = line.points.last() {
                let at = frame.y(last.y);
                names.push((at, frame.x(last.x), line));
            }
        }
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        let ends: Vec<f64> = names.iter().map(|name| name.0).collect();
        let places = apart(&ends, frame.top, frame.bottom);
        let mut svg = String::new();
        for ((end, from, line), place) in names.into_iter().zip(places) {
            let x = frame.right + NAME_GAP;
            write!(
                svg,
                "<g class=\"name {}\"><path d=\"M{:.1} {end:.1}L{:.1} {place:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{place:.1}\" dy=\"0.32em\">{}</text></g>",
                line.look.class(),
                from + MARKER + 2.0,
                x - 2.0,
                escape(&short(&line.engine))
            )
            .expect("a string takes all text");
        }
        svg
    }
}

/// Positions for names: at least a step apart, within the limits if possible, and as near as
/// possible to the wanted positions, which ascend.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + NAME_STEP;
    }
    let mut most = bottom.max(top + NAME_STEP * wanted.len().saturating_sub(1) as f64);
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - NAME_STEP;
    }
    places
}

impl Line {
    fn svg(&self, frame: &Frame) -> String {
        let class = if self.is_faint {
            "series faint".to_owned()
        } else {
            let published = if self.is_published { " published" } else { "" };
            format!("series {}{published}", self.look.class())
        };
        let mut svg = format!("<g class=\"{class}\">");
        let mut way = String::new();
        for (at, point) in self.points.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            write!(
                way,
                "{letter}{:.1} {:.1}",
                frame.x(point.x),
                frame.y(point.y)
            )
            .expect("a string takes all text");
        }
        let engine = escape(&self.engine);
        write!(
            svg,
            "<path class=\"way\" d=\"{way}\"><title>{engine}</title></path>"
        )
        .expect("a string takes all text");
        for point in &self.points {
            let (x, y) = (frame.x(point.x), frame.y(point.y));
            if let Some((least, most)) = point.spread.filter(|_| !self.is_faint) {
                let (low, high) = (frame.y(least), frame.y(most));
                write!(
                    svg,
                    "<path class=\"spread\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>"
                )
                .expect("a string takes all text");
            }
            let class = if point.is_disturbed {
                "point disturbed"
            } else {
                "point"
            };
            let title = escape(&point.title);
            write!(svg, "<g class=\"{class}\"><title>{title}</title>").expect("as before");
            if self.has_markers && !self.is_faint {
                let marker = self.look.marker.path(x, y, MARKER);
                write!(svg, "<path class=\"marker\" d=\"{marker}\"/>").expect("as before");
            }
            write!(
                svg,
                "<circle class=\"reach\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{REACH}\"/></g>"
            )
            .expect("as before");
        }
        svg + "</g>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_apart_and_stay_in_order() {
        let places = apart(&[10.0, 12.0, 13.0, 80.0], 0.0, 100.0);
        for pair in places.windows(2) {
            assert!(pair[1] - pair[0] >= NAME_STEP - 1e-9, "{places:?}");
        }
        assert_eq!((places[0], places[3]), (10.0, 80.0));
        let at_the_end = apart(&[98.0, 99.0, 100.0], 0.0, 100.0);
        assert_eq!(
            at_the_end,
            [100.0 - 2.0 * NAME_STEP, 100.0 - NAME_STEP, 100.0]
        );
        // If there are too many names, the rest continues below.
        let many = apart(&[0.0; 20], 0.0, 100.0);
        assert!(
            many.windows(2)
                .all(|pair| pair[1] - pair[0] >= NAME_STEP - 1e-9)
        );
        assert_eq!(many[0], 0.0);
        assert!(apart(&[], 0.0, 1.0).is_empty());
    }
}
