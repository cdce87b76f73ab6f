//! How often accounts and containers may be written to, and containers listed.
//!
//! Swift's `ratelimit`. Each limited thing has a counter of the moment at which its next request is due, in steps
//! of `clock_accuracy`; a request moves it on by one interval and waits until its turn. The counters lie in
//! memcached under OpenStack's names, so that gateways of both kinds hold one limit together; without
//! memcached each gateway counts for itself.
//! Always holds: a request that would have to wait longer than `max_sleep_time_seconds` is refused at once (498)
//! and takes no turn. Requests that no limit concerns touch no counter.

use http::Method;
use lru::LruCache;
use parking_lot::Mutex;
use request_pipeline::{ClientRequest, Feature, Next, Response, SharedCache, reply};
use serde_json::{Value, json};
use settings::gateway_filters::{RatelimitSettings, SizeLimit};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// Counters kept in this process where there is no memcached.
const KEPT: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
/// Requests that may have taken a turn at once before those that would wait for too long give theirs back: a counter
/// that is further ahead is none of this clock's.
const CROWD: i64 = 1000;
/// How long an account on the black list waits for its refusal.
const BLACKLIST_SLEEP: Duration = Duration::from_secs(1);

/// Swift's `ratelimit`.
pub struct Ratelimit {
    settings: RatelimitSettings,
    api_versions: Vec<String>,
    counters: Counters,
    world: World,
}

/// A counter's name and its requests per second.
type Limit = (String, f64);

/// It would take too long.
struct TooLong;

impl Ratelimit {
    /// For paths that begin with one of these (`v1`), counting in `cache` if there is one.
    pub fn new(
        settings: RatelimitSettings,
        api_versions: Vec<String>,
        cache: Option<Arc<dyn SharedCache>>,
        world: World,
    ) -> Self {
        let counters = match cache {
            Some(cache) => Counters::Shared(cache),
            None => Counters::Own(OwnCounters {
                names: RandomState::new(),
                counts: Mutex::new(LruCache::new(KEPT)),
            }),
        };
        Self {
            settings,
            api_versions,
            counters,
            world,
        }
    }

    /// Which limits the request falls under; `Err` is the refusal of an account on the black list.
    async fn limits(&self, request: &ClientRequest, next: &Next) -> Result<Vec<Limit>, Response> {
        let mut limits = Vec::new();
        let Some(entity) = request
            .entity
            .as_deref()
            .filter(|_| self.api_versions.contains(&request.api_version))
        else {
            return Ok(limits);
        };
        let (account, options) = (&entity.account, &self.settings.options);
        if options.account_whitelist.contains(account) {
            return Ok(limits);
        }
        let writes = matches!(request.method.as_str(), "PUT" | "POST" | "DELETE" | "COPY");
        let info = next.info().account(account).await;
        let configured = info.sysmeta.get("global-write-ratelimit").map_or("", String::as_str);
        if configured == "WHITELIST" {
            return Ok(limits);
        }
        if configured == "BLACKLIST" || options.account_blacklist.contains(account) {
            tracing::info!(account, "refused: the account is on the black list");
            self.world.clock.sleep(BLACKLIST_SLEEP).await;
            return Err(refusal(request, 497, "Your account has been blacklisted"));
        }
        match (&entity.container, &entity.object) {
            (Some(_), None) if options.account_ratelimit > 0.0 && makes_or_removes(request) => {
                limits.push((format!("ratelimit/{account}"), options.account_ratelimit));
            }
            (Some(container), Some(_)) if writes => {
                let rate = self.rate(&self.settings.container, next, account, container).await;
                limits.extend(rate.map(|rate| (format!("ratelimit/{account}/{container}"), rate)));
            }
            (Some(container), None) if request.method == Method::GET => {
                let rate = self.rate(&self.settings.listing, next, account, container).await;
                limits.extend(rate.map(|rate| (format!("ratelimit_listing/{account}/{container}"), rate)));
            }
            _ => {}
        }
        if writes
            && let Some(rate) = configured
                .trim()
                .parse()
                .ok()
                .filter(|rate: &f64| *rate > 0.0 && rate.is_finite())
        {
            limits.push((format!("ratelimit/global-write/{account}"), rate));
        }
        Ok(limits)
    }

