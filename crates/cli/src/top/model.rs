//! What `tremula top` shows: the difference of two samples, and what the user has chosen to see.

use super::sample::{Counts, Leaf, Sample, parts};
use std::collections::VecDeque;

/// How many rates the picture of the throughput has at most: wider than terminals are.
const HISTORY: usize = 512;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Overview,
    Commands,
    Clients,
    Slow,
    Index,
    Leaves,
}

impl Page {
    pub(super) const ALL: [Self; 6] = [
        Self::Overview,
        Self::Commands,
        Self::Clients,
        Self::Slow,
        Self::Index,
        Self::Leaves,
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Commands => "Commands",
            Self::Clients => "Clients",
            Self::Slow => "Slow log",
            Self::Index => "Index",
            Self::Leaves => "Hot leaves",
        }
    }
}

/// What the rows of a page are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Calls a second, or the memory of a client.
    Amount,
    /// The time of a call, or the time since the client's last command.
    Time,
    Name,
}

impl Order {
    const fn next(self) -> Self {
        match self {
            Self::Amount => Self::Time,
            Self::Time => Self::Name,
            Self::Name => Self::Amount,
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Time => "time",
            Self::Name => "name",
        }
    }
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Show(Page),
    NextPage,
    PreviousPage,
    NextOrder,
    Pause,
    Down,
    Up,
    Leave,
}

/// What is shown.
pub(super) struct Model {
    /// Where the server is.
    pub(super) place: String,
    pub(super) page: Page,
    pub(super) order: Order,
    pub(super) is_paused: bool,
    /// The first row that is shown.
    pub(super) offset: usize,
    /// Why there is no newer sample.
    pub(super) trouble: Option<String>,
    previous: Option<Sample>,
    pub(super) now: Option<Sample>,
    /// Commands a second, the newest last.
    pub(super) rates: VecDeque<u64>,
}

/// A leaf between two samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeafRow {
    pub(super) leaf: Leaf,
    /// How often its lock was taken in a second, and waited for.
    pub(super) acquisitions: f64,
    pub(super) waits: f64,
}

/// A command between two samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommandRow {
    pub(super) name: String,
    pub(super) a_second: f64,
    /// The average of the calls between the samples, in microseconds; since the start if no call
    /// was between them.
    pub(super) micros: f64,
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) percentiles: Vec<(String, String)>,
}

impl Model {
    pub(super) fn new(place: String) -> Self {
        Self {
            place,
            page: Page::Overview,
            order: Order::Amount,
            is_paused: false,
            offset: 0,
            trouble: None,
            previous: None,
            now: None,
            rates: VecDeque::new(),
        }
    }

    /// Takes what the server says now.
    pub(super) fn take(&mut self, sample: Sample) {
        // A server that has started again counts from 0.
        let is_same = self
            .now
            .as_ref()
            .is_some_and(|before| before.text("process_id") == sample.text("process_id"));
        self.previous = self.now.take().filter(|_| is_same);
        self.now = Some(sample);
        self.trouble = None;
        if self.previous.is_some() {
            // Between 0 and the commands that a server can answer.
            let rate = self.rate("total_commands_processed").round() as u64;
            self.rates.push_back(rate);
            if self.rates.len() > HISTORY {
                self.rates.pop_front();
            }
        } else {
            self.rates.clear();
        }
    }

    /// Does what a key asks for. Returns whether `top` goes on.
    pub(super) fn act(&mut self, action: Action) -> bool {
        let at = Page::ALL.iter().position(|page| *page == self.page);
        let (at, count) = (at.unwrap_or(0), Page::ALL.len());
        match action {
            Action::Show(page) => self.show(page),
            Action::NextPage => self.show(Page::ALL[(at + 1) % count]),
            Action::PreviousPage => self.show(Page::ALL[(at + count - 1) % count]),
            Action::NextOrder => self.order = self.order.next(),
            Action::Pause => self.is_paused = !self.is_paused,
            Action::Down => self.offset = (self.offset + 1).min(self.rows().saturating_sub(1)),
            Action::Up => self.offset = self.offset.saturating_sub(1),
            Action::Leave => return false,
        }
        true
    }

