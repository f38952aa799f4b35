//! How a model looks on a terminal.

use super::model::{Model, Page};
use super::sample::{Connected, Sample, Slow};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Gauge, Paragraph, Row, Sparkline, Table, Tabs, Widget};

/// The parts of a minute and an hour, in seconds.
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How full the memory is when its bar warns.
const FULL: f64 = 0.9;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const WARNING: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Draws the page that the model is at.
pub(super) fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let [top, tabs, body, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    head(model, top, buffer);
    let names = Page::ALL
        .iter()
        .enumerate()
        .map(|(at, page)| format!("{} {}", at + 1, page.title()));
    let chosen = Page::ALL.iter().position(|page| *page == model.page);
    Tabs::new(names)
        .select(chosen)
        .highlight_style(BOLD.add_modifier(Modifier::REVERSED))
        .render(tabs, buffer);
    page(model, model.page, body, buffer);
    let state = if model.is_paused { "paused  " } else { "" };
    let keys = format!(
        "{state}1-6 tab page  s sort: {}  up down scroll  p pause  q quit",
        model.order.title()
    );
    Line::styled(keys, DIM).render(bottom, buffer);
}

/// Draws all pages below each other, as text without colours.
pub(super) fn plain(model: &Model, width: u16) -> String {
    let mut text = String::new();
    let mut add = |height: u16, draw: &dyn Fn(Rect, &mut Buffer)| {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(area, &mut buffer);
        for y in 0..height {
            let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        while text.ends_with("\n\n") {
            text.pop();
        }
    };
    add(1, &|area, buffer| head(model, area, buffer));
    for each in Page::ALL {
        add(2, &|area, buffer| {
            let below = Rect { y: 1, ..area };
            Line::from(format!("== {}", each.title())).render(below, buffer);
        });
        add(PLAIN_ROWS, &|area, buffer| page(model, each, area, buffer));
    }
    text
}

/// The most lines of a page of plain text.
const PLAIN_ROWS: u16 = 32;

fn head(model: &Model, area: Rect, buffer: &mut Buffer) {
    let mut spans = vec![Span::styled("tremula ", BOLD)];
    if let Some(now) = &model.now {
        let up = time(now.number("uptime_in_seconds"));
        let words = format!(
            "{}  {}  {}  {}  up {up}  ",
            now.text("tremula_version"),
            now.text("engine"),
            model.place,
            now.text("role")
        );
        spans.push(Span::raw(words));
    } else {
        spans.push(Span::raw(format!("{}  ", model.place)));
    }
    if let Some(trouble) = &model.trouble {
        spans.push(Span::styled(trouble.clone(), WARNING));
    }
    Line::from(spans).render(area, buffer);
}

fn page(model: &Model, page: Page, area: Rect, buffer: &mut Buffer) {
    let Some(now) = &model.now else {
        return Line::from("no answer yet").render(area, buffer);
    };
    match page {
        Page::Overview => overview(model, now, area, buffer),
        Page::Commands => commands(model, area, buffer),
        Page::Clients => match &now.clients {
            Ok(all) => clients(model, all, area, buffer),
            Err(why) => Line::styled(why.as_str(), WARNING).render(area, buffer),
        },
        Page::Slow => match &now.slow {
            Ok(all) => slow(model, all, area, buffer),
            Err(why) => Line::styled(why.as_str(), WARNING).render(area, buffer),
        },
        Page::Index => match &now.shape {
            Ok(_) => index(model, area, buffer),
            Err(why) => Line::styled(why.as_str(), WARNING).render(area, buffer),
        },
        Page::Leaves => match &now.leaves {
            Ok(_) => leaves(model, area, buffer),
            Err(why) => Line::styled(why.as_str(), WARNING).render(area, buffer),
        },
    }
}

fn overview(model: &Model, now: &Sample, area: Rect, buffer: &mut Buffer) {
    let [throughput, picture, memory, bar, rest] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
    ])
    .areas(area);
    let rate = |field| short(model.rate(field));
    Line::from(vec![
        Span::styled(
            format!("{} commands/s", rate("total_commands_processed")),
            BOLD,
        ),
        Span::raw(format!(
            "   in {}B/s   out {}B/s   errors {}/s   evicted {}/s   expired {}/s",
            rate("total_net_input_bytes"),
            rate("total_net_output_bytes"),
            rate("total_error_replies"),
            rate("evicted_keys"),
            rate("expired_keys"),
        )),
    ])
    .render(throughput, buffer);
    let width = usize::from(picture.width);
    let newest = model.rates.len().saturating_sub(width);
    Sparkline::default()
        .data(model.rates.iter().skip(newest).copied())
        .style(Style::new().fg(Color::Cyan))
        .render(picture, buffer);
    let (used, limit) = (now.number("used_memory"), now.number("maxmemory"));
    let of = match limit {
        0 => "no limit".to_owned(),
        _ => format!("of {}", bytes(limit)),
    };
    Line::from(format!(
        "memory {} {of}   resident {}   buffers {}   keys {}",
        bytes(used),
        bytes(now.number("used_memory_rss")),
        bytes(now.number("used_memory_buffers")),
        model.keys(),
    ))
    .render(memory, buffer);
    let full = used as f64 / limit.max(1) as f64;
    if limit > 0 {
        let colour = if full > FULL {
            Color::Red
        } else {
            Color::Green
        };
        Gauge::default()
            .ratio(full.clamp(0.0, 1.0))
            .gauge_style(Style::new().fg(colour))
            .render(bar, buffer);
    }
    Paragraph::new(facts(model, now)).render(rest, buffer);
}

