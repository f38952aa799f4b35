//! The report as a reader meets it: made by the command, opened in a real browser.
//!
//! `tests/data/every_experiment.jsonl` holds short real runs, whose figures mean nothing.

mod browser;

use browser::Chromium;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn lab(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula-lab"));
    command
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/every_experiment.jsonl")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of this test is text")
}

/// A folder whose contents can be inspected after the test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("report")
        .join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The page of all of the fixture's records.
fn report(folder: &Path) -> PathBuf {
    let page = folder.join("report.html");
    let records = fixture();
    let arguments = ["report", text(&records), "-o", text(&page)];
    let done = lab(&[&arguments[..], &["--date", "2026-11-22"]].concat());
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    page
}

/// A page that shows the report in frames of these widths, and writes what it finds there into its
/// own text.
fn probe(folder: &Path, report: &Path, widths: &[u32]) -> PathBuf {
    let html = fs::read_to_string(report).unwrap();
    let escaped = html.replace('&', "&amp;").replace('"', "&quot;");
    let frames: String = widths
        .iter()
        .map(|width| {
            format!("<iframe style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{escaped}\"></iframe>")
        })
        .collect();
    let script = "
        addEventListener('load', () => {
            const seen = [...document.querySelectorAll('iframe')].map(frame => {
                const page = frame.contentDocument, width = frame.clientWidth;
                const charts = [...page.querySelectorAll('svg.chart')];
                // What may be scrolled in its own box may be wider than the page.
                const wide = [...page.body.querySelectorAll('*')].filter(element =>
                    !element.closest('.scroll') && element.getBoundingClientRect().right > width + 1);
                return {
                    width,
                    scroll: page.documentElement.scrollWidth,
                    wide: wide.map(element => element.outerHTML.slice(0, 200)).slice(0, 5),
                    charts: charts.filter(chart => chart.getBoundingClientRect().height > 40)
                        .map(chart => chart.id),
                    titles: page.querySelectorAll('svg.chart title').length,
                    paper: page.defaultView.getComputedStyle(page.body).backgroundColor,
                    broken: [...page.querySelectorAll('a[href^=\"#\"]')]
                        .map(link => link.getAttribute('href').slice(1))
                        .filter(id => !page.getElementById(id)),
                };
            });
            const shown = document.createElement('pre');
            shown.id = 'seen';
            shown.textContent = JSON.stringify(seen).replace(/[<>&]/g, '?');
            document.body.replaceChildren(shown);
        });";
    let path = folder.join("probe.html");
    let html = format!(
        "<!doctype html><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\">\
         <body style=\"margin:0\">{frames}<script>{script}</script>"
    );
    fs::write(&path, html).unwrap();
    path
}

fn seen(dumped: &str) -> Vec<Value> {
    let (_, rest) = dumped
        .split_once("<pre id=\"seen\">")
        .expect("the probe ran");
    let (text, _) = rest.split_once("</pre>").expect("the probe's text ends");
    serde_json::from_str(text).expect("the probe wrote JSON")
}

/// Fails if the page wrote to the console, if a chart were missing or had no height, if anything
/// were wider than a narrow screen, if a link within the page were broken, or if the page looked
/// the same in dark mode.
#[test]
fn a_real_browser_shows_every_chart_within_any_screen_and_has_nothing_to_complain_of() {
    let chromium = Chromium::find();
    let folder = folder("probe");
    let report = report(&folder);
    let html = fs::read_to_string(&report).unwrap();
    let charts: Vec<&str> = html
        .split("<svg id=\"")
        .skip(1)
        .map(|rest| rest.split_once('"').unwrap().0)
        .collect();
    for experiment in [
        "ycsb",
        "signals",
        "memory",
        "shard-cache",
        "adaptation",
        "sequential-overhead",
        "counter-scaling",
        "redis",
    ] {
        let first = format!("chart-{experiment}-1");
        assert!(charts.contains(&first.as_str()), "{first} in {charts:?}");
    }
    let probe = probe(&folder, &report, &[390, 1200]);
    let look = |scheme: u8| {
        let output = chromium.open(
            &probe,
            &[
                "--dump-dom".to_owned(),
                "--window-size=1280,1000".to_owned(),
                format!("--blink-settings=preferredColorScheme={scheme}"),
            ],
        );
        assert_eq!(output.console(), Vec::<&str>::new());
        seen(&output.stdout)
    };
    // Blink's numbers: 0 is dark, 1 is light.
    let (dark, light) = (look(0), look(1));
    assert_eq!(light.len(), 2);
    for frame in light.iter().chain(&dark) {
        let width = frame["width"].as_u64().unwrap();
        assert!(frame["scroll"].as_u64().unwrap() <= width, "{frame}");
        assert_eq!(frame["wide"], json!([]), "at {width}");
        assert_eq!(frame["charts"], json!(charts), "at {width}");
        assert_eq!(frame["broken"], json!([]));
        assert!(frame["titles"].as_u64().unwrap() > charts.len() as u64);
    }
    assert_ne!(light[0]["paper"], dark[0]["paper"]);
}

