//! The figures as metrics in the form of OpenMetrics, which has rules of its own: base units, the
//! unit at the end of a name, and a text as a label.

use super::definition::{Definition, Kind, Reading, Unit, Value};
use super::definitions;
use tremula_observe::{MetricKind, Metrics};

const SECONDS_OF_DAY: f64 = 86_400.0;

/// Writes every figure.
pub(crate) fn write_metrics(reading: &Reading<'_>, metrics: &mut Metrics) {
    for definition in definitions() {
        match definition {
            Definition::One(figure) => {
                let Some(value) = (figure.read)(reading) else {
                    continue;
                };
                let form = Form::of(figure.name, figure.kind, figure.unit);
                if form.begin(figure.help, metrics) {
                    form.write(&[], &value, metrics);
                }
            }
            Definition::Each(family) => {
                let mut rows: Vec<(String, Vec<Value>)> = Vec::new();
                (family.rows)(reading, &mut |label, values| {
                    rows.push((label.to_owned(), values.to_vec()));
                });
                for (at, member) in family.members.iter().enumerate() {
                    let form = Form::of(member.name, member.kind, member.unit);
                    if rows.is_empty() || !form.begin(member.help, metrics) {
                        continue;
                    }
                    for (label, values) in &rows {
                        if let Some(value) = values.get(at) {
                            form.write(&[(family.label, label)], value, metrics);
                        }
                    }
                }
            }
        }
    }
}

/// How a figure becomes a metric.
struct Form {
    /// Without its unit.
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    /// What a value is multiplied with.
    scale: f64,
}

impl Form {
    fn of(name: &'static str, kind: Kind, unit: Unit) -> Self {
        let (own, unit, scale) = match unit {
            Unit::None => ("", "", 1.0),
            Unit::Bytes => ("_bytes", "bytes", 1.0),
            Unit::Seconds => ("_seconds", "seconds", 1.0),
            Unit::Days => ("_days", "seconds", SECONDS_OF_DAY),
            Unit::Microseconds => ("_microseconds", "seconds", 1e-6),
            Unit::Thousandths => ("_thousandths", "ratio", 1e-3),
        };
        let kind = match kind {
            Kind::Counter => MetricKind::Counter,
            Kind::Gauge => MetricKind::Gauge,
            Kind::Histogram => MetricKind::Histogram,
            Kind::Text => MetricKind::Info,
        };
        Self {
            name: name.strip_suffix(own).unwrap_or(name),
            kind,
            unit,
            scale,
        }
    }

    /// Begins the family.
    fn begin(&self, help: &str, metrics: &mut Metrics) -> bool {
        metrics.family(self.name, self.kind, self.unit, help)
    }

    fn write(&self, labels: &[(&str, &str)], value: &Value, metrics: &mut Metrics) {
        match value {
            // A count of microseconds below 2^53 is exact.
            Value::Whole(number) => metrics.sample(labels, *number as f64 * self.scale),
            Value::Decimal(number, _) => metrics.sample(labels, number * self.scale),
            Value::Text(text) => metrics.info(labels, self.name, text),
            Value::Percentiles(times, _) => {
                metrics.histogram(labels, times.below(), times.count(), times.sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::definitions;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_a_name_of_its_own_among_the_metrics() {
        let mut metrics = Metrics::new("tremula");
        let mut begun = BTreeSet::new();
        for definition in definitions() {
            let members: Vec<_> = match definition {
                Definition::One(one) => vec![(one.name, one.kind, one.unit)],
                Definition::Each(family) => {
                    let members = family.members.iter();
                    members.map(|one| (one.name, one.kind, one.unit)).collect()
                }
            };
            for (name, kind, unit) in members {
                let has_begun = Form::of(name, kind, unit).begin("a figure", &mut metrics);
                // What `INFO` has in days it has in seconds, too, and a metric has it once.
                assert!(has_begun || name == "uptime_days", "{name}");
                if has_begun {
                    begun.insert(name);
                }
            }
        }
        assert!(begun.len() > 80);
        assert_eq!(metrics.finish().matches("# TYPE ").count(), begun.len());
    }

    #[test]
    fn values_are_in_base_units() {
        let mut metrics = Metrics::new("tremula");
        let mut write = |name, kind, unit, value| {
            let form = Form::of(name, kind, unit);
            form.begin("a figure", &mut metrics);
            form.write(&[], &value, &mut metrics);
        };
        write(
            "took_microseconds",
            Kind::Counter,
            Unit::Microseconds,
            Value::Whole(1_500_000),
        );
        write("up_days", Kind::Gauge, Unit::Days, Value::Whole(2));
        write("busy", Kind::Gauge, Unit::Thousandths, Value::Whole(250));
        write("role", Kind::Text, Unit::None, Value::from("leader"));
        let text = metrics.finish();
        for line in [
            "tremula_took_seconds_total 1.5\n",
            "tremula_up_seconds 172800\n",
            "tremula_busy_ratio 0.25\n",
            "tremula_role_info{role=\"leader\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
