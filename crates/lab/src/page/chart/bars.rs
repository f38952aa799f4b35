//! Bars: one figure for each contestant, the best on top.

use super::{
    backend::LETTER,
    frame::{Axis, Frame, LETTERS, Margins},
    look::{Look, short},
};
use crate::page::markup::{escape, number};
use std::fmt::Write;

/// A chart of bars.
pub(in crate::page) struct BarChart {
    /// The id of its element.
    pub(in crate::page) id: String,
    /// What it shows, as text for readers who cannot see it.
    pub(in crate::page) summary: String,
    /// What is shown, with its unit.
    pub(in crate::page) unit: String,
    /// From top to bottom.
    pub(in crate::page) bars: Vec<Bar>,
}

/// What is shown of one contestant.
pub(in crate::page) struct Bar {
    pub(in crate::page) engine: String,
    pub(in crate::page) value: f64,
    /// The least and the greatest run, if there are several.
    pub(in crate::page) spread: Option<(f64, f64)>,
    /// Whether other work had the machine during the measurement.
    pub(in crate::page) is_disturbed: bool,
    /// The text shown when the reader points at the bar.
    pub(in crate::page) title: String,
}

const WIDTH: f64 = 440.0;
/// The distance from one bar to the next, and the thickness of a bar.
const STEP: f64 = 19.0;
const THICK: f64 = 11.0;

impl BarChart {
    /// The element.
    pub(in crate::page) fn svg(&self) -> String {
        let most = self.bars.iter().map(|bar| match bar.spread {
            Some((_, most)) => most.max(bar.value),
            None => bar.value,
        });
        let most = most.fold(0.0, f64::max);
        let longest = self
            .bars
            .iter()
            .map(|bar| short(&bar.engine).chars().count())
            .max();
        let margins = Margins {
            left: longest.unwrap_or(1) as f64 * LETTER * LETTERS + 12.0,
            right: 44.0,
            top: 4.0,
            bottom: 2.0 * LETTERS + 12.0,
        };
        let count = self.bars.len() as f64;
        let height = count * STEP + margins.top + margins.bottom;
        let x = Axis::up_to(most, 4, &self.unit);
        let y = Axis {
            from: count,
            to: 0.0,
            ticks: Vec::new(),
            unit: String::new(),
            has_grid: false,
        };
        let frame = Frame::draw(WIDTH, height, margins, &x, &y);
        let mut svg = format!(
            "<svg id=\"{}\" class=\"chart bars\" viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-label=\"{}\">{}",
            self.id,
            frame.width,
            frame.height,
            escape(&self.summary),
            frame.elements
        );
        for (at, bar) in self.bars.iter().enumerate() {
            svg += &bar.svg(&frame, at as f64 + 0.5);
        }
        svg + "</svg>"
    }
}

impl Bar {
    fn svg(&self, frame: &Frame, row: f64) -> String {
        let look = Look::of(&self.engine);
        let (y, end) = (frame.y(row), frame.x(self.value));
        let disturbed = if self.is_disturbed { " disturbed" } else { "" };
        let mut svg = format!(
            "<g class=\"bar {}{disturbed}\"><title>{}</title>\
             <text class=\"engine\" x=\"{:.1}\" y=\"{y:.1}\" dy=\"0.34em\" \
             text-anchor=\"end\">{}</text>\
             <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{THICK}\"/>",
            look.class(),
            escape(&self.title),
            frame.left - 7.0,
            escape(&short(&self.engine)),
            frame.left,
            y - THICK / 2.0,
            (end - frame.left).max(0.0),
        );
        let mut text = end;
        if let Some((least, most)) = self.spread {
            let (from, to) = (frame.x(least), frame.x(most));
            text = text.max(to);
            write!(
                svg,
                "<path class=\"spread\" d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {:.1}v6\
                 M{to:.1} {:.1}v6\"/>",
                y - 3.0,
                y - 3.0
            )
            .expect("a string takes all text");
        }
        write!(
            svg,
            "<text class=\"value\" x=\"{:.1}\" y=\"{y:.1}\" dy=\"0.34em\">{}</text></g>",
            text + 5.0,
            number(self.value) + if self.is_disturbed { " !" } else { "" }
        )
        .expect("a string takes all text");
        svg
    }
}
