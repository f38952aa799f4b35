//! Charts, as SVG that the page's style sheet colours.
//!
//! Plotters finds round ticks, and lays out and draws the frame of each chart ([`frame`]) through a
//! backend that writes classes instead of colours ([`backend`]). The contents of the frame are
//! written here, because plotters has neither titles to point at nor groups with a class.

mod backend;
mod bars;
mod frame;
mod lines;
pub(super) mod look;
mod percentiles;
mod scaling;
mod threads;
mod time;

pub(super) use bars::{Bar, BarChart};
pub(super) use percentiles::percentile_chart;
pub(super) use scaling::scaling_chart;
pub(super) use threads::thread_chart;
pub(super) use time::{TimeLine, time_chart};
