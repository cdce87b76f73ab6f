//! Nodes that live, die and live again: each a gateway, an object server with one drive, and accounts and
//! containers that are played.
//!
//! Always holds: everything a life of a node has started ends with it; what it had on its drive and safe
//! is there in the next.

use crate::bugs::{Bug, Bugged, Trusting};
use crate::clock::{SimClock, SimTasks};
use crate::containers::Containers;
use crate::dice::Dice;
use crate::disk::{MOUNTS, Order, SimFiles};
use crate::executor::{Executor, Home};
use crate::net::{Link, Net};
use crate::pool::{Census, SimPools};
use crate::replication;
use crate::trace::Trace;
use arc_swap::ArcSwap;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use parking_lot::Mutex;
use peer::{Peers, Service};
use placement::{Device, Ring, RingBuilder};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{HashPrefix, Policies, PolicyIndex};
use world::{BoxFuture, Datagrams, Listener, Network, Stream, World};

/// Ports of object servers, and of account and container servers.
pub(crate) const OBJECTS: u16 = 6200;
const LISTINGS: u16 = 6201;
/// Every node's only drive.
pub const DRIVE: &str = "d";
const REPLICAS: f64 = 3.0;

/// Where everything belongs, for a number of nodes; the same in every run.
pub struct Atlas {
    /// How many nodes.
    pub nodes: usize,
    /// Of objects.
    pub objects: Arc<ArcSwap<Ring>>,
    /// Of objects, after an operator has changed the weights.
    pub changed: Arc<Ring>,
    /// Of accounts and containers.
    pub listings: Arc<ArcSwap<Ring>>,
    /// The cluster's secrets.
    pub hash: HashPrefix,
}

impl Atlas {
    /// For so many nodes; an error when no ring can be made for them.
    pub fn new(nodes: usize) -> Result<Self, String> {
        let hash = HashPrefix::new("before", "after").ok_or("no secrets")?;
        Ok(Self {
            nodes,
            objects: Arc::new(ArcSwap::new(ring(nodes, OBJECTS, |_| 1.0)?)),
            changed: ring(nodes, OBJECTS, |node| 1.0 + (node % 3) as f64)?,
            listings: Arc::new(ArcSwap::new(ring(nodes, LISTINGS, |_| 1.0)?)),
            hash,
        })
    }

    /// The same, with a ring of its own that may be changed.
    fn unshared(&self) -> Self {
        Self {
            nodes: self.nodes,
            objects: Arc::new(ArcSwap::new(self.objects.load_full())),
            changed: self.changed.clone(),
            listings: self.listings.clone(),
            hash: self.hash.clone(),
        }
    }
}

fn ring(nodes: usize, port: u16, weight: impl Fn(usize) -> f64) -> Result<Arc<Ring>, String> {
    let mut builder = RingBuilder::new(3, REPLICAS, 1).map_err(|error| error.to_string())?;
    for node in 0..nodes {
        let device = Device {
            region: 1,
            zone: node as u32,
            weight: weight(node),
            ip: address(node),
            port,
            replication_ip: address(node),
            replication_port: port,
            device: DRIVE.into(),
            ..Device::default()
        };
        builder.add(device).map_err(|error| error.to_string())?;
    }
    builder.rebalance(1, 0).map_err(|error| error.to_string())?;
    let ring = builder.to_ring().map_err(|error| error.to_string())?;
    Ok(Arc::new(Ring::new(ring)))
}

/// How others reach a node.
pub(crate) fn address(node: usize) -> String {
    format!("10.0.0.{}", node + 1)
}

/// One node.
pub struct Node {
    /// Its clock; the next life has the same.
    pub clock: SimClock,
    /// Its drive.
    pub files: SimFiles,
    /// Its accounts and containers.
    pub containers: Arc<Containers>,
    /// What runs of it, if it lives.
    pub life: Option<Life>,
}

