//! Nodes of a measured cluster: their servers, their control groups, their networks and drives.
//!
//! Always holds: a process joins its control group before it becomes a server, so that no time of it is missed; it ends
//! with this command even if that is killed (`setpriv --pdeathsig`), and with its [`RunningNode`] in any case.

use super::super::devices;
use super::super::limits::{ControlGroups, LimitedDrive, NodeGroup, read_special};
use super::super::namespaces::{Namespaces, OWN_GROUP, OwnParts};
use super::super::network::{self, ClusterNetwork};
use super::super::plan::MeasurePlan;
use super::configuration::{haproxy_conf, proxy_conf, storage_conf};
use super::failed;
use crate::model::limits::FRAMES;
use crate::text_files::{read_text, write_text};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use vocabulary::Fault;
use world::World;

/// Only this host is spoken to.
pub const HOST: &str = "127.0.0.1";
/// Joins control groups, then becomes the program: a log, a count, that many files, the words of the program.
const JOIN: &str = "exec >\"$1\" 2>&1; n=$2; shift 2; while [ \"$n\" -gt 0 ]; do echo $$ >\"$1\" || exit 71; shift; \
                    n=$((n-1)); done; exec \"$@\"";
/// Bytes of a log that are shown when its server ends.
const SHOWN: usize = 600;
/// Servers of a storage node.
pub const ROLES: [&str; 3] = ["object", "container", "account"];

/// One server.
pub struct RunningServer {
    name: String,
    /// Where it listens.
    pub port: u16,
    log: PathBuf,
    child: Child,
}

/// A node: its servers and what is theirs.
pub struct RunningNode {
    /// All of them.
    pub servers: Vec<RunningServer>,
    /// What limits its processors and drives.
    pub group: Option<NodeGroup>,
    /// Processors, when limits hold.
    pub processors: f64,
    /// Bytes a second of its network, when limits hold.
    pub network: Option<f64>,
    /// Where it is reached.
    pub host: String,
    /// What is its own; after its servers, as they are in it.
    pub own: Option<Namespaces>,
}

impl RunningNode {
    /// Addresses and ports of its servers.
    pub fn places(&self) -> Vec<(String, u16)> {
        let all = self.servers.iter();
        all.map(|server| (self.host.clone(), server.port)).collect()
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        // What is limited ends slowly: its memory and mounts are taken down within its limits. An error is no reason to
        // let it run.
        let _ = self.group.as_ref().map(|group| group.limit(None));
        for server in &mut self.servers {
            let _ = server.child.kill();
        }
        // Ends what the servers have started, too.
        self.group = None;
        for server in &mut self.servers {
            let _ = server.child.wait();
        }
    }
}

impl RunningServer {
    /// An error when it has ended.
    pub fn check(&mut self, world: &World, host: &str) -> Result<(), Fault> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.ended(world, host, "has ended")),
        }
    }

    /// The error of one that is not as it shall be, with the end of its log.
    pub fn ended(&self, world: &World, host: &str, what: &str) -> Fault {
        let log = read_text(world, &self.log).unwrap_or_default();
        let from = log.len().saturating_sub(SHOWN);
        let shown = log.get(from..).unwrap_or(&log).trim();
        Fault::caller(format!("{} on {host}:{} {what}: {shown}", self.name, self.port))
    }
}

/// A server that shall run, with its configuration.
struct PlannedServer {
    /// The program and its words before the file.
    words: Vec<String>,
    name: String,
    port: u16,
    conf: String,
}

/// What belongs to a node beside its servers.
struct NodeParts {
    group: Option<NodeGroup>,
    processors: f64,
    network: Option<f64>,
    own: Option<Namespaces>,
}

/// What all servers are started by.
pub struct StartedBy<'a> {
    /// Files.
    pub world: &'a World,
    /// What is measured.
    pub plan: &'a MeasurePlan,
    /// This program or another build of it.
    pub program: &'a Path,
    /// Where data lies.
    pub folder: &'a Path,
    /// Without them nothing is limited.
    pub groups: Option<&'a ControlGroups>,
    /// Nodes have networks of their own.
    pub has_networks: bool,
    /// Numbers of the machine's processors.
    pub processors: Vec<u32>,
}

