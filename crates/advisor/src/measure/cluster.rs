//! A cluster of processes of this program: start, limits and end.
//!
//! A gateway is one process; a storage node is an account, a container and an object server. All of them have one
//! thread for requests, and listen on 127.0.0.1; where a plan limits networks, on addresses of their own. A balancer is
//! haproxy.
//! Always holds: no process of it outlives it; limits hold only when they are set, so that objects are made quickly.
//!
//! | question | file |
//! |---|---|
//! | how a node is started and ended | `cluster/nodes.rs` |
//! | configuration and rings | `cluster/configuration.rs` |

mod configuration;
mod nodes;

use super::limits::{ControlGroups, LimitedDriveWork};
use super::network::{self, ClusterNetwork};
use super::plan::MeasurePlan;
use super::scratch::{ScratchFolder, make_folders};
use crate::model::limits::Resource;
use crate::text_files::write_text;
use configuration::{ring, swift_conf};
pub use nodes::allowed_processors;
use nodes::{HOST, ROLES, RunningNode, StartedBy};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// How long a server may take until it listens, and how often it is looked at.
const STARTS: (u32, Duration) = (600, Duration::from_millis(50));
/// What lets others go on.
const MOMENT: Duration = Duration::from_millis(1);
/// The account that is loaded.
pub const ACCOUNT: &str = "AUTH_measure";

/// A cluster that runs.
pub struct LimitedCluster {
    world: World,
    gateways: Vec<RunningNode>,
    storage: Vec<RunningNode>,
    balancer: Option<RunningNode>,
    network: Option<ClusterNetwork>,
    is_limited: bool,
}

/// Seconds of processor time until now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessorUse {
    /// Of all gateways.
    pub gateways: f64,
    /// Of all storage nodes.
    pub storage: f64,
}

/// What nodes have used until now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeUse {
    /// Processor time.
    pub processors: ProcessorUse,
    /// Seconds at their limits of whatever else is limited, one for each limit.
    pub devices: Vec<(Resource, f64)>,
    /// Of all limited drives together.
    pub drives: LimitedDriveWork,
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

/// Ports that no other measurement takes while this lives, even if its servers do not listen yet.
pub struct OwnPorts {
    _names: Vec<UnixListener>,
}

/// Takes the ports of a cluster; an error when another program listens on one, or another measurement has it.
///
/// A name that is no file, of the same network as the port, is held for each: it goes with this process.
pub async fn take_ports(world: &World, plan: &MeasurePlan, (gateways, nodes): (u32, u32)) -> Result<OwnPorts, Fault> {
    let mut names = vec![];
    for number in 0..gateways + 3 * nodes {
        // The plan was checked to have room for them.
        let port = plan.first_port + number as u16;
        let name = SocketAddr::from_abstract_name(format!("martlet-advise-{port}"));
        let taken = name.and_then(|name| UnixListener::bind_addr(&name));
        let is_listening = world.network.connect(HOST.to_owned(), port).await.is_ok();
        match taken {
            Ok(taken) if !is_listening => names.push(taken),
            _ => {
                return Err(Fault::caller(format!(
                    "port {port} of {HOST} is taken by another program: set first_port in the plan so that {} ports from \
                     there on are free",
                    gateways + 3 * nodes
                )));
            }
        }
    }
    Ok(OwnPorts { _names: names })
}

impl LimitedCluster {
    /// Writes a cluster into a folder and starts it. Limits do not hold yet; without groups nothing is ever limited.
    /// Between nodes, whose drives may take a second each, it lets go, so that it can be interrupted.
    pub async fn start(
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
        let has_networks = groups.is_some() && plan.has_networks();
        let started = StartedBy {
            world,
            plan,
            program,
            folder: &folder.path,
            groups,
            has_networks,
            processors: allowed_processors(world)?,
        };
        for (role, name) in ROLES.iter().enumerate() {
            let place = |node| (started.host(node), port(plan, gateways, Some((node, role)), 0));
            ring(world, plan, &etc, name, place, nodes)?;
        }
        let mut cluster = Self {
            world: world.clone(),
            gateways: vec![],
            storage: vec![],
            balancer: None,
            network: has_networks.then(ClusterNetwork::make).transpose()?,
            is_limited: false,
        };
        for node in 0..nodes {
            world.clock.sleep(MOMENT).await;
            let ports = [0, 1, 2].map(|role| port(plan, gateways, Some((node, role)), 0));
            let node = started.storage_node(&etc, node, ports, &mut cluster.network)?;
            cluster.storage.push(node);
        }
        for gateway in 0..gateways {
            world.clock.sleep(MOMENT).await;
            let port = port(plan, gateways, None, gateway);
            let node = started.gateway(&etc, (gateway, nodes), port, &mut cluster.network)?;
            cluster.gateways.push(node);
        }
        if let Some(throughput) = plan.balancer.filter(|_| has_networks) {
            let places = cluster
                .gateways
                .iter()
                .flat_map(RunningNode::places)
                .collect::<Vec<_>>();
            // The plan was checked to have room for it.
            let port = plan.first_port + (gateways + 3 * nodes) as u16;
            let number = nodes + gateways;
            cluster.balancer = Some(started.balancer(number, port, throughput, &places, &mut cluster.network)?);
        }
        Ok(cluster)
    }

