//! Container-updater: what accounts know of their containers.
//!
//! Objects come and go without a word to the account. Each container database whose counters or
//! timestamps differ from those last reported is reported to the account's primaries; when a majority
//! has it, the database remembers.
//! Always holds: a database is marked as reported with exactly the figures that were sent; one that has
//! not changed since it had last nothing to report is not opened again; an account that could not be updated
//! is left in peace for a while; figures are sent again for a while after the last change, for an
//! account's replicas overwrite each other's figures in whatever order they arrive: an old one that
//! replication brings late would stay for good; a container is quarantined only when it has no objects of any policy,
//! and every primary of its account and as many handoffs, where gateways find it too, answer that they know of no such
//! account and of none that was deleted, for the reaper still wants the containers of one that was.
//! Deliberately absent: shards, whose figures are the sharder's to report.
//! Tests: `tests/container_updater.rs`; requests compared with OpenStack Swift 2.38.3's updater.

use crate::database_stamp::{DatabaseStamp, KnownDatabases};
use crate::open_device::OpenDevice;
use crate::peer_failures::PeerFailures;
use crate::ring_client::{NodeResponse, RingClient, context_of};
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::{Disks, PassProgress, ReconFile};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use listing_engine::{Broker, DeviceRoot, Error, Info, Kind, Location, SHARDS};
use peer::Target;
use peer::message::header_names::X_ACCOUNT_STATUS;
use peer::message::{ReadAccount, UpdateAccount};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use vocabulary::{EntityPath, Partition, PathHash};
use world::World;

const NAME: &str = "container-updater";

/// Goes over the container databases of all devices.
pub struct ContainerUpdater {
    accounts: RingClient,
    concurrency: usize,
    suppression: Duration,
    again: Duration,
    /// How often, and the last pass that did.
    repeat_every: Duration,
    repeated: Option<Duration>,
    /// Whether this pass does.
    repeats: bool,
    /// Until when accounts are left in peace.
    suppressed: HashMap<String, Duration>,
    /// The stamp under which a database had last nothing to report.
    unchanged: KnownDatabases<u64>,
    peer_failures: PeerFailures,
    state: WalkState<Self>,
}

/// What was found in a database.
enum Look {
    /// As it was when there was nothing to report.
    Unchanged(u64),
    /// Nothing to report; the stamp to remember, if it can be trusted.
    Reported(Option<u64>),
    /// Reported, but not long ago.
    Repeat(Box<Info>),
    Report(Box<(Broker, Info)>),
}

/// What the account's primaries made of a report.
enum Reply {
    /// A majority has it now.
    Taken,
    Refused,
    /// There is no such account, all of them say.
    NoAccount,
}

/// What came of a look at a database.
pub(crate) struct ContainerReport {
    hash: PathHash,
    stamp: Option<u64>,
    done: u64,
    failed: u64,
    /// The account that did not take the figures.
    refusing: Option<String>,
}

impl ContainerReport {
    fn of(hash: PathHash, (done, failed): (u64, u64)) -> Self {
        Self {
            hash,
            stamp: None,
            done,
            failed,
            refusing: None,
        }
    }
}

impl ContainerUpdater {
    /// Looks at up to `concurrency` databases at a time; an account that could not be updated is left
    /// in peace for `suppression`. What changed within the time `again` is sent in every pass, unless
    /// [`Self::repeating_every`] makes that rarer.
    pub fn new(disks: Disks, accounts: RingClient, concurrency: usize, suppression: Duration, again: Duration) -> Self {
        Self {
            accounts,
            concurrency: concurrency.max(1),
            suppression,
            again,
            repeat_every: Duration::ZERO,
            repeated: None,
            repeats: true,
            suppressed: HashMap::new(),
            unchanged: KnownDatabases::default(),
            peer_failures: PeerFailures::new(NAME),
            state: WalkState::new(NAME, disks),
        }
    }

    /// The same, sending figures that did not change in one pass within this time: passes may follow each other
    /// quickly, and each report is a request to every primary of the account, for each replica of the container.
    #[must_use]
    pub fn repeating_every(self, repeat_every: Duration) -> Self {
        Self { repeat_every, ..self }
    }

    fn is_suppressed(&self, account: &str) -> bool {
        let now = self.state.world().clock.elapsed();
        self.suppressed.get(account).is_some_and(|until| *until > now)
    }