impl StartedBy<'_> {
    /// Where a node is reached.
    pub fn host(&self, number: u32) -> String {
        match self.has_networks {
            true => network::address(number),
            false => HOST.to_owned(),
        }
    }

    fn server(&self, command: &str, name: String, port: u16, conf: String) -> PlannedServer {
        let words = vec![self.program.display().to_string(), command.to_owned()];
        PlannedServer {
            words,
            name,
            port,
            conf,
        }
    }

    fn group(&self, name: &str, drives: Vec<LimitedDrive>) -> Result<Option<NodeGroup>, Fault> {
        let group = self.groups.map(|groups| groups.node(name, drives)).transpose();
        group.map_err(|error| failed("control group", &error))
    }

    /// Makes drives, and starts an account, a container and an object server.
    pub fn storage_node(
        &self,
        etc: &Path,
        number: u32,
        ports: [u16; 3],
        network: &mut Option<ClusterNetwork>,
    ) -> Result<RunningNode, Fault> {
        let (host, srv) = (self.host(number), self.folder.join(format!("srv{number}")));
        let is_limited = self.groups.is_some() && self.plan.drive.is_some();
        let (own, drives) = devices::mounted(self.world, self.plan, &srv, self.has_networks, is_limited)?;
        let servers = ROLES.iter().zip(ports).map(|(role, port)| {
            let conf = storage_conf(etc, &srv, role, (&host, port), is_limited);
            self.server(&format!("{role}-server"), format!("{role}-{number}"), port, conf)
        });
        let limits = self.plan.storage;
        let parts = NodeParts {
            group: self.group(&format!("storage-{number}"), drives)?,
            processors: limits.processors,
            network: limits.network.filter(|_| self.has_networks),
            own,
        };
        self.node(number, servers.collect(), parts, network)
    }

    /// Starts a gateway, whose number follows those of the storage nodes.
    pub fn gateway(
        &self,
        etc: &Path,
        (gateway, nodes): (u32, u32),
        port: u16,
        network: &mut Option<ClusterNetwork>,
    ) -> Result<RunningNode, Fault> {
        let number = nodes + gateway;
        let conf = proxy_conf(etc, (&self.host(number), port));
        let server = self.server("proxy-server", format!("proxy-{gateway}"), port, conf);
        let limits = self.plan.gateway;
        let parts = NodeParts {
            group: self.group(&format!("gateway-{gateway}"), vec![])?,
            processors: limits.processors,
            network: limits.network.filter(|_| self.has_networks),
            own: self.own_network()?,
        };
        self.node(number, vec![server], parts, network)
    }

    /// Starts haproxy before gateways.
    pub fn balancer(
        &self,
        number: u32,
        port: u16,
        throughput: f64,
        gateways: &[(String, u16)],
        network: &mut Option<ClusterNetwork>,
    ) -> Result<RunningNode, Fault> {
        // Each worker has one connection, or one to come and one that goes.
        let clients = 2 * self.plan.workers.iter().max().unwrap_or(&1) + 16;
        // It has no group, and is not to wait for other programs.
        let words = ["nice", "-n", "-10", "haproxy", "-db", "-f"];
        let server = PlannedServer {
            words: words.map(str::to_owned).to_vec(),
            name: "haproxy".to_owned(),
            port,
            conf: haproxy_conf((&self.host(number), port), gateways, clients),
        };
        let parts = NodeParts {
            group: None,
            processors: f64::INFINITY,
            network: Some(throughput * FRAMES),
            own: self.own_network()?,
        };
        self.node(number, vec![server], parts, network)
    }

    fn own_network(&self) -> Result<Option<Namespaces>, Fault> {
        let own = OwnParts {
            network: true,
            mounts: false,
        };
        let made = self
            .has_networks
            .then(|| Namespaces::make("a network namespace (needs root)", own, "", &[]));
        made.transpose()
    }

    /// Joins the network and starts the servers.
    fn node(
        &self,
        number: u32,
        servers: Vec<PlannedServer>,
        parts: NodeParts,
        network: &mut Option<ClusterNetwork>,
    ) -> Result<RunningNode, Fault> {
        let mut node = RunningNode {
            servers: vec![],
            group: parts.group,
            processors: parts.processors,
            network: parts.network,
            host: self.host(number),
            own: parts.own,
        };
        if let (Some(network), Some(own)) = (network, &node.own) {
            network.join(own, number, node.network)?;
        }
        for server in servers {
            let name = &server.name;
            let conf = self.folder.join("etc").join(format!("{name}.conf"));
            write_text(self.world, &conf, &server.conf)?;
            let doors = node.group.as_ref().map_or(vec![], NodeGroup::doors);
            let log = self.folder.join(format!("{name}.log"));
            write_text(self.world, &log, "")?;
            let child = Command::new("sh")
                .args(["-c", JOIN, "sh"])
                .arg(&log)
                .arg(doors.len().to_string())
                .args(doors)
                .args(node.own.as_ref().map_or(vec![], Namespaces::inside))
                .args(["setpriv", "--pdeathsig", "KILL"])
                .args(self.pinned(number, node.processors))
                .args(&server.words)
                .arg(&conf)
                .process_group(OWN_GROUP)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| failed(name, &error))?;
            node.servers.push(RunningServer {
                name: server.name,
                port: server.port,
                log,
                child,
            });
        }
        Ok(node)
    }

    /// What keeps a node that has a share of one processor on one: where its threads run on several, one of them may
    /// take the whole share for many periods, which no real machine would do.
    fn pinned(&self, number: u32, processors: f64) -> Vec<String> {
        let at = number as usize % self.processors.len().max(1);
        match self
            .processors
            .get(at)
            .filter(|_| self.groups.is_some() && processors <= 1.0)
        {
            Some(processor) => vec!["taskset".to_owned(), "-c".to_owned(), processor.to_string()],
            None => vec![],
        }
    }
}

/// The processors that this process may run on.
pub fn allowed_processors(world: &World) -> Result<Vec<u32>, Fault> {
    let status =
        read_special(world, Path::new("/proc/self/status")).map_err(|error| failed("/proc/self/status", &error))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(numbers(line.unwrap_or_default()))
}

/// `0-2,5` is 0, 1, 2 and 5.
fn numbers(list: &str) -> Vec<u32> {
    let one = |part: &str| {
        let (from, until) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<u32>().ok()?..=until.trim().parse().ok()?)
    };
    list.split(',').filter_map(one).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn a_list_of_processors_is_read() {
        assert_eq!(numbers("\t0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!((numbers("7"), numbers("")), (vec![7], vec![]));
    }
}
