//! What is known of accounts and containers: in this process first, in memcached second, from their
//! servers last.
//!
//! The keys and values in memcached are OpenStack's (`account/a`, `container/a/c`), so proxies of
//! both kinds share them. What this process has cached is believed for a moment only
//! (`GatewayOptions::local_cache`), because other gateways' changes reach us through memcached. Every
//! write to an account or container through this gateway forgets it in both, and every answer of its servers that a client
//! gets is what is known from then on, so that nobody is told of a container by one request and not by the next.
//! Always holds: an answer that was under way while its subject was written to is not cached; without
//! memcached, or with one that answers rubbish, everything works, only with more questions asked.

use crate::backend::{Question, base_headers, header};
use crate::candidates::Candidates;
use crate::gateway::Shared;
use crate::options::GatewayOptions;
use crate::{info_json, read};
use http::{HeaderMap, Method};
use lru::LruCache;
use parking_lot::Mutex;
use request_pipeline::{AccountInfo, ContainerInfo, InfoSource, Location, PolicyUse, SharedCache};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, Policies, Policy, PolicyIndex};
use world::World;

/// Descriptions kept in this process.
const KEPT: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

#[derive(Clone)]
enum Known {
    Account(Arc<AccountInfo>),
    Container(Arc<ContainerInfo>),
}

struct Entry {
    known: Known,
    until: Duration,
}

/// When a question was asked, counted in what was forgotten until then.
#[derive(Clone, Copy)]
pub(crate) struct Moment(u64);

/// The two caches.
pub(crate) struct InfoCache {
    world: World,
    memcached: Option<Arc<dyn SharedCache>>,
    local: Mutex<LruCache<String, Entry>>,
    local_for: Duration,
    accounts_for: Duration,
    containers_for: Duration,
    /// Counts what was forgotten, so that answers from before are recognised.
    forgotten: AtomicU64,
    statsd: Statsd,
}

impl InfoCache {
    pub(crate) fn new(world: World, memcached: Option<Arc<dyn SharedCache>>, options: &GatewayOptions) -> Self {
        Self {
            world,
            memcached,
            local: Mutex::new(LruCache::new(KEPT)),
            local_for: options.local_cache,
            accounts_for: options.recheck_account_existence,
            containers_for: options.recheck_container_existence,
            forgotten: AtomicU64::new(0),
            statsd: options.statsd.clone(),
        }
    }

    /// Forgets an account (without `container`) or a container, here and in memcached.
    pub(crate) async fn forget(&self, account: &str, container: Option<&str>) {
        let key = key(account, container);
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.local.lock().pop(&key);
        if let Some(memcached) = &self.memcached {
            memcached.delete(&key).await;
        }
    }

    /// Now, for [`Shared::note_account`] and [`Shared::note_container`].
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.forgotten.load(Ordering::SeqCst))
    }

    fn local(&self, key: &str) -> Option<Known> {
        let mut local = self.local.lock();
        let entry = local.get(key)?;
        (entry.until > self.world.clock.elapsed()).then(|| entry.known.clone())
    }

    fn keep_local(&self, key: String, known: Known, since: u64) {
        let mut local = self.local.lock();
        if self.forgotten.load(Ordering::SeqCst) == since {
            let until = self.world.clock.elapsed() + self.local_for;
            local.put(key, Entry { known, until });
        }
    }

    async fn keep_shared(&self, key: &str, value: serde_json::Value, keep: Duration, since: u64) {
        let Some(memcached) = &self.memcached else { return };
        if self.forgotten.load(Ordering::SeqCst) == since {
            memcached.set(key, &value, keep).await;
        }
    }

    /// Tells where a description came from; one of a server with the status it came with.
    fn found(&self, kind: &str, place: &str) {
        self.statsd.count(format_args!("{kind}.info.{place}"), 1);
    }

    fn missed(&self, kind: &str, status: u16) {
        let why = if self.memcached.is_some() { "miss" } else { "disabled" };
        self.statsd.count(format_args!("{kind}.info.cache.{why}.{status}"), 1);
    }

    async fn shared(&self, key: &str) -> Option<serde_json::Value> {
        self.memcached.as_ref()?.get(key).await
    }
}

