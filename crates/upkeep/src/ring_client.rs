//! Messages to the servers that a ring names for a partition.
//!
//! Upkeep sends to the replication addresses of a ring, as OpenStack Swift's daemons do.

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::join_all;
use http::header::DATE;
use http::{HeaderName, HeaderValue, StatusCode};
use peer::message::{Message, RequestContext};
use peer::{Body, Call, PeerError, Peers, Response, Target, Timeouts};
use placement::{Device, Ring};
use std::sync::Arc;
use vocabulary::{EntityPath, HashPrefix, Partition, Timestamp, calendar};

/// A ring that may be exchanged, the services it names, and how long to wait for them.
#[derive(Clone)]
pub struct RingClient {
    /// The ring of the servers that messages go to.
    pub ring: Arc<ArcSwap<Ring>>,
    /// The cluster's path secrets.
    pub hash: HashPrefix,
    /// The connections to them.
    pub peers: Arc<Peers>,
    /// How long to wait for each.
    pub timeouts: Timeouts,
}

/// What a device of the ring responded.
pub(crate) struct NodeResponse {
    /// The device's id in the ring.
    pub(crate) id: u32,
    /// For log lines: `ip:port/device`.
    pub(crate) place: String,
    pub(crate) response: Result<Response, PeerError>,
}

impl NodeResponse {
    /// Its status, if there was a response.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.response.as_ref().ok().map(Response::status)
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status().is_some_and(|status| status.is_success())
    }

    /// The second since 1970 by its clock when it answered; none for a server of this process.
    pub(crate) fn date(&self) -> Option<u64> {
        let date = self.response.as_ref().ok()?.headers().get(DATE)?;
        calendar::parse_http(date.to_str().ok()?)
    }

    /// A time among its headers.
    pub(crate) fn timestamp(&self, name: &HeaderName) -> Option<Timestamp> {
        let value = self.response.as_ref().ok()?.headers().get(name)?;
        value.to_str().ok()?.parse().ok()
    }

    /// Why it is no success, for the log.
    pub(crate) fn why(&self) -> String {
        match &self.response {
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        }
    }
}

impl RingClient {
    /// The partition of an account, or of a container.
    pub(crate) fn partition_of(&self, ring: &Ring, owner: &EntityPath) -> Partition {
        let hash = match &owner.container {
            Some(container) => self.hash.container(&owner.account, container),
            None => self.hash.account(&owner.account),
        };
        ring.partition_of(&hash.0)
    }

    /// Sends a message about `path` to all primaries of `owner`, the account or container that has it, at the same
    /// time.
    pub(crate) async fn send_to_primaries<M: Into<Message>>(
        &self,
        context: &RequestContext,
        (owner, path): (&EntityPath, EntityPath),
        body: Bytes,
        message: impl Fn(Target) -> M,
    ) -> Vec<NodeResponse> {
        let ring = self.ring.load_full();
        let partition = self.partition_of(&ring, owner);
        let message = |_, target| message(target);
        self.send(context, &ring.primaries(partition), (partition, path), body, message)
            .await
    }

    /// Sends a message to each of `devices` at the same time, made from its number among them and its target.
    pub(crate) async fn send<M: Into<Message>>(
        &self,
        context: &RequestContext,
        devices: &[&Device],
        (partition, path): (Partition, EntityPath),
        body: Bytes,
        message: impl Fn(usize, Target) -> M,
    ) -> Vec<NodeResponse> {
        let path = Arc::new(path);
        let calls = devices.iter().enumerate().map(|(number, device)| {
            let message = message(number, target(device, partition, &path));
            let call = Call::new(context.clone(), message).with_body(Body::whole(body.clone()));
            self.send_one(device, call)
        });
        join_all(calls).await
    }

    /// Sends one call to the replication address of `device`.
    pub(crate) async fn send_one(&self, device: &Device, call: Call) -> NodeResponse {
        let (ip, port) = (&device.replication_ip, device.replication_port);
        NodeResponse {
            id: device.id,
            place: place(device),
            response: self.peers.send(ip, port, call, self.timeouts).await,
        }
    }
}

/// `ip:port/device` of the replication address, for the log.
pub(crate) fn place(device: &Device) -> String {
    let (ip, port) = (&device.replication_ip, device.replication_port);
    format!("{ip}:{port}/{}", device.device)
}

/// A thing on a device.
pub(crate) fn target(device: &Device, partition: Partition, path: &Arc<EntityPath>) -> Target {
    Target {
        device: device.device.as_str().into(),
        partition,
        path: path.clone(),
    }
}

/// What each message of a daemon carries.
pub(crate) fn context_of(daemon: &str) -> RequestContext {
    RequestContext {
        user_agent: Some(user_agent(daemon)),
        ..RequestContext::default()
    }
}

/// `object-updater 4711`, as OpenStack's daemons call themselves.
pub(crate) fn user_agent(daemon: &str) -> HeaderValue {
    let text = format!("{daemon} {}", std::process::id());
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("martlet"))
}

/// The headers of a body that is JSON.
pub(crate) fn json_body() -> Arc<http::HeaderMap> {
    let json = HeaderValue::from_static("application/json");
    Arc::new([(http::header::CONTENT_TYPE, json)].into_iter().collect())
}
