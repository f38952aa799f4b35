//! Every figure of the server, each defined once.
//!
//! A figure has a name, a kind, a unit, a sentence that says what it is, and the section and the
//! field of `INFO` that show it. [`REGISTRY`] lists the tables in which they are defined, one for
//! each part of the server. Code that shows figures walks over it: [`INFO`](write_info) does, and
//! so do the [metrics](write_metrics). A part of the server that has new figures puts them
//! into a table, and the table into the registry.
//!
//! | file | holds |
//! |---|---|
//! | `definition` | what a figure is |
//! | `of_server`, `of_disk`, `of_memory`, `of_commands`, `of_channels`, `of_feeds` | the tables |
//! | `stripes` | what each thread counts of its commands |
//! | `stopwatch` | how long commands take |
//! | `histogram`, `count` | times in buckets, numbers that one thread counts |
//! | `open_metrics` | the figures as metrics |
//! | `sampler` | keys that commands use, one of many |
//! | `system` | what the system says of the process |
//! | `monitoring` | tests of the alert rules and the board |
//!
//! Counts of what happens often are kept by each thread for itself. A figure that counts is a sum
//! that is made when it is read.

mod count;
mod definition;
mod histogram;
#[cfg(test)]
mod monitoring;
mod of_channels;
mod of_commands;
mod of_disk;
mod of_feeds;
mod of_group;
mod of_memory;
mod of_server;
mod open_metrics;
mod sampler;
mod stopwatch;
mod stripes;
mod system;

use crate::lock::lock;
use crate::server::Shared;
use definition::{Definition, Figure, Kind, Value};
pub(crate) use definition::{Reading, Section};
pub(crate) use histogram::Times;
pub(crate) use of_memory::MemoryNow;
pub(crate) use open_metrics::write_metrics;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Mutex;
pub(crate) use stopwatch::{Stopwatch, Took};
pub(crate) use stripes::{CommandSum, Stripe, Stripes};

/// The tables of figures.
pub(crate) static REGISTRY: &[&[Definition]] = &[
    of_server::FIGURES,
    of_disk::FIGURES,
    of_group::FIGURES,
    of_memory::FIGURES,
    of_commands::FIGURES,
    of_channels::FIGURES,
    of_feeds::FIGURES,
];

/// All definitions, in the order in which `INFO` shows those of one section.
pub(crate) fn definitions() -> impl Iterator<Item = &'static Definition> {
    REGISTRY.iter().copied().flatten()
}

/// What the threads count, and from where on `INFO` shows it.
pub(crate) struct Figures {
    pub(crate) stripes: Stripes,
    /// The values of counters at the last `CONFIG RESETSTAT`, by their fields.
    base: Mutex<BTreeMap<&'static str, u64>>,
}

impl Figures {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            stripes: Stripes::new(threads),
            base: Mutex::default(),
        }
    }

    /// Lets `INFO` show from now on what is counted from now on.
    pub(crate) fn reset(server: &Shared) {
        let reading = Reading::new(server, None);
        let mut base = BTreeMap::new();
        for definition in definitions() {
            if let Definition::One(figure) = definition
                && figure.kind == Kind::Counter
                && let Some(Value::Whole(value)) = (figure.read)(&reading)
            {
                base.insert(figure.field, value);
            }
        }
        let figures = &server.figures;
        *lock(&figures.base) = base;
        figures.stripes.reset();
    }

    /// The value of a counter at the last reset.
    fn base(&self, field: &str) -> u64 {
        let base = lock(&self.base);
        base.get(field).copied().unwrap_or(0)
    }
}

/// Writes a section of `INFO`.
pub(crate) fn write_info(section: Section, reading: &Reading<'_>, out: &mut String) -> fmt::Result {
    write!(out, "# {}\r\n", section.title())?;
    for definition in definitions() {
        match definition {
            Definition::One(figure) if figure.section == section => one(figure, reading, out)?,
            Definition::Each(family) if family.section == section => {
                let mut result = Ok(());
                (family.rows)(reading, &mut |label, values| {
                    if result.is_ok() {
                        result = row(family, label, values, out);
                    }
                });
                result?;
            }
            _ => (),
        }
    }
    Ok(())
}

fn one(figure: &Figure, reading: &Reading<'_>, out: &mut String) -> fmt::Result {
    let Some(mut value) = (figure.read)(reading) else {
        return Ok(());
    };
    if let (Kind::Counter, Value::Whole(count)) = (figure.kind, &mut value) {
        *count = count.saturating_sub(reading.server.figures.base(figure.field));
    }
    write!(out, "{}:{value}\r\n", figure.field)
}

fn row(
    family: &definition::Family,
    label: &str,
    values: &[Value],
    out: &mut String,
) -> fmt::Result {
    // A colon would end the name of the field.
    let label = label.replace(':', "_");
    write!(out, "{}{label}:", family.field)?;
    for (index, (member, value)) in family.members.iter().zip(values).enumerate() {
        let separator = if index > 0 { "," } else { "" };
        match value {
            // It names its parts itself.
            Value::Percentiles(..) => write!(out, "{separator}{value}")?,
            _ => write!(out, "{separator}{}={value}", member.field)?,
        }
    }
    out.write_str("\r\n")
}

/// The figures as a Markdown table, for the README.
#[must_use]
pub fn figure_table() -> String {
    let mut text =
        String::from("| section | field | name | kind | what it is |\n|---|---|---|---|---|\n");
    for section in Section::ALL {
        for definition in definitions() {
            // Writing to a string does not fail.
            let _ = match definition {
                Definition::One(figure) if figure.section == section => writeln!(
                    text,
                    "| `{}` | `{}` | `{}` | {}{} | {} |",
                    section.name(),
                    figure.field,
                    figure.name,
                    figure.kind,
                    figure.unit,
                    figure.help
                ),
                Definition::Each(family) if family.section == section => {
                    family.members.iter().try_for_each(|member| {
                        writeln!(
                            text,
                            "| `{}` | `{}`*{}*`:{}` | `{}` | {}{} | {} |",
                            section.name(),
                            family.field,
                            family.label,
                            member.field,
                            member.name,
                            member.kind,
                            member.unit,
                            member.help
                        )
                    })
                }
                _ => Ok(()),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_a_name_a_field_and_a_sentence_of_its_own() {
        let (mut names, mut fields) = (BTreeSet::new(), BTreeSet::new());
        let mut check = |section: Section, name: &'static str, field: String, help: &str| {
            assert!(names.insert(name), "{name} twice");
            assert!(fields.insert(field.clone()), "{field} twice");
            let plain =
                |letter: char| letter.is_ascii_lowercase() || "_0123456789".contains(letter);
            assert!(!name.is_empty() && name.chars().all(plain), "{name}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}: {help}");
            assert!(Section::ALL.contains(&section));
        };
        for definition in definitions() {
            match definition {
                Definition::One(one) => {
                    check(one.section, one.name, one.field.to_owned(), one.help);
                }
                Definition::Each(family) => {
                    for member in family.members {
                        let field = format!("{}{}", family.field, member.field);
                        check(family.section, member.name, field, member.help);
                    }
                }
            }
        }
        assert!(names.len() > 80, "{}", names.len());
    }

    #[test]
    fn the_readme_holds_the_table_of_figures() {
        let table = figure_table();
        assert!(
            include_str!("../../README.md").contains(&table),
            "put this into crates/server/README.md:\n{table}"
        );
    }
}