/// The lines of the overview that are words.
fn facts(model: &Model, now: &Sample) -> Vec<Line<'static>> {
    let rate = |field| short(model.rate(field));
    let mut lines = vec![Line::from(format!(
        "clients {} of {}   blocked {}   closed by the server {}/s   new {}/s",
        now.number("connected_clients"),
        now.number("maxclients"),
        now.number("blocked_clients"),
        rate("clients_closed_by_server"),
        rate("total_connections_received"),
    ))];
    let busy: Vec<String> = model
        .threads()
        .iter()
        .map(|busy| format!("{busy}%"))
        .collect();
    lines.push(Line::from(format!("threads busy {}", busy.join(" "))));
    lines.push(if now.number("aof_enabled") == 1 {
        let lag = now
            .number("log_last_effect")
            .saturating_sub(now.number("log_durable_effect"));
        let text = format!(
            "log lag {lag} effects, {}   written {}B/s   syncs {}/s of {}   durability {}   behind the snapshot {}",
            bytes(now.number("log_unsynced_bytes")),
            rate("log_bytes_written"),
            rate("log_syncs"),
            sync_time(model, now),
            now.text("log_durability"),
            now.number("rdb_changes_since_last_save"),
        );
        Line::from(text)
    } else {
        Line::from("log none: memory only")
    });
    if now.info.contains_key("group_name") {
        lines.push(Line::from(format!(
            "group {}   node {}   {}   nodes {}   silent leader {} us   term {}",
            now.text("group_name"),
            now.text("group_node"),
            now.text("group_standing"),
            now.number("group_nodes"),
            now.number("group_lag_microseconds"),
            now.number("group_epoch"),
        )));
    } else {
        lines.push(Line::from("replicas none: no group"));
    }
    if now.number("log_is_full") > 0 {
        lines.push(Line::styled("THE DISK IS FULL", WARNING));
    }
    let (done, all) = (
        now.number("current_save_keys_processed"),
        now.number("current_save_keys_total"),
    );
    if let Some(percent) = (100 * done).checked_div(all) {
        lines.push(Line::from(format!("snapshot {percent}% of {all} keys")));
    }
    if now.text("rdb_last_bgsave_status") == "err" {
        lines.push(Line::styled("THE LAST SNAPSHOT FAILED", WARNING));
    }
    lines.push(Line::from(""));
    lines.push(Line::styled("busiest commands", BOLD));
    lines.extend(model.commands().iter().take(5).map(|row| {
        Line::from(format!(
            "  {:<16} {:>9}/s  {:>9.1} us",
            row.name,
            short(row.a_second),
            row.micros
        ))
    }));
    lines
}

/// The average of the syncs since the last look, or the last one if there were none.
fn sync_time(model: &Model, now: &Sample) -> String {
    let syncs = model.rate("log_syncs");
    let micros = match syncs > 0.0 {
        true => model.rate("log_sync_usec") / syncs,
        false => now.number("log_last_sync_usec") as f64,
    };
    format!("{} us", short(micros.round()))
}

