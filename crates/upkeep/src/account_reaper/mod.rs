//! Account-reaper: what accounts leave behind that were deleted.
//!
//! A deleted account is only marked so. After a while the servers of its primaries delete what it has:
//! each takes some of its containers, chosen by a hash, deletes their objects and then the container, and
//! goes on although something cannot be deleted. When all has gone, replication reclaims the database.
//! Always holds: an account is reaped only while its database says that it is deleted, by its status or by its times,
//! and only by its primaries, of whom more than half answer and none has it as one that was made again; where a delay
//! is configured, only after that by the clocks of all that answer; a container is deleted after all that it lists;
//! whatever is left is tried again in the next pass; versions that S3's object lock holds stay until that ends.
//! Deliberately absent: marking (the account server's), reclaiming (the account-replicator's).
//! Tests: `tests/account_reaper.rs`, `tests/interop/test_account_reaper.py`.

mod remove;

use crate::Disks;
use crate::local_server::LocalServer;
use crate::open_device::OpenDevice;
use crate::peer_failures::PeerFailures;
use crate::ring_client::{NodeResponse, RingClient, context_of};
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::work_share::WorkShare;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http::StatusCode;
use listing_engine::{Broker, DeviceRoot, Entry, Error, Info, Kind, ListQuery, Location};
use peer::message::ReadAccount;
use peer::message::header_names::X_PUT_TIMESTAMP;
pub use remove::ReaperTargets;
use remove::{ReaperRecord, Removal};
use std::collections::VecDeque;
use std::time::Duration;
use vocabulary::{EntityPath, Partition, PolicyIndex, Timestamp};

const NAME: &str = "account-reaper";
/// Containers that are listed at a time.
const CONTAINERS: usize = 3000;
/// … and bytes of their names, which another replica's database may have longer than clients can make them.
const NAMES: usize = 8 << 20;

/// What an operator can say.
#[derive(Debug, Clone)]
pub struct ReaperOptions {
    /// How long after its deletion an account is left as it is.
    pub delay: Duration,
    /// How long after that the log names what could not be deleted.
    pub warn_after: Duration,
    /// Objects that are deleted at the same time.
    pub concurrency: usize,
    /// How the ring names this server.
    pub here: LocalServer,
}

/// Goes over the accounts that this server is a primary of.
pub struct AccountReaper {
    accounts: RingClient,
    below: ReaperTargets,
    options: ReaperOptions,
    failures: PeerFailures,
    state: WalkState<Self>,
}

/// What the walk comes to: an account's database, and how far its reaping has got.
pub(crate) enum ReaperItem {
    /// A database, and this server's share of its containers.
    Found(Location, WorkShare),
    Reaping(Box<DeletedAccount>),
}

/// An account that is being reaped.
pub(crate) struct DeletedAccount {
    location: Location,
    share: WorkShare,
    path: EntityPath,
    deleted: Timestamp,
    marker: String,
    /// All of it has been listed.
    listed: bool,
    containers: VecDeque<String>,
    container: Option<DeletedContainer>,
    figures: ReaperFigures,
    began: Duration,
}

/// A container that is being emptied.
struct DeletedContainer {
    path: EntityPath,
    marker: String,
    policy: PolicyIndex,
    objects: VecDeque<String>,
    /// Something in it could not be deleted.
    stuck: bool,
}

#[derive(Debug, Default)]
struct ReaperFigures {
    containers: u64,
    objects: u64,
    containers_left: u64,
    objects_left: u64,
}

impl AccountReaper {
    /// Reaps what is below the accounts on `disks`.
    pub fn new(disks: Disks, accounts: RingClient, below: ReaperTargets, options: ReaperOptions) -> Self {
        Self {
            accounts,
            below,
            options,
            failures: PeerFailures::new(NAME),
            state: WalkState::new(NAME, disks),
        }
    }

