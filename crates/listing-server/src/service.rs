//! [`ListingServer`]: one call in, one response out, one line in the access log.

use crate::devices::{DatabaseDisks, ListingDevices};
use crate::options::ListingServerOptions;
use crate::request::ListingRequest;
use crate::state::ListingServerState;
use crate::timed::RequestTimer;
use crate::{account, container, object_row, replicate};
use http::header::{ALLOW, SERVER};
use http::{Method, StatusCode};
use listing_engine::{Brokers, Kind};
use peer::message::{Message, RawRequest, RequestContext, RowChange, ServerKind, UpdateNode};
use peer::{Body, Call, Peers, Response, Service, Silence};
use std::sync::{Arc, OnceLock};
use storage_shell::{AccessLog, PoolOptions, Refusal, WholeBodies, empty, put, without_body};
use tracing::Instrument;
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
        let silence = Silence::new(&world, options.silence_timeout);
        let brokers = Arc::new(Brokers::new(options.open_databases));
        let disks = DatabaseDisks::new(world.clone(), options.clone(), brokers.clone());
        Ok(Arc::new(Self {
            access_log: AccessLog::new(&world, options.log_requests),
            state: Arc::new(ListingServerState {
                kind,
                devices: ListingDevices::new(world.clone(), disks, pool)?,
                world,
                peers: OnceLock::new(),
                silence,
                brokers,
                options,
                whole_bodies: WholeBodies::default(),
            }),
        }))
    }

    /// The peers through which a container server reaches account servers. Without any, accounts get no rows and their
    /// listings lag until an updater has run.
    pub fn set_peers(&self, peers: Arc<Peers>) {
        // A second set of peers would only repeat the first: a process has one.
        let _ = self.state.peers.set(peers);
    }

    /// Which devices of account servers are silent.
    pub fn silence(&self) -> Arc<Silence<UpdateNode>> {
        self.state.silence.clone()
    }

    async fn respond(&self, call: Call) -> Response {
        let state = &self.state;
        let is_head = call.message.method() == Method::HEAD;
        let done = match call.message {
            Message::Raw(raw) => self.unknown(&raw),
            Message::ReplicateDatabase(message) if state.options.serves_replication() => {
                Box::pin(replicate::replicate(state, message, call.body)).await
            }
            message => {
                let timer = RequestTimer::of(state, &message);
                let done = self.on_entity(call.context, message, call.body).await;
                if let Some(timer) = timer {
                    timer.end(state, &done);
                }
                done
            }
        };
        let response = done.unwrap_or_else(Refusal::into_response);
        match is_head {
            true => without_body(response),
            false => response,
        }
    }

    /// What no message can be made of.
    fn unknown(&self, raw: &RawRequest) -> Result<Response, Refusal> {
        match raw.method.as_str() {
            "OPTIONS" => Ok(self.options()),
            "UPDATE" if self.state.kind == Kind::Account => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
            "GET" | "HEAD" | "PUT" | "POST" | "DELETE" | "UPDATE" => {
                let path = raw.address.url_path();
                Err(Refusal::bad_request(format!("Invalid path: {path}")))
            }
            _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
        }
    }

    async fn on_entity(&self, context: RequestContext, message: Message, body: Body) -> Result<Response, Refusal> {
        let (state, method) = (&self.state, message.method());
        macro_rules! request {
            ($message:ident) => {{
                let request = ListingRequest::new(
                    method,
                    context,
                    &$message.target,
                    &$message.timestamp,
                    &$message.headers,
                );
                request.check_reserved(&state.options)?;
                request
            }};
        }
        // Rows of objects come most often; all others have memory of their own, or each row would move as much.
        match message {
            Message::UpdateContainer(message) => {
                let mut request = request!(message);
                request.creates = message.creates;
                match message.change {
                    RowChange::Batch => Box::pin(object_row::update(state, request.into(), &message, body)).await,
                    RowChange::Put | RowChange::Delete => object_row::write(state, request.into(), &message).await,
                }
            }
            Message::PutContainer(message) => Box::pin(container::put(state, request!(message).into(), message)).await,
            Message::PostContainer(message) => {
                Box::pin(container::post(
                    state,
                    request!(message).into(),
                    message.keeps_timestamp,
                ))
                .await
            }
            Message::DeleteContainer(message) => {
                Box::pin(container::delete(state, request!(message).into(), message)).await
            }
            Message::ReadContainer(message) => {
                Box::pin(container::read(state, request!(message).into(), message)).await
            }
            Message::UpdateAccount(message) => {
                Box::pin(account::put_row(state, request!(message).into(), &message)).await
            }
            Message::PutAccount(message) => Box::pin(account::put(state, request!(message).into())).await,
            Message::PostAccount(message) => Box::pin(account::post(state, request!(message).into())).await,
            Message::DeleteAccount(message) => Box::pin(account::delete(state, request!(message).into())).await,
            Message::ReadAccount(message) => Box::pin(account::read(state, request!(message).into(), message)).await,
            _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
        }
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
        put(&mut response, ALLOW, verbs);
        put(&mut response, SERVER, &format!("{name}{}", env!("CARGO_PKG_VERSION")));
        response
    }
}