fn commands(model: &Model, area: Rect, buffer: &mut Buffer) {
    let all = model.commands();
    let mut names: Vec<String> = Vec::new();
    for (name, _) in all.iter().flat_map(|row| &row.percentiles) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let mut titles: Vec<String> = ["command", "calls/s", "average us"]
        .map(str::to_owned)
        .into();
    titles.extend(names.iter().map(|name| format!("{name} us")));
    titles.extend(["calls", "errors"].map(str::to_owned));
    let mut widths = vec![Constraint::Min(16)];
    widths.extend(vec![Constraint::Length(12); titles.len() - 1]);
    let rows = all.iter().skip(model.offset).map(|row| {
        let mut cells = vec![
            row.name.clone(),
            short(row.a_second),
            format!("{:.1}", row.micros),
        ];
        cells.extend(names.iter().map(|name| {
            let found = row.percentiles.iter().find(|(known, _)| known == name);
            found.map_or_else(String::new, |(_, micros)| micros.clone())
        }));
        cells.extend([row.calls.to_string(), row.errors.to_string()]);
        Row::new(cells)
    });
    table(titles, rows, widths, area, buffer);
}

fn clients(model: &Model, all: &[Connected], area: Rect, buffer: &mut Buffer) {
    use super::model::Order;
    let mut sorted: Vec<&Connected> = all.iter().collect();
    match model.order {
        Order::Amount => sorted.sort_by_key(|client| std::cmp::Reverse(client.memory)),
        Order::Time => sorted.sort_by_key(|client| std::cmp::Reverse(client.idle)),
        Order::Name => sorted.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    let titles = [
        "address", "name", "user", "age", "idle", "memory", "command",
    ];
    let widths = vec![
        Constraint::Min(21),
        Constraint::Length(16),
        Constraint::Length(12),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(18),
    ];
    let rows = sorted.into_iter().skip(model.offset).map(|client| {
        Row::new([
            client.address.clone(),
            client.name.clone(),
            client.user.clone(),
            time(client.age),
            time(client.idle),
            bytes(client.memory),
            client.command.clone(),
        ])
    });
    table(titles.map(str::to_owned).into(), rows, widths, area, buffer);
}

fn slow(model: &Model, all: &[Slow], area: Rect, buffer: &mut Buffer) {
    let titles = ["ms", "client", "command"].map(str::to_owned).into();
    let widths = vec![
        Constraint::Length(10),
        Constraint::Length(22),
        Constraint::Min(10),
    ];
    let rows = all.iter().skip(model.offset).map(|slow| {
        Row::new([
            format!("{:.1}", slow.micros as f64 / 1000.0),
            slow.client.clone(),
            slow.command.clone(),
        ])
    });
    table(titles, rows, widths, area, buffer);
}

fn index(model: &Model, area: Rect, buffer: &mut Buffer) {
    let titles = ["SHAPE of database 0", "now", "change/s"]
        .map(str::to_owned)
        .into();
    let widths = vec![
        Constraint::Length(24),
        Constraint::Length(16),
        Constraint::Length(14),
    ];
    let shape = model.shape();
    let rows = shape
        .iter()
        .skip(model.offset)
        .map(|(name, value, growth)| {
            let growth = match *growth {
                change if change < 0.0 => format!("-{}", short(-change)),
                change => short(change),
            };
            Row::new([name.clone(), value.to_string(), growth])
        });
    table(titles, rows, widths, area, buffer);
}

fn leaves(model: &Model, area: Rect, buffer: &mut Buffer) {
    let titles = ["from key, in database 0", "writes/s", "waits/s", "entries"]
        .map(str::to_owned)
        .into();
    let widths = vec![
        Constraint::Min(24),
        Constraint::Length(12),
        Constraint::Length(12),
        Constraint::Length(10),
    ];
    let rows = model.leaves();
    let rows = rows.iter().skip(model.offset).map(|row| {
        let entries = row.leaf.entries;
        Row::new([
            match row.leaf.low.as_str() {
                "" => "(the first)".to_owned(),
                low => low.to_owned(),
            },
            short(row.acquisitions),
            short(row.waits),
            entries.map_or_else(|| "?".to_owned(), |entries| entries.to_string()),
        ])
    });
    table(titles, rows, widths, area, buffer);
}

fn table<'a>(
    titles: Vec<String>,
    rows: impl Iterator<Item = Row<'a>>,
    widths: Vec<Constraint>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let rows = rows.take(usize::from(area.height));
    let table = Table::new(rows, widths).header(Row::new(titles).style(BOLD));
    Widget::render(table, area, buffer);
}