    fn record(&self) -> ReaperRecord<'_> {
        ReaperRecord {
            statsd: &self.state.statsd,
            failures: &self.failures,
        }
    }

    /// Begins with an account if its time has come.
    async fn look(&self, device: &OpenDevice, location: Location, share: WorkShare) -> Option<ReaperItem> {
        let place = location.clone();
        let info = device
            .run(move || match Broker::open(place).and_then(|broker| broker.info()) {
                Err(Error::NotFound { .. }) => Ok(None),
                other => other.map(Some),
            })
            .await;
        let info = info.flatten()?;
        if !info.is_marked_deleted() || info.container_count == 0 || !self.is_due(&info).await {
            return None;
        }
        let count = info.container_count;
        tracing::info!(
            "{NAME}: Beginning pass on account {} ({count} containers)",
            info.account
        );
        Some(ReaperItem::Reaping(Box::new(DeletedAccount {
            location,
            share,
            path: EntityPath::account(info.account),
            deleted: info.delete_timestamp,
            marker: String::new(),
            listed: false,
            containers: VecDeque::new(),
            container: None,
            figures: ReaperFigures::default(),
            began: self.state.world().clock.elapsed(),
        })))
    }

    /// Whether the delay is over, by this machine's clock and those of the account's servers, and none of them has the
    /// account again: what one database or a clock that is ahead makes due would be gone for good.
    async fn is_due(&self, info: &Info) -> bool {
        let due = info.delete_timestamp.as_f64() + self.options.delay.as_secs_f64();
        if due > self.state.world().clock.now().as_f64() {
            return false;
        }
        let head = |target| ReadAccount {
            head_only: true,
            ..ReadAccount::new(target)
        };
        let path = EntityPath::account(info.account.as_str());
        let place = (&path, path.clone());
        let sent = self
            .accounts
            .send_to_primaries(&context_of(NAME), place, Bytes::new(), head)
            .await;
        // One whose drive is away answers as well, and knows nothing.
        let has_looked = |node: &&NodeResponse| node.is_success() || node.status() == Some(StatusCode::NOT_FOUND);
        if sent.iter().filter(has_looked).count() * 2 <= sent.len() {
            let why = "too few of its servers answer to know that it is deleted, and how long ago by their clocks";
            self.failures.note_item(path.path(), why);
            return false;
        }
        for node in sent {
            // One that has the deletion by replication answers as if it were there, until it is empty.
            if node.is_success()
                && node
                    .timestamp(&X_PUT_TIMESTAMP)
                    .is_none_or(|put| put > info.delete_timestamp)
            {
                let why = "this server has the account as one that was made again; not reaped while they disagree";
                self.failures.note_at(node.place, path.path(), why.to_owned());
                return false;
            }
            if self.options.delay.is_zero() {
                continue;
            }
            // A date has whole seconds, and a server may say the same for a second.
            if node.date().is_some_and(|date| date.saturating_add(2) as f64 <= due) {
                let why = "by this server's clock delay_reaping is not over; one of the two clocks is wrong";
                self.failures.note_at(node.place, path.path(), why.to_owned());
                return false;
            }
        }
        true
    }

    /// One step of reaping; `false` when there is no more of the account.
    async fn reap(&self, device: &OpenDevice, account: &mut DeletedAccount) -> (ItemCount, bool) {
        if let Some(mut container) = account.container.take() {
            let (counted, more) = self.empty(account, &mut container).await;
            account.container = more.then_some(container);
            return (counted, true);
        }
        if let Some(name) = account.containers.pop_front() {
            account.container = Some(DeletedContainer {
                path: account.path.with_container(name),
                marker: String::new(),
                policy: PolicyIndex::LEGACY,
                objects: VecDeque::new(),
                stuck: false,
            });
            return (ItemCount::default(), true);
        }
        if account.listed {
            self.finish(device, account).await;
            return (ItemCount::default(), false);
        }
        self.list_containers(device, account).await;
        (ItemCount::default(), true)
    }

    async fn list_containers(&self, device: &OpenDevice, account: &mut DeletedAccount) {
        let query = ListQuery {
            limit: CONTAINERS,
            marker: account.marker.clone(),
            reserved: true,
            ..ListQuery::default()
        };
        let place = account.location.clone();
        let names = device.run(move || {
            let (mut names, mut bytes) = (vec![], 0);
            Broker::open(place)?.list_containers(&query, |entry| {
                if let Entry::Item(container) = entry
                    && bytes <= NAMES
                {
                    bytes += container.name.len();
                    names.push(container.name.to_owned());
                }
            })?;
            Ok::<_, Error>(names)
        });
        let names = names.await.unwrap_or_default();
        match names.last() {
            Some(last) => account.marker.clone_from(last),
            None => account.listed = true,
        }
        account.containers = names.into_iter().filter(|name| account.share.has_name(name)).collect();
    }

    /// Deletes some objects of a container, or lists more, or deletes it; `false` when it is seen to.
    async fn empty(&self, account: &mut DeletedAccount, container: &mut DeletedContainer) -> (ItemCount, bool) {
        if !container.objects.is_empty() {
            return (self.remove_objects(account, container).await, true);
        }
        let listed = self.below.page(&container.path, &container.marker, self.record()).await;
        let Some(page) = listed else {
            let why = "no server lists a container; it stays for now";
            self.failures.note_item(container.path.path(), why);
            account.figures.containers_left += 1;
            self.state.statsd.increment("containers_remaining");
            return (ItemCount::FAILED, false);
        };
        let goes_on = page.names.last().is_some_and(|last| *last > container.marker);
        if let Some(last) = page.names.last().filter(|_| goes_on) {
            container.marker.clone_from(last);
            container.policy = page.policy;
            container.objects = page.names.into();
            return (ItemCount::default(), true);
        }
        (self.remove_container(account, container).await, false)
    }

    async fn remove_objects(&self, account: &mut DeletedAccount, container: &mut DeletedContainer) -> ItemCount {
        let concurrency = self.options.concurrency.max(1);
        let count = concurrency.saturating_mul(4).min(container.objects.len());
        let names: Vec<String> = container.objects.drain(..count).collect();
        let world = self.state.world();
        let (below, parent, policy) = (&self.below, &container.path, container.policy);
        let record = self.record();
        let removals = stream::iter(
            names
                .into_iter()
                .map(|name| below.remove_object(world, policy, parent.with_object(name), record)),
        );
        let removals: Vec<Removal> = removals.buffer_unordered(concurrency).collect().await;
        let done = removals.iter().filter(|removal| **removal == Removal::Done).count() as u64;
        let failed = removals.len() as u64 - done;
        container.stuck |= failed > 0;
        account.figures.objects += done;
        account.figures.objects_left += failed;
        ItemCount::of(done, failed)
    }

    async fn remove_container(&self, account: &mut DeletedAccount, container: &DeletedContainer) -> ItemCount {
        let ring = self.accounts.ring.load_full();
        let partition = self.accounts.partition_of(&ring, &account.path);
        let accounts = ring.primaries(partition);
        let removal = match container.stuck {
            true => {
                self.state.statsd.increment("containers_remaining");
                Removal::Left
            }
            false => {
                let world = self.state.world();
                let path = container.path.clone();
                self.below
                    .remove_container(world, &accounts, partition, path, self.record())
                    .await
            }
        };
        match removal {
            Removal::Done => {
                account.figures.containers += 1;
                ItemCount::DONE
            }
            Removal::Left => {
                account.figures.containers_left += 1;
                ItemCount::FAILED
            }
        }
    }

    async fn finish(&self, device: &OpenDevice, account: &DeletedAccount) {
        let took = self.state.world().clock.elapsed().saturating_sub(account.began);
        self.state.statsd.timing(format_args!("timing"), took);
        let (name, figures) = (&account.path.account, &account.figures);
        let ReaperFigures {
            containers,
            objects,
            containers_left,
            objects_left,
        } = figures;
        tracing::info!(
            "{NAME}: Completed pass on account {name}: {containers} containers deleted, {objects} objects deleted, \
             {containers_left} containers remaining, {objects_left} objects remaining"
        );
        let place = account.location.clone();
        let empty = device
            .run(move || Broker::open(place)?.is_empty())
            .await
            .unwrap_or(true);
        let patience = self.options.delay.saturating_add(self.options.warn_after).as_secs_f64();
        let age = self.state.world().clock.now().as_f64() - account.deleted.as_f64();
        if !empty && age > patience {
            let since = account.deleted.last_modified();
            tracing::warn!("{NAME}: Account {name} has not been reaped since {since}");
        }
    }
}

