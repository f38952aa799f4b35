//! An order book with price-time priority: one thread matches, and any thread reads the quotes.
//!
//! Each side is an ordered map, so its best order is at one end: of the bids the highest price and,
//! for one price, the earliest order, is the last key; of the asks the lowest price is the first.
//! Commands come to the matching thread through a mailbox, so they have one order. Readers do not
//! ask that thread: they look at the maps.
//!
//! `cargo run -p tremula --example order_book`

use std::cmp::Reverse;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tremula::mailbox::{CallError, Mailbox, Reply, Sender, unbounded};
use tremula::{Direction, OrderedMap};

/// In cents.
type Price = u64;
type Quantity = u64;
/// The number of an order, in the order in which the book accepted them.
type Number = u64;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Buy,
    Sell,
}

/// What a client keeps of an order that rests in the book: enough to cancel it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OrderId(Side, Price, Number);

/// The price, the quantity, and the number of the order that rested.
#[derive(Clone, Debug, PartialEq)]
struct Fill(Price, Quantity, Number);

/// What became of an order: what it traded, and its id if a part of it rests.
type Outcome = (Vec<Fill>, Option<OrderId>);

enum Command {
    Limit(Side, Price, Quantity, Reply<Outcome>),
    /// Answered by the quantity that had not been traded; `None` if there was nothing left.
    Cancel(OrderId, Reply<Option<Quantity>>),
}

/// The two sides. Only the matching thread writes.
#[derive(Default)]
struct Book {
    bids: OrderedMap<(Price, Reverse<Number>), Quantity>,
    asks: OrderedMap<(Price, Number), Quantity>,
}

impl Book {
    fn best_bid(&self) -> Option<Price> {
        self.bids.last().map(|((price, _), _)| price)
    }

    fn best_ask(&self) -> Option<Price> {
        self.asks.first().map(|((price, _), _)| price)
    }

    /// The quantity offered at each of the best prices, from `orders` orders as of one moment.
    fn depth(&self, orders: usize) -> Vec<(Price, Quantity)> {
        let mut levels: Vec<(Price, Quantity)> = Vec::new();
        for ((price, _), quantity) in self.asks.scan(.., Direction::Ascending, orders) {
            match levels.last_mut() {
                Some((last, sum)) if *last == price => *sum += quantity,
                _ => levels.push((price, quantity)),
            }
        }
        levels
    }

    /// Serves commands until the last sender is gone. Returns the quantity that was traded.
    fn serve(&self, commands: Mailbox<Command>) -> Quantity {
        let mut traded = 0;
        for (number, command) in (1..).zip(commands) {
            match command {
                Command::Limit(side, price, quantity, reply) => {
                    let outcome = self.limit(side, price, quantity, number);
                    traded += outcome.0.iter().map(|fill| fill.1).sum::<Quantity>();
                    // A client that no longer waits does not change what happened.
                    let _ = reply.send(outcome);
                }
                Command::Cancel(OrderId(side, price, number), reply) => {
                    let left = match side {
                        Side::Buy => self.bids.remove(&(price, Reverse(number))),
                        Side::Sell => self.asks.remove(&(price, number)),
                    };
                    let _ = reply.send(left);
                }
            }
        }
        traded
    }

    /// Trades with the other side as far as the price allows. The rest waits in the book.
    fn limit(&self, side: Side, limit: Price, quantity: Quantity, number: Number) -> Outcome {
        let unwrapped = |((price, Reverse(number)), quantity)| ((price, number), quantity);
        let mut left = quantity;
        let mut fills = Vec::new();
        while left > 0 {
            let best = match side {
                Side::Buy => self.asks.first(),
                Side::Sell => self.bids.last().map(unwrapped),
            };
            let crosses = |price| match side {
                Side::Buy => price <= limit,
                Side::Sell => price >= limit,
            };
            let Some(((price, resting), offered)) = best.filter(|((price, _), _)| crosses(*price))
            else {
                break;
            };
            // A resting order that is filled in part keeps its key, and so its turn. It is replaced
            // in one step: no reader misses it.
            match (side, offered > left) {
                (Side::Buy, true) => self.asks.insert((price, resting), offered - left),
                (Side::Sell, true) => self.bids.insert((price, Reverse(resting)), offered - left),
                (Side::Buy, false) => self.asks.pop_first().map(|(_, quantity)| quantity),
                (Side::Sell, false) => self.bids.pop_last().map(|(_, quantity)| quantity),
            };
            let quantity = left.min(offered);
            left -= quantity;
            fills.push(Fill(price, quantity, resting));
        }
        if left == 0 {
            return (fills, None);
        }
        match side {
            Side::Buy => self.bids.insert((limit, Reverse(number)), left),
            Side::Sell => self.asks.insert((limit, number), left),
        };
        (fills, Some(OrderId(side, limit, number)))
    }
}

