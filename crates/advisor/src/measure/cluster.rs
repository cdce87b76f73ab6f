//! A cluster of processes of this program: configuration, rings, start and end.
//!
//! A gateway is one process; a storage node is an account, a container and an object server. All of them have one
//! thread for requests, and listen on 127.0.0.1.
//! Always holds: a process joins its control group before it becomes a server, so that no time of it is missed; it ends
//! with this command even if that is killed (`setpriv --pdeathsig`), and with [`LimitedCluster`] in any case.

use super::limits::{ControlGroups, NodeGroup, read_special};
use super::plan::MeasurePlan;
use super::scratch::{ScratchFolder, make_folders};
use crate::text_files::{read_text, write_text};
use ring_builder::{CommandStatus, Invocation, Terminal};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// Only this host is spoken to.
const HOST: &str = "127.0.0.1";
/// Joins control groups, then becomes the program: a log, a count, that many files, the words of the program.
const JOIN: &str = "exec >\"$1\" 2>&1; n=$2; shift 2; while [ \"$n\" -gt 0 ]; do echo $$ >\"$1\" || exit 71; shift; \
                    n=$((n-1)); done; exec \"$@\"";
/// How long a server may take until it listens, and how often it is looked at.
const STARTS: (u32, Duration) = (600, Duration::from_millis(50));
/// Bytes of a log that are shown when its server ends.
const SHOWN: usize = 600;
/// The account that is loaded.
pub const ACCOUNT: &str = "AUTH_measure";
/// Servers of a storage node.
const ROLES: [&str; 3] = ["object", "container", "account"];
/// What requests pass: the filters of a usual gateway, without authentication.
const PIPELINE: &str = "catch_errors gatekeeper healthcheck proxy-logging listing_formats container-quotas \
                        account-quotas slo dlo versioned_writes symlink proxy-logging proxy-server";
/// Filters of it and what they are called in `use`.
const FILTERS: [(&str, &str); 11] = [
    ("catch_errors", "catch_errors"),
    ("gatekeeper", "gatekeeper"),
    ("healthcheck", "healthcheck"),
    ("proxy-logging", "proxy_logging"),
    ("listing_formats", "listing_formats"),
    ("container-quotas", "container_quotas"),
    ("account-quotas", "account_quotas"),
    ("slo", "slo"),
    ("dlo", "dlo"),
    ("versioned_writes", "versioned_writes"),
    ("symlink", "symlink"),
];

/// One server.
struct RunningServer {
    name: String,
    port: u16,
    log: PathBuf,
    child: Child,
}

/// A node: its servers and their group.
struct RunningNode {
    servers: Vec<RunningServer>,
    group: Option<NodeGroup>,
    /// Processors, when limits hold.
    processors: f64,
}

/// A cluster that runs.
pub struct LimitedCluster {
    world: World,
    gateways: Vec<RunningNode>,
    storage: Vec<RunningNode>,
}

/// Seconds of processor time until now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessorUse {
    /// Of all gateways.
    pub gateways: f64,
    /// Of all storage nodes.
    pub storage: f64,
}

fn failed(what: &str, error: &io::Error) -> Fault {
    Fault::caller(format!("{what}: {error}"))
}

/// Ports: gateways first, then three for each storage node.
fn port(plan: &MeasurePlan, gateways: u32, server: Option<(u32, usize)>, gateway: u32) -> u16 {
    let number = server.map_or(gateway, |(node, role)| gateways + 3 * node + role as u32);
    // The plan was checked to have room for them.
    plan.first_port + number as u16
}

/// An error when another program listens where a server would.
pub async fn check_ports(world: &World, plan: &MeasurePlan, (gateways, nodes): (u32, u32)) -> Result<(), Fault> {
    for number in 0..gateways + 3 * nodes {
        // The plan was checked to have room for them.
        let port = plan.first_port + number as u16;
        if world.network.connect(HOST.to_owned(), port).await.is_ok() {
            return Err(Fault::caller(format!(
                "port {port} of {HOST} is taken by another program: set first_port in the plan so that {} ports from there \
                 on are free",
                gateways + 3 * nodes
            )));
        }
    }
    Ok(())
}