keeps_walk!(AccountReaper);

#[async_trait::async_trait]
impl WalkJob for AccountReaper {
    type Device = OpenDevice;
    /// A partition.
    type Directory = Partition;
    type Item = ReaperItem;
    type Outcome = ItemCount;

    async fn begin(&mut self) -> Vec<String> {
        let WalkState { disks, statsd, .. } = &mut self.state;
        let devices = disks.names().await;
        (0..disks.left_out()).for_each(|_| statsd.increment("errors"));
        devices
    }

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        let partitions = |root: &DeviceRoot| Location::partitions(root, Kind::Account);
        OpenDevice::open_with(&mut self.state.disks, NAME, name, partitions).await
    }

    /// Only what this device is a primary of.
    async fn list(&mut self, device: &OpenDevice, partitions: Vec<Partition>) -> DirectoryContents<Self> {
        let ring = self.accounts.ring.load_full();
        let mut found = vec![];
        for partition in partitions {
            let Some(share) = self.options.here.share_of(&ring, partition, &device.name) else {
                continue;
            };
            let in_partition = |root: &DeviceRoot, partition| Location::in_partition(root, Kind::Account, partition);
            let databases = device.databases_in([partition], in_partition).await;
            found.extend(databases.into_iter().map(|location| ReaperItem::Found(location, share)));
        }
        DirectoryContents::Items(found)
    }

    async fn stepped(&mut self, _: Duration, is_last: bool) {
        if is_last {
            self.failures.report();
        }
    }

    async fn work(&self, device: &OpenDevice, item: ReaperItem) -> WorkedItem<Self> {
        let (outcome, rest) = match item {
            ReaperItem::Found(location, share) => (ItemCount::default(), self.look(device, location, share).await),
            ReaperItem::Reaping(mut account) => {
                let (counted, more) = self.reap(device, &mut account).await;
                (counted, more.then_some(ReaperItem::Reaping(account)))
            }
        };
        WorkedItem { outcome, rest }
    }

    fn count(&mut self, _: &OpenDevice, counted: ItemCount) -> ItemCount {
        counted
    }
}
