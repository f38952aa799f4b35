//! `SENTINEL …`: what clients of Redis Sentinel ask for to find a master. Every node of a group
//! answers it: the group is the one master there is, its leader is where it runs, the other nodes
//! are the replicas, and all of them are sentinels.

use super::reach::NOTHING_OF_USERS;
use super::rows::{ANY_TIME, CONNECTION, NOTHING};
use super::table::Command;
use super::{Context, Failure, Next, Outcome, describe};
use crate::group::{Group, Seen, host_and_port};
use crate::resp::{Arguments, Reply};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

const NO_GROUP: Failure =
    Failure::Text("ERR this server is no node of a group; start it with --replicate");
const NO_MASTER: Failure = Failure::Text("ERR No such master with that name");
const NO_QUORUM: Failure = Failure::Text("NOQUORUM no node leads the group at the moment");

const fn sub(
    name: &'static str,
    full_name: &'static str,
    arity: i64,
    run: fn(&mut Context<'_>, Arguments<'_>) -> Outcome,
) -> Command {
    Command::new(name, arity, run, ANY_TIME, CONNECTION, NOTHING_OF_USERS).full_name(full_name)
}

/// The subcommands of `SENTINEL`.
pub(super) const SUBCOMMANDS: &[Command] = &[
    sub("ckquorum", "sentinel|ckquorum", 3, ckquorum).docs(
        "server",
        "2.8.4",
        NOTHING,
        "SENTINEL CKQUORUM group",
        "Whether a node leads, and how many there are",
    ),
    sub(
        "get-master-addr-by-name",
        "sentinel|get-master-addr-by-name",
        3,
        address,
    )
    .docs(
        "server",
        "2.8.4",
        NOTHING,
        "SENTINEL GET-MASTER-ADDR-BY-NAME group",
        "Host and port of the group's leader; nothing while no node leads",
    ),
    sub("master", "sentinel|master", 3, master).docs(
        "server",
        "2.8.4",
        NOTHING,
        "SENTINEL MASTER group",
        "About the group and its leader",
    ),
    sub("masters", "sentinel|masters", 2, masters).docs(
        "server",
        "2.8.4",
        NOTHING,
        "SENTINEL MASTERS",
        "The same, as a list of one",
    ),
    sub("myid", "sentinel|myid", 2, myid).docs(
        "server",
        "6.2.0",
        NOTHING,
        "SENTINEL MYID",
        "The id of this node among the sentinels",
    ),
    sub("replicas", "sentinel|replicas", 3, replicas).docs(
        "server",
        "5.0.0",
        "O(n) for n nodes",
        "SENTINEL REPLICAS group",
        "The nodes that do not lead",
    ),
    sub("sentinels", "sentinel|sentinels", 3, sentinels).docs(
        "server",
        "2.8.4",
        "O(n) for n nodes",
        "SENTINEL SENTINELS group",
        "The nodes other than this one",
    ),
    sub("slaves", "sentinel|slaves", 3, replicas).docs(
        "server",
        "2.8.0",
        "O(n) for n nodes",
        "SENTINEL SLAVES group",
        "As `SENTINEL REPLICAS`",
    ),
    Command::new(
        "help",
        2,
        describe::help,
        ANY_TIME,
        CONNECTION,
        NOTHING_OF_USERS,
    )
    .full_name("sentinel|help")
    .docs(
        "server",
        "6.2.0",
        NOTHING,
        "SENTINEL HELP",
        "What the subcommands do",
    ),
];

fn group<'s>(context: &Context<'s>) -> Result<&'s Group, Failure> {
    context.server.group.as_deref().ok_or(NO_GROUP)
}

/// The group, if it has the name that the client asks for.
fn named<'s>(context: &Context<'s>, arguments: Arguments<'_>) -> Result<&'s Group, Failure> {
    let group = group(context)?;
    match arguments.get(2) == group.name.as_bytes() {
        true => Ok(group),
        false => Err(NO_MASTER),
    }
}

/// A fixed id of 40 hexadecimal digits, as those of servers of Redis are.
fn id_of(group: &Group, node: &str) -> String {
    let hash = |part: u8| {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        hasher.hash_one((part, &group.name, node))
    };
    let [one, two, three] = [0, 1, 2].map(hash);
    format!("{one:016x}{two:016x}{:08x}", three >> 32)
}

/// The id of the node at an address.
fn id_at(group: &Group, address: &str) -> String {
    let nodes = group.nodes();
    let node = nodes.iter().find(|node| node.address == address);
    id_of(group, node.map_or(address, |node| &node.name))
}

