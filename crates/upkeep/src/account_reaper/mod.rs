//! Account-reaper: what accounts leave behind that were deleted.
//!
//! A deleted account is only marked so. After a while the servers of its primaries delete what it has:
//! each takes some of its containers, told by a hash, deletes their objects and then the container, and
//! goes on although something cannot be deleted. When all has gone, replication reclaims the database.
//! Always holds: an account is reaped only while its database says DELETED, and only by its primaries; a
//! container is deleted only after all that it lists; whatever is left is tried again in the next pass.
//! Deliberately absent: marking (the account server's), reclaiming (the account-replicator's).
//! Tests: `place.rs`, `tests/interop/test_account_reaper.py`.

mod place;
mod remove;

use crate::local_server::LocalServer;
use crate::ring_client::RingClient;
use crate::{Disks, UpkeepJob, UpkeepStep};
use futures_util::StreamExt;
use futures_util::stream;
use listing_engine::{Broker, Entry, Error, Kind, ListQuery, Location};
use place::{OpenDevice, Share};
pub use remove::ReaperTargets;
use remove::Removal;
use std::collections::VecDeque;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};

const NAME: &str = "account-reaper";
/// Containers that are listed at a time.
const CONTAINERS: usize = 3000;
/// What every account database says that may be reaped.
const DELETED: &str = "DELETED";

/// What an operator can say.
#[derive(Debug, Clone)]
pub struct ReaperOptions {
    /// How long after its deletion an account is left as it is.
    pub delay: Duration,
    /// How long after that the log is told of what could not be deleted.
    pub warn_after: Duration,
    /// Objects that are deleted at the same time.
    pub concurrency: usize,
    /// How the ring names this server.
    pub here: LocalServer,
}

/// Goes over the accounts that this server is a primary of.
pub struct AccountReaper {
    disks: Disks,
    accounts: RingClient,
    below: ReaperTargets,
    options: ReaperOptions,
    statsd: Statsd,
    /// `None` between passes.
    pass: Option<Pass>,
}

/// What is left of a pass.
#[derive(Default)]
struct Pass {
    devices: VecDeque<String>,
    device: Option<OpenDevice>,
    partitions: VecDeque<u32>,
    /// Databases, and this server's share of them.
    found: VecDeque<(Location, Share)>,
    account: Option<Account>,
}

/// An account that is being reaped.
struct Account {
    location: Location,
    share: Share,
    path: EntityPath,
    deleted: Timestamp,
    marker: String,
    /// All of it has been listed.
    listed: bool,
    containers: VecDeque<String>,
    container: Option<Container>,
    figures: Figures,
    began: Duration,
}

/// A container that is being emptied.
struct Container {
    path: EntityPath,
    marker: String,
    policy: PolicyIndex,
    objects: VecDeque<String>,
    /// Something in it could not be deleted.
    stuck: bool,
}

#[derive(Debug, Default)]
struct Figures {
    containers: u64,
    objects: u64,
    containers_left: u64,
    objects_left: u64,
}

impl AccountReaper {
    /// Reaps what is below the accounts on `disks`.
    pub fn new(disks: Disks, accounts: RingClient, below: ReaperTargets, options: ReaperOptions) -> Self {
        Self {
            disks,
            accounts,
            below,
            options,
            statsd: Statsd::default(),
            pass: None,
        }
    }

    async fn open(&mut self, name: String, pass: &mut Pass) {
        let thread = match self.disks.thread(&name) {
            Ok(thread) => thread,
            Err(error) => return tracing::error!("{NAME}: device {name}: no thread: {error}"),
        };
        let device = OpenDevice { name, thread };
        let root = self.disks.root(&device.name);
        let partitions = device.run(move || Location::partitions(&root, Kind::Account)).await;
        pass.partitions = partitions.unwrap_or_default().into();
        pass.device = Some(device);
    }

