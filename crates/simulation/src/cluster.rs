//! Nodes that start, end and start again: each a gateway, an object server with one drive, and accounts and
//! containers that are played.
//!
//! Always holds: everything that a process of a node has started ends with it; what it had on its drive and safe
//! is there for the next process.

use crate::bugs::{Bug, Bugged, Hopeful, Trusting};
use crate::clock::{SimClock, SimTasks};
use crate::config::{ClusterConfig, RECLAIM_AGE};
use crate::dice::Dice;
use crate::disk::{MOUNTS, SimFiles, WriteOrder};
use crate::drive_watch;
use crate::executor::{Executor, OUTSIDE, TaskOwner, TurnProgress};
use crate::history::Violation;
use crate::net::{Net, NodeLink};
use crate::node::{NodeProcess, OwnService, SimDevices, SimNode, SwitchedOn};
use crate::pool::{Census, SimPools, WatchedDrives};
use crate::sent_times::{NotedWrites, SentTimes};
use crate::sockets::{SimNetwork, Sockets};
use crate::topology::{ACCOUNTS, DRIVE, LISTINGS, OBJECTS, POLICIES, Topology, address};
use crate::trace::Trace;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use listing_engine::Kind;
use listing_server::{ListingServer, ListingServerOptions};
use object_server::{ObjectServer, ObjectServerOptions};
use parking_lot::Mutex;
use peer::http_server::Shutdown;
use peer::message::ServerKind;
use peer::{Peers, Service};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{Policies, Policy, PolicyIndex};
use world::{Clock, World};

/// Starts what goes on in the background of a node whose process has just begun.
pub(crate) type Background = fn(&SimCluster, usize);

/// All nodes.
pub struct SimCluster {
    /// Tasks and time.
    pub executor: Executor,
    /// Chance.
    pub dice: Dice,
    /// What happens.
    pub trace: Trace,
    /// The links between nodes.
    pub net: Net,
    pub(crate) sockets: Sockets,
    /// Where everything belongs.
    pub topology: Arc<Topology>,
    /// The nodes.
    pub nodes: Vec<SimNode>,
    /// The times that gateways gave to writes.
    pub sent: SentTimes,
    /// What pools have seen.
    pub census: Arc<Mutex<Census>>,
    /// Replicators run from the start of each process.
    pub replicates: bool,
    pub(crate) config: ClusterConfig,
    background: Background,
    processes: u64,
    turns: u64,
    /// All processes end at the next change of an object, with their power or without.
    pub(crate) ends_at_change: Option<bool>,
    /// A bit of what a drive holds has flipped.
    pub(crate) bit_flipped: bool,
}

/// More turns than any run of this size takes.
const TURNS: u64 = 3_000_000;

impl SimCluster {
    /// Nodes that are not up yet, with empty drives.
    pub(crate) fn new(
        topology: &Topology,
        dice: Dice,
        trace: Trace,
        config: ClusterConfig,
        background: Background,
    ) -> Self {
        let executor = Executor::new(dice.clone());
        let net = Net::new(executor.clone(), dice.clone(), trace.clone());
        let node = |number: usize| {
            let clock = SimClock::new(executor.clone());
            let order = if dice.chance(50) {
                WriteOrder::Log
            } else {
                WriteOrder::Any
            };
            let files = SimFiles::new(clock.clone(), dice.clone(), trace.clone(), number, &[(DRIVE, order)]);
            files.name_all(dice.chance(25) || config.bug == Some(Bug::KeepsTemporaries));
            config.bug.iter().for_each(|bug| bug.plant(&files));
            SimNode {
                clock,
                files,
                containers: Arc::default(),
                process: None,
                switched_on: SwitchedOn::default(),
            }
        };
        let nodes = (0..topology.nodes).map(node).collect();
        Self {
            executor,
            dice,
            trace,
            sockets: Sockets::new(net.clone()),
            net,
            topology: Arc::new(topology.unshared()),
            nodes,
            sent: SentTimes::default(),
            census: Arc::default(),
            replicates: true,
            config,
            background,
            processes: OUTSIDE.0,
            turns: 0,
            ends_at_change: None,
            bit_flipped: false,
        }
    }