    fn all_nodes(&self) -> impl Iterator<Item = &RunningNode> {
        self.gateways.iter().chain(&self.storage).chain(&self.balancer)
    }

    /// Completes once every server takes connections.
    pub async fn wait_until_it_listens(&mut self) -> Result<(), Fault> {
        let world = self.world.clone();
        let nodes = self
            .gateways
            .iter_mut()
            .chain(&mut self.storage)
            .chain(&mut self.balancer);
        for node in nodes {
            for server in &mut node.servers {
                for attempt in 0.. {
                    server.check(&world, &node.host)?;
                    let is_listening = match node.own.as_ref().filter(|own| own.has_network()) {
                        Some(own) => own.listens(&world, server.port),
                        None => world.network.connect(HOST.to_owned(), server.port).await.is_ok(),
                    };
                    if is_listening {
                        break;
                    }
                    if attempt == STARTS.0 {
                        return Err(server.ended(&world, &node.host, "does not listen"));
                    }
                    world.clock.sleep(STARTS.1).await;
                }
            }
        }
        self.check()
    }

    /// An error when a server has ended.
    pub fn check(&mut self) -> Result<(), Fault> {
        let world = self.world.clone();
        let mut nodes = self
            .gateways
            .iter_mut()
            .chain(&mut self.storage)
            .chain(&mut self.balancer);
        nodes.try_for_each(|node| {
            let host = &node.host;
            node.servers
                .iter_mut()
                .try_for_each(|server| server.check(&world, host))
        })
    }

    /// Limits all nodes, or lifts their limits.
    pub fn limit(&mut self, holds: bool) -> Result<(), Fault> {
        if self.is_limited == holds {
            return Ok(());
        }
        self.is_limited = holds;
        for node in self.all_nodes() {
            let limited = node
                .group
                .as_ref()
                .map(|group| group.limit(holds.then_some(node.processors)));
            limited.transpose().map_err(|error| failed("control group", &error))?;
            if let (Some(own), Some(limit)) = (&node.own, node.network) {
                network::limit_sending(own, limit, holds)?;
            }
        }
        self.network.as_ref().map_or(Ok(()), |network| network.limit(holds))
    }

    /// What all nodes have used; nothing without control groups.
    pub fn used(&self) -> Option<NodeUse> {
        let sum =
            |nodes: &[RunningNode]| -> Option<f64> { nodes.iter().map(|node| node.group.as_ref()?.used().ok()).sum() };
        let processors = ProcessorUse {
            gateways: sum(&self.gateways)?,
            storage: sum(&self.storage)?,
        };
        let (mut devices, mut drives) = (vec![], LimitedDriveWork::default());
        let mut add = |resource, all: &[f64]| devices.extend(all.iter().map(|seconds| (resource, *seconds)));
        for node in &self.storage {
            let (seconds, work) = node.group.as_ref()?.drives_used().ok()?;
            add(Resource::Drives, &seconds);
            drives = drives.with(work, |one, other| one + other);
        }
        for (resource, node) in self
            .gateways
            .iter()
            .map(|node| (Resource::GatewayNetwork, node))
            .chain(self.storage.iter().map(|node| (Resource::StorageNetwork, node)))
            .chain(self.balancer.iter().map(|node| (Resource::Balancer, node)))
        {
            if let (Some(own), Some(limit)) = (&node.own, node.network) {
                add(resource, &network::used(&self.world, own, limit));
            }
        }
        Some(NodeUse {
            processors,
            devices,
            drives,
        })
    }

    /// Where the load finds the account: the balancer, or one address for each gateway.
    pub fn endpoints(&self) -> Vec<String> {
        match &self.balancer {
            Some(balancer) => addresses(balancer),
            None => self.gateways.iter().flat_map(addresses).collect(),
        }
    }

    /// Where the first gateway has the account.
    pub fn first_gateway(&self) -> Vec<String> {
        self.gateways.iter().take(1).flat_map(addresses).collect()
    }

    /// Words before those of a program that is to reach these addresses.
    pub fn inside(&self) -> Vec<String> {
        self.network.as_ref().map_or(vec![], ClusterNetwork::inside)
    }
}

/// The account at a node's servers.
fn addresses(node: &RunningNode) -> Vec<String> {
    let places = node.places().into_iter();
    places
        .map(|(host, port)| format!("http://{host}:{port}/v1/{ACCOUNT}"))
        .collect()
}
