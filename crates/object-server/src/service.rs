//! [`ObjectServer`]: one call in, one answer out, one line in the access log.

use crate::delete::delete;
use crate::deletes::deletes;
use crate::devices::{DeviceSource, Devices, Lane};
use crate::options::ObjectServerOptions;
use crate::post::post;
use crate::put::put;
use crate::read::read;
use crate::refusal::{Refusal, empty};
use crate::replicate::replicate;
use crate::request::{Request, X_POLICY_INDEX};
use crate::ssync::{Room, ssync};
use crate::updates::ListingUpdates;
use http::header::{ALLOW, CONTENT_LENGTH, SERVER};
use http::{HeaderValue, Method, StatusCode};
use peer::deletes::DELETES;
use peer::{Call, Peers, RawCall, Response, Service, Timeouts};
use std::sync::Arc;
use telemetry::StorageLine;
use world::World;

/// As OpenStack's. Who knows DELETES asks for it by trying.
const VERBS: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE, SSYNC");
const CLIENT_VERBS: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, POST, PUT");
const NAME: HeaderValue = HeaderValue::from_static(concat!("object-server/", env!("CARGO_PKG_VERSION")));

/// The objects of this node, behind [`Service`].
pub struct ObjectServer {
    shared: Arc<Shared>,
}

/// What all verbs use.
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) options: ObjectServerOptions,
    pub(crate) devices: Devices,
    pub(crate) updates: ListingUpdates,
    pub(crate) room: Room,
}

impl ObjectServer {
    /// A server for the devices of `source`; an error when the system has no threads left.
    pub fn new(
        world: World,
        options: ObjectServerOptions,
        source: Arc<dyn DeviceSource>,
    ) -> std::io::Result<Arc<Self>> {
        let timeouts = Timeouts {
            connect: options.conn_timeout,
            response: options.node_timeout,
        };
        let updates = ListingUpdates::new(
            world.clone(),
            timeouts,
            options.container_update_timeout,
            options.statsd.clone(),
        );
        let devices = Devices::new(world.clone(), source, options.threads_per_disk, options.queue_per_disk)?;
        let shared = Arc::new(Shared {
            world,
            room: Room::new(&options.replication),
            options,
            devices,
            updates,
        });
        Ok(Arc::new(Self { shared }))
    }

    /// Who to reach container servers through. Before this is called, and for servers that never get
    /// any, listing rows go to the pending records.
    pub fn set_peers(&self, peers: Arc<Peers>) {
        self.shared.updates.set_peers(peers);
    }

    async fn answer(&self, call: RawCall) -> Response {
        let verb = call.method.clone();
        let serves = self.shared.options.replication.serves;
        let answered = match verb.as_str() {
            "OPTIONS" => Ok(options(serves)),
            "GET" | "HEAD" | "PUT" | "POST" | "DELETE" => on_object(&self.shared, call, Lane::Requests).await,
            "REPLICATE" if serves => replicate(&self.shared, call).await,
            "SSYNC" if serves => ssync(&self.shared, call).await,
            DELETES if serves => deletes(&self.shared, call).await,
            _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
        };
        let mut response = answered.unwrap_or_else(Refusal::into_response);
        if verb == Method::HEAD {
            response = without_body(response);
        }
        response
    }
}

/// Answers a request for an object; also those that come by SSYNC.
pub(crate) async fn on_object(shared: &Arc<Shared>, call: RawCall, lane: Lane) -> Result<Response, Refusal> {
    let RawCall {
        method,
        address,
        headers,
        body,
        interim,
        ..
    } = call;
    let request = Request::new(method, address, headers, lane, &shared.options)?;
    match request.method.as_str() {
        "PUT" => put(shared, request, body, interim).await,
        "POST" => {
            let (shared, work) = (shared.clone(), shared.clone());
            shared.to_its_end(async move { post(&work, request).await }).await?
        }
        "DELETE" => {
            let (shared, work) = (shared.clone(), shared.clone());
            shared.to_its_end(async move { delete(&work, request).await }).await?
        }
        _ => read(shared, request).await,
    }
}

impl Shared {
    /// Runs `work` to its end even when the caller goes away meanwhile.
    pub(crate) async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (done, result) = tokio::sync::oneshot::channel();
        // Nobody listening any more is what this is for.
        self.world.spawn(async move { drop(done.send(work.await)) });
        result
            .await
            .map_err(|_| Refusal::Page(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

fn options(serves_replication: bool) -> Response {
    let mut response = empty(StatusCode::OK);
    let verbs = if serves_replication { VERBS } else { CLIENT_VERBS };
    response.headers_mut().insert(ALLOW, verbs);
    response.headers_mut().insert(SERVER, NAME);
    response
}

/// HEAD: the length stays, but not that of a standard page.
fn without_body(mut response: Response) -> Response {
    let is_page = |body: bytes::Bytes| body.starts_with(b"<html>");
    if response.body().as_whole().is_some_and(is_page) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response.map(|_| peer::Body::empty())
}

#[async_trait::async_trait]
impl Service for ObjectServer {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        if !self.logs(&call) {
            return self.answer(call).await;
        }
        let clock = &self.shared.world.clock;
        let start = clock.elapsed();
        let (method, headers) = (call.method.clone(), call.headers.clone());
        let path = call.address.url_path();
        let response = self.answer(call).await;
        let length = response.headers().get(CONTENT_LENGTH);
        let policy = headers.get(X_POLICY_INDEX);
        telemetry::log::storage(&StorageLine {
            remote: "",
            method: method.as_str(),
            path: &path,
            status: response.status().as_u16(),
            length: length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0),
            headers: &headers,
            info: "",
            took: clock.elapsed().saturating_sub(start),
            ended: clock.now().seconds(),
            policy: policy.and_then(|value| value.to_str().ok()?.parse().ok()),
            pid: std::process::id(),
        });
        response
    }
}

impl ObjectServer {
    /// Calls from within the process are part of a request that the gateway's own line is about.
    fn logs(&self, call: &RawCall) -> bool {
        self.shared.options.log_requests && call.interim.is_some() && telemetry::log::logs_requests()
    }
}