    /// Starts a node that is not up.
    pub fn boot(&mut self, number: usize) -> io::Result<()> {
        self.processes += 1;
        let home = TaskOwner(self.processes);
        let watched = self.watched();
        let world = self.world(home, number, watched.clone());
        let source = SimDevices {
            world: world.clone(),
            checks: self.config.bug != Some(Bug::SkipsChecksums),
            marks: self.config.marks,
            reclaim_age: self.reclaim_age(),
            watched: watched.clone(),
        };
        let options = ObjectServerOptions {
            threads_per_disk: self.config.threads,
            queue_per_disk: self.config.queue,
            log_requests: false,
            ..ObjectServerOptions::new(self.topology.hash.clone(), Arc::new(self.policies()))
        };
        let server = ObjectServer::new(world.clone(), options, Arc::new(source))?;
        let objects = self.bugged(ServerKind::Object, server.clone(), (number, home, &world));
        let listings = self.listings(number, home, &world)?;
        let peers = Arc::new(self.peers(number, &world, &objects, &listings));
        server.set_peers(peers.clone());
        if let Some(informing) = &listings.informing {
            informing.set_peers(peers.clone());
        }
        let doors = Shutdown::default();
        let reached = match self.config.over_bytes {
            true => self.noted(objects.clone()),
            false => objects.clone(),
        };
        let services = [reached, listings.containers.clone(), listings.accounts.clone()];
        for (port, service) in [OBJECTS, LISTINGS, ACCOUNTS].into_iter().zip(services) {
            self.serve((number, port), (home, &world), service, &doors)?;
        }
        let mut options = GatewayOptions {
            account_autocreate: self.config.whole,
            ..GatewayOptions::default()
        };
        if self.config.waits {
            (options.conn_timeout, options.silence_timeout) = (options.node_timeout, Duration::ZERO);
        }
        let shared = Shared::new(world.clone(), options, self.rings(), peers.clone(), None);
        self.nodes[number].process = Some(NodeProcess {
            home,
            gateway: Arc::new(Gateway::new(shared, vec![])),
            world: world.clone(),
            peers,
            objects,
            listings: listings.containers,
            accounts: listings.accounts,
            doors,
        });
        let node = &mut self.nodes[number];
        node.switched_on.begin(node.clock.now());
        self.trace.note(format!("n{number}: begins"));
        if self.replicates {
            (self.background)(self, number);
            if let Some(watched) = &watched {
                drive_watch::begin(&self.executor, (number, home, &world), watched, self.census.clone());
            }
        }
        Ok(())
    }

    /// Ends a node's process, with its power or without.
    pub fn end(&mut self, number: usize, with_power: bool) {
        let Some(process) = self.nodes[number].process.take() else {
            return;
        };
        self.trace.note(format!(
            "n{number}: ends{}",
            if with_power { " with its power" } else { "" }
        ));
        self.net.close(number, with_power);
        self.sockets.close(number);
        self.executor.end(process.home);
        drop(process);
        self.net.closed();
        match with_power {
            true => {
                self.nodes[number].switched_on.end();
                self.nodes[number].files.restore_power();
            }
            false => self.nodes[number].files.close_all(),
        }
    }

    /// One turn of one task, or on to `until`; nodes whose power has gone meanwhile begin again.
    pub(crate) fn turn(&mut self, until: Duration) -> Result<TurnProgress, Violation> {
        let published = self.ends_at_change.map(|_| self.published());
        let progress = self.executor.step(until);
        if progress == TurnProgress::Reached {
            return Ok(progress);
        }
        self.turns += 1;
        if self.turns > TURNS {
            return Err(Violation("it never comes to rest".into()));
        }
        if published.is_some_and(|published| published < self.published())
            && let Some(with_power) = self.ends_at_change.take()
        {
            self.end_all(with_power)?;
        }
        for number in 0..self.nodes.len() {
            if self.nodes[number].files.is_dark() {
                self.end(number, true);
                self.begin(number)?;
            }
        }
        Ok(progress)
    }

    /// Starts a node unless it is up.
    pub(crate) fn begin(&mut self, number: usize) -> Result<(), Violation> {
        if self.nodes[number].process.is_some() {
            return Ok(());
        }
        let booted = self.boot(number);
        booted.map_err(|error| Violation(format!("node {number} does not start: {error}")))
    }

    /// Takes everything apart: tasks and services hold one another.
    pub fn dismantle(&mut self) {
        for number in 0..self.nodes.len() {
            self.end(number, false);
        }
        self.executor.end(OUTSIDE);
    }

    /// The drives of a process that begins, where drives are watched.
    fn watched(&self) -> Option<WatchedDrives> {
        self.config.watches_drives.then(|| WatchedDrives {
            drives: Arc::default(),
            trials_wait: self.config.bug == Some(Bug::TrialsWaitForJobs),
        })
    }

