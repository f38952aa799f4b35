//! The frame of a chart, drawn by plotters: scales, grid, ticks, and the meaning of the axes.

use super::backend::{PIXELS, Part, Picture};
use crate::page::markup;
use plotters::{
    chart::ChartBuilder,
    coord::{
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
        types::RangedCoordf64,
    },
    drawing::IntoDrawingArea,
    style::{
        IntoFont,
        text_anchor::{HPos, Pos, VPos},
    },
};
use std::ops::Range;

/// The size of the letters at ticks and of units.
pub(super) const LETTERS: f64 = 11.0;

/// How long a tick is.
const TICK: f64 = 4.0;

/// The scale of one direction of a chart.
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Where ticks are, and their labels.
    pub(super) ticks: Vec<(f64, String)>,
    /// What is counted, with its unit.
    pub(super) unit: String,
    /// Whether grid lines start at the ticks.
    pub(super) has_grid: bool,
}

impl Axis {
    /// From zero to a little above the greatest value, with ticks at round numbers.
    pub(super) fn up_to(most: f64, ticks: usize, unit: &str) -> Self {
        // An axis without values above zero still needs a range.
        let most = if most > 0.0 { most } else { 1.0 };
        let range = RangedCoordf64::from(0.0..most * 1.08);
        let points = range.key_points(ticks);
        Self {
            from: 0.0,
            to: most * 1.08,
            ticks: points
                .into_iter()
                .map(|at| (at, markup::tick(at)))
                .collect(),
            unit: unit.to_owned(),
            has_grid: true,
        }
    }

    /// Powers of ten, placed by their logarithms: from the power at or below the least value to the
    /// one at or above the greatest.
    pub(super) fn decades(least: f64, most: f64, unit: &str) -> Self {
        let (from, mut to) = (least.log10().floor(), most.log10().ceil());
        if to <= from {
            to = from + 1.0;
        }
        let decades = (from as i32)..=(to as i32);
        let tick = |power| (f64::from(power), markup::tick(10_f64.powi(power)));
        Self {
            from,
            to,
            ticks: decades.map(tick).collect(),
            unit: unit.to_owned(),
            has_grid: true,
        }
    }
}

/// An axis in the form that plotters expects; its own scales do not allow choosing the ticks.
struct Scale {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        (f64::from(from) + part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// The space around the plot for labels.
#[derive(Clone, Copy)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The frame, with the mapping from values to positions.
pub(super) struct Frame {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
    /// The elements that plotters drew.
    pub(super) elements: String,
}

impl Frame {
    pub(super) fn draw(width: f64, height: f64, margins: Margins, x: &Axis, y: &Axis) -> Self {
        let mut elements = String::new();
        let picture = Picture {
            width,
            height,
            elements: &mut elements,
        };
        let pixels = |units: f64| (units * PIXELS).round() as i32;
        let root = picture.into_drawing_area();
        let scale = |axis: &Axis| Scale {
            range: axis.from..axis.to,
            ticks: axis.ticks.iter().map(|(at, _)| *at).collect(),
        };
        let mut chart = ChartBuilder::on(&root)
            .margin_top(pixels(margins.top))
            .margin_right(pixels(margins.right))
            .x_label_area_size(pixels(margins.bottom))
            .y_label_area_size(pixels(margins.left))
            .build_cartesian_2d(scale(x), scale(y))
            .expect("nothing fails that writes to a string");
        let text = |part: Part| {
            let size = LETTERS * PIXELS;
            let style = ("sans-serif", size).into_font().color(&part.colour());
            style.pos(Pos::new(HPos::Center, VPos::Top))
        };
        let formatter = |axis: &Axis| {
            let ticks = axis.ticks.clone();
            move |at: &f64| {
                let tick = ticks.iter().find(|(place, _)| place == at);
                tick.map_or_else(String::new, |(_, label)| label.clone())
            }
        };
        let (x_label, y_label) = (formatter(x), formatter(y));
        let mut mesh = chart.configure_mesh();
        mesh.x_label_formatter(&x_label)
            .y_label_formatter(&y_label)
            .bold_line_style(Part::Grid.colour())
            .max_light_lines(0)
            .axis_style(Part::Axis.colour())
            .label_style(text(Part::Tick))
            .axis_desc_style(text(Part::Unit))
            .x_desc(&x.unit)
            .y_desc(&y.unit)
            .set_all_tick_mark_size(pixels(TICK));
        if !x.has_grid {
            mesh.disable_x_mesh();
        }
        if !y.has_grid {
            mesh.disable_y_mesh();
        }
        mesh.draw().expect("nothing fails that writes to a string");
        let place = |at| {
            let (x, y) = chart.backend_coord(&at);
            (f64::from(x) / PIXELS, f64::from(y) / PIXELS)
        };
        let ((left, bottom), (right, top)) = (place((x.from, y.from)), place((x.to, y.to)));
        drop(chart);
        drop(root);
        Self {
            width,
            height,
            left,
            right,
            top,
            bottom,
            x: (x.from, x.to),
            y: (y.from, y.to),
            elements,
        }
    }

    /// The position of a value on the horizontal axis.
    pub(super) fn x(&self, value: f64) -> f64 {
        let part = (value - self.x.0) / (self.x.1 - self.x.0);
        self.left + part * (self.right - self.left)
    }

    /// The position of a value on the vertical axis.
    pub(super) fn y(&self, value: f64) -> f64 {
        let part = (value - self.y.0) / (self.y.1 - self.y.0);
        self.bottom + part * (self.top - self.bottom)
    }
}
