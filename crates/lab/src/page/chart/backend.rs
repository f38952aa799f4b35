//! A backend for plotters: SVG whose looks the page's style sheet decides.
//!
//! The backend that comes with plotters writes colours and fonts into each element. Its charts
//! could neither follow a reader's choice of light or dark nor be printed differently. Here the
//! first component of a colour is the number of a [`Part`], and becomes a class.

use crate::page::markup::escape;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
    text_anchor::{HPos, VPos},
};
use std::{convert::Infallible, fmt::Write};

/// Plotters counts in whole pixels; this many pixels are one unit of the picture.
pub(super) const PIXELS: f64 = 10.0;

/// The average width of a letter, as a fraction of the size of the text.
pub(super) const LETTER: f64 = 0.54;

/// What plotters draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Part {
    Grid,
    Axis,
    Tick,
    Unit,
}

impl Part {
    const CLASSES: [&'static str; 4] = ["grid", "axis", "tick", "unit"];

    /// The colour that encodes the part.
    pub(super) const fn colour(self) -> plotters::style::RGBColor {
        plotters::style::RGBColor(self as u8, 0, 0)
    }

    fn class(colour: BackendColor) -> &'static str {
        Self::CLASSES.get(usize::from(colour.rgb.0)).unwrap_or(&"")
    }
}

/// A picture of this size, whose elements are appended to a text.
pub(super) struct Picture<'a> {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) elements: &'a mut String,
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// A position in units of the picture.
fn place((x, y): BackendCoord) -> (f64, f64) {
    (f64::from(x) / PIXELS, f64::from(y) / PIXELS)
}

impl Picture<'_> {
    fn add(&mut self, element: std::fmt::Arguments<'_>) -> Drawn {
        self.elements
            .write_fmt(element)
            .expect("a string takes all text");
        Ok(())
    }
}

impl DrawingBackend for Picture<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        let pixels = |units: f64| (units * PIXELS).round() as u32;
        (pixels(self.width), pixels(self.height))
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Drawn {
        let ((x, y), class) = (place(point), Part::class(colour));
        let side = 1.0 / PIXELS;
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\"/>"
        ))
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        let ((x1, y1), (x2, y2)) = (place(from), place(to));
        let class = Part::class(style.color());
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let mut points = String::new();
        for (x, y) in path.into_iter().map(place) {
            write!(points, "{x},{y} ").expect("a string takes all text");
        }
        let class = Part::class(style.color());
        let points = points.trim_end();
        self.add(format_args!(
            "<polyline class=\"{class}\" points=\"{points}\"/>"
        ))
    }

    fn draw_text<TStyle: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &TStyle,
        position: BackendCoord,
    ) -> Drawn {
        // An axis without a unit has an empty one.
        if text.is_empty() {
            return Ok(());
        }
        let (x, y) = place(position);
        let anchor = style.anchor();
        let align = match anchor.h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        // From the given edge of the letters to their base line.
        let down = match anchor.v_pos {
            VPos::Top => "0.8em",
            VPos::Center => "0.35em",
            VPos::Bottom => "0",
        };
        let angle = match style.transform() {
            FontTransform::None => 0,
            FontTransform::Rotate90 => 90,
            FontTransform::Rotate180 => 180,
            FontTransform::Rotate270 => 270,
        };
        let turn = match angle {
            0 => String::new(),
            angle => format!(" transform=\"rotate({angle} {x} {y})\""),
        };
        let (class, text) = (Part::class(style.color()), escape(text));
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" dy=\"{down}\" \
             text-anchor=\"{align}\"{turn}>{text}</text>"
        ))
    }

    fn estimate_text_size<TStyle: BackendTextStyle>(
        &self,
        text: &str,
        style: &TStyle,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let letters = text.chars().count() as f64;
        let width = letters * LETTER * style.size();
        Ok((width.round() as u32, style.size().round() as u32))
    }
}
