//! The keeper of snapshots by itself, on a real server of NATS, with a node that stores nothing.

use crate::cluster::Cluster;
use crate::support::eventually;
use async_nats::jetstream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use tremula_group::{
    Config, Host, JetStream, Keeper, Manifest, Packing, Position, SavedPoint, Settings, Standing,
    State,
};
use tremula_log::{Batch, Log, MemoryLog, Sequence, Tail};

struct Nothing;

impl State for Nothing {
    fn apply(&self, _: Sequence, _: &Batch) -> Result<(), String> {
        Ok(())
    }

    fn lead(&self, _: Sequence) {}

    fn ended(&self, _: Standing, why: &str) {
        panic!("{why}");
    }
}

/// Packages that have nothing in them, and that can be loaded or not.
struct Packages {
    host: Arc<Host>,
    folder: PathBuf,
    are_whole: AtomicBool,
    checked: AtomicU64,
}

impl Packing for Packages {
    fn scratch(&self) -> PathBuf {
        self.folder.join("scratch")
    }

    fn pack(&self, package: &Path) -> Result<Manifest, String> {
        std::fs::write(package, b"a package").map_err(|error| error.to_string())?;
        let point = self.host.kept_point().ok_or("no point")?;
        Ok(Manifest {
            saved: SavedPoint {
                group: "main".to_owned(),
                point,
            },
            log: Tail::START,
            begins: Sequence::FIRST,
            snapshot_bytes: 0,
            bytes: 0,
            checksum: 0,
        })
    }

    fn check(&self, package: &Path, _: &Manifest) -> Result<(), String> {
        assert_eq!(std::fs::read(package).expect("a package"), b"a package");
        self.checked.fetch_add(1, SeqCst);
        match self.are_whole.load(SeqCst) {
            true => Ok(()),
            false => Err("it is torn".to_owned()),
        }
    }

    fn install(&self, _: &Path, _: &Manifest) -> Result<(), String> {
        panic!("nobody needs it");
    }

    fn kept(&self) -> Position {
        let point = self.host.kept_point();
        point.map_or(Position::NONE, |point| point.position)
    }
}

/// What the stream begins with, and the objects of the group's bucket.
async fn seen(url: &str) -> (u64, usize) {
    use futures_util::StreamExt;
    let client = async_nats::connect(url).await.expect("NATS");
    let context = jetstream::new(client);
    let stream = context.get_stream("TREMULA_main").await.expect("a stream");
    let first = stream.cached_info().state.first_sequence;
    let store = context.get_object_store("TREMULA_main_snapshots").await;
    let list = store.expect("a bucket").list().await.expect("a list");
    let names = list.map(|info| info.expect("an object").name);
    let names: Vec<String> = names.collect().await;
    let manifests = names.iter().filter(|name| name.ends_with(".manifest"));
    (first, manifests.count())
}

#[test]
fn a_snapshot_that_cannot_be_loaded_has_no_manifest_and_cuts_nothing() {
    let cluster = Cluster::with(1, 1, 0, &[]);
    let url = cluster.url().to_owned();
    let settings = Settings {
        servers: vec![url.clone()],
        group: "main".to_owned(),
        node: "a".to_owned(),
        replicas: 1,
        credentials: None,
        authority: None,
    };
    let host = Host::new(Arc::new(MemoryLog::new()));
    let config = Config::default();
    let named = ("127.0.0.1:1".to_owned(), 7);
    let started = JetStream::start(
        &host,
        settings.clone(),
        config,
        named,
        None,
        Arc::new(Nothing),
    );
    let engine = started.expect("a thread");
    eventually("the node leads", || host.standing() == Standing::Leader);
    let packages = Arc::new(Packages {
        host: Arc::clone(&host),
        folder: cluster.folder().to_path_buf(),
        are_whole: AtomicBool::new(false),
        checked: AtomicU64::new(0),
    });
    let report = Arc::default();
    let packing = Arc::clone(&packages) as Arc<dyn Packing>;
    let keeper = Keeper::start(&host, settings, 1000, packing, Arc::clone(&report));
    let keeper = keeper.expect("a thread");
    let append = || {
        let ticket = host
            .append(&Batch::of(&[b'x'; 1000]), None)
            .expect("it leads");
        host.wait(ticket.last()).expect("it is confirmed");
    };
    append();
    eventually("a snapshot is not made", || report.lock().failed > 0);
    assert_eq!(packages.checked.load(SeqCst), 1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop");
    assert_eq!(runtime.block_on(seen(&url)), (1, 0));
    let why = report.lock().error.clone().unwrap_or_default();
    assert!(why.contains("it is torn"), "{why}");
    // Some seconds later it tries again.
    packages.are_whole.store(true, SeqCst);
    eventually("the log is cut behind two of them", || {
        append();
        report.lock().made > 2
    });
    drop(keeper);
    let (first, manifests) = runtime.block_on(seen(&url));
    assert!(
        first > 1 && manifests == 2,
        "{manifests} manifests, first {first}"
    );
    engine.stop();
}
