//! Keyspace notifications: messages on channels that report what has become of keys.
//!
//! They come from the store's notices of changes, which name the command that made a change. A
//! message is sent when the change has taken effect and before the command is answered; those of a
//! transaction, when all of it has.

use crate::channels::{Kind, publish};
use crate::limits::{Class, Classes};
use crate::server::Shared;
use std::sync::{Arc, Weak};
use tremula_store::{Cause, Happening, Listener, Notice};

/// Begins to report changes of keys, as the settings say.
pub(crate) fn begin(server: &Arc<Shared>) {
    let server_of_listener = Arc::downgrade(server);
    server.store.listen(Box::new(Reporter(server_of_listener)));
    choose(server, server.live.notices());
}

/// Reports these classes from now on.
pub(crate) fn choose(server: &Shared, classes: Classes) {
    server.live.set_notices(classes);
    server.store.let_listen(classes.has_changes());
}

/// Reports that a key was looked up and is not there.
#[cold]
pub(crate) fn missed(server: &Shared, database: usize, key: &[u8]) {
    report(
        server,
        server.live.notices(),
        database,
        key,
        (Class::Missed, "keymiss"),
    );
}

struct Reporter(Weak<Shared>);

impl Listener for Reporter {
    fn changed(&self, notices: Vec<Notice>) {
        // Gone while the server stops.
        let Some(server) = self.0.upgrade() else {
            return;
        };
        let classes = server.live.notices();
        let carries = |notice: &Notice| {
            matches!(notice.cause, Cause::Caller(name) if takes_a_new_place(name))
                && matches!(notice.happening, Happening::Put { .. })
        };
        // A value that goes to another key is first new there, as in Redis.
        for notice in notices.iter().filter(|notice| carries(notice)) {
            let key = notice.key.as_bytes();
            report(&server, classes, notice.database, key, NEW);
        }
        for notice in &notices {
            let reported = events(notice.happening, notice.cause);
            for event in reported.into_iter().flatten() {
                let key = notice.key.as_bytes();
                report(&server, classes, notice.database, key, event);
            }
        }
    }
}

type Event = (Class, &'static str);

const NEW: Event = (Class::New, "new");

/// Whether what a command stores replaces whatever was there: the key counts as new.
fn takes_a_new_place(command: &str) -> bool {
    matches!(
        command,
        "rename" | "renamenx" | "moverange" | "copy" | "copyrange" | "move" | "restore"
    )
}

/// What Redis calls what has happened, by the command that did it.
fn events(happening: Happening, cause: Cause) -> [Option<Event>; 3] {
    let command = match cause {
        Cause::Caller(name) => name,
        Cause::Eviction => "",
    };
    let one = |class, name| [Some((class, name)), None, None];
    if command == "swapdb" {
        // As Redis, which moves no key for it.
        return [None; 3];
    }
    match happening {
        Happening::Expired => one(Class::Expired, "expired"),
        Happening::Expires => one(Class::Generic, "expire"),
        Happening::Persists => one(Class::Generic, "persist"),
        Happening::Removed if cause == Cause::Eviction => one(Class::Evicted, "evicted"),
        Happening::Removed => match command {
            "rename" | "renamenx" | "moverange" => one(Class::Generic, "rename_from"),
            "move" => one(Class::Generic, "move_from"),
            _ => one(Class::Generic, "del"),
        },
        Happening::Put { is_new, expires } => {
            let event = match command {
                "append" => (Class::String, "append"),
                "setrange" => (Class::String, "setrange"),
                "incr" | "incrby" | "decr" | "decrby" => (Class::String, "incrby"),
                "incrbyfloat" => (Class::String, "incrbyfloat"),
                "rename" | "renamenx" | "moverange" => (Class::Generic, "rename_to"),
                "move" => (Class::Generic, "move_to"),
                "copy" | "copyrange" => (Class::Generic, "copy_to"),
                "restore" => (Class::Generic, "restore"),
                _ => (Class::String, "set"),
            };
            let is_new = is_new && !takes_a_new_place(command);
            let has_time = expires && matches!(command, "set" | "setex" | "psetex");
            let time = (Class::Generic, "expire");
            [is_new.then_some(NEW), Some(event), has_time.then_some(time)]
        }
    }
}

/// Sends an event's messages, if its class is reported.
fn report(server: &Shared, classes: Classes, database: usize, key: &[u8], (class, name): Event) {
    let channels = &server.channels;
    let are_heard = channels.count(Kind::Channel) > 0 || channels.count(Kind::Pattern) > 0;
    if !classes.has(class) || !are_heard {
        return;
    }
    if classes.has(Class::Keyspace) {
        let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
        publish(server, Kind::Channel, &channel, name.as_bytes());
    }
    if classes.has(Class::Keyevent) {
        let channel = format!("__keyevent@{database}__:{name}");
        publish(server, Kind::Channel, channel.as_bytes(), key);
    }
}
