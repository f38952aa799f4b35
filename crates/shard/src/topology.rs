//! The machine's processors and memory nodes, and which processors this process may use.

use std::io;
use std::path::{Path, PathBuf};

/// A processor, by the system's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub usize);

/// A memory node and its processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The system's number for it.
    pub number: usize,
    /// Its processors, in order.
    pub cpus: Vec<Cpu>,
}

/// Why the topology could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A file could not be read.
    #[error("{0} could not be read: {1}")]
    File(PathBuf, io::Error),
    /// A part of a list is neither a processor nor a range of processors.
    #[error("'{part}' in '{list}' is no processor and no range of processors")]
    List {
        /// The list.
        list: String,
        /// What in it is wrong.
        part: String,
    },
}

/// The folder in which Linux lists the memory nodes.
const NODES: &str = "/sys/devices/system/node";

/// More processors than any system has. A list that names a larger number is wrong.
const MOST_CPUS: usize = 1 << 16;

/// Reads a list of processors as Linux writes it, such as `0-3,8,10-11`. In order, without
/// duplicates.
///
/// # Errors
///
/// A part is neither a number nor a range of numbers.
///
/// ```
/// use tremula_shard::topology::{Cpu, cpu_list};
///
/// assert_eq!(cpu_list("0-2,5\n").unwrap(), [0, 1, 2, 5].map(Cpu));
/// ```
pub fn cpu_list(list: &str) -> Result<Vec<Cpu>, TopologyError> {
    let mut cpus = Vec::new();
    let list = list.trim();
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse().ok().filter(|cpu| *cpu < MOST_CPUS);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend((first..=last).map(Cpu)),
            _ => {
                return Err(TopologyError::List {
                    list: list.to_owned(),
                    part: part.to_owned(),
                });
            }
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Reads the memory nodes from a folder laid out as Linux does it: a folder `nodeN` for each node,
/// with a file `cpulist`. Ordered by number, without nodes that have no processors.
///
/// # Errors
///
/// The folder or a list cannot be read.
pub fn nodes(folder: &Path) -> Result<Vec<Node>, TopologyError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| TopologyError::File(path, error)
    };
    let mut nodes = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            continue;
        };
        let path = entry.path().join("cpulist");
        let cpus = cpu_list(&std::fs::read_to_string(&path).map_err(failed(&path))?)?;
        if !cpus.is_empty() {
            nodes.push(Node { number, cpus });
        }
    }
    nodes.sort_unstable_by_key(|node| node.number);
    Ok(nodes)
}

/// The processors that the calling thread may use, as affinity or a container limits them.
///
/// # Errors
///
/// The system does not report them.
pub fn allowed() -> io::Result<Vec<Cpu>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    Ok(all.filter(|&cpu| set.is_set(cpu)).map(Cpu).collect())
}

/// Pins the calling thread to a processor.
///
/// # Errors
///
/// The process may not use this processor, or no processor has this number.
pub fn pin(cpu: Cpu) -> io::Result<()> {
    if cpu.0 >= rustix::thread::CpuSet::MAX_CPU {
        let problem = format!("there is no processor {}", cpu.0);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu.0);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Chooses a processor for each of `workers` workers from `allowed`. The processors are taken node
/// by node, so that neighbouring workers share a node, and none is chosen twice before all have
/// been chosen once. Returns no processor if none is allowed.
#[must_use]
pub fn place(workers: usize, allowed: &[Cpu], nodes: &[Node]) -> Vec<Cpu> {
    let mut order: Vec<Cpu> = Vec::with_capacity(allowed.len());
    for node in nodes {
        order.extend(node.cpus.iter().filter(|cpu| allowed.contains(cpu)));
    }
    let unknown = |cpu: &&Cpu| !order.contains(cpu);
    let rest: Vec<Cpu> = allowed.iter().filter(unknown).copied().collect();
    order.extend(rest);
    order
        .into_iter()
        .cycle()
        .take(if allowed.is_empty() { 0 } else { workers })
        .collect()
}

/// [`place`] on this machine. If the nodes are unknown, all processors count as one node. If the
/// system does not report which processors are allowed, none is chosen.
#[doc(hidden)]
pub fn places(workers: usize) -> Vec<Cpu> {
    let allowed = allowed().unwrap_or_default();
    let nodes = nodes(Path::new(NODES)).unwrap_or_default();
    place(workers, &allowed, &nodes)
}
