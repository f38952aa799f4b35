//! The seconds of the last hour.

use crate::observed::Second;
use std::collections::VecDeque;
use std::sync::Arc;

/// Seconds that are kept: an hour.
const MOST: usize = 3600;

/// Commands of a second that are kept, those with the most calls.
const MOST_COMMANDS: usize = 40;

/// The seconds of the last hour, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    seconds: VecDeque<Arc<Second>>,
}

impl History {
    pub(crate) fn push(&mut self, mut second: Second) {
        if second.commands.len() > MOST_COMMANDS {
            second
                .commands
                .sort_by_key(|command| std::cmp::Reverse(command.calls));
            second.commands.truncate(MOST_COMMANDS);
        }
        second.commands.shrink_to_fit();
        if self.seconds.len() == MOST {
            self.seconds.pop_front();
        }
        self.seconds.push_back(Arc::new(second));
    }

    /// All seconds behind a sequence.
    pub(crate) fn behind(&self, seq: u64) -> Vec<Arc<Second>> {
        let from = self.seconds.partition_point(|second| second.seq <= seq);
        self.seconds.range(from..).cloned().collect()
    }

    /// The newest sequence; 0 before the first second.
    pub(crate) fn newest(&self) -> u64 {
        self.seconds.back().map_or(0, |second| second.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::CommandSecond;

    #[test]
    fn an_hour_is_kept_and_of_many_commands_those_that_ran_most() {
        let mut history = History::default();
        let command = |calls: u64| CommandSecond {
            name: calls.to_string().into(),
            calls,
            p50_us: 1.0,
            p99_us: 1.0,
            p999_us: 1.0,
        };
        for seq in 1..=MOST as u64 + 5 {
            let commands = (1..=50).map(command).collect();
            history.push(Second {
                seq,
                commands,
                ..Second::default()
            });
        }
        let all = history.behind(0);
        assert_eq!((all.len(), all[0].seq), (MOST, 6));
        assert_eq!(all[0].commands.len(), MOST_COMMANDS);
        assert!(all[0].commands.iter().all(|command| command.calls > 10));
        assert_eq!(history.behind(MOST as u64 + 3).len(), 2);
        assert_eq!(history.newest(), MOST as u64 + 5);
    }
}
