//! One interface to every storage service, two ways to it.
//!
//! Services of this process are registered with the address they have in the rings; a call for
//! such an address is a function call. Everything else goes over HTTP.
//! Always holds: the caller cannot tell the two apart but by speed.

use crate::cluster_tls::ClusterClient;
use crate::connect::{PeerError, Timeouts};
use crate::http_client::HttpClient;
use crate::{Call, Response, Service};
use std::collections::HashMap;
use std::sync::Arc;
use world::World;

/// All storage services, near and far.
pub struct Peers {
    world: World,
    known: HashMap<(String, u16), Known>,
    remote: HttpClient,
}

/// A service that needs no connection.
struct Known {
    service: Arc<dyn Service>,
    is_local: bool,
}

impl Peers {
    /// None in this process yet.
    pub fn new(world: World) -> Self {
        Self {
            remote: HttpClient::new(world.clone()),
            world,
            known: HashMap::new(),
        }
    }

    /// The same, with connections that begin as the cluster's TLS asks for.
    pub fn secured(world: World, cluster: Option<ClusterClient>) -> Self {
        let remote = HttpClient::new(world.clone()).secured(cluster);
        Self {
            remote,
            ..Self::new(world)
        }
    }

    /// Where they are.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// `service`, in this process, is what the rings know as `ip:port`.
    pub fn register(&mut self, ip: &str, port: u16, service: Arc<dyn Service>) {
        self.know(ip, port, service, true);
    }

    /// What the rings know as `ip:port` is another process, and `way` leads there instead of HTTP: where networks are
    /// simulated.
    pub fn register_way(&mut self, ip: &str, port: u16, way: Arc<dyn Service>) {
        self.know(ip, port, way, false);
    }

    fn know(&mut self, ip: &str, port: u16, service: Arc<dyn Service>, is_local: bool) {
        self.known.insert((ip.to_owned(), port), Known { service, is_local });
    }

    /// Sends `call` to the service at `ip:port`; answers with the response's head while its body streams.
    pub async fn send(
        &self,
        ip: &str,
        port: u16,
        call: impl Into<Call>,
        timeouts: Timeouts,
    ) -> Result<Response, PeerError> {
        let call = call.into();
        match self.known(ip, port) {
            Some(known) => self
                .world
                .timeout(timeouts.response, known.service.call(call))
                .await
                .map_err(|_| PeerError::ResponseTimeout),
            None => Box::pin(self.remote.send(ip, port, call, timeouts)).await,
        }
    }

    /// Whether `ip:port` is in this process.
    pub fn is_local(&self, ip: &str, port: u16) -> bool {
        self.known(ip, port).is_some_and(|known| known.is_local)
    }

    fn known(&self, ip: &str, port: u16) -> Option<&Known> {
        // One process has a handful of services: a scan beats building a key.
        self.known
            .iter()
            .find(|((host, p), _)| *p == port && host == ip)
            .map(|(_, known)| known)
    }
}
