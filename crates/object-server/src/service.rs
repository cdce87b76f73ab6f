//! [`ObjectServer`]: one call in, one response out, one line in the access log.

use crate::answering::Answering;
use crate::deletes::deletes;
use crate::devices::{DeviceSource, ObjectDevices, SourceOpener};
use crate::exchange_slots::ExchangeSlots;
use crate::lock::lock;
use crate::options::ObjectServerOptions;
use crate::replicate::replicate;
use crate::ssync::ssync;
use crate::state::ObjectServerState;
use crate::updates::ListingUpdates;
use crate::verbs::on_object;
use crate::write_locks::ObjectWriteLocks;
use http::header::{ALLOW, CONTENT_LENGTH, SERVER};
use http::{HeaderValue, Method, StatusCode};
use peer::message::{Message, ServerKind, UpdateNode};
use peer::{Call, Peers, Response, Service, Silence, Timeouts};
use std::future::ready;
use std::sync::Arc;
use storage_shell::{AccessLog, Lane, PoolOptions, Refusal, WholeBodies, empty, without_body};
use tracing::Instrument;
use world::World;

/// As OpenStack's. A peer that knows DELETES or LOCK finds out by trying it.
const VERBS: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE, SSYNC");
const CLIENT_VERBS: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, POST, PUT");
const NAME: HeaderValue = HeaderValue::from_static(concat!("object-server/", env!("CARGO_PKG_VERSION")));

/// The objects of this node, behind [`Service`].
pub struct ObjectServer {
    state: Arc<ObjectServerState>,
    access_log: AccessLog,
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
            (options.container_update_timeout, options.silence_timeout),
            options.statsd.clone(),
        );
        let pool = PoolOptions {
            openers: "open",
            threads: options.threads_per_disk,
            queue: options.queue_per_disk,
        };
        Ok(Arc::new(Self {
            access_log: AccessLog::new(&world, options.log_requests),
            state: Arc::new(ObjectServerState {
                devices: ObjectDevices::new(world.clone(), SourceOpener(source), pool)?,
                exchange_slots: ExchangeSlots::new(&options.replication),
                write_locks: ObjectWriteLocks::default(),
                world,
                options,
                updates,
                whole_bodies: WholeBodies::default(),
            }),
        }))
    }

    /// The peers through which container servers are reached. Before this is called, and for servers that never get
    /// any, listing rows go to the pending records.
    pub fn set_peers(&self, peers: Arc<Peers>) {
        self.state.updates.set_peers(peers);
    }

    /// Which devices of container servers are silent.
    pub fn silence(&self) -> Arc<Silence<UpdateNode>> {
        self.state.updates.silence()
    }

    /// This process leaves to a successor on the same devices: its write locks end soon, so that the other can grant
    /// them.
    pub fn leave(&self) {
        self.state.write_locks.leave(self.state.world.clock.elapsed());
    }

    /// Begins to answer. A refusal that needs neither device nor body is returned at once.
    fn begin(&self, call: Call) -> Result<Answering<'_>, Refusal> {
        let serves = self.state.options.replication.serves;
        match call.message {
            Message::PutObject(_) | Message::PostObject(_) | Message::DeleteObject(_) | Message::ReadObject(_) => {
                on_object(&self.state, call, Lane::Requests)
            }
            Message::LockObject(message) => Ok(Box::pin(lock(&self.state, message))),
            Message::ReplicateSuffixes(message) if serves => Ok(Box::pin(replicate(&self.state, message))),
            Message::Ssync(message) if serves => Ok(Box::pin(ssync(&self.state, message, call.body))),
            Message::DeleteObjects(message) if serves => {
                Ok(Box::pin(deletes(&self.state, call.context, message, call.body)))
            }
            Message::Raw(raw) => match raw.method.as_str() {
                "OPTIONS" => Ok(Box::pin(ready(Ok(options(serves))))),
                "GET" | "HEAD" | "PUT" | "POST" | "DELETE" => {
                    let path = raw.address.url_path();
                    Err(Refusal::bad_request(format!("Invalid path: {path}")))
                }
                _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
            },
            _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
        }
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
fn without_page(mut response: Response) -> Response {
    let is_page = |body: bytes::Bytes| body.starts_with(b"<html>");
    if response.body().as_whole().is_some_and(is_page) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    without_body(response)
}

#[async_trait::async_trait]
impl Service for ObjectServer {
    async fn call(&self, call: Call) -> Response {
        let entry = self.access_log.begin(&call);
        // The decoded call lives in this block only, so that it takes no room while the answer is awaited.
        let (span, is_head, begun) = {
            let call = call.decoded(ServerKind::Object);
            let (span, is_head) = (call.span(), call.message.method() == Method::HEAD);
            let begun = span.in_scope(|| self.begin(call));
            (span, is_head, begun)
        };
        let done = match begun {
            Ok(answering) => answering.instrument(span).await,
            Err(refusal) => Err(refusal),
        };
        let response = done.unwrap_or_else(Refusal::into_response);
        let response = if is_head { without_page(response) } else { response };
        if let Some(entry) = entry {
            entry.end(&response);
        }
        response
    }
}