    fn show(&mut self, page: Page) {
        self.page = page;
        self.offset = 0;
    }

    /// The rows of the page, if it has rows.
    fn rows(&self) -> usize {
        let Some(now) = &self.now else {
            return 0;
        };
        match self.page {
            Page::Overview => 0,
            Page::Commands => now.commands.len(),
            Page::Clients => now.clients.as_ref().map_or(0, Vec::len),
            Page::Slow => now.slow.as_ref().map_or(0, Vec::len),
            Page::Index => now.shape.as_ref().map_or(0, Vec::len),
            Page::Leaves => now.leaves.as_ref().map_or(0, Vec::len),
        }
    }

    /// The seconds between the two samples.
    fn seconds(&self) -> Option<f64> {
        let (before, now) = (self.previous.as_ref()?, self.now.as_ref()?);
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
        (seconds > 0.0).then_some(seconds)
    }

    /// How much a counter of `INFO` grows in a second; 0 until there are two samples.
    pub(super) fn rate(&self, field: &str) -> f64 {
        let (Some(seconds), Some(before), Some(now)) = (self.seconds(), &self.previous, &self.now)
        else {
            return 0.0;
        };
        // After CONFIG RESETSTAT it is less than before.
        let more = now.number(field).saturating_sub(before.number(field));
        more as f64 / seconds
    }

    /// The leaves, in the chosen order.
    pub(super) fn leaves(&self) -> Vec<LeafRow> {
        let known = |sample: &'_ Sample| sample.leaves.clone().unwrap_or_default();
        let now = self.now.as_ref().map(known).unwrap_or_default();
        let before = self.previous.as_ref().map(known);
        let seconds = self.seconds();
        let row = |leaf: Leaf| {
            let rate = |of: fn(&Leaf) -> u64| {
                let (Some(before), Some(seconds)) = (&before, seconds) else {
                    return 0.0;
                };
                let was = before.iter().find(|was| was.low == leaf.low);
                let was = was.map_or_else(
                    // It was made since, or it was cooler than all that were shown.
                    || before.iter().map(of).min().unwrap_or(0),
                    of,
                );
                // A leaf of the same keys that was made anew counts from 0.
                let more = of(&leaf).checked_sub(was).unwrap_or_else(|| of(&leaf));
                more as f64 / seconds
            };
            LeafRow {
                acquisitions: rate(|leaf| leaf.acquisitions),
                waits: rate(|leaf| leaf.waits),
                leaf,
            }
        };
        let mut rows: Vec<_> = now.into_iter().map(row).collect();
        match self.order {
            Order::Amount => {
                rows.sort_by(|a, b| b.acquisitions.total_cmp(&a.acquisitions));
            }
            Order::Time => rows.sort_by(|a, b| b.waits.total_cmp(&a.waits)),
            Order::Name => rows.sort_by(|a, b| a.leaf.low.cmp(&b.leaf.low)),
        }
        rows
    }

    /// The commands, in the chosen order.
    pub(super) fn commands(&self) -> Vec<CommandRow> {
        let Some(now) = &self.now else {
            return Vec::new();
        };
        let mut rows: Vec<_> = now
            .commands
            .iter()
            .map(|(name, counts)| self.command(name, counts))
            .collect();
        match self.order {
            Order::Amount => {
                let amount = |row: &CommandRow| (row.a_second, row.calls as f64);
                rows.sort_by(|a, b| {
                    let (a, b) = (amount(a), amount(b));
                    b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
                });
            }
            Order::Time => rows.sort_by(|a, b| b.micros.total_cmp(&a.micros)),
            Order::Name => {} // As they are.
        }
        rows
    }

    fn command(&self, name: &str, now: &Counts) -> CommandRow {
        let none = Counts::default();
        let before = self.previous.as_ref();
        let before = before
            .and_then(|sample| sample.commands.get(name))
            .filter(|before| before.calls <= now.calls)
            .unwrap_or(&none);
        let calls = now.calls - before.calls;
        let seconds = self.seconds();
        let (calls_of_average, micros) = match calls {
            0 => (now.calls, now.micros),
            _ => (calls, now.micros.saturating_sub(before.micros)),
        };
        CommandRow {
            name: name.to_owned(),
            a_second: seconds.map_or(0.0, |seconds| calls as f64 / seconds),
            micros: micros as f64 / calls_of_average.max(1) as f64,
            calls: now.calls,
            errors: now.errors,
            percentiles: now.percentiles.clone(),
        }
    }

