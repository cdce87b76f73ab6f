//! `servers_per_port`: an object server listens on every port that the rings give devices of this machine.
//!
//! OpenStack runs so many processes for each port, so that a hung disk holds up only its own. Here a disk has threads
//! of its own whatever port it is asked on, so one process serves all ports, whatever the number.
//! Always holds: a port that a new ring brings is listened on within [`LOOK_EVERY`]; one that is still another's (a
//! worker that leaves) is tried again until it is free.
//! Deliberately absent: `bind_port`, which is the overseer's; letting go of ports that rings no longer name.

use crate::addresses;
use crate::failure::Failure;
use crate::rings::RingFiles;
use gateway::Rings;
use peer::http_server::serve;
use peer::{HttpService, ServerOptions};
use settings::server::ServerCommon;
use settings::{ObjectServerSettings, SwiftConf};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use upkeep::Here;
use world::World;

/// Between two looks at the rings.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Between two tries to listen.
const AGAIN: Duration = Duration::from_millis(50);

/// The ports that devices of this machine have, besides `bind_port`.
pub struct RingPorts {
    rings: Rings,
    here: Here,
    common: ServerCommon,
}

impl RingPorts {
    /// As configured; `None` when the server has only `bind_port`.
    pub fn of(
        world: &World,
        swift: &SwiftConf,
        common: &ServerCommon,
        settings: &ObjectServerSettings,
    ) -> Result<Option<Self>, Failure> {
        if settings.servers_per_port == 0 {
            return Ok(None);
        }
        let (rings, files) = RingFiles::load(&common.swift_dir, &swift.policies, &swift.hash)?;
        world.spawn(files.watch(world.clone()));
        let host = match settings.ring_ip.as_str() {
            "" => &common.bind_ip,
            ring_ip => ring_ip,
        };
        let here = Here {
            addresses: addresses::of(host),
            port: 0,
        };
        Ok(Some(Self {
            rings,
            here,
            common: common.clone(),
        }))
    }

    fn ports(&self) -> BTreeSet<u16> {
        let mut ports = BTreeSet::new();
        for ring in self.rings.objects.values() {
            let ring = ring.load();
            let own = ring.devices().filter(|device| self.here.serves(device));
            ports.extend(own.map(|device| device.port));
        }
        ports.remove(&self.common.bind_port);
        ports
    }

    /// Serves on them until `shutdown`.
    pub async fn serve(
        self,
        world: World,
        service: Arc<dyn HttpService>,
        options: ServerOptions,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let (mut open, mut refused) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let wanting: Vec<u16> = self.ports().difference(&open).copied().collect();
            for port in &wanting {
                let (ip, backlog) = (&self.common.bind_ip, self.common.backlog);
                match world.network.listen(ip, *port, backlog) {
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
            let pause = if wanting.iter().all(|port| open.contains(port)) {
                LOOK_EVERY
            } else {
                AGAIN
            };
            tokio::select! {
                () = world.clock.sleep(pause) => {}
                _ = shutdown.wait_for(|begun| *begun) => return,
            }
        }
    }
}