impl LimitedCluster {
    /// Writes a cluster into a folder and starts it, without limits.
    pub fn start(
        world: &World,
        plan: &MeasurePlan,
        program: &Path,
        folder: &ScratchFolder,
        groups: Option<&ControlGroups>,
        (gateways, nodes): (u32, u32),
    ) -> Result<Self, Fault> {
        let etc = folder.path.join("etc");
        make_folders(world, &etc)?;
        let secrets = (world.random.next_u64(), world.random.next_u64());
        write_text(world, &etc.join("swift.conf"), &swift_conf(secrets))?;
        for (role, name) in ROLES.iter().enumerate() {
            ring(
                world,
                plan,
                &etc,
                name,
                |node| port(plan, gateways, Some((node, role)), 0),
                nodes,
            )?;
        }
        let mut cluster = Self {
            world: world.clone(),
            gateways: vec![],
            storage: vec![],
        };
        let started = StartedBy {
            world,
            program,
            folder: &folder.path,
            groups,
            processors: allowed_processors(world)?,
        };
        for node in 0..nodes {
            let mut servers = vec![];
            for (role, name) in ROLES.iter().enumerate() {
                let port = port(plan, gateways, Some((node, role)), 0);
                let srv = folder.path.join(format!("srv{node}"));
                for drive in 0..plan.drives {
                    make_folders(world, &srv.join(format!("d{drive}")))?;
                }
                let text = storage_conf(&etc, &srv, name, port);
                servers.push((format!("{name}-server"), format!("{name}-{node}"), port, text));
            }
            let node = started.node((&format!("storage-{node}"), node), servers, plan.storage.processors)?;
            cluster.storage.push(node);
        }
        for gateway in 0..gateways {
            let port = port(plan, gateways, None, gateway);
            let server = (
                "proxy-server".to_owned(),
                format!("proxy-{gateway}"),
                port,
                proxy_conf(&etc, port),
            );
            let node = started.node(
                (&format!("gateway-{gateway}"), nodes + gateway),
                vec![server],
                plan.gateway.processors,
            )?;
            cluster.gateways.push(node);
        }
        Ok(cluster)
    }

    fn nodes(&mut self) -> impl Iterator<Item = &mut RunningNode> {
        self.gateways.iter_mut().chain(&mut self.storage)
    }

    /// Completes once every server takes connections.
    pub async fn wait_until_it_listens(&mut self) -> Result<(), Fault> {
        let world = self.world.clone();
        for server in self.nodes().flat_map(|node| &mut node.servers) {
            for attempt in 0.. {
                server.check(&world)?;
                if world.network.connect(HOST.to_owned(), server.port).await.is_ok() {
                    break;
                }
                if attempt == STARTS.0 {
                    let Fault { what, .. } = server.ended(&world, "does not listen");
                    return Err(Fault::caller(what));
                }
                world.clock.sleep(STARTS.1).await;
            }
        }
        self.check()
    }

    /// An error when a server has ended.
    pub fn check(&mut self) -> Result<(), Fault> {
        let world = self.world.clone();
        let mut servers = self.nodes().flat_map(|node| &mut node.servers);
        servers.try_for_each(|server| server.check(&world))
    }

    /// Limits all nodes, or lifts their limits.
    pub fn limit(&self, holds: bool) -> Result<(), Fault> {
        for node in self.gateways.iter().chain(&self.storage) {
            let limited = node
                .group
                .as_ref()
                .map(|group| group.limit(holds.then_some(node.processors)));
            limited.transpose().map_err(|error| failed("control group", &error))?;
        }
        Ok(())
    }

    /// Processor time of all nodes; nothing without control groups.
    pub fn used(&self) -> Option<ProcessorUse> {
        let sum =
            |nodes: &[RunningNode]| -> Option<f64> { nodes.iter().map(|node| node.group.as_ref()?.used().ok()).sum() };
        Some(ProcessorUse {
            gateways: sum(&self.gateways)?,
            storage: sum(&self.storage)?,
        })
    }

    /// Where clients find the account: one address for each gateway.
    pub fn endpoints(&self) -> Vec<String> {
        let servers = self.gateways.iter().flat_map(|node| &node.servers);
        servers
            .map(|server| format!("http://{HOST}:{}/v1/{ACCOUNT}", server.port))
            .collect()
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
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
    fn check(&mut self, world: &World) -> Result<(), Fault> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.ended(world, "has ended")),
        }
    }

    fn ended(&self, world: &World, what: &str) -> Fault {
        let log = read_text(world, &self.log).unwrap_or_default();
        let from = log.len().saturating_sub(SHOWN);
        let shown = log.get(from..).unwrap_or(&log).trim();
        Fault::caller(format!("{} on {HOST}:{} {what}: {shown}", self.name, self.port))
    }
}

