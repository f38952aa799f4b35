//! The report: one HTML page that needs no network and no script.
//!
//! [`page`] goes through the records experiment by experiment (`study`): the question, the charts,
//! what the originals found, the figures, and the command that repeats them. The looks are in
//! `style.css`; everything else only names classes.

mod chart;
mod charts;
mod command;
mod markup;
mod questions;
mod study;
mod tables;
mod values;

use crate::{
    claims::{self, Claim, Verdict},
    experiments,
    gauge::QUIET,
    record::{self, Record},
    results,
    statistics::RESAMPLES,
};
use charts::Figure;
use markup::{anchor, count, escape, plural};
use std::fmt::Write;
use study::{Study, in_order, is_as_bought};

const STYLE: &str = include_str!("style.css");

/// Where the method is described.
const METHOD: &str = "https://github.com/tremula/tremula/blob/main/docs/method.md";

/// The page that shows these records. Of several records of one contestant in one case the last one
/// counts. Records of experiments that this lab does not know are shown as they are. The page is
/// dated `date`.
///
/// It takes time in proportion to the records; resampling runs for intervals takes most of it.
///
/// ```
/// use std::path::Path;
/// use tremula_lab::{page, record};
///
/// let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../index/results/ycsb_email.jsonl");
/// let html = page::page(record::read(&results)?, "2026-11-22");
/// assert!(html.starts_with("<!doctype html>") && html.contains("<svg id=\"chart-ycsb-1\""));
/// assert!(!html.contains("<script"));
/// # Ok::<(), tremula_lab::LabError>(())
/// ```
#[must_use]
pub fn page(records: Vec<Record>, date: &str) -> String {
    let given = records.len();
    let records = results::latest(records);
    let superseded = given - records.len();
    let (records, wrong) = results::without_wrong(records);
    let mut studies = Study::all(&records);
    studies.sort_by_key(|study| {
        let known = experiments::ALL.iter();
        let names: Vec<_> = known.map(|experiment| experiment.name()).collect();
        let place = names.iter().position(|name| *name == study.experiment);
        place.unwrap_or(names.len())
    });
    // A claim is about a real machine.
    let measured: Vec<Record> = records.iter().filter(|r| !r.simulated).cloned().collect();
    let judged: Vec<(&Claim, Verdict)> = claims::ALL
        .iter()
        .map(|claim| (claim, claim.judge(&measured)))
        .collect();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Tremula: the figures of the field</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    html += &head(&records, date, &judged);
    html += &contents(&studies);
    html += &method(superseded);
    for study in &studies {
        html += &section(study, &judged);
    }
    html += &tables::validation(&records);
    if !wrong.is_empty() {
        html += "<section id=\"wrong\"><h2>Wrong answers</h2><ul>";
        for sentence in &wrong {
            html += &format!("<li>{}</li>", markup::escape(sentence));
        }
        html += "</ul></section>\n";
    }
    html += "<section id=\"claims\"><h2>What the originals found</h2><p class=\"question\">Every \
             figure that the papers and the rivals are known for, beside the same figure of this \
             run. None is left out because it disagrees.</p>";
    html += &tables::claims(&judged, true);
    html += "</section>\n<footer><p>Made by <code>tremula-lab report</code>.</p></footer>\n</body>\n</html>\n";
    html
}

/// The charts of [`page`], each with its name, such as `adaptation-1`, as an image that stands
/// alone.
///
/// ```
/// use std::path::Path;
/// use tremula_lab::{page, record};
///
/// let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../index/results/ycsb_email.jsonl");
/// let charts = page::charts(record::read(&results)?);
/// let (name, svg) = &charts[0];
/// assert_eq!(name, "ycsb-1");
/// assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"chart-ycsb-1\""));
/// # Ok::<(), tremula_lab::LabError>(())
/// ```
#[must_use]
pub fn charts(records: Vec<Record>) -> Vec<(String, String)> {
    let (records, _) = results::without_wrong(results::latest(records));
    let studies = Study::all(&records);
    let of_study = |study: &Study<'_>| {
        let experiment = anchor(study.experiment);
        let figures = charts::figures(study).into_iter().enumerate();
        figures
            .map(move |(at, figure)| {
                let name = format!("{experiment}-{}", at + 1);
                (name, standing_alone(&figure.svg))
            })
            .collect::<Vec<_>>()
    };
    studies.iter().flat_map(of_study).collect()
}

/// A chart of the page with what the page gives it: the namespace and the looks.
fn standing_alone(svg: &str) -> String {
    let svg = svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    let style = format!(
        "><style>svg {{ background: var(--paper); font-family: sans-serif }}\n{STYLE}</style>"
    );
    svg.replacen('>', &style, 1)
}

