//! [`ListingServer`]: one call in, one answer out, one line in the access log.

use crate::devices::{Device, Devices};
use crate::options::ListingServerOptions;
use crate::reply::{Refusal, page, put, without_body};
use crate::request::Request;
use crate::timed::Part;
use crate::{account, container, object_row, replicate};
use http::{HeaderMap, Method, StatusCode};
use listing_engine::{Broker, Brokers, Error, Kind, Location, NewDatabase};
use peer::{Address, Body, Call, Peers, RawCall, Response, Service};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use vocabulary::{PolicyIndex, Timestamp};
use world::World;

/// The accounts or the containers of this node, behind [`Service`].
pub struct ListingServer {
    shared: Arc<Shared>,
    access_log: OnceLock<Arc<dyn AccessLog>>,
}

/// What all verbs use.
pub(crate) struct Shared {
    pub(crate) kind: Kind,
    pub(crate) world: World,
    pub(crate) options: Arc<ListingServerOptions>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) peers: OnceLock<Arc<Peers>>,
    pub(crate) brokers: Brokers,
}

/// How long a body may take, or a piece of a database: as long as OpenStack's servers wait for bytes (`client_timeout`).
pub(crate) const BODY_PATIENCE: Duration = Duration::from_secs(60);

/// Takes a record of every request.
pub trait AccessLog: Send + Sync {
    /// One request has been answered.
    fn record(&self, record: &AccessRecord<'_>);
}

/// A request and its answer, as the access log shows them.
#[derive(Debug)]
pub struct AccessRecord<'a> {
    /// The verb.
    pub method: &'a Method,
    /// The URL path, encoded.
    pub path: &'a str,
    /// The answer.
    pub status: StatusCode,
    /// The answer's length, when it has one.
    pub content_length: Option<u64>,
    /// The request's headers, for its transaction id, referer and user agent.
    pub headers: &'a HeaderMap,
    /// When it came.
    pub began: Timestamp,
    /// How long it took.
    pub took: Duration,
}

impl ListingServer {
    /// A server for the databases of `kind`; an error when the system has no threads left.
    pub fn new(world: World, kind: Kind, options: ListingServerOptions) -> std::io::Result<Arc<Self>> {
        let options = Arc::new(options);
        let devices = Arc::new(Devices::new(world.clone(), options.clone())?);
        Ok(Arc::new(Self {
            shared: Arc::new(Shared {
                kind,
                world,
                devices,
                peers: OnceLock::new(),
                brokers: Brokers::new(options.open_databases),
                options,
            }),
            access_log: OnceLock::new(),
        }))
    }

    /// Who a container server reaches account servers through. Without any, accounts are not told
    /// and their listings lag until an updater has run.
    pub fn set_peers(&self, peers: Arc<Peers>) {
        // A second set of peers would only repeat the first: a process has one.
        let _ = self.shared.peers.set(peers);
    }

    /// Where requests are recorded; the first log counts.
    pub fn set_access_log(&self, log: Arc<dyn AccessLog>) {
        // A second log would only repeat the first: a process has one.
        let _ = self.access_log.set(log);
    }

    async fn answer(&self, call: RawCall) -> Response {
        let verb = call.method.clone();
        let answered = match verb.as_str() {
            "OPTIONS" => Ok(self.options()),
            "GET" | "HEAD" | "PUT" | "POST" | "DELETE" => self.on_entity(call).await,
            "UPDATE" if self.shared.kind == Kind::Container => self.on_entity(call).await,
            "REPLICATE" if self.shared.options.serves_replication() => replicate::answer_call(&self.shared, call).await,
            _ => Err(Refusal::Page(StatusCode::METHOD_NOT_ALLOWED)),
        };
        let response = answered.unwrap_or_else(Refusal::into_response);
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
        let request = Arc::new(Request::new(call.method, target, call.query, call.headers));
        match self.shared.kind {
            Kind::Account => account::answer_call(&self.shared, request).await,
            Kind::Container if request.path.container.is_none() => Err(request.invalid_path()),
            Kind::Container => self.on_container(request, call.body).await,
        }
    }

    async fn on_container(&self, request: Arc<Request>, body: Body) -> Result<Response, Refusal> {
        let shared = &self.shared;
        let method = request.method.clone();
        if request.object().is_some() && matches!(method.as_str(), "POST" | "UPDATE") {
            return Err(request.invalid_path());
        }
        request.check_reserved(&shared.options)?;
        let timed = Part::of(shared, &request);
        let answered = match (method.as_str(), request.object()) {
            ("PUT" | "DELETE", Some(_)) => object_row::write(shared, request).await,
            ("UPDATE", _) => object_row::update(shared, request, body).await,
            ("PUT", None) => container::put(shared, request).await,
            ("DELETE", None) => container::delete(shared, request).await,
            ("POST", _) => container::post(shared, request).await,
            _ => container::read(shared, request).await,
        };
        if let Some(part) = timed {
            part.tell(shared, &answered);
        }
        answered
    }