/// A number with three or four digits and a letter.
fn short(number: f64) -> String {
    let mut number = number;
    for letter in ["", "k", "M", "G"] {
        if number < 1000.0 {
            return match letter {
                "" if number.fract() == 0.0 => format!("{number}"),
                _ => format!("{number:.1}{letter}"),
            };
        }
        number /= 1000.0;
    }
    format!("{number:.1}T")
}

fn bytes(number: u64) -> String {
    let mut amount = number as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return match unit {
                "B" => format!("{amount} B"),
                _ => format!("{amount:.1} {unit}"),
            };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

fn time(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m{}s", seconds / MINUTE, seconds % MINUTE),
        HOUR..DAY => format!("{}h{}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ => format!("{}d{}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Action;
    use super::super::model::tests::sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    fn model() -> Model {
        let (start, mut model) = (Instant::now(), Model::new("127.0.0.1:6380".to_owned()));
        model.take(sample(start, 0, 100));
        model.take(sample(start, 1, 1600));
        model
    }

    fn shown(model: &Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal
            .draw(|frame| draw(model, frame.area(), frame.buffer_mut()))
            .expect("drawn");
        terminal.backend().to_string()
    }

    fn has(text: &str, wanted: &[&str]) {
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
        }
    }

    #[test]
    fn each_page_shows_its_figures() {
        let mut model = model();
        has(
            &shown(&model, 120, 30),
            &[
                "tremula 0.1.0  aspen  127.0.0.1:6380  master",
                "1.5k commands/s",
                "memory 3.0 MiB of 12.0 MiB",
                "25%",
                "keys 7",
                "threads busy 26% 0%",
                "log lag 20 effects, 1.5 KiB",
                "syncs 4/s of 250 us",
                "snapshot 40% of 50 keys",
                "replicas none",
                "get                   1.5k/s        2.0 us",
            ],
        );
        model.act(Action::NextPage);
        has(
            &shown(&model, 120, 30),
            &["calls/s", "p99 us", "7.5", "1600", "range"],
        );
        model.act(Action::NextPage);
        has(
            &shown(&model, 120, 30),
            &["127.0.0.1:5", "loader", "2.0 KiB", "1m0s"],
        );
        model.act(Action::NextPage);
        has(&shown(&model, 120, 30), &["15.0", "RANGE - +"]);
        model.act(Action::NextPage);
        has(&shown(&model, 120, 30), &["leaves", "splits"]);
        model.act(Action::NextPage);
        has(
            &shown(&model, 120, 30),
            &["waits/s", "user:41", "90", "7", "12", "(the first)"],
        );
    }

    #[test]
    fn trouble_and_refusals_are_shown() {
        let mut model = model();
        model.trouble = Some("the connection broke".to_owned());
        has(&shown(&model, 120, 30), &["the connection broke"]);
        let mut refused = sample(Instant::now(), 2, 1600);
        refused.slow = Err("NOPERM no".to_owned());
        refused
            .info
            .insert("log_is_full".to_owned(), "1".to_owned());
        model.take(refused);
        has(&shown(&model, 120, 30), &["THE DISK IS FULL"]);
        model.act(Action::Show(Page::Slow));
        has(&shown(&model, 120, 30), &["NOPERM no"]);
    }

    #[test]
    fn any_size_of_a_terminal_is_drawn() {
        let mut model = model();
        for page in Page::ALL {
            model.act(Action::Show(page));
            for (width, height) in [(1, 1), (3, 2), (20, 4), (300, 100)] {
                shown(&model, width, height);
            }
        }
        shown(&Model::new("nowhere".to_owned()), 80, 24);
    }

    #[test]
    fn plain_text_has_every_page_and_no_colours() {
        let text = plain(&model(), 100);
        has(
            &text,
            &["== Overview", "== Commands", "== Index", "1.5k commands/s"],
        );
        assert!(
            text.chars()
                .all(|letter| letter == '\n' || !letter.is_control())
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 7.0, 7.25, 1500.0, 2e6, 3e12].map(short),
            ["0", "7", "7.2", "1.5k", "2.0M", "3.0T"]
        );
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(
            [59, 61, 7260, 90_000].map(time),
            ["59s", "1m1s", "2h1m", "1d1h"]
        );
    }
}
