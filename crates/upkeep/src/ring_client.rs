//! To whom a thing belongs: a ring, and the way to those it names.
//!
//! Upkeep speaks to the replication addresses of a ring, as OpenStack Swift's daemons do.

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method};
use peer::{Body, PeerError, Peers, RawCall, Response, Target, Timeouts};
use placement::{Device, Ring};
use std::sync::Arc;
use vocabulary::{EntityPath, HashPrefix, Partition};

/// A ring that may be exchanged, the services it names, and how long to wait for them.
#[derive(Clone)]
pub struct RingClient {
    /// The ring of those who are to be told.
    pub ring: Arc<ArcSwap<Ring>>,
    /// The cluster's path secrets.
    pub hash: HashPrefix,
    /// The way to them.
    pub peers: Arc<Peers>,
    /// How long to wait for each.
    pub timeouts: Timeouts,
}

/// What a device of the ring answered.
pub(crate) struct Answer {
    /// The device's id in the ring.
    pub(crate) id: u32,
    /// For log lines: `ip:port/device`.
    pub(crate) place: String,
    pub(crate) answer: Result<Response, PeerError>,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        self.answer
            .as_ref()
            .is_ok_and(|response| response.status().is_success())
    }

    /// Why it is no success, for the log.
    pub(crate) fn why(&self) -> String {
        match &self.answer {
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        }
    }
}

impl RingClient {
    /// Sends one request to each of `devices` at the same time.
    pub(crate) async fn tell(
        &self,
        devices: &[&Device],
        partition: Partition,
        method: &Method,
        path: EntityPath,
        headers: &HeaderMap,
    ) -> Vec<Answer> {
        self.tell_with(devices, partition, method, path, headers, Bytes::new())
            .await
    }

    /// [`RingClient::tell`] with a body.
    pub(crate) async fn tell_with(
        &self,
        devices: &[&Device],
        partition: Partition,
        method: &Method,
        path: EntityPath,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Vec<Answer> {
        let path = Arc::new(path);
        let calls = devices.iter().map(|device| {
            let target = target(device, partition, &path);
            let call = RawCall::new(method.clone(), target, headers.clone()).with_body(Body::whole(body.clone()));
            self.answer(device, call)
        });
        join_all(calls).await
    }

    /// Sends a DELETE to each of `devices` at the same time, with the headers for its number among them.
    pub(crate) async fn delete_at_each(
        &self,
        devices: &[&Device],
        partition: Partition,
        path: EntityPath,
        headers: Vec<HeaderMap>,
    ) -> Vec<Answer> {
        let path = Arc::new(path);
        let calls = devices.iter().zip(headers).map(|(device, headers)| {
            let call = RawCall::new(Method::DELETE, target(device, partition, &path), headers);
            self.answer(device, call)
        });
        join_all(calls).await
    }

    async fn answer(&self, device: &Device, call: RawCall) -> Answer {
        let (ip, port) = (&device.replication_ip, device.replication_port);
        Answer {
            id: device.id,
            place: format!("{ip}:{port}/{}", device.device),
            answer: self.peers.send(ip, port, call, self.timeouts).await,
        }
    }
}

fn target(device: &Device, partition: Partition, path: &Arc<EntityPath>) -> Target {
    Target {
        device: device.device.as_str().into(),
        partition,
        path: path.clone(),
    }
}

/// `object-updater 4711`, as OpenStack's daemons call themselves.
pub(crate) fn user_agent(name: &str) -> HeaderValue {
    let text = format!("{name} {}", std::process::id());
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("martlet"))
}
