//! Metrics in the text form of OpenMetrics 1.0.
//!
//! ```
//! use tremula_observe::{MetricKind, Metrics};
//!
//! let mut metrics = Metrics::new("tremula");
//! metrics.family("read", MetricKind::Counter, "bytes", "What clients have sent");
//! metrics.sample(&[("thread", "a \"b\"")], 7.0);
//! let text = metrics.finish();
//! assert!(text.contains("tremula_read_bytes_total{thread=\"a \\\"b\\\"\"} 7\n"));
//! assert!(text.ends_with("# EOF\n"));
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of values up to bounds.
    Histogram,
    /// A text, as a label.
    Info,
}

impl MetricKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// Writes metrics: families, each followed by its samples.
#[derive(Debug)]
pub struct Metrics {
    prefix: &'static str,
    text: String,
    /// The full name and kind of the family that is written.
    family: Option<(String, MetricKind)>,
    /// The names that are taken: a family appears once.
    taken: BTreeSet<String>,
}

impl Metrics {
    /// Metrics whose names begin with `prefix` and `_`.
    #[must_use]
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            text: String::new(),
            family: None,
            taken: BTreeSet::new(),
        }
    }

    /// Begins a family. Its full name is `prefix_name_unit`, where a name that ends with the unit
    /// already does not repeat it. Letters that no name may have become `_`. `help` is a sentence
    /// without its full stop.
    ///
    /// Returns whether the name is new. The samples of a family whose name is taken are left out,
    /// because a parser would refuse the whole text.
    pub fn family(&mut self, name: &str, kind: MetricKind, unit: &str, help: &str) -> bool {
        let mut full = format!("{}_{name}", self.prefix);
        // A suffix that belongs to samples would be read as one.
        for suffix in ["_total", "_info", "_count", "_sum", "_bucket", "_created"] {
            if let Some(short) = full.strip_suffix(suffix) {
                full.truncate(short.len());
            }
        }
        if !unit.is_empty() && !full.ends_with(&format!("_{unit}")) {
            full.push('_');
            full.push_str(unit);
        }
        full = plain(&full);
        if !self.taken.insert(full.clone()) {
            self.family = None;
            return false;
        }
        let text = &mut self.text;
        // Writing to a string does not fail.
        let _ = writeln!(text, "# TYPE {full} {}", kind.name());
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {full} {unit}");
        }
        let _ = writeln!(text, "# HELP {full} {}.", escaped(help));
        self.family = Some((full, kind));
        true
    }

    /// A sample of a counter or a gauge. A value that is no number is left out.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let suffix = match self.family {
            Some((_, MetricKind::Counter)) => "_total",
            Some((_, MetricKind::Gauge)) => "",
            _ => return,
        };
        if value.is_finite() {
            self.line(suffix, labels, None, value);
        }
    }

    /// A text, under the label with this name.
    pub fn info(&mut self, labels: &[(&str, &str)], name: &str, text: &str) {
        if matches!(self.family, Some((_, MetricKind::Info))) {
            self.line("_info", labels, Some((name, text)), 1.0);
        }
    }

    /// A histogram: for ascending bounds, how many values are not larger; the number of all values,
    /// and their sum.
    pub fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        if !matches!(self.family, Some((_, MetricKind::Histogram))) {
            return;
        }
        for (bound, below) in buckets {
            // Two readings of counts that grow meanwhile.
            let below = below.min(count) as f64;
            self.line("_bucket", labels, Some(("le", &number(bound))), below);
        }
        self.line("_bucket", labels, Some(("le", "+Inf")), count as f64);
        self.line("_count", labels, None, count as f64);
        self.line("_sum", labels, None, sum);
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        last: Option<(&str, &str)>,
        value: f64,
    ) {
        let Some((name, _)) = &self.family else {
            return;
        };
        let text = &mut self.text;
        text.push_str(name);
        text.push_str(suffix);
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(last) {
            let _ = write!(text, "{separator}{}=\"{}\"", plain(label), escaped(value));
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {}", number(value));
    }

    /// The whole text.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// A number as a parser of OpenMetrics reads it.
fn number(value: f64) -> String {
    // Above this, not every whole number is one of these.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return format!("{value:.0}");
    }
    format!("{value}")
}

/// A name with the letters that names may have.
fn plain(name: &str) -> String {
    let letter = |letter: char| {
        let is_plain = letter.is_ascii_alphanumeric() || letter == '_';
        if is_plain { letter } else { '_' }
    };
    name.chars().map(letter).collect()
}

/// A text inside quotes, or behind `# HELP`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_unit_once_and_appears_once() {
        let mut metrics = Metrics::new("t");
        assert!(metrics.family("used_bytes", MetricKind::Gauge, "bytes", "Held"));
        metrics.sample(&[], 1.5);
        assert!(!metrics.family("used", MetricKind::Gauge, "bytes", "Again"));
        metrics.sample(&[], 2.0);
        assert!(metrics.family("calls_total", MetricKind::Counter, "", "Calls"));
        metrics.sample(&[("command", "get")], 3.0);
        metrics.sample(&[("command", "set")], f64::NAN);
        let expected = "# TYPE t_used_bytes gauge\n\
                        # UNIT t_used_bytes bytes\n\
                        # HELP t_used_bytes Held.\n\
                        t_used_bytes 1.5\n\
                        # TYPE t_calls counter\n\
                        # HELP t_calls Calls.\n\
                        t_calls_total{command=\"get\"} 3\n\
                        # EOF\n";
        assert_eq!(metrics.finish(), expected);
    }

    #[test]
    fn a_histogram_never_falls_and_ends_with_everything() {
        let mut metrics = Metrics::new("t");
        metrics.family("time", MetricKind::Histogram, "seconds", "Times");
        metrics.histogram(&[], [(0.001, 2), (0.002, 9)], 5, 0.25);
        let text = metrics.finish();
        assert!(text.contains("t_time_seconds_bucket{le=\"0.001\"} 2\n"));
        assert!(text.contains("t_time_seconds_bucket{le=\"0.002\"} 5\n"));
        assert!(text.contains("t_time_seconds_bucket{le=\"+Inf\"} 5\n"));
        assert!(text.contains("t_time_seconds_count 5\nt_time_seconds_sum 0.25\n"));
    }

    #[test]
    fn texts_are_escaped() {
        let mut metrics = Metrics::new("t");
        metrics.family("path", MetricKind::Info, "", "A \"path\"\nof a file");
        metrics.info(&[], "path", "a\\b\"c\nd");
        let text = metrics.finish();
        assert!(text.contains("# HELP t_path A \\\"path\\\"\\nof a file.\n"));
        assert!(text.contains("t_path_info{path=\"a\\\\b\\\"c\\nd\"} 1\n"));
    }
}
