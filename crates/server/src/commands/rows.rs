//! The rows of the table of commands.

use super::reach::{
    ALL_SEEN, CHANNEL, CHANNELS, CONTINUATION, EVERY_KEY, Keys, MAILBOX, MAILBOXES_SEEN,
    NOTHING_OF_USERS, PATTERNS, RANGE, READ_RANGE, SEARCH, SEEN, TABLE, TABLE_AND_HEIRS,
    TABLE_AND_MAILBOX, TABLE_FILES, TABLES_SEEN, TWO_TABLES, at, at_both, looked_at, many_keys,
    one_key,
};
use super::table::Command;
use super::{
    acl, channels, client, config, connection, copy, counters, debug, describe, dump, ets, expiry,
    feeds, info, keys, latency, lcs, lolwut, mailbox, memory, object, once, operate, ordered,
    persist, ranges, scan, sentinel, shape, slowlog, strings, transaction, txn,
};

type Words = &'static [&'static str];

/// Frequent sets of flags.
const READ: Words = &["readonly"];
const READ_FAST: Words = &["readonly", "fast"];
const WRITE: Words = &["write"];
const WRITE_FAST: Words = &["write", "fast"];
const STORE: Words = &["write", "denyoom"];
const STORE_FAST: Words = &["write", "denyoom", "fast"];
pub(super) const ANY_TIME: Words = &["loading", "stale"];
const ANY_TIME_FAST: Words = &["loading", "stale", "fast"];
const HANDSHAKE: Words = &[
    "noscript",
    "loading",
    "stale",
    "fast",
    "no_auth",
    "allow_busy",
];
const TRANSACTION_FLAGS: Words = &["noscript", "loading", "stale", "fast", "allow_busy"];
pub(super) const ADMIN: Words = &["admin", "noscript", "loading", "stale"];
pub(super) const CLIENT: Words = &["noscript", "loading", "stale"];

const KEYSPACE: Words = &["@keyspace"];
const STRING: Words = &["@string"];
pub(super) const CONNECTION: Words = &["@connection"];
const TRANSACTION: Words = &["@transaction"];
const PUBSUB: Words = &["@pubsub"];
const LISTEN: Words = &["pubsub", "noscript", "loading", "stale"];

const ALL_SHARDS: Words = &["request_policy:all_shards", "response_policy:all_succeeded"];
const SUM_OF_SHARDS: Words = &["request_policy:multi_shard", "response_policy:agg_sum"];

const ONE: &str = "O(log n)";
const EACH: &str = "O(k log n)";
const COPY: &str = "O(log n + length)";
const ALL: &str = "O(n)";
pub(super) const NOTHING: &str = "O(1)";
/// A search of the rows whose keys a match specification bounds.
const VISITED: &str = "O(n), or of the rows in the range of keys";