    async fn rate(&self, limits: &[SizeLimit], next: &Next, account: &str, container: &str) -> Option<f64> {
        if limits.is_empty() {
            return None;
        }
        let info = next.info().container(account, container).await;
        rate(limits, info.object_count).filter(|rate| info.exists() && *rate > 0.0)
    }

    /// How long until it is this request's turn.
    async fn turn(&self, (key, rate): &Limit) -> Result<Duration, TooLong> {
        let options = &self.settings.options;
        let steps = |seconds: f64| (seconds * options.clock_accuracy).round() as i64;
        let now = steps(self.world.clock.now().as_f64());
        let interval = (options.clock_accuracy / rate).round() as i64;
        let Some(due) = self.counters.add(key, interval).await else {
            return Ok(Duration::ZERO);
        };
        if now - due > steps(options.rate_buffer_seconds) {
            self.counters.set(key, now + interval).await;
            return Ok(Duration::ZERO);
        }
        let longest = steps(options.max_sleep_time_seconds).saturating_add(interval.saturating_mul(CROWD));
        if due - now > longest {
            tracing::warn!("the rate limit of {key} was counted by a clock that is ahead of this one; it begins anew");
            self.counters.set(key, now + interval).await;
            return Ok(Duration::ZERO);
        }
        let wait = (due - now - interval).max(0) as f64 / options.clock_accuracy;
        if wait > options.max_sleep_time_seconds {
            self.counters.add(key, -interval).await;
            return Err(TooLong);
        }
        Ok(Duration::try_from_secs_f64(wait).unwrap_or_default())
    }
}

fn makes_or_removes(request: &ClientRequest) -> bool {
    request.method == Method::PUT || request.method == Method::DELETE
}

fn refusal(request: &ClientRequest, status: u16, why: &str) -> Response {
    let response = reply::html(status, why.into());
    match request.method == Method::HEAD {
        true => response.map(|_| peer::Body::empty()),
        false => response,
    }
}

/// The rate for a container of `size` objects, between the two sizes next to it; `None` below the first, and
/// for empty containers, as in OpenStack.
fn rate(limits: &[SizeLimit], size: u64) -> Option<f64> {
    if size == 0 {
        return None;
    }
    let above = limits.partition_point(|limit| limit.size <= size);
    let below = limits.get(above.checked_sub(1)?)?;
    let Some(next) = limits.get(above) else {
        return Some(below.rate);
    };
    let part = (size - below.size) as f64 / (next.size - below.size) as f64;
    Some(below.rate + part * (next.rate - below.rate))
}

#[async_trait::async_trait]
impl Feature for Ratelimit {
    fn name(&self) -> &'static str {
        "ratelimit"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let shown = |limits: &[SizeLimit]| -> Vec<Value> {
            limits.iter().map(|limit| json!([limit.size, limit.rate])).collect()
        };
        let section = json!({
            "account_ratelimit": self.settings.options.account_ratelimit,
            "max_sleep_time_seconds": self.settings.options.max_sleep_time_seconds,
            "container_ratelimits": shown(&self.settings.container),
            "container_listing_ratelimits": shown(&self.settings.listing),
        });
        vec![("ratelimit", section)]
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let limits = match self.limits(&request, &next).await {
            Ok(limits) => limits,
            Err(refusal) => return refusal,
        };
        for limit in &limits {
            let Ok(wait) = self.turn(limit).await else {
                tracing::info!(limit = limit.0, "refused: it would have had to wait too long");
                return refusal(&request, 498, "Slow down");
            };
            let logged = self.settings.options.log_sleep_time_seconds;
            if logged > 0.0 && wait.as_secs_f64() > logged {
                tracing::warn!(
                    limit = limit.0,
                    seconds = wait.as_secs_f64(),
                    "held back by a rate limit"
                );
            }
            if !wait.is_zero() {
                self.world.clock.sleep(wait).await;
            }
        }
        next.run(request).await
    }
}

enum Counters {
    Shared(Arc<dyn SharedCache>),
    Own(OwnCounters),
}

