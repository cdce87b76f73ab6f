//! Requests of one role, counted where they pass.
//!
//! Always holds: a request that began is counted once, with its answer or as gone; counting is a handful of relaxed
//! additions to a shard that few threads use. Shards are added up at a scrape, so that a page taken meanwhile
//! may have a request in one figure and not yet in another.

use super::catalogue::{BODY_BYTES, REQUEST_SECONDS, REQUESTS, REQUESTS_UNDER_WAY};
use super::{MetricValue, MetricsPage, MetricsSource};
use crate::Statsd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The server that answers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The gateway.
    Proxy,
    /// The account server.
    Account,
    /// The container server.
    Container,
    /// The object server.
    Object,
}

impl Role {
    /// As in labels, and in StatsD's names.
    pub fn word(self) -> &'static str {
        match self {
            Role::Proxy => "proxy-server",
            Role::Account => "account-server",
            Role::Container => "container-server",
            Role::Object => "object-server",
        }
    }

    /// Whether OpenStack's server times this verb, and which share of it, where that is not the usual one.
    fn timed(self, verb: &str) -> Option<Option<f64>> {
        match (self, verb) {
            (Role::Proxy, _) => None,
            (_, "GET" | "PUT" | "POST" | "DELETE" | "OPTIONS") => Some(None),
            (Role::Account, "HEAD" | "REPLICATE") | (Role::Container, "UPDATE") => Some(None),
            (Role::Container, "HEAD") | (Role::Object, "REPLICATE") => Some(Some(0.1)),
            (Role::Container, "REPLICATE") => Some(Some(0.01)),
            (Role::Object, "HEAD") => Some(Some(0.8)),
            _ => None,
        }
    }
}

/// Verbs with figures of their own; the last stands for all others.
const VERBS: [&str; 13] = [
    "GET",
    "HEAD",
    "PUT",
    "POST",
    "DELETE",
    "COPY",
    "OPTIONS",
    "REPLICATE",
    "SSYNC",
    "UPDATE",
    "DELETES",
    "LOCK",
    "other",
];
/// How a request may end.
const ENDS: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "gone"];
const GONE: usize = 5;
/// Upper bounds of the histogram's buckets, in microseconds; the last bucket has none.
const BOUNDS: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];
const BUCKETS: usize = BOUNDS.len() + 1;
/// More threads than serve requests at once on most machines, and each shard is 2 KiB.
const SHARDS: usize = 16;

/// One verb's figures.
#[derive(Default)]
struct OfVerb {
    ends: [AtomicU64; ENDS.len()],
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// What a few threads count. No two shards share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    verbs: [OfVerb; VERBS.len()],
    begun: AtomicU64,
    over: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// The requests of one role.
pub struct Requests {
    role: Role,
    shards: Box<[Shard]>,
    statsd: Statsd,
}

/// A request under way; dropped without an answer it counts as gone.
pub struct Under {
    requests: Arc<Requests>,
    verb: usize,
    answered: bool,
}

impl Requests {
    /// No request yet. A storage server also sends its requests to `statsd`, which carries the server's name; for a
    /// proxy the access log sends them.
    pub fn new(role: Role, statsd: Statsd) -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Arc::new(Self { role, shards, statsd })
    }

    /// Whose they are.
    pub fn role(&self) -> Role {
        self.role
    }

    /// A request has come.
    pub fn begin(self: &Arc<Self>, method: &str) -> Under {
        self.shard().begun.fetch_add(1, Ordering::Relaxed);
        let verb = VERBS.iter().position(|verb| *verb == method).unwrap_or(VERBS.len() - 1);
        Under {
            requests: self.clone(),
            verb,
            answered: false,
        }
    }

