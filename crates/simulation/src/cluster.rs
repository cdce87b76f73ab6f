//! Nodes that live, die and live again: each a gateway, an object server with one drive, and accounts and
//! containers that are played.
//!
//! Always holds: everything a life of a node has started ends with it; what it had on its drive and safe
//! is there in the next.

use crate::bugs::{Bug, Bugged, Hopeful, Trusting};
use crate::clock::{SimClock, SimTasks};
use crate::containers::Containers;
use crate::databases::{self, Databases};
use crate::dice::Dice;
use crate::disk::{Fault, MOUNTS, Order, SimFiles};
use crate::executor::{Executor, Home, Progress};
use crate::history::Violation;
use crate::net::{Link, Net};
use crate::plan::Misfortune;
use crate::pool::{Census, SimPools};
use crate::replication;
use crate::trace::Trace;
use arc_swap::ArcSwap;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use listing_engine::Kind;
use listing_server::{ListingServer, ListingServerOptions};
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
pub(crate) const LISTINGS: u16 = 6201;
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
    /// Of accounts and containers, after an operator has changed the weights.
    pub changed_listings: Arc<Ring>,
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
            changed_listings: ring(nodes, LISTINGS, |node| 1.0 + (node % 3) as f64)?,
            hash,
        })
    }

    /// The same, with a ring of its own that may be changed.
    fn unshared(&self) -> Self {
        Self {
            nodes: self.nodes,
            objects: Arc::new(ArcSwap::new(self.objects.load_full())),
            changed: self.changed.clone(),
            listings: Arc::new(ArcSwap::new(self.listings.load_full())),
            changed_listings: self.changed_listings.clone(),
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
    /// Its accounts and containers, where they are played.
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
    /// Its own accounts and containers.
    pub listings: Arc<dyn Service>,
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
    /// Containers are databases; without they are played.
    pub databases: Option<Databases>,
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
    turns: u64,
}

/// More turns than any run of this size takes.
const TURNS: u64 = 3_000_000;

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
                Some(Bug::SyncsNothing | Bug::CommitsNothing) => files.lie(true),
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
            turns: 0,
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
        let listings = self.listings(number, home, &world)?;
        let peers = Arc::new(self.peers(number, &world, &objects, &listings));
        server.set_peers(peers.clone());
        self.net.open(number, OBJECTS, home, objects.clone());
        self.net.open(number, LISTINGS, home, listings.clone());
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
            listings,
        });
        self.trace.note(format!("n{number}: begins"));
        if self.replicates {
            match self.manner.databases {
                None => replication::replicate_now_and_then(self, number),
                Some(_) => databases::replicate_now_and_then(self, number),
            }
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

    /// One turn of one task, or on to `until`; nodes whose power has gone meanwhile begin again.
    pub(crate) fn turn(&mut self, until: Duration) -> Result<Progress, Violation> {
        let progress = self.executor.step(until);
        if progress == Progress::Reached {
            return Ok(progress);
        }
        self.turns += 1;
        if self.turns > TURNS {
            return Err(Violation("it never comes to rest".into()));
        }
        for number in 0..self.nodes.len() {
            if self.nodes[number].files.is_dark() {
                self.end(number, true);
                self.begin(number)?;
            }
        }
        Ok(progress)
    }

    /// Begins a life of a node unless it has one.
    pub(crate) fn begin(&mut self, number: usize) -> Result<(), Violation> {
        if self.nodes[number].life.is_some() {
            return Ok(());
        }
        let booted = self.boot(number);
        booted.map_err(|error| Violation(format!("node {number} does not start: {error}")))
    }

    /// Lets something go wrong, or right again.
    pub(crate) fn befall(&mut self, misfortune: Misfortune) -> Result<(), Violation> {
        self.trace.note(format!("{misfortune:?}"));
        match misfortune {
            Misfortune::PowerLoss(number) => self.end(number, true),
            Misfortune::PowerLossAt(number, steps) => self.nodes[number].files.lose_power_after(steps),
            Misfortune::Kill(number) => self.end(number, false),
            Misfortune::Boot(number) => self.begin(number)?,
            Misfortune::Blackout => {
                (0..self.nodes.len()).for_each(|number| self.end(number, true));
                for number in 0..self.nodes.len() {
                    self.begin(number)?;
                }
            }
            Misfortune::Cut(from, to, cut) => self.net.cut(from, to, cut),
            Misfortune::Loss(percent) => self.net.lose(percent),
            Misfortune::Repeats(percent) => self.net.repeat(percent),
            Misfortune::Breaks(percent) => self.net.break_off(percent),
            Misfortune::Drive(number, fault) => {
                self.nodes[number].files.inflict(DRIVE, fault);
            }
            Misfortune::NewRing => {
                let Atlas {
                    objects,
                    changed,
                    listings,
                    changed_listings,
                    ..
                } = &*self.atlas;
                match self.manner.databases {
                    None => objects.store(changed.clone()),
                    Some(_) => listings.store(changed_listings.clone()),
                }
            }
            Misfortune::Skew(number, micros) => self.nodes[number].clock.skew(micros),
        }
        Ok(())
    }

    /// All is well again, after everything began anew once more.
    pub(crate) fn heal(&mut self) -> Result<(), Violation> {
        self.net.heal();
        self.replicates = false;
        let with_power = self.dice.chance(70);
        self.trace.note("all is well".into());
        let well = [
            Fault::Failing(0),
            Fault::FailingSyncs(0),
            Fault::Full(false),
            Fault::Slow(2),
            Fault::Pulled(false),
        ];
        for number in 0..self.nodes.len() {
            self.end(number, with_power);
            for fault in well {
                self.nodes[number].files.inflict(DRIVE, fault);
            }
        }
        for number in 0..self.nodes.len() {
            self.nodes[number].files.close_all();
            self.begin(number)?;
        }
        Ok(())
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

    /// The account and container server of a node, real or played.
    fn listings(&self, number: usize, home: Home, world: &World) -> io::Result<Arc<dyn Service>> {
        if self.manner.databases.is_none() {
            return Ok(self.nodes[number].containers.clone());
        }
        let options = ListingServerOptions {
            threads_per_disk: self.manner.threads,
            queue_per_disk: self.manner.queue,
            log_requests: false,
            ..ListingServerOptions::new(MOUNTS, self.atlas.hash.clone(), Arc::new(Policies::default()))
        };
        let inner = ListingServer::new(world.clone(), Kind::Container, options)?;
        Ok(match self.manner.bug {
            None => inner,
            Some(bug) => Arc::new(Bugged {
                inner,
                bug,
                world: world.clone(),
                executor: self.executor.clone(),
                home,
                files: self.nodes[number].files.clone(),
            }),
        })
    }

    fn peers(&self, number: usize, world: &World, objects: &Arc<dyn Service>, listings: &Arc<dyn Service>) -> Peers {
        let mut peers = Peers::new(world.clone());
        for other in 0..self.nodes.len() {
            let ip = address(other);
            if other == number {
                peers.register(&ip, OBJECTS, objects.clone());
                peers.register(&ip, LISTINGS, listings.clone());
                continue;
            }
            for port in [OBJECTS, LISTINGS] {
                let link = Link::new(self.net.clone(), number, other, port);
                let link: Arc<dyn Service> = match self.manner.bug {
                    Some(Bug::TrustsShortAnswers) => Arc::new(Trusting(link)),
                    Some(Bug::TrustsLostRows) => Arc::new(Hopeful {
                        way: link,
                        dice: self.dice.clone(),
                    }),
                    _ => Arc::new(link),
                };
                peers.register_way(&ip, port, link);
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