/// Counters of this process. Their names are those of accounts and containers as strangers spell them, of any length:
/// only hashes are kept.
struct OwnCounters {
    names: RandomState,
    counts: Mutex<LruCache<u64, i64>>,
}

impl Counters {
    /// What it is then; `None` when nothing counts.
    async fn add(&self, key: &str, by: i64) -> Option<i64> {
        match self {
            Self::Shared(cache) => {
                let value = cache.increment(key, by, Duration::ZERO).await?;
                i64::try_from(value).ok()
            }
            Self::Own(own) => {
                let mut counts = own.counts.lock();
                let counter = counts.get_or_insert_mut(own.names.hash_one(key), || 0);
                *counter = counter.saturating_add(by).max(0);
                Some(*counter)
            }
        }
    }

    async fn set(&self, key: &str, value: i64) {
        match self {
            Self::Shared(cache) => cache.set(key, &value.into(), Duration::ZERO).await,
            Self::Own(own) => {
                own.counts.lock().put(own.names.hash_one(key), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, request};
    use request_pipeline::{AccountInfo, ContainerInfo, Pipeline};
    use settings::declare::{Options, Scope};
    use settings::gateway_filters::RatelimitOptions;
    use std::sync::atomic::{AtomicU64, Ordering};
    use vocabulary::Timestamp;

    /// A clock on which sleeping takes no time.
    struct Quick(AtomicU64);

    impl world::Clock for Quick {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(1_700_000_000_000_000 + self.0.load(Ordering::SeqCst))
        }

        fn elapsed(&self) -> Duration {
            Duration::from_micros(self.0.load(Ordering::SeqCst))
        }

        fn sleep(&self, duration: Duration) -> world::BoxFuture<'static, ()> {
            self.0
                .fetch_add(u64::try_from(duration.as_micros()).unwrap(), Ordering::SeqCst);
            Box::pin(std::future::ready(()))
        }
    }

    struct Bench {
        clock: Arc<Quick>,
        pipeline: Pipeline,
    }

    fn bench(configured: &str, objects: u64, change: impl Fn(&mut RatelimitSettings)) -> Bench {
        let mut settings = RatelimitSettings {
            options: RatelimitOptions::read(&Scope::empty()).unwrap(),
            container: vec![],
            listing: vec![],
        };
        change(&mut settings);
        let clock = Arc::new(Quick(AtomicU64::new(0)));
        let world = World {
            clock: clock.clone(),
            ..World::real()
        };
        let core = Answer::new(|_| reply::html(200, "Some Content".into()));
        *core.account.lock().unwrap() = Arc::new(AccountInfo {
            sysmeta: [("global-write-ratelimit".to_owned(), configured.to_owned())].into(),
            ..AccountInfo::default()
        });
        *core.container.lock().unwrap() = Arc::new(ContainerInfo {
            status: 204,
            object_count: objects,
            ..ContainerInfo::default()
        });
        let feature = Ratelimit::new(settings, vec!["v1".into()], None, world);
        let pipeline = Pipeline::new(vec![Arc::new(feature)], Arc::new(core));
        Bench { clock, pipeline }
    }

    impl Bench {
        /// Statuses of so many requests, and how long they took together.
        async fn run(&self, method: &str, path: &str, times: usize) -> (Vec<u16>, f64) {
            let began = self.clock.0.load(Ordering::SeqCst);
            let mut statuses = Vec::new();
            for _ in 0..times {
                statuses.push(self.pipeline.run(request(method, path)).await.status().as_u16());
            }
            (statuses, (self.clock.0.load(Ordering::SeqCst) - began) as f64 / 1e6)
        }
    }

    #[tokio::test]
    async fn containers_of_an_account_come_and_go_at_its_rate() {
        for (method, path, expected) in [
            ("PUT", "/v1/a/c", 9.8),
            ("DELETE", "/v1/a/c", 9.8),
            ("GET", "/v1/a/c", 0.0),
            ("POST", "/v1/a/c", 0.0),
            ("PUT", "/v1/a/c/o", 0.0),
            ("PUT", "/nothing/a/c", 0.0),
        ] {
            let bench = bench("", 0, |s| s.options.account_ratelimit = 5.0);
            assert_eq!(
                bench.run(method, path, 50).await,
                (vec![200; 50], expected),
                "{method} {path}"
            );
        }
    }

    #[tokio::test]
    async fn large_containers_are_slower() {
        let limits = || {
            [10, 50, 75].map(|size| SizeLimit {
                size,
                rate: if size == 10 { 200.0 } else { 1000.0 / size as f64 },
            })
        };
        for (objects, expected) in [(5, 0.0), (10, 0.05), (75, 0.75)] {
            let bench = bench("", objects, |s| s.container = limits().into());
            assert_eq!(bench.run("PUT", "/v1/a/c/o", 11).await.1, expected, "{objects}");
            assert_eq!(bench.run("GET", "/v1/a/c", 11).await.1, 0.0);
        }
        let bench = bench("", 10, |s| s.listing = limits().into());
        assert_eq!(bench.run("GET", "/v1/a/c", 11).await.1, 0.05);
    }

    #[test]
    fn rates_lie_between_the_sizes() {
        let limits = [(10, 200.0), (50, 100.0), (75, 30.0)].map(|(size, rate)| SizeLimit { size, rate });
        for (size, expected) in [
            (0, None),
            (5, None),
            (10, Some(200.0)),
            (60, Some(72.0)),
            (160, Some(30.0)),
        ] {
            assert_eq!(rate(&limits, size), expected);
        }
    }

    #[tokio::test]
    async fn lists_and_what_accounts_say() {
        for (configured, method, statuses) in [
            ("WHITELIST", "PUT", [200, 200, 200]),
            ("BLACKLIST", "GET", [497, 497, 497]),
            ("2", "PUT", [200, 200, 498]),
            ("2", "GET", [200, 200, 200]),
            ("rubbish", "PUT", [200, 200, 200]),
        ] {
            let bench = bench(configured, 0, |s| s.options.max_sleep_time_seconds = 0.5);
            // Three at the same time: none has slept before the next comes.
            bench.run(method, "/v1/a/c/o", 1).await;
            let time = bench.clock.0.load(Ordering::SeqCst);
            let mut got = vec![200];
            if configured == "BLACKLIST" {
                got[0] = 497;
            }
            for _ in 0..2 {
                bench.clock.0.store(time, Ordering::SeqCst);
                got.extend(bench.run(method, "/v1/a/c/o", 1).await.0);
            }
            assert_eq!(got, statuses, "{configured}");
        }
        let whitelisted = bench("", 0, |s| {
            s.options.account_ratelimit = 1.0;
            s.options.account_whitelist = vec!["a".into()];
            s.options.account_blacklist = vec!["b".into()];
        });
        assert_eq!(whitelisted.run("PUT", "/v1/a/c", 9).await, (vec![200; 9], 0.0));
        assert_eq!(whitelisted.run("PUT", "/v1/b/c", 1).await, (vec![497], 1.0));
    }

    #[tokio::test]
    async fn a_clock_that_was_ahead_ends_no_service() {
        let bench = bench("", 0, |s| s.options.account_ratelimit = 5.0);
        bench.clock.0.store(3_600_000_000, Ordering::SeqCst);
        bench.run("PUT", "/v1/a/c", 1).await;
        bench.clock.0.store(0, Ordering::SeqCst);
        assert_eq!(bench.run("PUT", "/v1/a/c", 11).await, (vec![200; 11], 2.0));
    }

    #[tokio::test]
    async fn who_was_idle_may_catch_up_a_little() {
        let bench = bench("", 0, |s| s.options.account_ratelimit = 1.0);
        bench.run("PUT", "/v1/a/c", 1).await;
        bench.clock.0.fetch_add(4_000_000, Ordering::SeqCst);
        assert_eq!(bench.run("PUT", "/v1/a/c", 4).await.1, 0.0);
        bench.clock.0.fetch_add(60_000_000, Ordering::SeqCst);
        assert_eq!(bench.run("PUT", "/v1/a/c", 4).await.1, 3.0);
    }
}