#[async_trait::async_trait]
impl Service for ListingServer {
    async fn call(&self, call: Call) -> Response {
        let kind = match self.state.kind {
            Kind::Account => ServerKind::Account,
            Kind::Container => ServerKind::Container,
        };
        let entry = self.access_log.begin(&call);
        let call = call.decoded(kind);
        let span = call.span();
        let response = self.respond(call).instrument(span).await;
        if let Some(entry) = entry {
            entry.end(&response);
        }
        response
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]
mod tests {
    use super::*;
    use crate::state::DatabaseJob;
    use parking_lot::Mutex;
    use peer::message::HeaderField;
    use peer::{FairPlaces, Target};
    use storage_shell::Lane;
    use vocabulary::{EntityPath, HashPrefix, Partition, Policies, Policy};

    #[tokio::test]
    async fn long_listings_leave_threads_to_others_and_are_not_made_once_they_are_given_up() {
        let devices = tempfile::tempdir().unwrap();
        std::fs::create_dir(devices.path().join("sda")).unwrap();
        let policies = Policies::new(vec![Policy::replication(0, "gold")], None).unwrap();
        let prefix = HashPrefix::new("pre", "suf").unwrap();
        let options = ListingServerOptions {
            mount_check: false,
            threads_per_disk: 2,
            ..ListingServerOptions::new(devices.path(), prefix, Arc::new(policies))
        };
        let server = ListingServer::new(World::real(), Kind::Container, options).unwrap();
        let state = &server.state;
        let request = |container: &str| {
            let target = Target {
                device: "sda".into(),
                partition: Partition::default(),
                path: Arc::new(EntityPath::account("a").with_container(container)),
            };
            let (context, time, headers) = (RequestContext::default(), HeaderField::Absent, Arc::default());
            Arc::new(ListingRequest::new(Method::GET, context, &target, &time, &headers))
        };
        // Long ones wait until they are let go.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (held, made) = (Arc::new(Mutex::new(held)), Arc::new(Mutex::new(Vec::new())));
        let listing = |container: &'static str, entries: usize| {
            let (asked, held, made) = (request(container), held.clone(), made.clone());
            let job = move |_: &DatabaseJob<'_>, most: usize| {
                if entries > most {
                    return Ok(None);
                }
                if most == usize::MAX {
                    held.lock().recv().unwrap();
                }
                made.lock().push(container);
                Ok(Some(()))
            };
            let state = state.clone();
            tokio::spawn(async move { state.run_listing(&asked, job).await.is_ok() })
        };
        let device = state.devices.device("sda", Lane::Requests).await.unwrap();
        let until = async |is_so: &dyn Fn(&FairPlaces<Arc<EntityPath>>) -> bool| {
            while !is_so(device.engine().long_listings()) {
                tokio::task::yield_now().await;
            }
        };
        let mut large = vec![listing("large", 10_000)];
        until(&|turns| turns.free() == 0).await;
        let given_up = listing("given up", 10_000);
        until(&|turns| turns.waiting() == 1).await;
        large.push(listing("large", 10_000));
        until(&|turns| turns.waiting() == 2).await;
        large.push(listing("large", 10_000));
        until(&|turns| turns.waiting() == 3).await;
        large.push(listing("other", 10_000));
        until(&|turns| turns.waiting() == 4).await;
        assert!(listing("small", 2_000).await.unwrap(), "there is a thread for it");
        given_up.abort();
        assert!(given_up.await.is_err());
        large.iter().for_each(|_| release.send(()).unwrap());
        for long in large {
            assert!(long.await.unwrap());
        }
        assert_eq!(*made.lock(), ["small", "large", "large", "other", "large"]);
    }
}