    async fn attend(&self, device: &OpenDevice, location: Location) -> ContainerReport {
        let hash = location.hash();
        let known = self.unchanged.of(&device.name, hash);
        let (world, again) = (self.state.world().clone(), (self.again, self.repeats));
        match device.run(move || look(&world, location, known, again)).await {
            None => ContainerReport::of(hash, (0, 1)),
            Some(Look::Unchanged(stamp)) => self.nothing_new(hash, Some(stamp)),
            Some(Look::Reported(stamp)) => self.nothing_new(hash, stamp),
            Some(Look::Repeat(info)) if self.is_suppressed(&info.account) => ContainerReport::of(hash, (0, 0)),
            Some(Look::Repeat(info)) => {
                let is_taken = matches!(self.send(&info).await, Reply::Taken);
                self.state.statsd.increment("no_changes");
                ContainerReport {
                    refusing: (!is_taken).then_some(info.account),
                    ..ContainerReport::of(hash, (0, 0))
                }
            }
            Some(Look::Report(found)) if self.is_suppressed(&found.1.account) => ContainerReport::of(hash, (0, 1)),
            Some(Look::Report(found)) => {
                let (broker, info) = *found;
                let clock = &self.state.world().clock;
                let began = clock.elapsed();
                let outcome = self.report(device, hash, broker, info).await;
                self.state
                    .statsd
                    .increment(if outcome.failed > 0 { "failures" } else { "successes" });
                self.state
                    .statsd
                    .timing(format_args!("timing"), clock.elapsed().saturating_sub(began));
                outcome
            }
        }
    }

    fn nothing_new(&self, hash: PathHash, stamp: Option<u64>) -> ContainerReport {
        self.state.statsd.increment("no_changes");
        ContainerReport {
            stamp,
            ..ContainerReport::of(hash, (0, 0))
        }
    }

    async fn report(&self, device: &OpenDevice, hash: PathHash, broker: Broker, info: Info) -> ContainerReport {
        let refused = ContainerReport {
            refusing: Some(info.account.clone()),
            ..ContainerReport::of(hash, (0, 1))
        };
        let path = path_of(&info);
        let place = self
            .accounts
            .hash
            .container(&path.account, path.container.as_deref().unwrap_or_default());
        if place != hash {
            let why = "the database is not in its place; left alone: do all nodes have the same swift.conf?";
            self.peer_failures.note_item(path.path(), why);
            // Others of the account may be in theirs.
            return ContainerReport::of(hash, (0, 1));
        }
        match self.send(&info).await {
            Reply::Taken => {}
            Reply::Refused => return refused,
            Reply::NoAccount => {
                let is_aside = device.run(move || match has_objects(&broker)? {
                    true => Ok(false),
                    false => broker.set_aside("no account replicas exist").map(|_| true),
                });
                if is_aside.await == Some(false) {
                    let why = "no server knows its account; it stays, as it has objects: do all nodes have the same \
                               rings?";
                    self.peer_failures.note_item(path.path(), why);
                }
                return refused;
            }
        }
        let marked = device.run(move || {
            let Info {
                put_timestamp,
                delete_timestamp,
                object_count,
                bytes_used,
                ..
            } = info;
            broker.reported(put_timestamp, delete_timestamp, object_count, bytes_used)
        });
        let counted = marked.await.map_or((0, 1), |()| (1, 0));
        ContainerReport::of(hash, counted)
    }

    async fn send(&self, info: &Info) -> Reply {
        let (account, path) = (EntityPath::account(info.account.clone()), path_of(info));
        let (what, context) = (path.path(), context_of(NAME));
        let update = |target| update(target, info);
        let responses = self
            .accounts
            .send_to_primaries(&context, (&account, path), Bytes::new(), update)
            .await;
        let took = responses.iter().filter(|response| response.is_success()).count();
        for response in responses.iter().filter(|response| !response.is_success()) {
            self.peer_failures.note_response(response, &what);
        }
        if took > responses.len() / 2 {
            return Reply::Taken;
        }
        if !all_say_not_found(&responses) {
            return Reply::Refused;
        }
        let head = |target| ReadAccount {
            head_only: true,
            ..ReadAccount::new(target)
        };
        let ring = self.accounts.ring.load_full();
        let partition = self.accounts.partition_of(&ring, &account);
        let mut asked = ring.primaries(partition);
        asked.extend(ring.handoffs(partition).take(asked.len()));
        let head = |_, target| head(target);
        let known = self
            .accounts
            .send(&context, &asked, (partition, account), Bytes::new(), head)
            .await;
        match all_say_not_found(&known) && !known.iter().any(says_deleted) {
            true => Reply::NoAccount,
            false => Reply::Refused,
        }
    }
}

/// Of whatever policy: those of another one than the container's wait for the reconciler.
fn has_objects(broker: &Broker) -> Result<bool, Error> {
    let stats = broker.policy_stats()?;
    Ok(stats.iter().any(|stat| stat.object_count > 0))
}

fn path_of(info: &Info) -> EntityPath {
    let account = EntityPath::account(info.account.clone());
    account.with_container(info.container.clone().unwrap_or_default())
}