/// The title, the conditions of the measurements, and the outcome in two sentences.
fn head(records: &[Record], date: &str, judged: &[(&Claim, Verdict)]) -> String {
    let machines = in_order(records.iter().map(|record| &record.made_by.machine));
    let machines: Vec<_> = machines
        .iter()
        .map(|machine| {
            let cores = plural(machine.cores, "core");
            format!("{}, {cores}, {}", machine.cpu, machine.system())
        })
        .collect();
    let builds = in_order(records.iter().map(|record| {
        let configuration = &record.made_by.configuration;
        let allocator = configuration.allocator.iter();
        let allocator = allocator.map(|name| format!(", {name} allocator"));
        format!(
            "{} ({} build{})",
            record.made_by.version,
            configuration.build,
            allocator.collect::<String>()
        )
    }));
    let versions = in_order(
        records
            .iter()
            .map(|record| record.made_by.configuration.engine_version.as_str()),
    );
    let seeds = in_order(records.iter().map(|record| record.made_by.seed.to_string()));
    let runs = in_order(records.iter().map(|record| record.runs.len()));
    let runs: Vec<_> = runs.iter().map(ToString::to_string).collect();
    let number = |is: fn(&Verdict) -> bool| judged.iter().filter(|(_, v)| is(v)).count();
    let agree = number(|verdict| matches!(verdict, Verdict::Agrees(_)));
    let differ = number(|verdict| matches!(verdict, Verdict::Differs(_)));
    let is_debug = |record: &Record| record.made_by.configuration.build == record::DEBUG;
    let warning = if records.iter().any(is_debug) {
        "<p class=\"warning\">Some of it was measured by a build with assertions, whose figures mean \
         little.</p>"
    } else {
        ""
    };
    format!(
        "<header><p class=\"kicker\">Tremula · the lab</p>\
         <h1>The figures of the field, measured on one machine</h1>\
         <p class=\"dek\">{} of {} in {}. Of {} figures that the originals are known for, \
         <a href=\"#claims\">{agree} agree here, {differ} differ, and {} were not measured</a>.</p>\
         {warning}<dl class=\"facts\"><div><dt>Date</dt><dd>{}</dd></div>\
         <div><dt>Machine</dt><dd>{}</dd></div><div><dt>Lab</dt><dd>{}</dd></div>\
         <div><dt>Runs</dt><dd>{} of each, alternating</dd></div>\
         <div><dt>Seed</dt><dd>{}</dd></div></dl>\
         <details class=\"versions\"><summary>Who takes part <span>{}</span></summary>\
         <p>{}</p></details></header>\n",
        plural(records.len(), "measurement"),
        plural(
            in_order(records.iter().map(|record| &record.engine)).len(),
            "contestant"
        ),
        plural(
            in_order(records.iter().map(|record| &record.experiment)).len(),
            "experiment"
        ),
        judged.len(),
        judged.len() - agree - differ,
        escape(date),
        escape(&machines.join("; ")),
        escape(&builds.join(", ")),
        runs.join(" or "),
        escape(&seeds.join(", ")),
        plural(versions.len(), "version"),
        escape(&versions.join(" · ")),
    )
}