    /// The databases of the next partitions that are this device's, until some are found.
    async fn list(&self, device: &OpenDevice, pass: &mut Pass) {
        let ring = self.accounts.ring.load_full();
        while let Some(partition) = pass.partitions.pop_front() {
            if partition >= ring.partition_count() {
                continue;
            }
            let primaries = ring.primaries(partition);
            let is_this =
                |primary: &&placement::Device| primary.device == device.name && self.options.here.serves(primary);
            let Some(number) = primaries.iter().position(is_this) else {
                continue;
            };
            let share = Share {
                number,
                of: primaries.len(),
            };
            let root = self.disks.root(&device.name);
            let listed = device
                .run(move || Location::in_partition(&root, Kind::Account, partition))
                .await;
            if let Some(databases) = listed
                && !databases.is_empty()
            {
                pass.found = databases.into_iter().map(|location| (location, share)).collect();
                return;
            }
        }
    }

    /// Begins with an account if its time has come.
    async fn look(&self, device: &OpenDevice, location: Location, share: Share, pass: &mut Pass) {
        let place = location.clone();
        let info = device
            .run(move || match Broker::open(place).and_then(|broker| broker.info()) {
                Err(Error::NotFound { .. }) => Ok(None),
                other => other.map(Some),
            })
            .await;
        let Some(Some(info)) = info else { return };
        let now = self.disks.world().clock.now().as_f64();
        let due = info.delete_timestamp.as_f64() + self.options.delay.as_secs_f64();
        if info.status != DELETED || due > now || info.container_count == 0 {
            return;
        }
        let count = info.container_count;
        tracing::info!(
            "{NAME}: Beginning pass on account {} ({count} containers)",
            info.account
        );
        pass.account = Some(Account {
            location,
            share,
            path: EntityPath::account(info.account),
            deleted: info.delete_timestamp,
            marker: String::new(),
            listed: false,
            containers: VecDeque::new(),
            container: None,
            figures: Figures::default(),
            began: self.disks.world().clock.elapsed(),
        });
    }

    /// One step of reaping; `false` when there is no more of the account.
    async fn reap(&self, device: &OpenDevice, account: &mut Account) -> (UpkeepStep, bool) {
        if let Some(mut container) = account.container.take() {
            let (step, more) = self.empty(account, &mut container).await;
            account.container = more.then_some(container);
            return (step, true);
        }
        if let Some(name) = account.containers.pop_front() {
            account.container = Some(Container {
                path: account.path.with_container(name),
                marker: String::new(),
                policy: PolicyIndex::LEGACY,
                objects: VecDeque::new(),
                stuck: false,
            });
            return (UpkeepStep::LOOKED, true);
        }
        if account.listed {
            self.finish(device, account).await;
            return (UpkeepStep::LOOKED, false);
        }
        self.list_containers(device, account).await;
        (UpkeepStep::LOOKED, true)
    }