    fn options(&self) -> Response {
        let mut response = page(StatusCode::OK);
        *response.body_mut() = Body::empty();
        let (verbs, name) = match self.shared.kind {
            Kind::Account => ("DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE", "account-server/"),
            Kind::Container => (
                "DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE, UPDATE",
                "container-server/",
            ),
        };
        put(&mut response, "allow", verbs);
        put(&mut response, "server", &format!("{name}{}", env!("CARGO_PKG_VERSION")));
        put(&mut response, "content-length", "0");
        response
    }
}

impl Shared {
    /// Runs `job` on the workers of the request's device.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        request: &Arc<Request>,
        job: impl FnOnce(&Desk<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (shared, asked) = (self.clone(), request.clone());
        let job = move |device: &Device| {
            job(&Desk {
                shared: &shared,
                request: &asked,
                device,
            })
        };
        self.devices.run(&request.device, job).await
    }

    /// A random UUID.
    pub(crate) fn unique(&self) -> String {
        let mut bytes = [0; 16];
        self.world.random.fill(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let n = u128::from_be_bytes(bytes);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            n >> 96,
            n >> 80 & 0xffff,
            n >> 64 & 0xffff,
            n >> 48 & 0xffff,
            n & 0xffff_ffff_ffff
        )
    }

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

/// Where a job on a device's worker does its work.
pub(crate) struct Desk<'d> {
    pub(crate) shared: &'d Shared,
    pub(crate) request: &'d Request,
    pub(crate) device: &'d Device,
}

impl Desk<'_> {
    fn location(&self) -> Location {
        let prefix = &self.shared.options.hash_prefix;
        let hash = match self.shared.kind {
            Kind::Account => prefix.account(self.request.account()),
            Kind::Container => prefix.container(self.request.account(), self.request.container()),
        };
        Location::new(
            self.shared.devices.root(self.device),
            self.shared.kind,
            self.request.partition,
            hash,
        )
    }

    /// The database; 404 when there is none.
    pub(crate) fn open(&self) -> Result<Arc<Broker>, Refusal> {
        self.shared
            .brokers
            .open(&self.location())
            .map_err(|error| self.refuse(&error))
    }

    /// The database, if there is one.
    pub(crate) fn find(&self) -> Result<Option<Arc<Broker>>, Refusal> {
        match self.shared.brokers.open(&self.location()) {
            Ok(broker) => Ok(Some(broker)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.refuse(&error)),
        }
    }

    /// The database, made new when there is none; the flag says that it was made.
    pub(crate) fn find_or_create(
        &self,
        timestamp: Timestamp,
        policy: PolicyIndex,
    ) -> Result<(Arc<Broker>, bool), Refusal> {
        if let Some(broker) = self.find()? {
            return Ok((broker, false));
        }
        let new = NewDatabase {
            account: self.request.account().to_owned(),
            container: self
                .request
                .path
                .container
                .clone()
                .filter(|_| self.shared.kind == Kind::Container),
            put_timestamp: timestamp,
            created_at: self.shared.world.clock.now(),
            policy,
            unique: self.shared.unique(),
        };
        match self.shared.brokers.create(&self.location(), &new) {
            Ok(broker) => Ok((broker, true)),
            // Somebody else was faster.
            Err(Error::AlreadyExists { .. }) => Ok((self.open()?, false)),
            Err(error) => Err(self.refuse(&error)),
        }
    }

    /// Lists the container among the synced ones of its device, or no longer. What fails is made good by the
    /// replicator: the change itself stands.
    pub(crate) fn keep_sync_link(&self, broker: &Broker) {
        if let Err(error) = broker.keep_sync_link() {
            tracing::error!("{}: {error}", self.request.url_path());
        }
    }

    /// An engine error as an answer.
    pub(crate) fn refuse(&self, error: &Error) -> Refusal {
        Refusal::from_engine(error, &self.device.name)
    }
}

#[async_trait::async_trait]
impl Service for ListingServer {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let log = self.access_log.get().filter(|_| self.shared.options.log_requests);
        let Some(log) = log else {
            return self.answer(call).await;
        };
        let clock = &self.shared.world.clock;
        let (began, start) = (clock.now(), clock.elapsed());
        let (method, headers) = (call.method.clone(), call.headers.clone());
        let path = call.address.url_path();
        let response = self.answer(call).await;
        let length = response.headers().get(http::header::CONTENT_LENGTH);
        log.record(&AccessRecord {
            method: &method,
            path: &path,
            status: response.status(),
            content_length: length.and_then(|value| value.to_str().ok()?.parse().ok()),
            headers: &headers,
            began,
            took: clock.elapsed().saturating_sub(start),
        });
        response
    }
}