/// Every command that this server knows.
pub(crate) static COMMANDS: &[Command] = &[
    Command::new("get", 2, strings::get, READ_FAST, STRING, at(one_key(&["RO", "access"])))
        .docs("string", "1.0.0", ONE, "GET key", "The value of a key"),
    Command::new("getv", 2, strings::getv, READ_FAST, STRING, at(one_key(&["RO", "access"])))
        .docs("string", "0.1.0", ONE, "GETV key", "The value of a key and its version, which every change of the key changes"),
    Command::new("set", -3, strings::set, STORE, STRING, at(Keys {
            notes: "RW and ACCESS due to the optional `GET` argument",
            ..one_key(&["RW", "access", "update", "variable_flags"])
        }))
        .docs("string", "1.0.0", ONE,
            "SET key value [NX | XX | IFEQ value] [GET] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL]",
            "Store a value; only if the key is absent (`NX`), present (`XX`), or has a value (`IFEQ`); return the value before (`GET`); let the key expire"),
    Command::new("setex", 4, expiry::setex, STORE, STRING, at(one_key(&["OW", "update"])))
        .docs("string", "2.0.0", ONE, "SETEX key seconds value", "Store a value that expires"),
    Command::new("psetex", 4, expiry::psetex, STORE, STRING, at(one_key(&["OW", "update"])))
        .docs("string", "2.6.0", ONE, "PSETEX key milliseconds value", "Store a value that expires"),
    Command::new("getex", -2, expiry::getex, WRITE_FAST, STRING, at(Keys {
            notes: "RW and UPDATE because it changes the TTL",
            ..one_key(&["RW", "access", "update"])
        }))
        .docs("string", "6.2.0", ONE,
            "GETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST]",
            "The value of a key, and let it expire, or not"),
    Command::new("delifeq", 3, strings::delifeq, WRITE_FAST, STRING, at(one_key(&["RW", "access", "delete"])))
        .docs("string", "0.1.0", ONE, "DELIFEQ key value", "Remove a key if it has this value"),
    Command::new("setnx", 3, strings::setnx, STORE_FAST, STRING, at(one_key(&["OW", "insert"])))
        .docs("string", "1.0.0", ONE, "SETNX key value", "Store a value if the key is absent"),
    Command::new("getset", 3, strings::getset, STORE_FAST, STRING, at(one_key(&["RW", "access", "update"])))
        .docs("string", "1.0.0", ONE, "GETSET key value", "Store a value and return the one before"),
    Command::new("getdel", 2, strings::getdel, WRITE_FAST, STRING, at(one_key(&["RW", "access", "delete"])))
        .docs("string", "6.2.0", ONE, "GETDEL key", "Remove a key and return its value"),
    Command::new("mget", -2, strings::mget, READ_FAST, STRING, at(many_keys(1, &["RO", "access"])))
        .tips(&["request_policy:multi_shard"])
        .docs("string", "1.0.0", EACH, "MGET key [key ...]", "The values of several keys"),
    Command::new("mset", -3, strings::mset, STORE, STRING, at(many_keys(2, &["OW", "update"])))
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .docs("string", "1.0.1", EACH, "MSET key value [key value ...]", "Store several values"),
    Command::new("incr", 2, counters::incr, STORE_FAST, STRING, at(one_key(&["RW", "access", "update"])))
        .docs("string", "1.0.0", ONE, "INCR key", "Add one to an integer"),
    Command::new("decr", 2, counters::decr, STORE_FAST, STRING, at(one_key(&["RW", "access", "update"])))
        .docs("string", "1.0.0", ONE, "DECR key", "Subtract one from an integer"),
    Command::new("incrby", 3, counters::incrby, STORE_FAST, STRING, at(one_key(&["RW", "access", "update"])))
        .docs("string", "1.0.0", ONE, "INCRBY key increment", "Add to an integer"),
    Command::new("decrby", 3, counters::decrby, STORE_FAST, STRING, at(one_key(&["RW", "access", "update"])))
        .docs("string", "1.0.0", ONE, "DECRBY key decrement", "Subtract from an integer"),
    Command::new("incrbyfloat", 3, counters::incrbyfloat, STORE_FAST, STRING, at(one_key(&["RW", "access", "update"])))
        .docs("string", "2.6.0", ONE, "INCRBYFLOAT key increment", "Add to a number"),
    Command::new("append", 3, strings::append, STORE_FAST, STRING, at(one_key(&["RW", "insert"])))
        .docs("string", "2.0.0", COPY, "APPEND key value", "Append to a value"),
    Command::new("msetnx", -3, strings::msetnx, STORE, STRING, at(many_keys(2, &["OW", "insert"])))
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        .docs("string", "1.0.1", EACH, "MSETNX key value [key value ...]", "Store several values if all keys are absent"),
    Command::new("lcs", -3, lcs::lcs, READ, STRING, at(Keys {
            last: 2,
            ..one_key(&["RO", "access"])
        }))
        .docs("string", "7.0.0", "O(a b)", "LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]",
            "The longest common subsequence of two values, its length, or where it is"),
    Command::new("strlen", 2, strings::strlen, READ_FAST, STRING, at(one_key(&["RO"])))
        .docs("string", "2.2.0", ONE, "STRLEN key", "The length of a value in bytes"),
    Command::new("getrange", 4, strings::getrange, READ, STRING, at(one_key(&["RO", "access"])))
        .docs("string", "2.4.0", ONE, "GETRANGE key start end", "Part of a value"),
    Command::new("setrange", 4, strings::setrange, STORE, STRING, at(one_key(&["RW", "update"])))
        .docs("string", "2.2.0", COPY, "SETRANGE key offset value", "Overwrite part of a value"),
    Command::new("del", -2, keys::del, WRITE, KEYSPACE, at(many_keys(1, &["RM", "delete"])))
        .tips(SUM_OF_SHARDS)
        .docs("generic", "1.0.0", EACH, "DEL key [key ...]", "Remove keys"),
    Command::new("unlink", -2, keys::del, WRITE_FAST, KEYSPACE, at(many_keys(1, &["RM", "delete"])))
        .tips(SUM_OF_SHARDS)
        .docs("generic", "4.0.0", EACH, "UNLINK key [key ...]", "Remove keys, as `DEL`"),
    Command::new("expire", -3, expiry::expire, WRITE_FAST, KEYSPACE, at(one_key(&["RW", "update"])))
        .docs("generic", "1.0.0", ONE, "EXPIRE key seconds [NX | XX | GT | LT]",
            "Let a key expire in some seconds; only if it does not yet (`NX`), does (`XX`), or would sooner (`GT`) or later (`LT`)"),
    Command::new("pexpire", -3, expiry::pexpire, WRITE_FAST, KEYSPACE, at(one_key(&["RW", "update"])))
        .docs("generic", "2.6.0", ONE, "PEXPIRE key milliseconds [NX | XX | GT | LT]", "As `EXPIRE`, in milliseconds"),
    Command::new("expireat", -3, expiry::expireat, WRITE_FAST, KEYSPACE, at(one_key(&["RW", "update"])))
        .docs("generic", "1.2.0", ONE, "EXPIREAT key seconds [NX | XX | GT | LT]", "As `EXPIRE`, at a Unix time"),
    Command::new("pexpireat", -3, expiry::pexpireat, WRITE_FAST, KEYSPACE, at(one_key(&["RW", "update"])))
        .docs("generic", "2.6.0", ONE, "PEXPIREAT key milliseconds [NX | XX | GT | LT]",
            "As `EXPIRE`, at a Unix time in milliseconds"),
    Command::new("ttl", 2, expiry::ttl, READ_FAST, KEYSPACE, looked_at(one_key(&["RO", "access"])))
        .tips(&["nondeterministic_output"])
        .docs("generic", "1.0.0", ONE, "TTL key", "In how many seconds a key expires; -1 if never, -2 if it is absent"),
    Command::new("pttl", 2, expiry::pttl, READ_FAST, KEYSPACE, looked_at(one_key(&["RO", "access"])))
        .tips(&["nondeterministic_output"])
        .docs("generic", "2.6.0", ONE, "PTTL key", "As `TTL`, in milliseconds"),
    Command::new("expiretime", 2, expiry::expiretime, READ_FAST, KEYSPACE, looked_at(one_key(&["RO", "access"])))
        .docs("generic", "7.0.0", ONE, "EXPIRETIME key", "The Unix time at which a key expires; -1 if never, -2 if it is absent"),
    Command::new("pexpiretime", 2, expiry::pexpiretime, READ_FAST, KEYSPACE, looked_at(one_key(&["RO", "access"])))
        .docs("generic", "7.0.0", ONE, "PEXPIRETIME key", "As `EXPIRETIME`, in milliseconds"),
    Command::new("persist", 2, expiry::persist, WRITE_FAST, KEYSPACE, at(one_key(&["RW", "update"])))
        .docs("generic", "2.2.0", ONE, "PERSIST key", "Let a key not expire"),
    Command::new("exists", -2, keys::exists, READ_FAST, KEYSPACE, at(many_keys(1, &["RO"])))
        .tips(SUM_OF_SHARDS)
        .docs("generic", "1.0.0", EACH, "EXISTS key [key ...]", "How many of the keys are present"),
    Command::new("touch", -2, keys::touch, READ_FAST, KEYSPACE, at(many_keys(1, &["RO"])))
        .tips(SUM_OF_SHARDS)
        .docs("generic", "3.2.1", EACH, "TOUCH key [key ...]", "As `EXISTS`, and counts as a use of the keys"),
    Command::new("copy", -3, copy::copy, STORE, KEYSPACE, at_both(one_key(&["RO", "access"]), Keys {
            first: 2,
            last: 2,
            ..one_key(&["OW", "update"])
        }))
        .docs("generic", "6.2.0", ONE, "COPY source destination [DB index] [REPLACE]",
            "Store the value of a key under another, if that is absent or with `REPLACE`; also in another database"),
    Command::new("rename", 3, copy::rename, WRITE, KEYSPACE, at_both(one_key(&["RW", "access", "delete"]), Keys {
            first: 2,
            last: 2,
            ..one_key(&["OW", "update"])
        }))
        .docs("generic", "1.0.0", ONE, "RENAME key newkey", "Give the value of a key another key, in one step"),
    Command::new("renamenx", 3, copy::renamenx, WRITE_FAST, KEYSPACE, at_both(one_key(&["RW", "access", "delete"]), Keys {
            first: 2,
            last: 2,
            ..one_key(&["OW", "insert"])
        }))
        .docs("generic", "1.0.0", ONE, "RENAMENX key newkey", "The same if the other key is absent"),
    Command::new("move", 3, copy::move_key, WRITE_FAST, KEYSPACE, at(one_key(&["RW", "access", "update"])))
        .docs("generic", "1.0.0", ONE, "MOVE key db", "Move a key to another database if it is absent there, in one step"),
    Command::new("dump", 2, dump::dump, READ, KEYSPACE, at(one_key(&["RO", "access"])))
        .tips(&["nondeterministic_output"])
        .docs("generic", "2.6.0", COPY, "DUMP key", "The value of a key in the form of Redis's files"),
    Command::new("restore", -4, dump::restore, STORE, &["@keyspace", "@dangerous"], at(one_key(&["OW", "update"])))
        .docs("generic", "2.6.0", COPY, "RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
            "Store what `DUMP` has given, here or in a Redis; strings only"),
    Command::new("randomkey", 1, keys::randomkey, READ, KEYSPACE, ALL_SEEN)
        .tips(&["request_policy:all_shards", "nondeterministic_output"])
        .docs("generic", "1.0.0", "O(n / 64)", "RANDOMKEY", "A key, each with the same chance"),
    Command::new("type", 2, keys::type_of, READ_FAST, KEYSPACE, looked_at(one_key(&["RO"])))
        .docs("generic", "1.0.0", ONE, "TYPE key", "`string`, or `none` if the key is absent"),
    Command::new("keys", 2, keys::keys, READ, &["@keyspace", "@dangerous"], SEEN)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .docs("generic", "1.0.0", "O(log n + m), m keys that begin as the pattern does", "KEYS pattern",
            "The keys that match a pattern, in order"),
    Command::new("scan", -2, scan::scan, READ, KEYSPACE, SEEN)
        .tips(&["nondeterministic_output", "request_policy:special"])
        .docs("generic", "2.8.0", "O(log n + count) a call",
            "SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]",
            "A page of the keys, and the cursor of the next page"),
    Command::new("range", -3, ordered::range, READ, KEYSPACE, SEEN)
        .docs("ordered", "0.1.0", "O(log n + m), m keys returned",
            "RANGE start end [AS OF sequence | time] [LIMIT n] [REV] [WITHVALUES] [SNAPSHOT]",
            "The keys between two bounds, in order; with `REV` from the upper one, which then comes first; with `SNAPSHOT` all as of one moment; with `AS OF` as they were"),
    Command::new("first", 1, ordered::first, READ_FAST, KEYSPACE, SEEN)
        .docs("ordered", "0.1.0", ONE, "FIRST", "The smallest key and its value"),
    Command::new("last", 1, ordered::last, READ_FAST, KEYSPACE, SEEN)
        .docs("ordered", "0.1.0", ONE, "LAST", "The largest key and its value"),
    Command::new("next", 2, ordered::next, READ_FAST, KEYSPACE, SEEN)
        .docs("ordered", "0.1.0", ONE, "NEXT key", "The entry behind a key, which need not be present"),
    Command::new("prev", 2, ordered::prev, READ_FAST, KEYSPACE, SEEN)
        .docs("ordered", "0.1.0", ONE, "PREV key", "The entry before a key, which need not be present"),
    Command::new("watchrange", -3, feeds::watchrange, &["readonly", "noscript", "no_multi"], KEYSPACE, READ_RANGE)
        .docs("ordered", "0.1.0", "O(log n), and O(1) for each event",
            "WATCHRANGE start end [FROM sequence | SNAPSHOT] [PREV]",
            "Be shown what happens to a range, in order: from now on, from a sequence on, or behind a snapshot"),
    Command::new("unwatchrange", -1, feeds::unwatchrange, &["noscript", "no_multi"], KEYSPACE, NOTHING_OF_USERS)
        .docs("ordered", "0.1.0", "O(w) for w watches", "UNWATCHRANGE [start end]",
            "Watch a range, or all ranges, no longer"),
    Command::new("watches", 1, feeds::watches, &["noscript", "no_multi"], KEYSPACE, NOTHING_OF_USERS)
        .docs("ordered", "0.1.0", "O(w) for w watches", "WATCHES",
            "The ranges that this connection watches, and how far each has come"),
    Command::new("rangecount", 3, ranges::rangecount, READ, KEYSPACE, SEEN)
        .docs("ordered", "0.1.0", "O(log n + m), m keys counted", "RANGECOUNT start end",
            "The number of keys between two bounds, read as by `RANGE`"),
    Command::new("expirerange", -4, ranges::expirerange, WRITE, KEYSPACE, RANGE)
        .docs("ordered", "0.1.0", "O(m log n), m keys of the range",
            "EXPIRERANGE start end milliseconds [NX | XX | GT | LT]",
            "Let all keys between two bounds expire, as one atomic step"),
    Command::new("copyrange", -4, ranges::copyrange, STORE, KEYSPACE, EVERY_KEY)
        .docs("ordered", "0.1.0", "O(m log n), m keys of the range",
            "COPYRANGE start end [PREFIX old new] [DB index] [REPLACE]",
            "Copy all keys between two bounds to other names or another database, as one atomic step"),
    Command::new("moverange", -4, ranges::moverange, STORE, KEYSPACE, EVERY_KEY)
        .docs("ordered", "0.1.0", "O(m log n), m keys of the range",
            "MOVERANGE start end [PREFIX old new] [DB index] [REPLACE]",
            "Give all keys between two bounds other names, or bring them into another database, as one atomic step"),
    Command::new("swapdb", 3, ranges::swapdb, STORE, &["@keyspace", "@dangerous"], EVERY_KEY)
        .docs("server", "4.0.0", "O((m + n) log n), m and n keys of the databases", "SWAPDB index1 index2",
            "Give each of two databases the keys of the other one, as one atomic step"),
    Command::new("delrange", 3, ordered::delrange, WRITE, KEYSPACE, RANGE)
        .docs("ordered", "0.1.0", "O(log n + m), m keys removed", "DELRANGE start end",
            "Remove the keys between two bounds, all at once, and count them"),
    Command::new("shape", -1, shape::shape, READ, KEYSPACE, ALL_SEEN)
        .docs("ordered", "0.1.0", ALL, "SHAPE [LEAVES count]",
            "What the index of the selected database looks like now, or its hottest leaves"),
    Command::new("mailbox.new", -2, mailbox::new, STORE_FAST, &[], MAILBOX)
        .docs("mailbox", "0.1.0", NOTHING, "MAILBOX.NEW name [MODE auto | on_heap | off_heap] [CAPACITY n] [DURABLE]",
            "Make a mailbox: any number of senders, one receiver at a time"),
    Command::new("mailbox.send", -3, mailbox::send, STORE_FAST, &[], MAILBOX)
        .docs("mailbox", "0.1.0", "O(k)", "MAILBOX.SEND name message [message ...]",
            "Send messages and count them; those of one connection arrive in its order"),
    Command::new("mailbox.recv", -2, mailbox::recv, &["write", "blocking"], &["@blocking"], MAILBOX)
        .docs("mailbox", "0.1.0", "O(k)", "MAILBOX.RECV name [COUNT n] [BLOCK milliseconds]",
            "Take the next message, or up to n of them; wait for one, with `BLOCK 0` for ever"),
    Command::new("mailbox.len", 2, mailbox::len, READ_FAST, &[], MAILBOX)
        .docs("mailbox", "0.1.0", NOTHING, "MAILBOX.LEN name", "The number of messages in a mailbox"),
    Command::new("mailbox.info", 2, mailbox::info, READ_FAST, &[], MAILBOX)
        .docs("mailbox", "0.1.0", NOTHING, "MAILBOX.INFO name", "What a mailbox is like now, and what it has counted"),
    Command::new("mailbox.list", 1, mailbox::list, READ, &[], MAILBOXES_SEEN)
        .docs("mailbox", "0.1.0", "O(mailboxes)", "MAILBOX.LIST", "The names of all mailboxes, in order"),
    Command::new("mailbox.drop", 2, mailbox::drop, WRITE, &[], MAILBOX)
        .docs("mailbox", "0.1.0", "O(n)", "MAILBOX.DROP name", "Drop a mailbox, and count the messages that were in it"),
    Command::new("ets.new", -2, ets::new, STORE_FAST, &[], TABLE_AND_HEIRS)
        .docs("ets", "0.1.0", NOTHING, "ETS.NEW name [option ...]",
            "Make a table; the server's, and public, unless private, protected or an heir is asked for"),
    Command::new("ets.delete", -2, ets::delete, WRITE, &[], TABLE)
        .docs("ets", "0.1.0", "O(n); O(log n) with a key", "ETS.DELETE table [key]",
            "Delete a table, or the rows with a key"),
    Command::new("ets.rename", 3, ets::rename, STORE_FAST, &[], TWO_TABLES)
        .docs("ets", "0.1.0", NOTHING, "ETS.RENAME table name",
            "Give a table another name"),
    Command::new("ets.whereis", 2, ets::whereis, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", NOTHING, "ETS.WHEREIS name",
            "The identifier of the table with this name"),
    Command::new("ets.all", 1, ets::all, READ, &[], TABLES_SEEN)
        .docs("ets", "0.1.0", "O(tables)", "ETS.ALL",
            "The names of all tables"),
    Command::new("ets.info", -2, ets::info, READ, &[], TABLE)
        .docs("ets", "0.1.0", "O(n), for the memory; other items O(1)", "ETS.INFO table [item]",
            "What a table is and holds"),
    Command::new("ets.setopts", 3, ets::setopts, STORE_FAST, &[], TABLE_AND_HEIRS)
        .docs("ets", "0.1.0", NOTHING, "ETS.SETOPTS table option",
            "Change the heir of a table, or who may do what"),
    Command::new("ets.give_away", 4, ets::give_away, WRITE_FAST, &[], TABLE_AND_MAILBOX)
        .docs("ets", "0.1.0", NOTHING, "ETS.GIVE_AWAY table mailbox data",
            "Give a table of this connection to a mailbox, which gets a message"),
    Command::new("ets.safe_fixtable", 3, ets::safe_fixtable, WRITE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", NOTHING, "ETS.SAFE_FIXTABLE table true | false",
            "Fix a table, or release it"),
    Command::new("ets.insert", 3, ets::insert, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.INSERT table row",
            "Insert a row, or a list of rows in one step"),
    Command::new("ets.insert_new", 3, ets::insert_new, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.INSERT_NEW table row",
            "Insert a row, or a list of rows, if none of the keys is there"),
    Command::new("ets.lookup", 3, ets::lookup, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.LOOKUP table key",
            "The rows with a key"),
    Command::new("ets.lookup_element", -4, ets::lookup_element, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.LOOKUP_ELEMENT table key position [default]",
            "One element of the row with a key"),
    Command::new("ets.member", 3, ets::member, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.MEMBER table key",
            "Whether a row has a key"),
    Command::new("ets.take", 3, ets::take, WRITE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.TAKE table key",
            "Remove the rows with a key, and return them"),
    Command::new("ets.delete_object", 3, ets::delete_object, WRITE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.DELETE_OBJECT table row",
            "Remove the rows that are identical to one"),
    Command::new("ets.delete_all_objects", 2, ets::delete_all_objects, WRITE, &[], TABLE)
        .docs("ets", "0.1.0", ALL, "ETS.DELETE_ALL_OBJECTS table",
            "Remove all rows in one step"),
    Command::new("ets.update_counter", -4, ets::update_counter, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.UPDATE_COUNTER table key update [default]",
            "Add to integers in a row"),
    Command::new("ets.update_element", -4, ets::update_element, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.UPDATE_ELEMENT table key update [default]",
            "Replace elements of a row"),
    Command::new("ets.expire", -4, ets::expire, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.EXPIRE table key seconds [NX | XX | GT | LT]",
            "Let the rows with a key expire after some seconds"),
    Command::new("ets.pexpire", -4, ets::pexpire, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PEXPIRE table key milliseconds [NX | XX | GT | LT]",
            "Let the rows with a key expire after some milliseconds"),
    Command::new("ets.expireat", -4, ets::expireat, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.EXPIREAT table key unix-time-seconds [NX | XX | GT | LT]",
            "Let the rows with a key expire at a time"),
    Command::new("ets.pexpireat", -4, ets::pexpireat, STORE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PEXPIREAT table key unix-time-milliseconds [NX | XX | GT | LT]",
            "Let the rows with a key expire at a time, in milliseconds"),
    Command::new("ets.ttl", 3, ets::ttl, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.TTL table key",
            "The seconds until the rows with a key expire; -1 if they do not, -2 if there are none"),
    Command::new("ets.pttl", 3, ets::pttl, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PTTL table key",
            "The milliseconds until the rows with a key expire; -1 if they do not, -2 if there are none"),
    Command::new("ets.expiretime", 3, ets::expiretime, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.EXPIRETIME table key",
            "When the rows with a key expire, in seconds since 1970; -1 if they do not, -2 if there are none"),
    Command::new("ets.pexpiretime", 3, ets::pexpiretime, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PEXPIRETIME table key",
            "When the rows with a key expire, in milliseconds since 1970; -1 if they do not, -2 if there are none"),
    Command::new("ets.persist", 3, ets::persist, WRITE_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PERSIST table key",
            "Let the rows with a key stay"),
    Command::new("ets.first", 2, ets::first, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.FIRST table",
            "The first key"),
    Command::new("ets.last", 2, ets::last, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.LAST table",
            "The last key"),
    Command::new("ets.next", 3, ets::next, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.NEXT table key",
            "The key behind another"),
    Command::new("ets.prev", 3, ets::prev, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PREV table key",
            "The key before another"),
    Command::new("ets.first_lookup", 2, ets::first_lookup, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.FIRST_LOOKUP table",
            "The first key and its rows"),
    Command::new("ets.last_lookup", 2, ets::last_lookup, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.LAST_LOOKUP table",
            "The last key and its rows"),
    Command::new("ets.next_lookup", 3, ets::next_lookup, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.NEXT_LOOKUP table key",
            "The key behind another and its rows"),
    Command::new("ets.prev_lookup", 3, ets::prev_lookup, READ_FAST, &[], TABLE)
        .docs("ets", "0.1.0", ONE, "ETS.PREV_LOOKUP table key",
            "The key before another and its rows"),
    Command::new("ets.select", -2, ets::select, READ, &[], SEARCH)
        .docs("ets", "0.1.0", VISITED, "ETS.SELECT table spec [limit] | continuation",
            "What a match specification makes of the rows that it matches; with a limit, in chunks"),
    Command::new("ets.select_reverse", -2, ets::select_reverse, READ, &[], SEARCH)
        .docs("ets", "0.1.0", VISITED, "ETS.SELECT_REVERSE table spec [limit] | continuation",
            "As `ETS.SELECT`, from the last row to the first"),
    Command::new("ets.select_count", 3, ets::select_count, READ, &[], TABLE)
        .docs("ets", "0.1.0", VISITED, "ETS.SELECT_COUNT table spec",
            "How many rows a match specification makes true of"),
    Command::new("ets.select_delete", 3, ets::select_delete, WRITE, &[], TABLE)
        .docs("ets", "0.1.0", VISITED, "ETS.SELECT_DELETE table spec",
            "Delete these rows, and count them"),
    Command::new("ets.select_replace", 3, ets::select_replace, STORE, &[], TABLE)
        .docs("ets", "0.1.0", VISITED, "ETS.SELECT_REPLACE table spec",
            "Put what a match specification makes of rows in their places, and count them"),
    Command::new("ets.match", -2, ets::match_pattern, READ, &[], SEARCH)
        .docs("ets", "0.1.0", VISITED, "ETS.MATCH table pattern [limit] | continuation",
            "The values of a pattern's variables for each row that it matches"),
    Command::new("ets.match_object", -2, ets::match_object, READ, &[], SEARCH)
        .docs("ets", "0.1.0", VISITED, "ETS.MATCH_OBJECT table pattern [limit] | continuation",
            "The rows that a pattern matches"),
    Command::new("ets.match_delete", 3, ets::match_delete, WRITE, &[], TABLE)
        .docs("ets", "0.1.0", VISITED, "ETS.MATCH_DELETE table pattern",
            "Delete the rows that a pattern matches"),
    Command::new("ets.repair_continuation", 3, ets::repair_continuation, READ_FAST, &[], CONTINUATION)
        .docs("ets", "0.1.0", NOTHING, "ETS.REPAIR_CONTINUATION continuation spec",
            "A continuation that goes on with another match specification"),
    Command::new("ets.match_spec_run", 3, ets::match_spec_run, READ, &[], NOTHING_OF_USERS)
        .docs("ets", "0.1.0", "O(terms)", "ETS.MATCH_SPEC_RUN terms spec",
            "What a match specification makes of a list of rows or other terms"),
    Command::new("ets.test_ms", 3, ets::test_ms, READ_FAST, &[], NOTHING_OF_USERS)
        .docs("ets", "0.1.0", NOTHING, "ETS.TEST_MS term spec",
            "What a match specification makes of one row or another term, or what is wrong with it"),
    Command::new("ets.tab2list", 2, ets::tab2list, READ, &[], TABLE)
        .docs("ets", "0.1.0", ALL, "ETS.TAB2LIST table",
            "All rows"),
    Command::new("ets.init_table", -3, ets::init_table, STORE, &[], TABLE)
        .docs("ets", "0.1.0", "O(n + k)", "ETS.INIT_TABLE table row [row ...]",
            "Put rows, or lists of rows, in the place of all others, in one step"),
    Command::new("ets.tab2file", 3, ets::tab2file, READ, &[], TABLE_FILES)
        .docs("ets", "0.1.0", ALL, "ETS.TAB2FILE table file",
            "Write a table to a file"),
    Command::new("ets.file2tab", 2, ets::file2tab, STORE, &[], TABLE_FILES)
        .docs("ets", "0.1.0", ALL, "ETS.FILE2TAB file",
            "Read a table from a file"),
    Command::new("ets.tabfile_info", 2, ets::tabfile_info, READ, &[], TABLE_FILES)
        .docs("ets", "0.1.0", NOTHING, "ETS.TABFILE_INFO file",
            "What a file says of its table"),
    Command::new("ets.format", 2, ets::format, ANY_TIME_FAST, &[], NOTHING_OF_USERS)
        .docs("ets", "0.1.0", NOTHING, "ETS.FORMAT text | etf",
            "The form of the terms in the replies on this connection"),
    Command::new("dbsize", 1, keys::dbsize, READ_FAST, KEYSPACE, SEEN)
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
        .docs("server", "1.0.0", NOTHING, "DBSIZE", "The number of keys"),
    Command::new("flushdb", -1, keys::flushdb, WRITE, &["@keyspace", "@dangerous"], EVERY_KEY)
        .tips(ALL_SHARDS)
        .docs("server", "1.0.0", ALL, "FLUSHDB [ASYNC | SYNC]", "Remove every key of the selected database"),
    Command::new("flushall", -1, keys::flushall, WRITE, &["@keyspace", "@dangerous"], EVERY_KEY)
        .tips(ALL_SHARDS)
        .docs("server", "1.0.0", ALL, "FLUSHALL [ASYNC | SYNC]", "Remove every key of every database"),
    Command::new("info", -1, info::info, ANY_TIME, &["@dangerous"], NOTHING_OF_USERS)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .docs("server", "1.0.0", NOTHING, "INFO [section ...]", "About the server, its clients, memory and databases"),
    Command::new("command", -1, describe::command, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
        .tips(&["nondeterministic_output_order"])
        .docs("server", "2.8.13", ALL, "COMMAND", "About all commands")
        .subcommands(&[
            Command::new("count", 2, describe::command_count, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|count")
                .docs("server", "2.8.13", NOTHING, "COMMAND COUNT", "The number of commands"),
            Command::new("docs", -2, describe::command_docs, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|docs")
                .tips(&["nondeterministic_output_order"])
                .docs("server", "7.0.0", "O(k)", "COMMAND DOCS [name ...]", "What commands do, for people"),
            Command::new("info", -2, describe::command_info, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|info")
                .tips(&["nondeterministic_output_order"])
                .docs("server", "2.8.13", "O(k)", "COMMAND INFO [name ...]", "Arity, flags and keys of commands, for clients"),
            Command::new("getkeys", -4, describe::getkeys, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|getkeys")
                .docs("server", "2.8.13", "O(k)", "COMMAND GETKEYS command [arg ...]",
                    "The keys among the arguments of a command"),
            Command::new("getkeysandflags", -4, describe::getkeysandflags, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|getkeysandflags")
                .docs("server", "7.0.0", "O(k)", "COMMAND GETKEYSANDFLAGS command [arg ...]",
                    "The keys among the arguments of a command, and what it does with them"),
            Command::new("list", -2, describe::command_list, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|list")
                .tips(&["nondeterministic_output_order"])
                .docs("server", "7.0.0", ALL, "COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]",
                    "The names of all commands, or of some"),
            Command::new("help", 2, describe::help, ANY_TIME, CONNECTION, NOTHING_OF_USERS)
                .full_name("command|help")
                .docs("server", "5.0.0", NOTHING, "COMMAND HELP", "What the subcommands do"),
        ]),
    Command::new("config", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("server", "2.0.0", NOTHING, "CONFIG", "The server's settings")
        .subcommands(config::SUBCOMMANDS),
    Command::new("slowlog", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("server", "2.2.12", NOTHING, "SLOWLOG", "Commands that took long")
        .subcommands(slowlog::SUBCOMMANDS),
    Command::new("latency", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("server", "2.8.13", NOTHING, "LATENCY", "How long commands take")
        .subcommands(latency::SUBCOMMANDS),
    Command::new("memory", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("server", "4.0.0", NOTHING, "MEMORY", "What holds memory")
        .subcommands(memory::SUBCOMMANDS),
    Command::new("object", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("generic", "2.2.3", NOTHING, "OBJECT", "About the values of keys")
        .subcommands(object::SUBCOMMANDS),
    Command::new("debug", -2, debug::debug, ADMIN, &[], NOTHING_OF_USERS)
        .docs("server", "1.0.0", NOTHING, "DEBUG subcommand [arg ...]",
            "For tests of clients; refused unless `--enable-debug-command` allows it"),
    Command::new("monitor", 1, operate::monitor, ADMIN, &[], NOTHING_OF_USERS)
        .docs("server", "1.0.0", NOTHING, "MONITOR", "Show every command that any client runs, but for passwords and administration"),
    Command::new("publish", 3, channels::publish_to_channel, &["pubsub", "loading", "stale", "fast"], PUBSUB, CHANNEL)
        .docs("pubsub", "2.0.0", "O(s + p)", "PUBLISH channel message",
            "Send a message to all who listen to a channel, and count them"),
    Command::new("subscribe", -2, channels::subscribe, LISTEN, PUBSUB, CHANNELS)
        .docs("pubsub", "2.0.0", "O(k)", "SUBSCRIBE channel [channel ...]", "Listen to channels"),
    Command::new("unsubscribe", -1, channels::unsubscribe, LISTEN, PUBSUB, NOTHING_OF_USERS)
        .docs("pubsub", "2.0.0", "O(k)", "UNSUBSCRIBE [channel ...]", "Listen to channels, or to all, no longer"),
    Command::new("psubscribe", -2, channels::psubscribe, LISTEN, PUBSUB, PATTERNS)
        .docs("pubsub", "2.0.0", "O(k log p)", "PSUBSCRIBE pattern [pattern ...]", "Listen to all channels that match patterns"),
    Command::new("punsubscribe", -1, channels::punsubscribe, LISTEN, PUBSUB, NOTHING_OF_USERS)
        .docs("pubsub", "2.0.0", "O(k log p)", "PUNSUBSCRIBE [pattern ...]", "Listen to patterns, or to all, no longer"),
    Command::new("pubsub", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("pubsub", "2.8.0", NOTHING, "PUBSUB", "Who listens to what")
        .subcommands(channels::SUBCOMMANDS),
    Command::new("spublish", 3, channels::publish_to_shard, &["pubsub", "loading", "stale", "fast"], PUBSUB, CHANNEL)
        .docs("pubsub", "7.0.0", "O(s)", "SPUBLISH channel message", "As `PUBLISH`, for channels of `SSUBSCRIBE`"),
    Command::new("ssubscribe", -2, channels::ssubscribe, LISTEN, PUBSUB, CHANNELS)
        .docs("pubsub", "7.0.0", "O(k)", "SSUBSCRIBE channel [channel ...]",
            "Listen to channels that are apart from those of `SUBSCRIBE`; patterns do not match them"),
    Command::new("sunsubscribe", -1, channels::sunsubscribe, LISTEN, PUBSUB, NOTHING_OF_USERS)
        .docs("pubsub", "7.0.0", "O(k)", "SUNSUBSCRIBE [channel ...]", "Listen to these channels, or to all, no longer"),
    Command::new("time", 1, operate::time, ANY_TIME_FAST, &[], NOTHING_OF_USERS)
        .tips(&["nondeterministic_output"])
        .docs("server", "2.6.0", NOTHING, "TIME", "Seconds and microseconds since 1970"),
    Command::new("role", 1, operate::role, &["noscript", "loading", "stale", "fast"], &["@admin", "@dangerous"], NOTHING_OF_USERS)
        .docs("server", "2.8.12", NOTHING, "ROLE", "That of a master without replicas; on a follower of a group, where the leader is"),
    Command::new("sentinel", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("server", "2.8.4", NOTHING, "SENTINEL", "The group and its nodes, as clients of Redis Sentinel ask")
        .subcommands(sentinel::SUBCOMMANDS),
    Command::new("shutdown", -1, operate::shutdown, &["admin", "noscript", "loading", "stale", "no_multi", "allow_busy"], &[], NOTHING_OF_USERS)
        .docs("server", "1.0.0", NOTHING, "SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
            "Stop the server as SIGTERM does: it answers what has arrived"),
    Command::new("wait", 3, operate::wait, &["noscript"], CONNECTION, NOTHING_OF_USERS)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .docs("generic", "3.0.0", NOTHING, "WAIT numreplicas timeout",
            "Wait for replicas, of which there are none: 0, at once if none is asked for"),
    Command::new("waitaof", 4, persist::waitaof, &["noscript"], CONNECTION, NOTHING_OF_USERS)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .docs("generic", "7.2.0", NOTHING, "WAITAOF numlocal numreplicas timeout",
            "Wait until what this connection has written or seen is on the disk"),
    Command::new("waitseq", 3, persist::waitseq, &["noscript"], CONNECTION, NOTHING_OF_USERS)
        .docs("generic", "0.1.0", NOTHING, "WAITSEQ sequence timeout",
            "Wait until this server shows an effect by its number, as CLIENT LASTSEQ gives it on the leader"),
    Command::new("save", 1, persist::save, &["admin", "noscript", "no_async_loading", "no_multi"], &[], NOTHING_OF_USERS)
        .docs("server", "1.0.0", ALL, "SAVE", "Make a snapshot; other clients go on meanwhile"),
    Command::new("bgsave", -1, persist::bgsave, &["admin", "noscript", "no_async_loading"], &[], NOTHING_OF_USERS)
        .docs("server", "1.0.0", NOTHING, "BGSAVE [SCHEDULE]", "Begin to make a snapshot"),
    Command::new("lastsave", 1, persist::lastsave, &["loading", "stale", "fast"], &["@admin", "@dangerous"], NOTHING_OF_USERS)
        .docs("server", "1.0.0", NOTHING, "LASTSAVE", "When the last snapshot was made, in seconds since 1970"),
    Command::new("lolwut", -1, lolwut::lolwut, READ_FAST, &[], NOTHING_OF_USERS)
        .docs("server", "5.0.0", NOTHING, "LOLWUT [VERSION version] [columns]", "The tree that this server is named after"),
    Command::new("ping", -1, connection::ping, &["fast"], CONNECTION, NOTHING_OF_USERS)
        .tips(ALL_SHARDS)
        .docs("connection", "1.0.0", NOTHING, "PING [message]", "`PONG`, or the message"),
    Command::new("echo", 2, connection::echo, ANY_TIME_FAST, CONNECTION, NOTHING_OF_USERS)
        .docs("connection", "1.0.0", NOTHING, "ECHO message", "The message"),
    Command::new("hello", -1, connection::hello, HANDSHAKE, CONNECTION, NOTHING_OF_USERS)
        .docs("connection", "6.0.0", NOTHING,
            "HELLO [protover [AUTH username password] [SETNAME clientname]]",
            "Choose the version of the protocol, 2 or 3"),
    Command::new("auth", -2, connection::auth, HANDSHAKE, CONNECTION, NOTHING_OF_USERS)
        .docs("connection", "1.0.0", NOTHING, "AUTH [username] password",
            "Become a user by his password; refused until a user has one"),
    Command::new("client", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("connection", "2.4.0", NOTHING, "CLIENT", "About connections")
        .subcommands(client::SUBCOMMANDS),
    Command::new("acl", -2, describe::help, &[], &[], NOTHING_OF_USERS)
        .docs("server", "6.0.0", NOTHING, "ACL", "Users, and what they may do")
        .subcommands(acl::SUBCOMMANDS),
    Command::new("select", 2, connection::select, ANY_TIME_FAST, CONNECTION, NOTHING_OF_USERS)
        .docs("connection", "1.0.0", NOTHING, "SELECT index", "Choose one of the 16 databases"),
    Command::new("reset", 1, connection::reset, HANDSHAKE, CONNECTION, NOTHING_OF_USERS)
        .docs("connection", "6.2.0", NOTHING, "RESET", "Make the connection as it was when it was new"),
    Command::new("quit", -1, connection::quit, HANDSHAKE, CONNECTION, NOTHING_OF_USERS)
        .docs("connection", "1.0.0", NOTHING, "QUIT", "Close the connection"),
    Command::new("multi", 1, transaction::multi, TRANSACTION_FLAGS, TRANSACTION, NOTHING_OF_USERS)
        .docs("transactions", "1.2.0", NOTHING, "MULTI", "Begin a transaction: commands wait for `EXEC`"),
    Command::new("exec", 1, transaction::exec, &["noscript", "loading", "stale", "skip_slowlog"], TRANSACTION, NOTHING_OF_USERS)
        .docs("transactions", "1.2.0", "As the commands",
            "EXEC", "Run the commands that wait as one atomic step, unless a watched key has changed"),
    Command::new("discard", 1, transaction::discard, TRANSACTION_FLAGS, TRANSACTION, NOTHING_OF_USERS)
        .docs("transactions", "2.0.0", NOTHING, "DISCARD", "Forget the commands that wait, and the keys that are watched"),
    Command::new("watch", -2, transaction::watch, TRANSACTION_FLAGS, TRANSACTION, at(many_keys(1, &["RO"])))
        .docs("transactions", "2.2.0", EACH, "WATCH key [key ...]", "Let `EXEC` run nothing if one of these keys changes before"),
    Command::new("unwatch", 1, transaction::unwatch, TRANSACTION_FLAGS, TRANSACTION, NOTHING_OF_USERS)
        .docs("transactions", "2.2.0", NOTHING, "UNWATCH", "Forget the keys that are watched"),
    Command::new("txn", -4, txn::txn, STORE, TRANSACTION, NOTHING_OF_USERS)
        .docs("transactions", "0.1.0", "As the commands",
            "TXN [IF condition [condition ...]] THEN words word ... [words word ...] ... [ELSE words word ... ...]",
            "Run commands if all conditions hold, and others if not, as one atomic step"),
    Command::new("once", -3, once::once, STORE, TRANSACTION, NOTHING_OF_USERS)
        .docs("transactions", "0.1.0", "As the command", "ONCE id command [arg ...]",
            "Carry a command out once, however often it comes with this id, and answer as the first time"),
];