    fn world(&self, home: TaskOwner, number: usize, watched: Option<WatchedDrives>) -> World {
        let node = &self.nodes[number];
        let executor = self.executor.clone();
        World {
            clock: Arc::new(node.clock.clone()),
            random: Arc::new(self.dice.clone()),
            network: Arc::new(SimNetwork {
                sockets: self.sockets.clone(),
                node: number,
            }),
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
                unbounded: self.config.bug == Some(Bug::QueuesWithoutBound),
                watched,
            }),
        }
    }

    /// How long tombstones and deleted rows are kept.
    pub(crate) fn reclaim_age(&self) -> Duration {
        match (self.config.bug, self.config.whole) {
            (Some(Bug::ReclaimsEarly), _) => Duration::ZERO,
            (_, true) => RECLAIM_AGE,
            (_, false) => Duration::from_secs(604_800),
        }
    }

    /// One policy, or two.
    pub(crate) fn policies(&self) -> Policies {
        let both = || {
            let policies = (0..)
                .zip(POLICIES)
                .map(|(index, name)| Policy::replication(index, name));
            Policies::new(policies.collect(), Some(PolicyIndex::LEGACY))
        };
        match self.config.whole {
            // Two names of letters, and one of them the default: always policies.
            true => both().unwrap_or_default(),
            false => Policies::default(),
        }
    }

    fn process(&self, node: usize) -> Result<&NodeProcess, Violation> {
        let process = self.nodes[node].process.as_ref();
        process.ok_or_else(|| Violation(format!("node {node} is dead although all is well")))
    }

    /// The object server of a node that is up.
    pub(crate) fn objects_of(&self, node: usize) -> Result<Arc<dyn Service>, Violation> {
        Ok(self.process(node)?.objects.clone())
    }

    /// The container server of a node that is up.
    pub(crate) fn containers_of(&self, node: usize) -> Result<Arc<dyn Service>, Violation> {
        Ok(self.process(node)?.listings.clone())
    }

    /// The account server of a node that is up.
    pub(crate) fn accounts_of(&self, node: usize) -> Result<Arc<dyn Service>, Violation> {
        Ok(self.process(node)?.accounts.clone())
    }

    /// The account and container servers of a node, real or played.
    fn listings(&self, number: usize, home: TaskOwner, world: &World) -> io::Result<Listings> {
        let node = &self.nodes[number];
        let played: Arc<dyn Service> = node.containers.clone();
        if self.config.databases.is_none() {
            return Ok(Listings {
                containers: played.clone(),
                accounts: played,
                informing: None,
            });
        }
        let options = ListingServerOptions {
            threads_per_disk: self.config.threads,
            queue_per_disk: self.config.queue,
            log_requests: false,
            ..ListingServerOptions::new(MOUNTS, self.topology.hash.clone(), Arc::new(self.policies()))
        };
        let containers = ListingServer::new(world.clone(), Kind::Container, options.clone())?;
        let accounts = match self.config.whole {
            true => self.bugged(
                ServerKind::Account,
                ListingServer::new(world.clone(), Kind::Account, options)?,
                (number, home, world),
            ),
            false => played,
        };
        Ok(Listings {
            containers: self.bugged(ServerKind::Container, containers.clone(), (number, home, world)),
            accounts,
            informing: self.config.whole.then_some(containers),
        })
    }

    /// The service with the planted bug, if there is one.
    fn bugged(
        &self,
        kind: ServerKind,
        inner: Arc<dyn Service>,
        (number, home, world): (usize, TaskOwner, &World),
    ) -> Arc<dyn Service> {
        match self.config.bug {
            None => inner,
            Some(bug) => Arc::new(Bugged {
                inner,
                bug,
                kind,
                world: world.clone(),
                executor: self.executor.clone(),
                home,
                files: self.nodes[number].files.clone(),
            }),
        }
    }

    fn peers(&self, number: usize, world: &World, objects: &Arc<dyn Service>, listings: &Listings) -> Peers {
        let mut peers = Peers::new(world.clone());
        for other in 0..self.nodes.len() {
            let ip = address(other);
            if other == number {
                let own = |service: &Arc<dyn Service>| Arc::new(OwnService(Arc::downgrade(service)));
                peers.register(&ip, OBJECTS, self.noted(own(objects)));
                peers.register(&ip, LISTINGS, own(&listings.containers));
                peers.register(&ip, ACCOUNTS, own(&listings.accounts));
                continue;
            }
            if self.config.over_bytes {
                continue;
            }
            for port in [OBJECTS, LISTINGS, ACCOUNTS] {
                let link = NodeLink::new(self.net.clone(), number, other, port);
                let link: Arc<dyn Service> = match self.config.bug {
                    Some(Bug::TrustsShortAnswers) => Arc::new(Trusting(link)),
                    Some(Bug::TrustsLostRows) => Arc::new(Hopeful {
                        link,
                        dice: self.dice.clone(),
                    }),
                    _ => Arc::new(link),
                };
                let link = if port == OBJECTS { self.noted(link) } else { link };
                peers.register_way(&ip, port, link);
            }
        }
        peers
    }

    fn noted(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(NotedWrites {
            inner,
            sent: self.sent.clone(),
            bug: self.config.bug,
        })
    }

    fn rings(&self) -> Rings {
        let account = match self.config.whole {
            true => &self.topology.accounts,
            false => &self.topology.listings,
        };
        Rings {
            account: account.clone(),
            container: self.topology.listings.clone(),
            objects: self.topology.object_rings(self.config.whole),
            policies: self.policies(),
            hash: self.topology.hash.clone(),
            nodes: gateway::nodes::NodeTables::default(),
        }
    }
}

/// The account and container servers of a node.
struct Listings {
    containers: Arc<dyn Service>,
    accounts: Arc<dyn Service>,
    /// The container server that informs account servers.
    informing: Option<Arc<ListingServer>>,
}
