//! Metrics for StatsD: one message each, over UDP, lost without a receiver.
//!
//! ```text
//! prefix.proxy-server.object.GET.200.timing:23.4845|ms
//! prefix.object-server.REPLICATE.timing:0.2|ms|@0.1
//! ```
//! Each component that counts has a [`Statsd`], as cheap to clone as a pointer; without a host it sends nothing, and
//! counting costs one comparison.
//! Always holds: names are OpenStack's; sending waits for nothing and cannot fail; a host that cannot be found keeps
//! nothing from starting and is looked for again.
//! Deliberately absent: what is counted where; totals, which are StatsD's to make.

use settings::{ProxyLoggingSettings, StatsdSettings};
use std::fmt::{Arguments, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use world::random::Random;
use world::{Datagrams, World};

/// How long until a host that could not be found is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Where metrics go.
#[derive(Clone, Default)]
pub struct Statsd(Option<Arc<Sender>>);

/// Empty until its host is found.
type Target = Arc<OnceLock<Box<dyn Datagrams>>>;

struct Sender {
    to: Target,
    random: Arc<dyn Random>,
    /// Ends in a dot.
    prefix: String,
    /// What share is sent of metrics that have none of their own.
    rate: f64,
    /// Multiplies every share.
    factor: f64,
}

impl Statsd {
    /// For what `tail` names: a server, a daemon, a filter. Sends nothing when no host is configured.
    pub fn open(settings: &StatsdSettings, tail: &str, world: &World) -> Self {
        let Some(host) = settings
            .log_statsd_host
            .as_ref()
            .filter(|_| settings.statsd_emit_legacy)
        else {
            return Self(None);
        };
        Self(Some(Arc::new(Sender {
            to: find(world, host, settings.log_statsd_port),
            random: world.random.clone(),
            prefix: match settings.log_statsd_metric_prefix.as_str() {
                "" => format!("{tail}."),
                prefix => format!("{prefix}.{tail}."),
            },
            rate: settings.log_statsd_default_sample_rate,
            factor: settings.log_statsd_sample_rate_factor,
        })))
    }

    /// For the requests of clients, as `[filter:proxy-logging]` says over the rest.
    pub fn of_access_log(settings: &ProxyLoggingSettings, below: StatsdSettings, world: &World) -> Self {
        let own = settings.clone();
        let settings = StatsdSettings {
            log_statsd_host: own.access_log_statsd_host.or(below.log_statsd_host),
            log_statsd_port: own.access_log_statsd_port.unwrap_or(below.log_statsd_port),
            log_statsd_default_sample_rate: own
                .access_log_statsd_default_sample_rate
                .unwrap_or(below.log_statsd_default_sample_rate),
            log_statsd_sample_rate_factor: own
                .access_log_statsd_sample_rate_factor
                .unwrap_or(below.log_statsd_sample_rate_factor),
            log_statsd_metric_prefix: own
                .access_log_statsd_metric_prefix
                .unwrap_or(below.log_statsd_metric_prefix),
            statsd_emit_legacy: below.statsd_emit_legacy,
        };
        Self::open(&settings, "proxy-server", world)
    }

    /// Whether anybody takes metrics.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// How long something took.
    pub fn timing(&self, name: Arguments<'_>, took: Duration) {
        self.milliseconds(None, name, took.as_secs_f64() * 1_000.0);
    }

    /// Likewise, of something that may happen so often that OpenStack sends this share of it.
    pub fn timing_of_share(&self, share: Option<f64>, name: Arguments<'_>, took: Duration) {
        self.milliseconds(share, name, took.as_secs_f64() * 1_000.0);
    }

    /// How long so many bytes took, as milliseconds for a thousand of them.
    pub fn transfer(&self, name: Arguments<'_>, took: Duration, bytes: u64) {
        self.milliseconds(None, name, took.as_secs_f64() * 1_000.0 / (bytes as f64 / 1_000.0));
    }

    /// So many more.
    pub fn count(&self, name: Arguments<'_>, more: u64) {
        if let Some(sender) = &self.0 {
            sender.send(None, format_args!("{name}:{more}|c"));
        }
    }

    /// One more.
    pub fn increment(&self, name: &str) {
        self.count(format_args!("{name}"), 1);
    }

    /// One more, if it is so.
    pub fn increment_if(&self, is_so: bool, name: &str) {
        if is_so {
            self.increment(name);
        }
    }

    fn milliseconds(&self, share: Option<f64>, name: Arguments<'_>, ms: f64) {
        if let Some(sender) = &self.0 {
            // OpenStack rounds to four decimals and writes what is left of them.
            let ms = (ms * 10_000.0).round() / 10_000.0;
            sender.send(share, format_args!("{name}:{ms:?}|ms"));
        }
    }
}

impl Sender {
    fn send(&self, share: Option<f64>, metric: Arguments<'_>) {
        let Some(to) = self.to.get() else { return };
        let rate = share.unwrap_or(self.rate) * self.factor;
        if rate < 1.0 && self.random.below(1 << 30) as f64 >= rate * f64::from(1 << 30) {
            return;
        }
        let mut message = String::with_capacity(96);
        // Writing to a String cannot fail.
        let _ = write!(message, "{}{metric}", self.prefix);
        if rate < 1.0 {
            let _ = write!(message, "|@{rate}");
        }
        to.send(message.as_bytes());
    }
}

impl std::fmt::Debug for Statsd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(sender) => write!(f, "Statsd({:?})", sender.prefix),
            None => write!(f, "Statsd(nobody)"),
        }
    }
}