    /// The numbers of `SHAPE`, each with how much it grew in a second.
    pub(super) fn shape(&self) -> Vec<(String, u64, f64)> {
        let shape = |sample: &Sample| sample.shape.clone().unwrap_or_default();
        let before = self.previous.as_ref().map(shape).unwrap_or_default();
        let now = self.now.as_ref().map(shape).unwrap_or_default();
        let seconds = self.seconds();
        let row = |(name, value): (String, u64)| {
            let old = before.iter().find(|(known, _)| *known == name);
            let growth = match (old, seconds) {
                (Some((_, old)), Some(seconds)) => (value as f64 - *old as f64) / seconds,
                _ => 0.0,
            };
            (name, value, growth)
        };
        now.into_iter().map(row).collect()
    }

    /// The share of its time that each thread was busy, in hundredths.
    pub(super) fn threads(&self) -> Vec<u64> {
        let Some(now) = &self.now else {
            return Vec::new();
        };
        let mut busy = Vec::new();
        while let Some(line) = now.info.get(&format!("thread{}", busy.len())) {
            let thousandths: u64 = parts(line)
                .get("busy")
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            busy.push(thousandths.div_ceil(10));
        }
        busy
    }

    /// The keys of all databases.
    pub(super) fn keys(&self) -> u64 {
        let Some(now) = &self.now else {
            return 0;
        };
        let databases = now.info.iter().filter(|(field, _)| {
            let number = field.strip_prefix("db");
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        });
        databases
            .filter_map(|(_, line)| parts(line).get("keys")?.parse::<u64>().ok())
            .sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sample::{Connected, Slow};
    use super::*;
    use std::time::{Duration, Instant};

    /// A sample that was taken this number of seconds after `start`.
    fn leaf(low: &str, acquisitions: u64, waits: u64) -> Leaf {
        Leaf {
            low: low.to_owned(),
            entries: Some(12),
            acquisitions,
            waits,
        }
    }

    pub(in super::super) fn sample(start: Instant, seconds: u64, gets: u64) -> Sample {
        let field = |(name, value): (&str, String)| (name.to_owned(), value);
        Sample {
            at: start + Duration::from_secs(seconds),
            info: [
                ("process_id", "7".to_owned()),
                ("tremula_version", "0.1.0".to_owned()),
                ("engine", "aspen".to_owned()),
                ("role", "master".to_owned()),
                ("total_commands_processed", gets.to_string()),
                ("used_memory", (3 << 20).to_string()),
                ("maxmemory", (12 << 20).to_string()),
                ("connected_clients", "2".to_owned()),
                ("aof_enabled", "1".to_owned()),
                ("log_last_effect", "120".to_owned()),
                ("log_durable_effect", "100".to_owned()),
                ("log_unsynced_bytes", "1536".to_owned()),
                ("log_syncs", (4 * seconds).to_string()),
                ("log_sync_usec", (1000 * seconds).to_string()),
                ("current_save_keys_processed", "20".to_owned()),
                ("current_save_keys_total", "50".to_owned()),
                ("thread0", "clients=1,open=1,busy=255".to_owned()),
                ("thread1", "clients=1,open=1,busy=0".to_owned()),
                ("db0", "keys=5,expires=0,avg_ttl=0".to_owned()),
                ("db3", "keys=2,expires=0,avg_ttl=0".to_owned()),
            ]
            .into_iter()
            .map(field)
            .collect(),
            commands: [
                (
                    "get".to_owned(),
                    Counts {
                        calls: gets,
                        micros: 2 * gets,
                        errors: 1,
                        percentiles: vec![("p99".to_owned(), "7.5".to_owned())],
                    },
                ),
                (
                    "range".to_owned(),
                    Counts {
                        calls: 1,
                        micros: 900,
                        ..Counts::default()
                    },
                ),
            ]
            .into(),
            shape: Ok(vec![
                ("leaves".to_owned(), 4),
                ("splits".to_owned(), seconds),
            ]),
            leaves: Ok(vec![
                leaf("", 100 + seconds, 0),
                leaf("user:41", 10 + 90 * seconds, 7 * seconds),
            ]),
            slow: Ok(vec![Slow {
                micros: 15_000,
                command: "RANGE - +".to_owned(),
                client: "127.0.0.1:5".to_owned(),
            }]),
            clients: Ok(vec![Connected {
                address: "127.0.0.1:5".to_owned(),
                name: "loader".to_owned(),
                user: "default".to_owned(),
                age: 60,
                idle: 0,
                memory: 2048,
                command: "get".to_owned(),
            }]),
        }
    }

    #[test]
    fn a_leaf_is_as_hot_as_it_was_since_the_last_look() {
        let (start, mut model) = (Instant::now(), Model::new(String::new()));
        let of = |model: &Model| -> Vec<(String, f64, f64)> {
            let rows = model.leaves().into_iter();
            rows.map(|row| (row.leaf.low, row.acquisitions, row.waits))
                .collect()
        };
        model.take(sample(start, 0, 0));
        assert_eq!(of(&model)[0].1, 0.0, "one look has no rates");
        let mut second = sample(start, 2, 10);
        let leaves = second.leaves.as_mut().expect("leaves");
        // One that has just got among the hottest, and one that was made anew.
        leaves.push(leaf("user:7", 30, 0));
        leaves.push(leaf("z", 4, 0));
        model.take(second);
        let row = |low: &str, acquisitions, waits| (low.to_owned(), acquisitions, waits);
        let hottest = [
            row("user:41", 90.0, 7.0),
            row("user:7", 10.0, 0.0),
            row("z", 2.0, 0.0),
            row("", 1.0, 0.0),
        ];
        assert_eq!(of(&model), hottest);
        model.order = Order::Name;
        assert_eq!(of(&model)[0], row("", 1.0, 0.0));
    }

    #[test]
    fn rates_are_of_the_time_between_two_samples() {
        let (start, mut model) = (Instant::now(), Model::new("here".to_owned()));
        model.take(sample(start, 0, 100));
        assert_eq!(model.rate("total_commands_processed"), 0.0, "of one sample");
        model.take(sample(start, 2, 300));
        assert_eq!(model.rate("total_commands_processed"), 100.0);
        assert_eq!(model.rates, [100]);
        let rows = model.commands();
        assert_eq!(
            (&*rows[0].name, rows[0].a_second, rows[0].micros),
            ("get", 100.0, 2.0)
        );
        assert_eq!(
            rows[1].micros, 900.0,
            "no call between them: since the start"
        );
        assert_eq!(model.shape()[1], ("splits".to_owned(), 2, 1.0));
        assert_eq!((model.threads(), model.keys()), (vec![26, 0], 7));
    }

    #[test]
    fn counters_that_begin_again_are_no_negative_rates() {
        let (start, mut model) = (Instant::now(), Model::new("here".to_owned()));
        model.take(sample(start, 0, 300));
        model.take(sample(start, 1, 10));
        assert_eq!(model.rate("total_commands_processed"), 0.0);
        assert_eq!(model.commands()[0].a_second, 10.0);
        let mut another = sample(start, 2, 20);
        another.info.insert("process_id".to_owned(), "8".to_owned());
        model.take(another);
        assert!(model.rates.is_empty(), "of another process");
    }

    #[test]
    fn keys_switch_pages_and_orders() {
        let mut model = Model::new("here".to_owned());
        model.take(sample(Instant::now(), 0, 1));
        assert!(model.act(Action::PreviousPage));
        assert_eq!(model.page, Page::Leaves);
        model.act(Action::Down);
        model.act(Action::Down);
        assert_eq!(model.offset, 1, "it has two rows");
        model.act(Action::Show(Page::Commands));
        assert_eq!((model.page, model.offset), (Page::Commands, 0));
        model.act(Action::NextOrder);
        assert_eq!(model.commands()[0].name, "range", "the longest first");
        model.act(Action::Pause);
        assert!(model.is_paused);
        assert!(!model.act(Action::Leave));
    }
}