/// What all servers are started by.
struct StartedBy<'a> {
    world: &'a World,
    program: &'a Path,
    folder: &'a Path,
    groups: Option<&'a ControlGroups>,
    /// Numbers of the machine's processors.
    processors: Vec<u32>,
}

impl StartedBy<'_> {
    /// Servers by command, name, port and configuration.
    fn node(
        &self,
        (name, number): (&str, u32),
        servers: Vec<(String, String, u16, String)>,
        processors: f64,
    ) -> Result<RunningNode, Fault> {
        let group = self.groups.map(|groups| groups.node(name)).transpose();
        let group = group.map_err(|error| failed("control group", &error))?;
        let mut node = RunningNode {
            servers: vec![],
            group,
            processors,
        };
        for (command, name, port, text) in servers {
            let conf = self.folder.join("etc").join(format!("{name}.conf"));
            write_text(self.world, &conf, &text)?;
            let doors = node.group.as_ref().map_or(vec![], NodeGroup::doors);
            let log = self.folder.join(format!("{name}.log"));
            write_text(self.world, &log, "")?;
            let child = Command::new("sh")
                .args(["-c", JOIN, "sh"])
                .arg(&log)
                .arg(doors.len().to_string())
                .args(doors)
                .args(["setpriv", "--pdeathsig", "KILL"])
                .args(self.pinned(number, processors))
                .arg(self.program)
                .arg(&command)
                .arg(&conf)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| failed(&command, &error))?;
            node.servers.push(RunningServer { name, port, log, child });
        }
        Ok(node)
    }
}

impl StartedBy<'_> {
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
fn allowed_processors(world: &World) -> Result<Vec<u32>, Fault> {
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

fn swift_conf((prefix, suffix): (u64, u64)) -> String {
    format!(
        "[swift-hash]\nswift_hash_path_prefix = {prefix:016x}\nswift_hash_path_suffix = {suffix:016x}\n\n\
         [storage-policy:0]\nname = measured\ndefault = yes\n"
    )
}

/// One thread, since a processor is shared in time and not in number; the user who runs this.
fn common(etc: &Path, port: u16) -> String {
    format!(
        "[DEFAULT]\nbind_ip = {HOST}\nbind_port = {port}\nworkers = 1\nuser = root\nswift_dir = {}\nlog_level = WARNING\n",
        etc.display()
    )
}

fn storage_conf(etc: &Path, srv: &Path, role: &str, port: u16) -> String {
    format!(
        "{}devices = {}\nmount_check = false\nrecon_cache_path = {}\n\n[pipeline:main]\npipeline = {role}-server\n\n\
         [app:{role}-server]\nuse = egg:swift#{role}\n",
        common(etc, port),
        srv.display(),
        srv.with_extension("recon").display()
    )
}

fn proxy_conf(etc: &Path, port: u16) -> String {
    let mut text = format!(
        "{}\n[pipeline:main]\npipeline = {PIPELINE}\n\n[app:proxy-server]\nuse = egg:swift#proxy\n\
         account_autocreate = true\n",
        common(etc, port)
    );
    for (name, egg) in FILTERS {
        text += &format!("\n[filter:{name}]\nuse = egg:swift#{egg}\n");
    }
    text
}

/// Makes a ring by the operator's commands. Each storage node is a zone.
fn ring(
    world: &World,
    plan: &MeasurePlan,
    etc: &Path,
    name: &str,
    port: impl Fn(u32) -> u16,
    nodes: u32,
) -> Result<(), Fault> {
    let builder = etc.join(format!("{name}.builder"));
    let run = |words: &[String]| -> Result<(), Fault> {
        let words: Vec<String> = std::iter::once(builder.display().to_string())
            .chain(words.iter().cloned())
            .collect();
        let (mut out, mut err, mut input) = (vec![], vec![], io::empty());
        let mut terminal = Terminal {
            out: &mut out,
            err: &mut err,
            input: &mut input,
        };
        match Invocation::new("ring-builder", &words).run(world, &mut terminal) {
            CommandStatus::Error => Err(Fault::caller(format!(
                "ring-builder {}: {}{}",
                words.join(" "),
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(&err)
            ))),
            _ => Ok(()),
        }
    };
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    run(&words(format!("create 8 {} 1", plan.replicas)))?;
    for node in 0..nodes {
        for drive in 0..plan.drives {
            let device = format!("r1z{}-{HOST}:{}/d{drive}", node + 1, port(node));
            run(&words(format!("add {device} 100")))?;
        }
    }
    run(&words("rebalance --seed 1".to_owned()))
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