/// One life of a node.
pub struct Life {
    /// Whose tasks they are.
    pub home: Home,
    /// The outside as this life sees it.
    pub world: World,
    /// For clients.
    pub gateway: Arc<Gateway>,
    /// For everything else.
    pub peers: Arc<Peers>,
    /// Its own objects.
    pub objects: Arc<dyn Service>,
}

/// What nodes of a run are like.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Jobs a drive does at a time, and how many may wait.
    pub threads: usize,
    /// See `threads`.
    pub queue: usize,
    /// Whether a body that was verified is believed for a while: then no bit may be flipped, which is
    /// what that gives up.
    pub marks: bool,
    /// The node that data may be lost on.
    pub unlucky: usize,
    /// About how much time lies between two passes of a replicator; none before the end without.
    pub replicates_every: Option<Duration>,
    /// A planted bug.
    pub bug: Option<Bug>,
}

/// All nodes.
pub struct Cluster {
    /// Tasks and time.
    pub executor: Executor,
    /// Chance.
    pub dice: Dice,
    /// What happens.
    pub trace: Trace,
    /// The ways between nodes.
    pub net: Net,
    /// Where everything belongs.
    pub atlas: Arc<Atlas>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What pools have seen.
    pub census: Arc<Mutex<Census>>,
    /// Replicators are at work from the beginning of each life.
    pub replicates: bool,
    pub(crate) manner: Manner,
    lives: u64,
}

/// The outside, for what belongs to no node.
const OUTSIDE: Home = Home(0);

impl Cluster {
    /// Nodes that do not live yet, with empty drives.
    pub fn new(atlas: &Atlas, dice: Dice, trace: Trace, manner: Manner) -> Self {
        let executor = Executor::new(dice.clone());
        let net = Net::new(executor.clone(), dice.clone(), trace.clone());
        let node = |number: usize| {
            let clock = SimClock::new(executor.clone());
            let order = if dice.chance(50) { Order::Log } else { Order::Any };
            let files = SimFiles::new(clock.clone(), dice.clone(), trace.clone(), number, &[(DRIVE, order)]);
            files.name_all(dice.chance(25) || manner.bug == Some(Bug::KeepsTemporaries));
            match manner.bug {
                Some(Bug::SyncsNothing) => files.lie(true),
                Some(Bug::KeepsTemporaries) => files.keep_temporaries(),
                Some(Bug::ForgetsHints) => files.forget_hints(),
                _ => {}
            }
            Node {
                clock,
                files,
                containers: Arc::default(),
                life: None,
            }
        };
        let nodes = (0..atlas.nodes).map(node).collect();
        Self {
            executor,
            dice,
            trace,
            net,
            atlas: Arc::new(atlas.unshared()),
            nodes,
            census: Arc::default(),
            replicates: true,
            manner,
            lives: OUTSIDE.0,
        }
    }

    /// Begins a life of a node that has none.
    pub fn boot(&mut self, number: usize) -> io::Result<()> {
        self.lives += 1;
        let (home, node) = (Home(self.lives), &self.nodes[number]);
        let world = self.world(home, node);
        let source = Drives {
            world: world.clone(),
            checks: self.manner.bug != Some(Bug::SkipsChecksums),
            marks: self.manner.marks,
        };
        let options = ObjectServerOptions {
            threads_per_disk: self.manner.threads,
            queue_per_disk: self.manner.queue,
            log_requests: false,
            ..ObjectServerOptions::new(self.atlas.hash.clone(), Arc::new(Policies::default()))
        };
        let server = ObjectServer::new(world.clone(), options, Arc::new(source))?;
        let objects: Arc<dyn Service> = match self.manner.bug {
            None => server.clone(),
            Some(bug) => Arc::new(Bugged {
                inner: server.clone(),
                bug,
                world: world.clone(),
                executor: self.executor.clone(),
                home,
                files: self.nodes[number].files.clone(),
            }),
        };
        let peers = Arc::new(self.peers(number, &world, &objects));
        server.set_peers(peers.clone());
        self.net.open(number, OBJECTS, home, objects.clone());
        self.net
            .open(number, LISTINGS, home, self.nodes[number].containers.clone());
        let shared = Shared::new(
            world.clone(),
            GatewayOptions::default(),
            self.rings(),
            peers.clone(),
            None,
        );
        self.nodes[number].life = Some(Life {
            home,
            gateway: Arc::new(Gateway::new(shared, vec![])),
            world,
            peers,
            objects,
        });
        self.trace.note(format!("n{number}: begins"));
        if self.replicates {
            replication::replicate_now_and_then(self, number);
        }
        Ok(())
    }