type Fields = Vec<(&'static str, String)>;

fn write(reply: &mut Reply, fields: &Fields) {
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

/// What begins the description of any instance.
fn instance(name: &str, address: &str, id: String, flags: &str, age: u128) -> Fields {
    let (host, port) = host_and_port(address);
    let age = age.to_string();
    vec![
        ("name", name.to_owned()),
        ("ip", host.to_owned()),
        ("port", port.to_owned()),
        ("runid", id),
        ("flags", flags.to_owned()),
        ("link-pending-commands", "0".to_owned()),
        ("link-refcount", "1".to_owned()),
        ("last-ping-sent", "0".to_owned()),
        ("last-ok-ping-reply", age.clone()),
        ("last-ping-reply", age),
        ("down-after-milliseconds", "1800".to_owned()),
    ]
}

fn describe_master(group: &Group) -> Fields {
    let report = group.report();
    let nodes = group.nodes();
    let leader = report.leader.clone().unwrap_or_default();
    let flags = match report.leader {
        Some(_) => "master",
        None => "master,s_down,o_down",
    };
    let age = report.staleness.unwrap_or_default().as_millis();
    let mut fields = instance(&group.name, &leader, id_at(group, &leader), flags, age);
    let others = |is_other: &dyn Fn(&Seen) -> bool| {
        let count = nodes.iter().filter(|node| is_other(node)).count();
        count.to_string()
    };
    fields.extend([
        ("info-refresh", age.to_string()),
        ("role-reported", "master".to_owned()),
        ("role-reported-time", "0".to_owned()),
        ("config-epoch", report.epoch.get().to_string()),
        ("num-slaves", others(&|node| node.address != leader)),
        (
            "num-other-sentinels",
            others(&|node| node.name != group.node),
        ),
        // Any node that has read to the log's end may claim; a majority has to keep the log.
        ("quorum", "1".to_owned()),
        ("failover-timeout", "10000".to_owned()),
        ("parallel-syncs", "1".to_owned()),
    ]);
    fields
}

fn ckquorum(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let group = named(context, arguments)?;
    if group.host.leader().is_none() {
        return Err(NO_QUORUM);
    }
    let usable = group.nodes().iter().filter(|node| !node.is_away()).count();
    let usable = usable.max(1);
    context.reply.simple(&format!(
        "OK {usable} usable Sentinels. Quorum and failover authorization can be reached"
    ));
    Ok(Next::Reply)
}

fn address(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let group = group(context)?;
    let leader = group.host.leader();
    let is_its = arguments.get(2) == group.name.as_bytes();
    match leader.filter(|_| is_its) {
        Some(leader) => {
            let (host, port) = host_and_port(&leader);
            context.reply.array(2);
            context.reply.bulk(host.as_bytes());
            context.reply.bulk(port.as_bytes());
        }
        None => context.reply.null_array(),
    }
    Ok(Next::Reply)
}

fn master(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let fields = describe_master(named(context, arguments)?);
    write(context.reply, &fields);
    Ok(Next::Reply)
}

fn masters(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let fields = describe_master(group(context)?);
    context.reply.array(1);
    write(context.reply, &fields);
    Ok(Next::Reply)
}

fn myid(context: &mut Context<'_>, _: Arguments<'_>) -> Outcome {
    let group = group(context)?;
    let id = id_of(group, &group.node);
    context.reply.bulk(id.as_bytes());
    Ok(Next::Reply)
}

fn replicas(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let group = named(context, arguments)?;
    let report = group.report();
    let leader = report.leader.unwrap_or_default();
    let nodes = group.nodes();
    let nodes: Vec<_> = nodes.iter().filter(|node| node.address != leader).collect();
    let (host, port) = host_and_port(&leader);
    context.reply.array(nodes.len());
    for node in nodes {
        let flags = match node.is_away() {
            true => "slave,s_down,disconnected",
            false => "slave",
        };
        let (id, age) = (id_of(group, &node.name), node.age.as_millis());
        let (own_host, own_port) = host_and_port(&node.address);
        let name = format!("{own_host}:{own_port}");
        let mut fields = instance(&name, &node.address, id, flags, age);
        fields.extend([
            ("info-refresh", age.to_string()),
            ("role-reported", "slave".to_owned()),
            ("role-reported-time", "0".to_owned()),
            ("master-link-down-time", "0".to_owned()),
            ("master-link-status", "ok".to_owned()),
            ("master-host", host.to_owned()),
            ("master-port", port.to_owned()),
            ("slave-priority", "100".to_owned()),
            ("slave-repl-offset", report.confirmed.get().to_string()),
            ("replica-announced", "1".to_owned()),
        ]);
        write(context.reply, &fields);
    }
    Ok(Next::Reply)
}

fn sentinels(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let group = named(context, arguments)?;
    let epoch = group.report().epoch.get().to_string();
    let nodes = group.nodes();
    let nodes: Vec<_> = nodes
        .iter()
        .filter(|node| node.name != group.node)
        .collect();
    context.reply.array(nodes.len());
    for node in nodes {
        let flags = match node.is_away() {
            true => "sentinel,s_down,disconnected",
            false => "sentinel",
        };
        let (id, age) = (id_of(group, &node.name), node.age.as_millis());
        let mut fields = instance(&id, &node.address, id.clone(), flags, age);
        fields.extend([
            ("last-hello-message", age.to_string()),
            ("voted-leader", "?".to_owned()),
            ("voted-leader-epoch", epoch.clone()),
        ]);
        write(context.reply, &fields);
    }
    Ok(Next::Reply)
}