fn key(account: &str, container: Option<&str>) -> String {
    match container {
        None => ["account/", account].concat(),
        Some(container) => ["container/", account, "/", container].concat(),
    }
}

/// How long a status is remembered: what is missing for a tenth of the time, failures not at all.
fn keep_for(status: u16, full: Duration) -> Option<Duration> {
    match status {
        200..=299 => Some(full),
        404 | 410 => Some(full / 10),
        _ => None,
    }
}

#[async_trait::async_trait]
impl InfoSource for Shared {
    async fn account(&self, account: &str) -> Arc<AccountInfo> {
        let key = key(account, None);
        if let Some(Known::Account(info)) = self.cache.local(&key) {
            self.cache.found("account", "infocache.hit");
            return info;
        }
        Box::pin(self.learn_account(key, account)).await
    }

    fn location(&self, entity: &EntityPath, policy: PolicyIndex) -> Location {
        let account = &entity.account;
        let route = match (&entity.container, &entity.object) {
            (None, _) => Some(self.rings.account_route(account)),
            (Some(container), None) => Some(self.rings.container_route(account, container)),
            (Some(container), Some(object)) => self.rings.object_route(policy, account, container, object),
        };
        let Some(route) = route else {
            return Location::default();
        };
        let place = |node: crate::nodes::Node| (node.ip, node.port, node.device);
        Location {
            partition: route.partition,
            places: route.primaries.into_iter().map(place).collect(),
        }
    }

    async fn container(&self, account: &str, container: &str) -> Arc<ContainerInfo> {
        let key = key(account, Some(container));
        if let Some(Known::Container(info)) = self.cache.local(&key) {
            self.cache.found("container", "infocache.hit");
            return info;
        }
        Box::pin(self.learn_container(key, account, container)).await
    }
}

impl Shared {
    /// What memcached or a server says, where this process does not know.
    async fn learn_account(&self, key: String, account: &str) -> Arc<AccountInfo> {
        let since = self.cache.forgotten.load(Ordering::SeqCst);
        if let Some(info) = self
            .cache
            .shared(&key)
            .await
            .and_then(|value| info_json::account_from(&value))
        {
            let info = Arc::new(info);
            self.cache.found("account", "cache.hit");
            self.cache.keep_local(key, Known::Account(info.clone()), since);
            return info;
        }
        let (status, headers) = self.ask_about(EntityPath::account(account)).await;
        self.cache.missed("account", status);
        let info = Arc::new(account_info(status, &headers, &self.rings.policies));
        if let Some(keep) = keep_for(status, self.cache.accounts_for) {
            self.cache
                .keep_shared(&key, info_json::account_to(&info), keep, since)
                .await;
            self.cache.keep_local(key, Known::Account(info.clone()), since);
        }
        info
    }

    /// Likewise of a container.
    async fn learn_container(&self, key: String, account: &str, container: &str) -> Arc<ContainerInfo> {
        let since = self.cache.forgotten.load(Ordering::SeqCst);
        if let Some(info) = self
            .cache
            .shared(&key)
            .await
            .and_then(|value| info_json::container_from(&value))
        {
            let info = Arc::new(info);
            self.cache.found("container", "cache.hit");
            self.cache.keep_local(key, Known::Container(info.clone()), since);
            return info;
        }
        let (status, headers) = self
            .ask_about(EntityPath::account(account).with_container(container))
            .await;
        self.cache.missed("container", status);
        let info = Arc::new(container_info(status, &headers));
        if let Some(keep) = keep_for(status, self.cache.containers_for) {
            self.cache
                .keep_shared(&key, info_json::container_to(&info, &headers), keep, since)
                .await;
            self.cache.keep_local(key, Known::Container(info.clone()), since);
        }
        info
    }

    /// Takes note of what an account's server has answered to a question that was asked after `since`.
    pub(crate) async fn note_account(&self, account: &str, status: u16, headers: &HeaderMap, since: Moment) {
        let Some(keep) = keep_for(status, self.cache.accounts_for) else {
            return;
        };
        let (key, info) = (key(account, None), account_info(status, headers, &self.rings.policies));
        if matches!(self.cache.local(&key), Some(Known::Account(known)) if *known == info) {
            return;
        }
        let value = info_json::account_to(&info);
        self.cache.keep_shared(&key, value, keep, since.0).await;
        self.cache.keep_local(key, Known::Account(Arc::new(info)), since.0);
    }