fn contents(studies: &[Study<'_>]) -> String {
    let mut html = "<nav aria-label=\"Contents\"><h2>Contents</h2><ol>".to_owned();
    for study in studies {
        write!(
            html,
            "<li><a href=\"#{}\">{}</a> <span>{}</span>",
            anchor(study.experiment),
            escape(study.experiment),
            questions::question(study.experiment)
        )
        .expect("a string takes all text");
    }
    html + "<li><a href=\"#claims\">What the originals found</a> <span>All claims together, with \
            both figures.</span></ol></nav>\n"
}

/// How it was measured, and what the marks mean.
fn method(superseded: usize) -> String {
    let part = (1.0 - QUIET) * 100.0;
    let superseded = if superseded == 0 {
        String::new()
    } else {
        let records = plural(superseded, "earlier record");
        format!(
            "<p>Where a contestant was measured more than once on the same case, the last \
             measurement counts; {records} made way for later ones.</p>"
        )
    };
    format!(
        "<section id=\"method\"><h2>How to read this</h2>\
         <p>Contestants take turns within each run, on work made before the time runs, from one seed \
         and with one allocator; their threads start together; their answers are checked. A figure is \
         the <em>median</em> of its runs, and bars and whiskers reach from the least to the greatest. \
         A ratio is one of medians, and its interval is the middle 95 % of {} ratios of runs drawn \
         anew (the bootstrap). Ratios within one run count; absolute figures move with the machine. \
         The whole of it is in <a href=\"{METHOD}\">docs/method.md</a>.</p>{superseded}\
         <dl class=\"marks\"><div><dt><span class=\"mark\">!</span> and a broken ring</dt>\
         <dd><em>disturbed</em>: in most runs other work had more than {part:.0} % of the \
         machine.</dd></div><div><dt><span class=\"swatch\"></span> shaded ground, »</dt>\
         <dd><em>oversubscribed</em>: more threads than the machine has cores. This is a workload of \
         its own: it shows what waiting costs, not what scales.</dd></div>\
         <div><dt><svg class=\"key ours c1\" viewBox=\"0 0 34 10\" aria-hidden=\"true\">\
         <path class=\"way\" d=\"M2 5H32\"/><circle class=\"marker\" cx=\"17\" cy=\"5\" r=\"3\"/></svg> \
         full line</dt><dd>of this project; a colour and a marker for each, the same in every \
         chart.</dd></div><div><dt><svg class=\"key rival c1\" viewBox=\"0 0 34 10\" \
         aria-hidden=\"true\"><path class=\"way\" d=\"M2 5H32\"/>\
         <circle class=\"marker\" cx=\"17\" cy=\"5\" r=\"3\"/></svg> broken line, hollow marker</dt>\
         <dd>somebody else’s. Where there are many, the best three have their names, and the rest are \
         thin and grey; point at a line to see whose it is, and at a marker for its figures.</dd>\
         </div></dl></section>\n",
        count(RESAMPLES as u64)
    )
}

/// All about one experiment.
fn section(study: &Study<'_>, judged: &[(&Claim, Verdict)]) -> String {
    let mut html = format!(
        "<section id=\"{}\"><h2><code>{}</code></h2><p class=\"question\">{}</p>",
        anchor(study.experiment),
        escape(study.experiment),
        questions::question(study.experiment)
    );
    if let Ok(experiment) = experiments::find(study.experiment) {
        let about = experiment.about();
        write!(html, "<p class=\"about\">In it, {about}.</p>").expect("a string takes all text");
    }
    let figures = charts::figures(study);
    html += "<div class=\"charts\">";
    for figure in &figures {
        html += &show(figure);
    }
    html += "</div>";
    let own: Vec<_> = judged
        .iter()
        .filter(|(claim, _)| claim.experiment == study.experiment)
        .cloned()
        .collect();
    if !own.is_empty() {
        write!(
            html,
            "<h3>What the originals found</h3>{}",
            tables::claims(&own, false)
        )
        .expect("a string takes all text");
    }
    html += &simulated_claims(study);
    html += &tables::published(study);
    html += &tables::figures(study);
    html += "<h3>To repeat it</h3><div class=\"scroll\" tabindex=\"0\"><pre>";
    html += &escape(&command::commands(study).join("\n"));
    html += "</pre></div>";
    if command::needs_rivals(study) {
        html += "<p class=\"about\">Rivals take part if the program is built with \
                 <code>--features rivals</code>.</p>";
    }
    html + "</section>\n"
}

/// The claims of the experiment, judged by what was simulated on machines that are large enough for
/// them.
fn simulated_claims(study: &Study<'_>) -> String {
    let machines = study.records.iter().filter_map(|record| {
        let machine = record.simulated_on().filter(|name| is_as_bought(name))?;
        Some((machine, record.made_by.machine.cores))
    });
    let mut html = String::new();
    for (machine, cores) in in_order(machines) {
        let is_of_machine = |record: &&&Record| record.simulated_on() == Some(machine);
        let records = study.records.iter().filter(is_of_machine);
        let records: Vec<Record> = records.map(|record| (*record).clone()).collect();
        let judged: Vec<_> = claims::ALL
            .iter()
            .filter(|claim| claim.experiment == study.experiment && claim.fits(cores))
            .map(|claim| (claim, claim.judge(&records)))
            .filter(|(_, verdict)| !matches!(verdict, Verdict::NotMeasured(_)))
            .collect();
        if !judged.is_empty() {
            write!(
                html,
                "<h3>What the originals found, simulated on {}</h3>{}",
                escape(machine),
                tables::claims(&judged, false)
            )
            .expect("a string takes all text");
        }
    }
    html
}

fn show(figure: &Figure) -> String {
    let wide = if figure.is_wide {
        " class=\"wide\""
    } else {
        ""
    };
    let note = if figure.note.is_empty() {
        String::new()
    } else {
        format!("<p>{}</p>", escape(&figure.note))
    };
    format!(
        "<figure{wide}><figcaption>{}</figcaption>{}{note}</figure>",
        escape(&figure.caption),
        figure.svg
    )
}

#[cfg(test)]
mod tests;
