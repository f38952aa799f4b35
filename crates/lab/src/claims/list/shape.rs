//! The shapes that most claims have.

use super::{Claim, Field, Measure, Original, Pick, Rule, Source, Threads};

/// The throughput of a contestant.
const fn speed(
    engine: &'static str,
    workload: &'static str,
    key_set: &'static str,
    threads: Threads,
) -> Pick {
    Pick {
        workload,
        key_set,
        engine,
        threads,
        field: Field::Mops,
    }
}

/// A claim that one contestant is so many times as fast as another at the same work.
pub(super) const fn faster(
    source: Source,
    experiment: &'static str,
    says: &'static str,
    (workload, key_set, threads): (&'static str, &'static str, Threads),
    (above, below): (&'static str, &'static str),
    original: f64,
) -> Claim {
    Claim {
        experiment,
        says,
        source,
        original: Original::Figure(original),
        measure: Measure::Ratio(
            speed(above, workload, key_set, threads),
            speed(below, workload, key_set, threads),
        ),
        rule: Rule::SameSide,
        why: "",
    }
}

/// A claim that one contestant is faster than another at the same work, or slower; by how much was
/// not told.
pub(super) const fn differs(
    source: Source,
    experiment: &'static str,
    says: &'static str,
    work: (&'static str, &'static str, Threads),
    pair: (&'static str, &'static str),
    original: Original,
) -> Claim {
    let mut claim = faster(source, experiment, says, work, pair, 1.0);
    claim.original = original;
    claim
}

/// A claim that a contestant is so many times as fast with more threads as with fewer.
pub(super) const fn scales(
    source: Source,
    experiment: &'static str,
    says: &'static str,
    (workload, key_set, engine): (&'static str, &'static str, &'static str),
    (more, fewer): (usize, usize),
    original: f64,
) -> Claim {
    Claim {
        experiment,
        says,
        source,
        original: Original::Figure(original),
        measure: Measure::Ratio(
            speed(engine, workload, key_set, Threads::Just(more)),
            speed(engine, workload, key_set, Threads::Just(fewer)),
        ),
        rule: Rule::SameSide,
        why: "",
    }
}

/// A claim about bytes for each key.
pub(super) const fn weighs(
    source: Source,
    says: &'static str,
    (engine, key_set): (&'static str, &'static str),
    original: f64,
) -> Claim {
    Claim {
        experiment: "memory",
        says,
        source,
        original: Original::Figure(original),
        measure: Measure::Value(Pick {
            workload: "fill",
            key_set,
            engine,
            threads: Threads::Just(1),
            field: Field::BytesPerKey,
        }),
        // Allocators and layouts differ; a half more or less is another structure.
        rule: Rule::Within(1.5),
        why: "",
    }
}

impl Claim {
    /// The same claim, agreed with only if the figure is near the original's.
    pub(super) const fn within(mut self, factor: f64) -> Self {
        self.rule = Rule::Within(factor);
        self
    }

    /// The same claim, agreed with if the figure is not above the original's.
    pub(super) const fn at_most(mut self) -> Self {
        self.rule = Rule::AtMost;
        self
    }

    /// The same claim, with what is known of why it differs here.
    pub(super) const fn because(mut self, why: &'static str) -> Self {
        self.why = why;
        self
    }

    /// The same claim, of what was sent rather than of what was received.
    pub(super) const fn sent(self) -> Self {
        self.of(Field::SendMops)
    }

    /// The same claim, of another figure.
    pub(super) const fn of(mut self, field: Field) -> Self {
        if let Measure::Ratio(mut above, mut below) = self.measure {
            above.field = field;
            below.field = field;
            self.measure = Measure::Ratio(above, below);
        }
        self
    }

    /// The same claim, of one contestant's figure against another figure of the same.
    pub(super) const fn against(mut self, field: Field) -> Self {
        if let Measure::Ratio(above, mut below) = self.measure {
            below.field = field;
            self.measure = Measure::Ratio(above, below);
        }
        self
    }
}
