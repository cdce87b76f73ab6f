//! [`ListingServer`]: one call in, one response out, one line in the access log.

use crate::devices::{DatabaseDisks, ListingDevices};
use crate::options::ListingServerOptions;
use crate::request::ListingRequest;
use crate::state::ListingServerState;
use crate::timed::RequestTimer;
use crate::{account, container, object_row, replicate};
use http::{Method, StatusCode};
use listing_engine::{Brokers, Kind};
use peer::{Address, Body, Call, Peers, RawCall, Response, Service};
use std::sync::{Arc, OnceLock};
use storage_shell::{AccessLog, PoolOptions, Refusal, empty, put, without_body};
use world::World;

/// The accounts or the containers of this node, behind [`Service`].
pub struct ListingServer {
    state: Arc<ListingServerState>,
    access_log: AccessLog,
}

impl ListingServer {
    /// A server for the databases of `kind`; an error when the system has no threads left.
    pub fn new(world: World, kind: Kind, options: ListingServerOptions) -> std::io::Result<Arc<Self>> {
        let options = Arc::new(options);
        let pool = PoolOptions {
            openers: "scout",
            threads: options.threads_per_disk,
            queue: options.queue_per_disk,
        };
        let disks = DatabaseDisks::new(world.clone(), options.clone());
        Ok(Arc::new(Self {
            access_log: AccessLog::new(&world, options.log_requests),
            state: Arc::new(ListingServerState {
                kind,
                devices: ListingDevices::new(world.clone(), disks, pool)?,
                world,
                peers: OnceLock::new(),
                brokers: Brokers::new(options.open_databases),
                options,
            }),
        }))
    }

    /// The peers through which a container server reaches account servers. Without any, accounts get no rows and their
    /// listings lag until an updater has run.
    pub fn set_peers(&self, peers: Arc<Peers>) {
        // A second set of peers would only repeat the first: a process has one.
        let _ = self.state.peers.set(peers);
    }

    async fn respond(&self, call: RawCall) -> Response {
        let verb = call.method.clone();
        let done = match verb.as_str() {
            "OPTIONS" => Ok(self.options()),
            "GET" | "HEAD" | "PUT" | "POST" | "DELETE" => self.on_entity(call).await,
            "UPDATE" if self.state.kind == Kind::Container => self.on_entity(call).await,
            "REPLICATE" if self.state.options.serves_replication() => replicate::answer_call(&self.state, call).await,
            _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
        };
        let response = done.unwrap_or_else(Refusal::into_response);
        match verb == Method::HEAD {
            true => without_body(response),
            false => response,
        }
    }

    async fn on_entity(&self, call: RawCall) -> Result<Response, Refusal> {
        let target = match call.address {
            Address::Entity(target) => target,
            other => return Err(Refusal::bad_request(format!("Invalid path: {}", other.url_path()))),
        };
        let request = Arc::new(ListingRequest::new(call.method, target, call.query, call.headers));
        match self.state.kind {
            Kind::Account => account::answer_call(&self.state, request).await,
            Kind::Container if request.path.container.is_none() => Err(request.invalid_path()),
            Kind::Container => self.on_container(request, call.body).await,
        }
    }

    async fn on_container(&self, request: Arc<ListingRequest>, body: Body) -> Result<Response, Refusal> {
        let state = &self.state;
        let method = request.method.clone();
        if request.object().is_some() && matches!(method.as_str(), "POST" | "UPDATE") {
            return Err(request.invalid_path());
        }
        request.check_reserved(&state.options)?;
        let timed = RequestTimer::of(state, &request);
        let done = match (method.as_str(), request.object()) {
            ("PUT" | "DELETE", Some(_)) => object_row::write(state, request).await,
            ("UPDATE", _) => object_row::update(state, request, body).await,
            ("PUT", None) => container::put(state, request).await,
            ("DELETE", None) => container::delete(state, request).await,
            ("POST", _) => container::post(state, request).await,
            _ => container::read(state, request).await,
        };
        if let Some(timer) = timed {
            timer.end(state, &done);
        }
        done
    }

    fn options(&self) -> Response {
        let mut response = empty(StatusCode::OK);
        let (verbs, name) = match self.state.kind {
            Kind::Account => ("DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE", "account-server/"),
            Kind::Container => (
                "DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE, UPDATE",
                "container-server/",
            ),
        };
        put(&mut response, "allow", verbs);
        put(&mut response, "server", &format!("{name}{}", env!("CARGO_PKG_VERSION")));
        response
    }
}

#[async_trait::async_trait]
impl Service for ListingServer {
    async fn call(&self, call: Call) -> Response {
        let entry = self.access_log.begin(&call);
        let response = self.respond(call.into_raw()).await;
        if let Some(entry) = entry {
            entry.end(&response);
        }
        response
    }
}
