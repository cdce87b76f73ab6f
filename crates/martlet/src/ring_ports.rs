//! `servers_per_port`: an object server listens on every port that the rings give devices of this machine.
//!
//! OpenStack runs so many processes for each port, so that a hung disk holds up only its own. Here a disk has threads
//! of its own whatever port it is asked on, so one process serves all ports, whatever the number.
//! Always holds: a port that a new ring brings is listened on within [`LOOK_EVERY`]; one that is still another's is
//! tried again until it is free; a port is open without a break when one worker follows another
//! ([`passed_on`](crate::passed_on)), also where that one cannot read a ring: it serves the ports of the worker before
//! until it can. Only the first worker refuses to start beside a ring that cannot be read.
//! Deliberately absent: `bind_port`, which is the overseer's; letting go of ports that rings no longer name.

use crate::addresses;
use crate::failure::CommandFailure;
use crate::passed_on::Passing;
use crate::ring_file::RingFile;
use peer::http_server::serve;
use peer::{HttpService, ServerOptions};
use placement::Ring;
use settings::server::ServerCommon;
use settings::{ObjectServerSettings, SwiftConf};
use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use upkeep::LocalServer;
use world::network::RealNetwork;
use world::{Listener, World};

/// Between two looks at the rings.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Between two tries to listen.
const AGAIN: Duration = Duration::from_millis(50);

/// The ports that devices of this machine have, besides `bind_port`.
pub struct RingPorts {
    rings: Vec<PolicyRing>,
    here: LocalServer,
    common: ServerCommon,
    passing: Passing,
}

/// The ring of a policy.
struct PolicyRing {
    file: RingFile,
    /// `None` until it could be read.
    ring: Option<Ring>,
}

impl PolicyRing {
    fn look_again(&mut self) {
        match self.file.read_again() {
            Some(Ok(ring)) => self.ring = Some(ring),
            Some(Err(failure)) => tracing::warn!("{failure}; the ports known before stay in force"),
            None => {}
        }
    }
}

impl RingPorts {
    /// As configured; `None` when the server has only `bind_port`.
    pub fn of(
        swift: &SwiftConf,
        common: &ServerCommon,
        settings: &ObjectServerSettings,
    ) -> Result<Option<Self>, CommandFailure> {
        let mut passing = Passing::from_environment();
        if settings.servers_per_port == 0 {
            // A passed-on socket without an acceptor would stay open, and its connections would wait in vain.
            passing.received();
            return Ok(None);
        }
        let host = match settings.ring_ip.as_str() {
            "" => &common.bind_ip,
            ring_ip => ring_ip,
        };
        let here = LocalServer {
            addresses: addresses::of(host),
            port: 0,
        };
        let mut rings = Vec::new();
        for policy in swift.policies.iter() {
            let path = common.swift_dir.join(format!("{}.ring.gz", policy.index.ring_name()));
            let mut file = RingFile::new(path);
            let ring = match file.read() {
                Ok(ring) => Some(ring),
                Err(failure) if passing.is_successor() => {
                    tracing::error!("{failure}; the ports of the worker before are served until it can be read");
                    None
                }
                Err(failure) => return Err(failure),
            };
            rings.push(PolicyRing { file, ring });
        }
        Ok(Some(Self {
            rings,
            here,
            common: common.clone(),
            passing,
        }))
    }

    /// Those that are wanted now, as host names in the rings are looked up. While a ring could not be read, what was
    /// listened on is.
    fn ports(&self, inherited: &BTreeSet<u16>) -> BTreeSet<u16> {
        let mut ports = BTreeSet::new();
        for known in &self.rings {
            match &known.ring {
                Some(ring) => {
                    let own = ring.devices().filter(|device| self.here.serves(device));
                    ports.extend(own.map(|device| device.port));
                }
                None => ports.extend(inherited),
            }
        }
        ports.remove(&self.common.bind_port);
        ports
    }

    /// On a socket that the worker before had, if it did.
    fn listen(&self, port: u16, received: Option<TcpListener>) -> io::Result<Box<dyn Listener>> {
        let is_ours = |socket: &TcpListener| {
            let address = socket.local_addr();
            address.is_ok_and(|address| address.ip().to_string() == self.common.bind_ip)
        };
        let socket = match received.filter(is_ours) {
            Some(socket) => socket,
            None => RealNetwork.bind(&self.common.bind_ip, port, self.common.backlog)?,
        };
        self.passing.pass_on(port, &socket);
        RealNetwork.accept_on(socket)
    }

    /// Serves on them until `shutdown`.
    pub async fn serve(
        mut self,
        world: World,
        service: Arc<dyn HttpService>,
        options: ServerOptions,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let (mut open, mut refused) = (BTreeSet::new(), BTreeSet::new());
        // Not before this worker serves: one that does not start leaves them to the next.
        let mut received = self.passing.received();
        let inherited = received.keys().copied().collect();
        let mut looked = world.clock.elapsed();
        loop {
            let wanting: Vec<u16> = self.ports(&inherited).difference(&open).copied().collect();
            for port in &wanting {
                let ip = &self.common.bind_ip;
                match self.listen(*port, received.remove(port)) {
                    Ok(listener) => {
                        tracing::info!("serving on {ip}:{port}");
                        open.insert(*port);
                        let (service, options) = (service.clone(), options.clone());
                        world.spawn(serve(world.clone(), listener, service, options, shutdown.clone()));
                    }
                    Err(error) if refused.insert(*port) => {
                        tracing::warn!("{ip}:{port}: {error}; tried again until it is free");
                    }
                    Err(_) => {}
                }
            }
            // Connections to sockets that are wanted no more would wait in vain.
            received.clear();
            let pause = if wanting.iter().all(|port| open.contains(port)) {
                LOOK_EVERY
            } else {
                AGAIN
            };
            tokio::select! {
                () = world.clock.sleep(pause) => {}
                _ = shutdown.wait_for(|begun| *begun) => return,
            }
            let now = world.clock.elapsed();
            if now.saturating_sub(looked) >= LOOK_EVERY {
                looked = now;
                self.rings.iter_mut().for_each(PolicyRing::look_again);
            }
        }
    }
}