/// No server is silent or answers anything else.
fn all_say_not_found(responses: &[NodeResponse]) -> bool {
    let not_found = |response: &NodeResponse| response.status() == Some(StatusCode::NOT_FOUND);
    !responses.is_empty() && responses.iter().all(not_found)
}

/// The account's server knows that there was one.
fn says_deleted(response: &NodeResponse) -> bool {
    (response.response.as_ref()).is_ok_and(|response| response.headers().contains_key(X_ACCOUNT_STATUS))
}

keeps_walk!(ContainerUpdater);

#[async_trait::async_trait]
impl WalkJob for ContainerUpdater {
    type Device = OpenDevice;
    /// A partition.
    type Directory = Partition;
    type Item = Location;
    type Outcome = ContainerReport;

    async fn begin(&mut self) -> Vec<String> {
        let now = self.state.world().clock.elapsed();
        let is_due = |last| now.saturating_sub(last) >= self.repeat_every;
        self.repeats = self.repeated.is_none_or(is_due);
        if self.repeats {
            self.repeated = Some(now);
        }
        self.state.disks.names().await
    }

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        let partitions = |root: &DeviceRoot| Location::partitions(root, Kind::Container);
        OpenDevice::open_with(&mut self.state.disks, NAME, name, partitions).await
    }

    async fn list(&mut self, device: &OpenDevice, partitions: Vec<Partition>) -> DirectoryContents<Self> {
        let in_partition = |root: &DeviceRoot, partition| Location::in_partition(root, Kind::Container, partition);
        DirectoryContents::Items(device.databases_in(partitions, in_partition).await)
    }

    fn items_at_once(&self) -> usize {
        self.concurrency
    }

    async fn stepped(&mut self, _: Duration, is_last: bool) {
        if is_last {
            self.peer_failures.report();
        }
    }

    async fn work(&self, device: &OpenDevice, location: Location) -> WorkedItem<Self> {
        let outcome = self.attend(device, location).await;
        WorkedItem { outcome, rest: None }
    }

    fn count(&mut self, _: &OpenDevice, report: ContainerReport) -> ItemCount {
        self.unchanged.learn(report.stamp.map(|stamp| (report.hash, stamp)));
        let now = self.state.world().clock.elapsed();
        let until = now.saturating_add(self.suppression);
        self.suppressed.retain(|_, until| *until > now);
        self.suppressed.extend(report.refusing.map(|account| (account, until)));
        ItemCount::of(report.done, report.failed)
    }

    fn close(&mut self, device: OpenDevice) {
        self.unchanged.keep(device.name);
    }

    fn pass_figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        Some((
            ReconFile::Container,
            json!({ "container_updater_sweep": pass.seconds() }),
        ))
    }
}

/// Opens the database, unless it is as it was when there was nothing to report. What changed within the time `again` is
/// not forgotten, and sent once more where this pass `repeats`.
fn look(
    world: &World,
    location: Location,
    known: Option<u64>,
    (again, repeats): (Duration, bool),
) -> Result<Look, Error> {
    let stamp = DatabaseStamp::of(world, &location);
    if let (Some(stamp), Some(known)) = (stamp, known)
        && stamp.value == known
    {
        return Ok(Look::Unchanged(known));
    }
    let trusted = stamp.and_then(DatabaseStamp::trusted);
    let is_recent = stamp.is_some_and(|stamp| stamp.age < again.as_secs());
    let broker = match Broker::open(location) {
        // Removed, or a directory that has no database (yet).
        Err(Error::NotFound { .. }) => return Ok(Look::Reported(None)),
        other => other?,
    };
    let (info, _) = broker.whole_info()?;
    if info.account.starts_with(SHARDS) {
        return Ok(Look::Reported(trusted));
    }
    match differs(&info) {
        true => Ok(Look::Report(Box::new((broker, info)))),
        false if is_recent && repeats => Ok(Look::Repeat(Box::new(info))),
        false if is_recent => Ok(Look::Reported(None)),
        false => Ok(Look::Reported(trusted)),
    }
}

fn differs(info: &Info) -> bool {
    info.put_timestamp > info.reported_put_timestamp
        || info.delete_timestamp > info.reported_delete_timestamp
        || info.object_count != info.reported_object_count
        || info.bytes_used != info.reported_bytes_used
}

fn update(target: Target, info: &Info) -> UpdateAccount {
    UpdateAccount {
        put_timestamp: info.put_timestamp.into(),
        delete_timestamp: info.delete_timestamp.into(),
        object_count: info.object_count.into(),
        bytes_used: info.bytes_used.into(),
        policy: info.policy.into(),
        overrides_deleted: Some(HeaderValue::from_static("yes")),
        ..UpdateAccount::new(target)
    }
}
