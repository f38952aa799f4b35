//! A leaderboard: the best players, a player's rank and neighbours, while threads add points.
//!
//! A map has the score of each player, and a set has the players in the order of their scores.
//! The two stay in step because the set is changed inside the closure of the map's `update`: while
//! that closure runs, no other thread changes the same player. (A closure may use another map. It
//! must not call the map that runs it.)
//!
//! `cargo run -p tremula --example leaderboard`

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tremula::{Direction, OrderedMap, OrderedSet, Update};

type Player = u32;

/// The best score comes first; of equal scores, the smaller number of the player.
type Place = (Reverse<u64>, Player);

struct Leaderboard {
    scores: OrderedMap<Player, u64>,
    ranking: OrderedSet<Place>,
}

impl Leaderboard {
    fn new() -> Self {
        Self {
            scores: OrderedMap::new(),
            ranking: OrderedSet::new(),
        }
    }

    /// Adds points and returns the new score.
    fn add(&self, player: Player, points: u64) -> u64 {
        let mut new = points;
        self.scores.update(player, |old| {
            new += old.copied().unwrap_or(0);
            // The new place first: between the two steps a reader finds the player twice, which
            // `top` notices, rather than not at all.
            self.ranking.insert((Reverse(new), player));
            if let Some(&old) = old
                && old != new
            {
                self.ranking.remove(&(Reverse(old), player));
            }
            Update::Put(new)
        });
        new
    }

    /// Takes a player out, and returns the last score.
    fn retire(&self, player: Player) -> Option<u64> {
        self.scores.update(player, |score| {
            if let Some(&score) = score {
                self.ranking.remove(&(Reverse(score), player));
            }
            Update::Remove
        })
    }

    /// The `count` best players with their scores. Reads little more than it returns.
    fn top(&self, count: usize) -> Vec<(Player, u64)> {
        let mut seen = HashSet::new();
        let places = self
            .ranking
            .iter()
            .filter(|(_, player)| seen.insert(*player));
        places.take(count).map(listed).collect()
    }

    /// The player's rank, from 1. Costs a step for each better player.
    fn rank(&self, player: Player) -> Option<usize> {
        let place = (Reverse(self.scores.get(&player)?), player);
        Some(self.ranking.range(..place).count() + 1)
    }

    /// The player with up to `count` players above and as many below. Costs what it returns.
    fn around(&self, player: Player, count: usize) -> Option<Vec<(Player, u64)>> {
        let place = (Reverse(self.scores.get(&player)?), player);
        let mut places = self.ranking.scan(..place, Direction::Descending, count);
        places.reverse();
        places.extend(self.ranking.scan(place.., Direction::Ascending, count + 1));
        Some(places.into_iter().map(listed).collect())
    }
}

fn listed((Reverse(score), player): Place) -> (Player, u64) {
    (player, score)
}

fn main() {
    let board = Leaderboard::new();
    for (player, points) in [(1, 50), (2, 80), (3, 20), (4, 80), (5, 10)] {
        board.add(player, points);
    }
    assert_eq!(board.add(3, 40), 60);
    assert_eq!(board.top(3), [(2, 80), (4, 80), (3, 60)]);
    assert_eq!(board.rank(3), Some(3));
    assert_eq!(board.around(3, 1), Some(vec![(4, 80), (3, 60), (1, 50)]));
    assert_eq!(board.around(5, 2), Some(vec![(3, 60), (1, 50), (5, 10)]));
    assert_eq!(board.retire(2), Some(80));
    assert_eq!(board.top(1), [(4, 80)]);
    assert_eq!(board.rank(2), None);
    tournament();
}

/// Four threads add points to the same hundred players, while a reader looks at the top.
fn tournament() {
    const PLAYERS: Player = 100;
    const REFEREES: u32 = 4;
    const ROUNDS: u64 = 50;
    let points = |player: Player, referee: u32| u64::from((player * 7 + referee) % 13);

    let board = Leaderboard::new();
    for player in 0..PLAYERS {
        board.add(player, 0);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (board, done) = (&board, &done);
        let referees: Vec<_> = (0..REFEREES)
            .map(|referee| {
                scope.spawn(move || {
                    for player in (0..ROUNDS).flat_map(|_| 0..PLAYERS) {
                        board.add(player, points(player, referee));
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let top = board.top(10);
                assert_eq!(top.len(), 10, "every player is always listed");
                assert!(top.is_sorted_by_key(|&(player, score)| (Reverse(score), player)));
            }
        });
        let results: Vec<_> = referees.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(Result::unwrap);
    });

    // Nobody's points were lost, and the two collections agree.
    let total = |player| {
        ROUNDS
            * (0..REFEREES)
                .map(|referee| points(player, referee))
                .sum::<u64>()
    };
    let mut expected: Vec<_> = (0..PLAYERS).map(|player| (player, total(player))).collect();
    expected.sort_by_key(|&(player, score)| (Reverse(score), player));
    assert_eq!(board.top(usize::MAX), expected);
    assert_eq!(board.ranking.len(), board.scores.len());
    assert_eq!(board.rank(expected[41].0), Some(42));
    println!("the three best: {:?}", board.top(3));
}

#[test]
fn the_example_holds() {
    main();
}
