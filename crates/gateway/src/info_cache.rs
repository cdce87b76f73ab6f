//! What is known of accounts and containers: in this process first, in memcached second, from their
//! servers last.
//!
//! The keys and values in memcached are OpenStack's (`account/a`, `container/a/c`), so proxies of
//! both kinds share them. What this process has cached is believed for a moment only
//! (`GatewayOptions::local_cache`), because other gateways' changes reach us through memcached. Every
//! write to an account or container through this gateway forgets it in both, and every answer of its servers that a
//! client gets is what is known from then on, so that no client sees a container in one answer and not in the next.
//! Always holds: an answer that was under way while its subject was written to is not cached; without
//! memcached, or with one that answers rubbish, everything works, only with more questions asked.

use crate::options::GatewayOptions;
use lru::LruCache;
use parking_lot::Mutex;
use request_pipeline::{AccountInfo, ContainerInfo, SharedCache};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::Statsd;
use world::World;

/// Descriptions kept in this process.
const KEPT: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
/// Bytes of them, about: their names and metadata are any client's, and may take 10 KiB and more for each.
const KEPT_BYTES: usize = 64 << 20;
/// What a description takes that has no metadata, and what each of those takes besides its bytes.
const EMPTY: usize = 512;
const EACH: usize = 64;

/// A description.
#[derive(Clone)]
pub(crate) enum KnownInfo {
    Account(Arc<AccountInfo>),
    Container(Arc<ContainerInfo>),
}

struct Entry {
    known: KnownInfo,
    until: Duration,
    /// Bytes, about.
    size: usize,
}

/// Descriptions by name; those that were used longest ago make room.
struct LocalInfos {
    entries: LruCache<String, Entry>,
    size: usize,
}

impl LocalInfos {
    fn put(&mut self, key: String, known: KnownInfo, until: Duration) {
        let size = key.len() + known.size();
        let replaced = self.entries.push(key, Entry { known, until, size });
        self.size = self.size + size - replaced.map_or(0, |(_, entry)| entry.size);
        while self.size > KEPT_BYTES
            && let Some((_, entry)) = self.entries.pop_lru()
        {
            self.size -= entry.size;
        }
    }

    fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.pop(key) {
            self.size -= entry.size;
        }
    }
}

impl KnownInfo {
    /// Bytes that it takes, about.
    fn size(&self) -> usize {
        let of_map = |map: &BTreeMap<String, String>| -> usize {
            map.iter().map(|(name, value)| name.len() + value.len() + EACH).sum()
        };
        let of_text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        EMPTY
            + match self {
                Self::Account(info) => of_map(&info.meta) + of_map(&info.sysmeta),
                Self::Container(info) => {
                    let texts = [
                        &info.read_acl,
                        &info.write_acl,
                        &info.sync_to,
                        &info.sync_key,
                        &info.versions,
                    ];
                    of_map(&info.meta) + of_map(&info.sysmeta) + texts.into_iter().map(of_text).sum::<usize>()
                }
            }
    }
}

/// When a question was asked, counted in what was forgotten until then.
#[derive(Clone, Copy)]
pub(crate) struct CacheMoment(pub(crate) u64);

/// The two caches.
pub(crate) struct InfoCache {
    world: World,
    memcached: Option<Arc<dyn SharedCache>>,
    local: Mutex<LocalInfos>,
    local_for: Duration,
    pub(crate) accounts_for: Duration,
    pub(crate) containers_for: Duration,
    /// Counts what was forgotten, so that answers from before are recognised.
    forgotten: AtomicU64,
    statsd: Statsd,
}

impl InfoCache {
    pub(crate) fn new(world: World, memcached: Option<Arc<dyn SharedCache>>, options: &GatewayOptions) -> Self {
        Self {
            world,
            memcached,
            local: Mutex::new(LocalInfos {
                entries: LruCache::new(KEPT),
                size: 0,
            }),
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
        self.local.lock().forget(&key);
        if let Some(memcached) = &self.memcached {
            memcached.delete(&key).await;
        }
    }

    /// Now, for what a question that is asked now will be answered.
    pub(crate) fn moment(&self) -> CacheMoment {
        CacheMoment(self.forgotten.load(Ordering::SeqCst))
    }

    pub(crate) fn local(&self, key: &str) -> Option<KnownInfo> {
        let mut local = self.local.lock();
        let entry = local.entries.get(key)?;
        (entry.until > self.world.clock.elapsed()).then(|| entry.known.clone())
    }

    pub(crate) fn keep_local(&self, key: String, known: KnownInfo, since: u64) {
        let mut local = self.local.lock();
        if self.forgotten.load(Ordering::SeqCst) == since {
            let until = self.world.clock.elapsed() + self.local_for;
            local.put(key, known, until);
        }
    }

    pub(crate) async fn keep_shared(&self, key: &str, value: serde_json::Value, keep: Duration, since: u64) {
        let Some(memcached) = &self.memcached else { return };
        if self.forgotten.load(Ordering::SeqCst) == since {
            memcached.set(key, &value, keep).await;
        }
    }

    /// Tells where a description came from; one of a server with the status it came with.
    pub(crate) fn found(&self, kind: &str, place: &str) {
        self.statsd.count(format_args!("{kind}.info.{place}"), 1);
    }

    pub(crate) fn missed(&self, kind: &str, status: u16) {
        let why = if self.memcached.is_some() { "miss" } else { "disabled" };
        self.statsd.count(format_args!("{kind}.info.cache.{why}.{status}"), 1);
    }

    pub(crate) async fn shared(&self, key: &str) -> Option<serde_json::Value> {
        self.memcached.as_ref()?.get(key).await
    }
}

/// The name of a description in memcached.
pub(crate) fn key(account: &str, container: Option<&str>) -> String {
    match container {
        None => ["account/", account].concat(),
        Some(container) => ["container/", account, "/", container].concat(),
    }
}

/// How long a status is remembered: what is missing for a tenth of the time, failures not at all.
pub(crate) fn keep_for(status: u16, full: Duration) -> Option<Duration> {
    match status {
        200..=299 => Some(full),
        404 | 410 => Some(full / 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_bounded_by_their_bytes() {
        let mut local = LocalInfos {
            entries: LruCache::new(KEPT),
            size: 0,
        };
        let large = || {
            let meta = BTreeMap::from([("quota".to_owned(), "x".repeat(4000))]);
            let read_acl = Some("a".repeat(8000));
            KnownInfo::Container(Arc::new(ContainerInfo {
                meta,
                read_acl,
                ..ContainerInfo::default()
            }))
        };
        for number in 0..20_000 {
            local.put(format!("container/a/{number}"), large(), Duration::ZERO);
        }
        assert!(local.size <= KEPT_BYTES && local.entries.len() * 12_000 <= KEPT_BYTES);
        assert!(local.entries.contains("container/a/19999") && !local.entries.contains("container/a/0"));
        let (count, size) = (local.entries.len(), local.size);
        local.put("container/a/19999".into(), large(), Duration::ZERO);
        assert_eq!((local.entries.len(), local.size), (count, size));
        for number in 0..20_000 {
            local.forget(&format!("container/a/{number}"));
        }
        assert_eq!((local.entries.len(), local.size), (0, 0));
    }
}