fn find(world: &World, host: &str, port: u16) -> Target {
    let target = match world.network.datagrams(host, port) {
        Ok(found) => OnceLock::from(found),
        Err(error) => {
            tracing::warn!(
                "log_statsd_host {host}: {error}; no metrics are sent until it is found, which is tried every {LOOK_AGAIN:?}"
            );
            OnceLock::new()
        }
    };
    let target = Arc::new(target);
    if target.get().is_none() {
        world.spawn(find_later(world.clone(), host.to_owned(), port, target.clone()));
    }
    target
}

/// Until it is found. Names are looked up on a thread of their own: that may take long.
async fn find_later(world: World, host: String, port: u16, target: Target) {
    let Ok(thread) = world.workers("statsd", 1, 1) else {
        return;
    };
    while target.get().is_none() && Arc::strong_count(&target) > 1 {
        world.clock.sleep(LOOK_AGAIN).await;
        let (network, its, target) = (world.network.clone(), host.clone(), target.clone());
        let look = move || {
            if let Ok(found) = network.datagrams(&its, port) {
                // No other thread sets it.
                let _ = target.set(found);
            }
        };
        // One that ended in a panic will be tried again, too.
        let _ = thread.run(look).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use world::random::OsRandom;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Datagrams for Kept {
        fn send(&self, message: &[u8]) {
            self.0
                .lock()
                .unwrap()
                .push(String::from_utf8_lossy(message).into_owned());
        }
    }

    fn sent(prefix: &str, rate: f64, factor: f64, times: usize) -> Vec<String> {
        let kept = Kept::default();
        let statsd = Statsd(Some(Arc::new(Sender {
            to: Arc::new(OnceLock::from(Box::new(kept.clone()) as Box<dyn Datagrams>)),
            random: Arc::new(OsRandom),
            prefix: prefix.into(),
            rate,
            factor,
        })));
        for _ in 0..times {
            statsd.timing(
                format_args!("object.GET.{}.timing", 200),
                Duration::from_nanos(23_320_040),
            );
            statsd.count(format_args!("x"), 5);
        }
        let kept = kept.0.lock().unwrap();
        kept.clone()
    }

    #[test]
    fn messages_as_openstack_sends_them() {
        assert_eq!(
            sent("proxy-server.", 1.0, 1.0, 1),
            ["proxy-server.object.GET.200.timing:23.32|ms", "proxy-server.x:5|c"]
        );
        assert_eq!(sent("a.b.", 2.0, 1.0, 1)[1], "a.b.x:5|c");
        assert_eq!(sent("", 0.0, 1.0, 100), [""; 0]);
        let half = sent("", 1.0, 0.5, 1000);
        assert!((800..1200).contains(&half.len()), "{}", half.len());
        assert!(half[0].ends_with("|@0.5"));
    }

    #[test]
    fn nobody_there_is_no_matter() {
        let statsd = Statsd::open(&StatsdSettings::default(), "x", &World::real());
        assert!(!statsd.is_wanted());
        statsd.increment("y");
        let settings = StatsdSettings {
            log_statsd_host: Some("127.0.0.1".into()),
            log_statsd_port: 9,
            ..StatsdSettings::default()
        };
        let statsd = Statsd::open(&settings, "x", &World::real());
        (0..10).for_each(|_| statsd.increment("y"));
    }
}
