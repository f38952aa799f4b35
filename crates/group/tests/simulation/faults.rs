//! Faults of machines and of the network, and the known losses of the log.

use crate::plan::{Loss, MS};
use crate::world::{Event, World};
use rand::RngExt;
use tremula_group::{Node, Position, Role};

impl World {
    pub(crate) fn crashes_now(&mut self, host: usize) -> bool {
        match &mut self.crash_in {
            Some((which, 0)) if *which == host => {
                self.crash_in = None;
                true
            }
            Some((which, left)) if *which == host => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    pub(crate) fn crash(&mut self, host: usize) {
        self.count("crashes");
        let kept = self.random.random_range(0..=self.hosts[host].own.len());
        self.hosts[host].crash(kept);
        self.idle[host] = false;
        let delay = self.random.random_range(MS..2_000 * MS);
        self.later(delay, Event::Restart { host });
    }

    /// One more fault.
    pub(crate) fn fault(&mut self) {
        let next = self.random.random_range(MS..1_500 * MS);
        if self.time + next < self.plan.healed {
            self.later(next, Event::Fault);
        }
        let leading = |host: &&usize| matches!(self.hosts[**host].role(), Some(Role::Leader(_)));
        let all: Vec<usize> = (0..self.hosts.len()).collect();
        let leader = all.iter().find(leading).copied();
        let any = self.random.random_range(0..self.hosts.len());
        let host = leader
            .filter(|_| self.random.random_bool(0.6))
            .unwrap_or(any);
        let Some(kind) = self
            .random
            .random_range(0..=self.plan.faults.len())
            .checked_sub(1)
        else {
            return;
        };
        let until = self.time + self.random.random_range(MS..4_000 * MS);
        let can_lose = self.plan.loss.is_none();
        match self.plan.faults[kind] {
            0 => self.hosts[host].paused_until = until,
            1 => self.hosts[host].isolated_until = until,
            2 => self.hosts[host].held_until = until,
            3 if can_lose && self.hosts[host].node.is_some() => self.crash(host),
            4 if can_lose => self.crash_in = Some((host, self.random.random_range(0..20))),
            5 => self.outage_until = self.time + self.random.random_range(MS..2_000 * MS),
            6 => self.hosts[host].save(),
            7 if can_lose => {
                self.publish(host);
                // Seldom one alone: the log is cut behind the second newest.
                if self.random.random_bool(0.5) {
                    self.publish(any);
                }
            }
            _ => {}
        }
    }

    /// A machine makes a snapshot for all, checks it, and cuts the log.
    fn publish(&mut self, host: usize) {
        let machine = &mut self.hosts[host];
        machine.save();
        let point = machine.node.as_ref().map(Node::point);
        if point != Some(&machine.snapshot.point) {
            return; // It does not run, or its own log is not verified yet.
        }
        let snapshot = machine.snapshot.clone();
        if self.random.random_range(0..5) == 0 {
            // It was torn on its way, which shows when it is loaded for a check.
            return self.count("snapshots refused");
        }
        self.count("snapshots made");
        self.objects.put(snapshot);
        // Not everybody was heard of lately.
        let mut needs: Vec<Position> = Vec::new();
        for host in &self.hosts {
            if host.node.is_some() && self.random.random_bool(0.7) {
                needs.push(host.snapshot.point.position);
            }
        }
        self.stream.truncate_below(self.objects.keep_from(needs));
        if self.random.random_bool(0.4) {
            let which = self.random.random_range(0..2);
            self.objects.damage(which);
        }
    }

    /// The faults are over.
    pub(crate) fn heal(&mut self) {
        self.outage_until = 0;
        self.crash_in = None;
        for host in 0..self.hosts.len() {
            self.hosts[host].isolated_until = 0;
            self.hosts[host].held_until = 0;
            self.hosts[host].paused_until = 0;
            self.restart(host);
        }
    }

    /// Whether the log lacks something up to a position, or has something else there. A late copy
    /// of an append may have brought it back.
    pub(crate) fn lacks(&self, read: Position) -> bool {
        let mut lost = self.lost.iter().filter(|(position, _)| *position <= read);
        lost.any(|(position, bytes)| {
            self.stream.next(*position) != Some((*position, bytes.clone()))
        })
    }

    /// The log loses what it had confirmed.
    pub(crate) fn lose(&mut self) {
        let end = self.stream.end();
        let first = self.stream.first();
        match self.plan.loss {
            Some(Loss::Tail) => {
                let count = self.random.random_range(1..12);
                self.lost = self.stream.lose_tail(count);
                let end = self.stream.end();
                let read = self
                    .hosts
                    .iter()
                    .map(|host| Some(host.node.as_ref()?.read_position()));
                let read = read
                    .enumerate()
                    .filter_map(|(host, read)| Some((host, read?)));
                self.ahead = read.filter(|(_, read)| *read > end).collect();
            }
            Some(Loss::Hole) if end.get() > first.get() + 1 => {
                // In front of what a node that starts anew must read.
                let lost = Position::new(self.random.random_range(first.get() + 1..end.get()));
                self.lost = self.stream.next(lost).into_iter().collect();
                self.stream.lose(lost);
                let host = self.random.random_range(0..self.hosts.len());
                let machine = &mut self.hosts[host];
                if machine.snapshot.point.position < lost {
                    machine.own.clear();
                    machine.synced = 0;
                    machine.crash(0);
                    self.ahead = vec![(host, lost)];
                    self.later(MS, Event::Restart { host });
                }
            }
            _ => {}
        }
    }
}