    /// So many bytes of a request's body have come.
    pub fn received(&self, bytes: u64) {
        self.shard().received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes of an answer's body have gone.
    pub fn sent(&self, bytes: u64) {
        self.shard().sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Where a thread's own data lies tells threads apart.
    fn shard(&self) -> &Shard {
        thread_local!(static PLACE: u8 = const { 0 });
        let place = PLACE.with(|place| std::ptr::from_ref(place) as usize);
        // Fibonacci hashing: the low bits of places are alike.
        let hash = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        &self.shards[hash as usize % SHARDS]
    }

    fn sum(&self, of: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| of(shard).load(Ordering::Relaxed)).sum()
    }

    fn report_verb(&self, page: &mut MetricsPage, verb: usize) {
        let name = VERBS[verb];
        let role = self.role.word();
        for (end, word) in ENDS.iter().enumerate() {
            match self.sum(|shard| &shard.verbs[verb].ends[end]) {
                0 => {}
                count => page.whole(&REQUESTS, &[role, name, word], count),
            }
        }
        let bound = |bucket: usize| BOUNDS.get(bucket).map_or(f64::INFINITY, |bound| *bound as f64 / 1e6);
        let count = |bucket: usize| self.sum(|shard| &shard.verbs[verb].buckets[bucket]);
        let buckets: Vec<(f64, u64)> = (0..BUCKETS).map(|bucket| (bound(bucket), count(bucket))).collect();
        if buckets.iter().any(|bucket| bucket.1 > 0) {
            let sum = self.sum(|shard| &shard.verbs[verb].nanoseconds) as f64 / 1e9;
            page.put(&REQUEST_SECONDS, &[role, name], MetricValue::Spread { sum, buckets });
        }
    }
}

impl MetricsSource for Requests {
    fn report(&self, page: &mut MetricsPage) {
        for verb in 0..VERBS.len() {
            self.report_verb(page, verb);
        }
        let role = self.role.word();
        // What is over is asked first: it must not be more than what began.
        let over = self.sum(|shard| &shard.over);
        let under_way = self.sum(|shard| &shard.begun).saturating_sub(over);
        page.whole(&REQUESTS_UNDER_WAY, &[role], under_way);
        page.whole(&BODY_BYTES, &[role, "received"], self.sum(|shard| &shard.received));
        page.whole(&BODY_BYTES, &[role, "sent"], self.sum(|shard| &shard.sent));
    }
}

impl Under {
    /// It is answered with `status`, after so long.
    pub fn answered(mut self, status: u16, took: Duration) {
        self.answered = true;
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS
            .iter()
            .position(|bound| nanoseconds <= bound * 1_000)
            .unwrap_or(BOUNDS.len());
        let verb = &self.requests.shard().verbs[self.verb];
        verb.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        verb.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.tell_statsd(status, took);
        self.end(match status {
            // The proxy's word for a client that did not wait.
            499 => GONE,
            status => usize::from((status / 100).clamp(1, 5)) - 1,
        });
    }

    /// By OpenStack's names; what a client did wrong is no error there.
    fn tell_statsd(&self, status: u16, took: Duration) {
        let (statsd, verb) = (&self.requests.statsd, VERBS[self.verb]);
        if !statsd.is_wanted() {
            return;
        }
        if let Some(share) = self.requests.role.timed(verb) {
            match status {
                500.. => statsd.timing_of_share(share, format_args!("{verb}.errors.timing"), took),
                _ => statsd.timing_of_share(share, format_args!("{verb}.timing"), took),
            }
        }
    }

    fn end(&self, end: usize) {
        let shard = self.requests.shard();
        shard.verbs[self.verb].ends[end].fetch_add(1, Ordering::Relaxed);
        shard.over.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        if !self.answered {
            self.end(GONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(requests: &Requests) -> String {
        let mut page = MetricsPage::default();
        requests.report(&mut page);
        page.write()
    }

    #[test]
    fn every_request_counts_once() {
        let requests = Requests::new(Role::Object, Statsd::default());
        let under_way = requests.begin("GET");
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for status in [200, 204, 404, 507, 499, 0, 999] {
                        requests.begin("PUT").answered(status, Duration::from_micros(700));
                    }
                    drop(requests.begin("SPIN"));
                    requests.received(3);
                    requests.sent(4);
                });
            }
        });
        let text = page(&requests);
        for line in [
            "martlet_requests_total{role=\"object-server\",verb=\"PUT\",status=\"2xx\"} 40",
            "martlet_requests_total{role=\"object-server\",verb=\"PUT\",status=\"4xx\"} 20",
            "martlet_requests_total{role=\"object-server\",verb=\"PUT\",status=\"5xx\"} 40",
            "martlet_requests_total{role=\"object-server\",verb=\"PUT\",status=\"gone\"} 20",
            "martlet_requests_total{role=\"object-server\",verb=\"other\",status=\"gone\"} 20",
            "martlet_request_seconds_count{role=\"object-server\",verb=\"PUT\"} 140",
            "martlet_request_seconds_bucket{le=\"0.0005\",role=\"object-server\",verb=\"PUT\"} 0",
            "martlet_request_seconds_bucket{le=\"0.001\",role=\"object-server\",verb=\"PUT\"} 140",
            "martlet_request_seconds_sum{role=\"object-server\",verb=\"PUT\"} 0.098",
            "martlet_requests_under_way{role=\"object-server\"} 1",
            "martlet_body_bytes_total{role=\"object-server\",direction=\"received\"} 60",
            "martlet_body_bytes_total{role=\"object-server\",direction=\"sent\"} 80",
        ] {
            assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        }
        drop(under_way);
        assert!(page(&requests).contains("martlet_requests_under_way{role=\"object-server\"} 0"));
    }
}