    async fn list_containers(&self, device: &OpenDevice, account: &mut Account) {
        let query = ListQuery {
            limit: CONTAINERS,
            marker: account.marker.clone(),
            reserved: true,
            ..ListQuery::default()
        };
        let place = account.location.clone();
        let names = device.run(move || {
            let mut names = vec![];
            Broker::open(place)?.list_containers(&query, |entry| {
                if let Entry::Item(container) = entry {
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
        account.containers = names.into_iter().filter(|name| account.share.has(name)).collect();
    }

    /// Deletes some objects of a container, or lists more, or deletes it; `false` when it is seen to.
    async fn empty(&self, account: &mut Account, container: &mut Container) -> (UpkeepStep, bool) {
        if !container.objects.is_empty() {
            return (self.remove_objects(account, container).await, true);
        }
        let listed = self.below.page(&container.path, &container.marker, &self.statsd).await;
        let Some(page) = listed else {
            tracing::warn!("{NAME}: nobody lists {}; it stays for now", container.path.path());
            account.figures.containers_left += 1;
            self.statsd.increment("containers_remaining");
            return (UpkeepStep::Did { done: 0, failed: 1 }, false);
        };
        let goes_on = page.names.last().is_some_and(|last| *last > container.marker);
        if let Some(last) = page.names.last().filter(|_| goes_on) {
            container.marker.clone_from(last);
            container.policy = page.policy;
            container.objects = page.names.into();
            return (UpkeepStep::LOOKED, true);
        }
        (self.remove_container(account, container).await, false)
    }

    async fn remove_objects(&self, account: &mut Account, container: &mut Container) -> UpkeepStep {
        let concurrency = self.options.concurrency.max(1);
        let count = concurrency.saturating_mul(4).min(container.objects.len());
        let names: Vec<String> = container.objects.drain(..count).collect();
        let world = self.disks.world();
        let (below, parent, policy) = (&self.below, &container.path, container.policy);
        let statsd = &self.statsd;
        let removals = stream::iter(
            names
                .into_iter()
                .map(|name| below.remove_object(world, policy, parent.with_object(name), statsd)),
        );
        let removals: Vec<Removal> = removals.buffer_unordered(concurrency).collect().await;
        let done = removals.iter().filter(|removal| **removal == Removal::Done).count() as u64;
        let failed = removals.len() as u64 - done;
        container.stuck |= failed > 0;
        account.figures.objects += done;
        account.figures.objects_left += failed;
        UpkeepStep::Did { done, failed }
    }

    async fn remove_container(&self, account: &mut Account, container: &Container) -> UpkeepStep {
        let ring = self.accounts.ring.load_full();
        let partition = ring.partition_of(&self.accounts.hash.account(&account.path.account).0);
        let accounts = ring.primaries(partition);
        let removal = match container.stuck {
            true => {
                self.statsd.increment("containers_remaining");
                Removal::Left
            }
            false => {
                let world = self.disks.world();
                let path = container.path.clone();
                let statsd = &self.statsd;
                self.below
                    .remove_container(world, &accounts, partition, path, statsd)
                    .await
            }
        };
        match removal {
            Removal::Done => {
                account.figures.containers += 1;
                UpkeepStep::Did { done: 1, failed: 0 }
            }
            Removal::Left => {
                account.figures.containers_left += 1;
                UpkeepStep::Did { done: 0, failed: 1 }
            }
        }
    }

    async fn finish(&self, device: &OpenDevice, account: &Account) {
        let took = self.disks.world().clock.elapsed().saturating_sub(account.began);
        self.statsd.timing(format_args!("timing"), took);
        let (name, figures) = (&account.path.account, &account.figures);
        let Figures {
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
        let age = self.disks.world().clock.now().as_f64() - account.deleted.as_f64();
        if !empty && age > patience {
            let since = account.deleted.last_modified();
            tracing::warn!("{NAME}: Account {name} has not been reaped since {since}");
        }
    }
}

#[async_trait::async_trait]
impl UpkeepJob for AccountReaper {
    fn name(&self) -> &'static str {
        NAME
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => {
                let devices = self.disks.names().await.into();
                (0..self.disks.left_out()).for_each(|_| self.statsd.increment("errors"));
                Pass {
                    devices,
                    ..Pass::default()
                }
            }
        };
        let mut step = UpkeepStep::LOOKED;
        match (pass.device.clone(), pass.account.take()) {
            (Some(device), Some(mut account)) => {
                let (did, more) = self.reap(&device, &mut account).await;
                step = did;
                pass.account = more.then_some(account);
            }
            (Some(device), None) if !pass.found.is_empty() => {
                if let Some((location, share)) = pass.found.pop_front() {
                    self.look(&device, location, share, &mut pass).await;
                }
            }
            (Some(device), None) if !pass.partitions.is_empty() => self.list(&device, &mut pass).await,
            _ => {
                let Some(next) = pass.devices.pop_front() else {
                    return UpkeepStep::PassOver;
                };
                pass.device = None;
                self.open(next, &mut pass).await;
            }
        }
        self.pass = Some(pass);
        step
    }
}
