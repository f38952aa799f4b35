//! The page of a program's own maps: threads count visits, and the page shows where they collide.
//!
//! `cargo run -p tremula --features observe --example observe`, and open the address that it
//! prints. It ends when a line comes on its input.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tremula::observe::{Maps, Page, Settings};
use tremula::{OrderedMap, Update};

/// Visits of each page of a site.
type Visits = OrderedMap<u64, u64>;

/// The pages that everybody visits.
const POPULAR: u64 = 500;

/// Counts visits until it should stop: most are of a few pages. Returns how many there were.
fn visit(visits: &Visits, thread: u64, stops: &AtomicBool) -> u64 {
    let mut count = 0;
    let mut random = 2 * thread + 1;
    while !stops.load(Ordering::Relaxed) {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let page = match random >> 62 {
            0 => (random >> 32) % 1_000_000,
            _ => POPULAR + (random >> 32) % 16,
        };
        visits.update(page, |old| Update::Put(old.copied().unwrap_or(0) + 1));
        count += 1;
    }
    count
}

/// What the program answers at a path.
#[cfg(test)]
fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Shows the page while threads work, until `wait` returns. Returns the visits that were counted,
/// and those that are in the map.
fn run(address: SocketAddr, wait: impl FnOnce(SocketAddr)) -> io::Result<(u64, u64)> {
    let visits: Arc<Visits> = Arc::default();
    let maps = Maps::new("visits", env!("CARGO_PKG_VERSION")).with("pages", Arc::clone(&visits));
    let page = Page::bind(address, Settings::default())?;
    page.show(Arc::new(maps))?;
    println!("http://{}/", page.address());
    let stops = AtomicBool::new(false);
    let counted = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn({
                    let (visits, stops) = (&visits, &stops);
                    move || visit(visits, number, stops)
                })
            })
            .collect();
        wait(page.address());
        stops.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0))
            .sum()
    });
    Ok((counted, visits.values().sum()))
}

// Its test does not wait for a line.
#[cfg_attr(test, allow(dead_code))]
fn main() -> io::Result<()> {
    let (counted, kept) = run(([127, 0, 0, 1], 6382).into(), |_| {
        println!("press Enter to end");
        let mut line = String::new();
        // Without an input it ends at once.
        let _ = io::stdin().read_line(&mut line);
    })?;
    assert_eq!(counted, kept);
    println!("{counted} visits");
    Ok(())
}

#[test]
fn the_page_shows_the_map_while_threads_write_to_it() {
    let run = run(([127, 0, 0, 1], 0).into(), |address| {
        // The observer has looked at it when the first column is there.
        let map = loop {
            let map = get(address, "/api/map/map0").expect("an answer");
            if map.contains("\"acquisitions\":[") {
                break map;
            }
            thread::yield_now();
        };
        assert!(map.contains("200 OK"), "{map}");
        let overview = get(address, "/api/overview").expect("an answer");
        assert!(overview.contains("\"embedded\":true"), "{overview}");
        let metrics = get(address, "/metrics").expect("an answer");
        assert!(
            metrics.contains("tremula_map_keys{map=\"pages\"}"),
            "{metrics}"
        );
        let keys = get(address, "/api/map/map0/keys?from=00000000000001f4&limit=1");
        assert!(keys.expect("an answer").contains("\"text\":\"500\""));
    });
    let (counted, kept) = run.expect("a page");
    assert!(counted > 0);
    assert_eq!(counted, kept);
}