/// An error in a page is noticed, so the check of the console works.
#[test]
fn an_error_in_a_page_would_be_noticed() {
    let folder = folder("planted");
    let page = folder.join("planted.html");
    fs::write(
        &page,
        "<!doctype html><script>throw new Error('planted')</script>",
    )
    .unwrap();
    let output = Chromium::find().open(&page, &["--dump-dom".to_owned()]);
    let console = output.console();
    assert!(
        console.iter().any(|line| line.contains("planted")),
        "{}",
        output.stderr
    );
}

/// The page on paper and as pictures, for inspection: `report/pictures` in Cargo's folder for
/// tests.
#[test]
fn the_page_can_be_printed_and_pictured() {
    let chromium = Chromium::find();
    let folder = folder("pictures");
    let report = report(&folder);
    let narrow = folder.join("phone.html");
    fs::write(
        &narrow,
        "<!doctype html><body style=\"margin:0\"><iframe src=\"report.html\" \
         style=\"width:390px;height:4000px;border:0\"></iframe>",
    )
    .unwrap();
    for (name, page, size, scheme) in [
        ("light.png", &report, "1100,4000", 1),
        ("dark.png", &report, "1100,4000", 0),
        ("phone.png", &narrow, "500,4000", 1),
    ] {
        let picture = folder.join(name);
        chromium.open(
            page,
            &[
                format!("--screenshot={}", picture.display()),
                format!("--window-size={size}"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
            ],
        );
        let bytes = fs::read(&picture).unwrap();
        assert!(bytes.starts_with(b"\x89PNG"), "{name}");
    }
    let paper = folder.join("print.pdf");
    let flags = [
        format!("--print-to-pdf={}", paper.display()),
        "--no-pdf-header-footer".to_owned(),
    ];
    chromium.open(&report, &flags);
    assert!(fs::read(&paper).unwrap().starts_with(b"%PDF"));
}

#[test]
fn bad_input_and_a_page_that_cannot_be_written_are_named() {
    let folder = folder("refused");
    let empty = folder.join("empty.jsonl");
    fs::write(&empty, "").unwrap();
    let broken = folder.join("broken.jsonl");
    fs::write(&broken, "{\"engine\":3}\n").unwrap();
    let good = fixture();
    let page = folder.join("page.html");
    let nowhere = folder.join("no/such/folder/page.html");
    for (input, output, error) in [
        (text(&empty), &page, "empty.jsonl' has no records"),
        (text(&broken), &page, "broken.jsonl', line 1, is no record"),
        ("/no/such/file", &page, "cannot read '/no/such/file'"),
        (text(&good), &nowhere, "no/such/folder/page.html'"),
    ] {
        let refused = lab(&["report", input, "-o", text(output)]);
        assert_eq!(refused.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(errors.contains(error), "{error} in {errors}");
    }
    assert!(!page.exists());
    assert_eq!(lab(&["report"]).status.code(), Some(2));
}

#[test]
fn compare_ends_with_a_status_that_says_what_it_found() {
    let folder = folder("compared");
    let lines = fs::read_to_string(fixture()).unwrap();
    let scaled = |name: &str, factor: f64| {
        let scale = |line: &str| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["mops"] = json!(record["mops"].as_f64().unwrap() * factor);
            // The runs lie close together, so that a fifth is beyond their noise.
            let mops = record["mops"].as_f64().unwrap();
            record["runs"] = json!([mops, mops * 0.99, mops * 1.01]);
            record.to_string()
        };
        let path = folder.join(name);
        let lines: Vec<String> = lines.lines().take(20).map(scale).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        path
    };
    let (old, slower, faster) = (
        scaled("old.jsonl", 1.0),
        scaled("slower.jsonl", 0.8),
        scaled("faster.jsonl", 1.2),
    );
    let compare = |new: &Path, more: &[&str]| {
        let done = lab(&[&["compare", text(&old), text(new)], more].concat());
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let (status, table) = compare(&old, &[]);
    assert_eq!(status, Some(0), "{table}");
    assert!(table.contains(" 0 better, 0 worse"), "{table}");
    let (status, table) = compare(&slower, &[]);
    assert_eq!(status, Some(3), "{table}");
    assert!(
        table.contains("WORSE") && table.contains(" 20 worse"),
        "{table}"
    );
    assert_eq!(compare(&faster, &[]).0, Some(0));
    assert_eq!(compare(&slower, &["--threshold", "30"]).0, Some(0));
    let (status, json) = compare(&slower, &["--json"]);
    assert_eq!(status, Some(3));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"][0]["change"], "worse");
    for (arguments, status) in [
        (&["compare", text(&old), "/no/such/file"][..], 1),
        (&["compare", text(&old)], 2),
        (&["compare", text(&old), text(&old), "--threshold", "-1"], 2),
    ] {
        assert_eq!(lab(arguments).status.code(), Some(status), "{arguments:?}");
    }
}
