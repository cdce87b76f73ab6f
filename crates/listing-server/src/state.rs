//! [`ListingServerState`]: what all verbs use; [`DatabaseJob`]: one job on the database that a request is about.

use crate::devices::{ListingDevice, ListingDevices, check_room};
use crate::options::ListingServerOptions;
use crate::refusal::refusal_of;
use crate::request::ListingRequest;
use listing_engine::{Broker, Brokers, Error, Kind, Location, NewDatabase};
use peer::message::UpdateNode;
use peer::{Peers, Silence, Target};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use storage_shell::{DeviceFault, Lane, Refusal, WholeBodies};
use tokio::sync::oneshot;
use vocabulary::{Fault, FaultKind, PolicyIndex, Timestamp};
use world::World;

/// How long rows may take to come, or a database or its changes to show their rate: as long as OpenStack's servers wait
/// for bytes (`client_timeout`).
pub(crate) const BODY_PATIENCE: Duration = Duration::from_secs(60);

/// Entries of a listing that is as any short request.
const SHORT_LISTING: usize = 2_000;

/// What all verbs use.
pub(crate) struct ListingServerState {
    pub(crate) kind: Kind,
    pub(crate) world: World,
    pub(crate) options: Arc<ListingServerOptions>,
    pub(crate) devices: ListingDevices,
    pub(crate) peers: OnceLock<Arc<Peers>>,
    /// Of account servers.
    pub(crate) silence: Arc<Silence<UpdateNode>>,
    pub(crate) brokers: Arc<Brokers>,
    /// Of upkeep.
    pub(crate) whole_bodies: WholeBodies,
}

impl ListingServerState {
    /// Runs `job` on the workers of the request's device.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        request: &Arc<ListingRequest>,
        job: impl FnOnce(&DatabaseJob<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (state, asked) = (self.clone(), request.clone());
        let job = move |device: &ListingDevice| {
            job(&DatabaseJob {
                state: &state,
                request: &asked,
                device,
            })
        };
        self.run_on(&request.target.device, job).await
    }

    /// Runs the job of a listing, which gets how many entries it may list at most, and answers nothing where there are
    /// more. A long one is made in its turn, on half of the device's threads: there may be many, each of which takes
    /// seconds.
    pub(crate) async fn run_listing<T: Send + 'static>(
        self: &Arc<Self>,
        request: &Arc<ListingRequest>,
        job: impl Fn(&DatabaseJob<'_>, usize) -> Result<Option<T>, Refusal> + Send + Sync + 'static,
    ) -> Result<T, Refusal> {
        let job = Arc::new(job);
        let short = job.clone();
        if let Some(done) = self.run(request, move |on| short(on, SHORT_LISTING)).await? {
            return Ok(done);
        }
        let Target { device, path, .. } = &request.target;
        let opened = self.devices.device(device, Lane::Requests).await?;
        let turn = tokio::select! {
            turn = opened.engine().long_listings().wait(path.clone()) => turn.ok_or_else(|| {
                let fault = Fault::new(FaultKind::Contention, "more long listings wait than may");
                Refusal::from(DeviceFault::new(&**device, fault))
            })?,
            () = opened.health().gone() => return Err(Refusal::Device(device.to_string())),
        };
        let done = self.run(request, move |on| {
            let _turn = turn;
            job(on, usize::MAX)
        });
        done.await?.ok_or_else(Refusal::internal)
    }

    /// Runs `job` on the workers of the device of this name. A drive on which a job fails is tried out soon.
    pub(crate) async fn run_on<T: Send + 'static>(
        &self,
        device: &str,
        job: impl FnOnce(&ListingDevice) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let job = move |device: &ListingDevice| {
            job(device).inspect_err(|refusal| {
                if matches!(refusal.status().as_u16(), 500 | 507) {
                    device.health().suspect();
                }
            })
        };
        self.devices.run(device, Lane::Requests, job).await
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
}

/// Waits until rows that were queued for a database on `device` are durable.
pub(crate) async fn until_stored(stored: oneshot::Receiver<Result<(), Error>>, device: &str) -> Result<(), Refusal> {
    let stored = stored.await.map_err(|_| Refusal::internal())?;
    stored.map_err(|error| refusal_of(&error, device))
}

/// A job on the database that a request is about, on a worker of its device.
pub(crate) struct DatabaseJob<'d> {
    pub(crate) state: &'d ListingServerState,
    pub(crate) request: &'d ListingRequest,
    pub(crate) device: &'d ListingDevice,
}

impl DatabaseJob<'_> {
    fn location(&self) -> Location {
        let prefix = &self.state.options.hash_prefix;
        let hash = match self.state.kind {
            Kind::Account => prefix.account(self.request.account()),
            Kind::Container => prefix.container(self.request.account(), self.request.container()),
        };
        Location::new(
            self.device.engine().root().clone(),
            self.state.kind,
            self.request.target.partition,
            hash,
        )
    }

    /// Refuses when the device has no room to spare.
    pub(crate) fn check_room(&self) -> Result<(), Refusal> {
        check_room(self.device)
    }

    /// The database; 404 when there is none.
    pub(crate) fn open(&self) -> Result<Arc<Broker>, Refusal> {
        self.state
            .brokers
            .open(&self.location())
            .map_err(|error| self.refuse(&error))
    }

    /// The database, if there is one.
    pub(crate) fn find(&self) -> Result<Option<Arc<Broker>>, Refusal> {
        match self.state.brokers.open(&self.location()) {
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
            container: match self.state.kind {
                Kind::Account => None,
                Kind::Container => self.request.target.path.container.clone(),
            },
            put_timestamp: timestamp,
            created_at: self.state.world.clock.now(),
            policy,
            unique: self.state.unique(),
        };
        match self.state.brokers.create(&self.location(), &new) {
            Ok(broker) => Ok((broker, true)),
            // Another request was faster.
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
        refusal_of(error, self.device.name())
    }
}