/// A client's way to the book.
#[derive(Clone)]
struct Gateway(Sender<Command>);

impl Gateway {
    const LIMIT: Duration = Duration::from_secs(60);

    fn order(&self, side: Side, price: Price, quantity: Quantity) -> Result<Outcome, CallError> {
        let request = |reply| Command::Limit(side, price, quantity, reply);
        self.0.call(request, Self::LIMIT)
    }

    fn cancel(&self, order: OrderId) -> Result<Option<Quantity>, CallError> {
        let request = |reply| Command::Cancel(order, reply);
        self.0.call(request, Self::LIMIT)
    }
}

fn main() -> Result<(), CallError> {
    let book = Arc::new(Book::default());
    let (sender, commands) = unbounded();
    let matching = thread::spawn({
        let book = Arc::clone(&book);
        move || book.serve(commands)
    });
    let gateway = Gateway(sender);

    let (_, first) = gateway.order(Side::Sell, 1010, 5)?;
    gateway.order(Side::Sell, 1010, 7)?;
    gateway.order(Side::Sell, 1020, 9)?;
    gateway.order(Side::Buy, 990, 4)?;
    assert_eq!((book.best_bid(), book.best_ask()), (Some(990), Some(1010)));
    assert_eq!(book.depth(10), [(1010, 12), (1020, 9)]);

    // The better price first, then the earlier order.
    let (fills, rest) = gateway.order(Side::Buy, 1015, 6)?;
    assert_eq!(fills, [Fill(1010, 5, 1), Fill(1010, 1, 2)]);
    assert_eq!(rest, None);
    let first = first.expect("nothing crossed it");
    assert_eq!(gateway.cancel(first)?, None, "it has been traded");
    let (fills, rest) = gateway.order(Side::Buy, 1015, 10)?;
    assert_eq!(fills, [Fill(1010, 6, 2)]);
    assert_eq!(book.best_bid(), Some(1015));
    assert_eq!(gateway.cancel(rest.expect("4 are left"))?, Some(4));
    assert_eq!(book.best_bid(), Some(990));
    println!("bid {:?}, ask {:?}", book.best_bid(), book.best_ask());

    let bought = market_day(&gateway, &book)?;
    drop(gateway);
    let traded = matching.join().expect("the matching thread ends");
    assert_eq!(traded, 12 + bought);
    Ok(())
}

/// Two threads sell and two buy at the same prices, while a reader looks at the depth. Returns what
/// was traded: whatever the order, each unit that is sold is bought once.
fn market_day(gateway: &Gateway, book: &Book) -> Result<Quantity, CallError> {
    let trade = |side| {
        let gateway = gateway.clone();
        move || (0..200).try_for_each(|turn| gateway.order(side, 1000, 1 + turn % 3).map(drop))
    };
    thread::scope(|scope| {
        let traders = [Side::Sell, Side::Buy, Side::Sell, Side::Buy].map(trade);
        let traders = traders.map(|trader| scope.spawn(trader));
        while !traders.iter().all(|trader| trader.is_finished()) {
            let depth = book.depth(100);
            let ascends = depth.is_sorted_by(|(low, _), (high, _)| low < high);
            assert!(
                ascends && depth.iter().all(|level| level.1 > 0),
                "{depth:?}"
            );
        }
        traders
            .into_iter()
            .try_for_each(|trader| trader.join().expect("a trader ends"))
    })?;
    // Buyers and sellers met at one price and in the same numbers, so only what was there rests.
    assert_eq!((book.best_bid(), book.best_ask()), (Some(990), Some(1020)));
    Ok(2 * (0..200).map(|turn| 1 + turn % 3).sum::<Quantity>())
}

#[test]
fn the_example_holds() -> Result<(), CallError> {
    main()
}