    /// Ends a node's life, with its power or without.
    pub fn end(&mut self, number: usize, with_power: bool) {
        let Some(life) = self.nodes[number].life.take() else {
            return;
        };
        self.trace.note(format!(
            "n{number}: ends{}",
            if with_power { " with its power" } else { "" }
        ));
        self.net.close(number);
        self.executor.end(life.home);
        drop(life);
        match with_power {
            true => self.nodes[number].files.restore_power(),
            false => self.nodes[number].files.close_all(),
        }
    }

    /// Takes everything apart: tasks and services hold one another.
    pub fn dismantle(&mut self) {
        for number in 0..self.nodes.len() {
            self.end(number, false);
        }
        self.executor.end(OUTSIDE);
    }

    fn world(&self, home: Home, node: &Node) -> World {
        let executor = self.executor.clone();
        World {
            clock: Arc::new(node.clock.clone()),
            random: Arc::new(self.dice.clone()),
            network: Arc::new(NoNetwork),
            tasks: Arc::new(SimTasks {
                executor: executor.clone(),
                home,
            }),
            files: Arc::new(node.files.clone()),
            pools: Arc::new(SimPools {
                executor,
                home,
                files: node.files.clone(),
                dice: self.dice.clone(),
                census: self.census.clone(),
                unbounded: self.manner.bug == Some(Bug::QueuesWithoutBound),
            }),
        }
    }

    fn peers(&self, number: usize, world: &World, objects: &Arc<dyn Service>) -> Peers {
        let mut peers = Peers::new(world.clone());
        for other in 0..self.nodes.len() {
            let ip = address(other);
            if other == number {
                peers.register(&ip, OBJECTS, objects.clone());
                peers.register(&ip, LISTINGS, self.nodes[number].containers.clone());
                continue;
            }
            for port in [OBJECTS, LISTINGS] {
                let link = Link::new(self.net.clone(), number, other, port);
                let link: Arc<dyn Service> = match self.manner.bug {
                    Some(Bug::TrustsShortAnswers) => Arc::new(Trusting(link)),
                    _ => Arc::new(link),
                };
                peers.register(&ip, port, link);
            }
        }
        peers
    }

    fn rings(&self) -> Rings {
        Rings {
            account: self.atlas.listings.clone(),
            container: self.atlas.listings.clone(),
            objects: BTreeMap::from([(PolicyIndex(0), self.atlas.objects.clone())]),
            policies: Policies::default(),
            hash: self.atlas.hash.clone(),
        }
    }
}

/// Opens a node's drive.
struct Drives {
    world: World,
    checks: bool,
    marks: bool,
}

impl DeviceSource for Drives {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let mut config = FilesConfig::new(name, Path::new(MOUNTS).join(name));
        if !self.checks {
            config.etag_validate_percent = 0.0;
        }
        if !self.marks {
            config.verified_marks = 0;
        }
        // Short, for the simulation's hours to see marks end.
        config.verified_for = Duration::from_secs(5);
        Ok(Arc::new(FilesEngine::start(config, self.world.clone())))
    }
}

/// Nothing goes over sockets here.
struct NoNetwork;

impl Network for NoNetwork {
    fn listen(&self, _host: &str, _port: u16, _backlog: u32) -> io::Result<Box<dyn Listener>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn datagrams(&self, _host: &str, _port: u16) -> io::Result<Box<dyn Datagrams>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn local_datagrams(&self, _path: &Path) -> io::Result<Box<dyn Datagrams>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&self, _host: String, _port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}