    /// Likewise of a container's.
    pub(crate) async fn note_container(
        &self,
        (account, container): (&str, &str),
        status: u16,
        headers: &HeaderMap,
        since: Moment,
    ) {
        let Some(keep) = keep_for(status, self.cache.containers_for) else {
            return;
        };
        let (key, info) = (key(account, Some(container)), container_info(status, headers));
        if matches!(self.cache.local(&key), Some(Known::Container(known)) if *known == info) {
            return;
        }
        let value = info_json::container_to(&info, headers);
        self.cache.keep_shared(&key, value, keep, since.0).await;
        self.cache.keep_local(key, Known::Container(Arc::new(info)), since.0);
    }

    async fn ask_about(&self, path: EntityPath) -> (u16, HeaderMap) {
        let route = match &path.container {
            None => self.rings.account_route(&path.account),
            Some(container) => self.rings.container_route(&path.account, container),
        };
        let headers = base_headers("info", self.world.clock.now());
        let question = Question {
            method: Method::HEAD,
            path: Arc::new(path),
            headers,
            query: String::new(),
        };
        let mut candidates = Candidates::new(self, route);
        match read::find(self, &mut candidates, &question, false).await {
            Ok(source) => (
                source.response.status().as_u16(),
                source.response.into_parts().0.headers,
            ),
            Err(refusal) => (refusal.status().as_u16(), refusal.into_parts().0.headers),
        }
    }
}

fn number(headers: &HeaderMap, name: &str) -> u64 {
    header(headers, name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn with_prefix(headers: &HeaderMap, prefix: &str) -> std::collections::BTreeMap<String, String> {
    let own = |name: &str| {
        name.strip_prefix(prefix)
            .filter(|rest| !rest.is_empty())
            .map(str::to_owned)
    };
    headers
        .iter()
        .filter_map(|(name, value)| {
            Some((
                own(name.as_str())?,
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            ))
        })
        .collect()
}

/// What an account server's HEAD says.
pub(crate) fn account_info(status: u16, headers: &HeaderMap, policies: &Policies) -> AccountInfo {
    let of_policy = |policy: &Policy| {
        let prefix = format!("x-account-storage-policy-{}", policy.name.to_lowercase());
        let count = |what: &str| number(headers, &format!("{prefix}-{what}"));
        let of_policy = PolicyUse {
            container_count: count("container-count"),
            object_count: count("object-count"),
            bytes_used: count("bytes-used"),
        };
        (policy.index, of_policy)
    };
    AccountInfo {
        status: if status == 404 && headers.contains_key("x-account-status") {
            410
        } else {
            status
        },
        object_count: number(headers, "x-account-object-count"),
        container_count: number(headers, "x-account-container-count"),
        bytes_used: number(headers, "x-account-bytes-used"),
        policies: policies.iter().map(of_policy).collect(),
        meta: with_prefix(headers, Entity::Account.user_prefix()),
        sysmeta: with_prefix(headers, Entity::Account.system_prefix()),
    }
}

/// What a container server's HEAD says.
pub(crate) fn container_info(status: u16, headers: &HeaderMap) -> ContainerInfo {
    let text = |name: &str| header(headers, name).map(str::to_owned);
    ContainerInfo {
        status,
        read_acl: text("x-container-read"),
        write_acl: text("x-container-write"),
        policy: PolicyIndex(u32::try_from(number(headers, "x-backend-storage-policy-index")).unwrap_or(0)),
        object_count: number(headers, "x-container-object-count"),
        bytes_used: number(headers, "x-container-bytes-used"),
        sync_to: text("x-container-sync-to"),
        sync_key: text("x-container-sync-key"),
        versions: text("x-versions-location"),
        sharding_state: text("x-backend-sharding-state"),
        meta: with_prefix(headers, Entity::Container.user_prefix()),
        sysmeta: with_prefix(headers, Entity::Container.system_prefix()),
    }
}
