//! Metrics for StatsD: one message each, over UDP, lost when nobody takes it.
//!
//! ```text
//! prefix.proxy-server.object.GET.200.timing:23.4845|ms
//! prefix.proxy-server.object.GET.200.xfer:5|c|@0.1
//! ```
//! Always holds: names are OpenStack's; sending waits for nothing and cannot fail.

use settings::ProxyLoggingSettings;
use std::fmt::{Arguments, Write};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use world::random::Random;
use world::{Datagrams, World};

/// What the metrics of a proxy begin with, behind the configured prefix.
const TAIL: &str = "proxy-server";

/// Where metrics go.
pub struct Statsd {
    to: Box<dyn Datagrams>,
    random: Arc<dyn Random>,
    prefix: String,
    /// What share is sent.
    rate: f64,
}

impl Statsd {
    /// As configured; `None` when nobody takes metrics.
    pub fn of_access_log(settings: &ProxyLoggingSettings, world: &World) -> Option<io::Result<Self>> {
        let host = settings
            .access_log_statsd_host
            .as_ref()
            .or(settings.log_statsd_host.as_ref())?;
        let port = settings.access_log_statsd_port.unwrap_or(settings.log_statsd_port);
        let rate = settings
            .access_log_statsd_default_sample_rate
            .unwrap_or(settings.log_statsd_default_sample_rate);
        let factor = settings
            .access_log_statsd_sample_rate_factor
            .unwrap_or(settings.log_statsd_sample_rate_factor);
        let prefix = settings.access_log_statsd_metric_prefix.as_ref();
        let prefix = prefix.unwrap_or(&settings.log_statsd_metric_prefix);
        let to = world.network.datagrams(host, port);
        Some(to.map(|to| Self::new(to, world.random.clone(), prefix, rate * factor)))
    }

    fn new(to: Box<dyn Datagrams>, random: Arc<dyn Random>, prefix: &str, rate: f64) -> Self {
        let prefix = match prefix {
            "" => format!("{TAIL}."),
            prefix => format!("{prefix}.{TAIL}."),
        };
        Self {
            to,
            random,
            prefix,
            rate,
        }
    }

    /// How long something took.
    pub fn timing(&self, name: Arguments<'_>, took: Duration) {
        // OpenStack rounds to four decimals and writes what is left of them.
        let ms = (took.as_secs_f64() * 10_000_000.0).round() / 10_000.0;
        self.send(format_args!("{name}:{ms:?}|ms"));
    }

    /// So many more.
    pub fn count(&self, name: Arguments<'_>, more: u64) {
        self.send(format_args!("{name}:{more}|c"));
    }

    fn send(&self, metric: Arguments<'_>) {
        if self.rate < 1.0 && self.random.below(1 << 30) as f64 >= self.rate * f64::from(1 << 30) {
            return;
        }
        let mut message = String::with_capacity(96);
        // Writing to a String cannot fail.
        let _ = write!(message, "{}{metric}", self.prefix);
        if self.rate < 1.0 {
            let _ = write!(message, "|@{}", self.rate);
        }
        self.to.send(message.as_bytes());
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

    fn sent(prefix: &str, rate: f64, times: usize) -> Vec<String> {
        let kept = Kept::default();
        let statsd = Statsd::new(Box::new(kept.clone()), Arc::new(OsRandom), prefix, rate);
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
            sent("", 1.0, 1),
            ["proxy-server.object.GET.200.timing:23.32|ms", "proxy-server.x:5|c"]
        );
        assert_eq!(sent("a.b", 2.0, 1)[1], "a.b.proxy-server.x:5|c");
        assert_eq!(sent("", 0.0, 100), [""; 0]);
        let half = sent("", 0.5, 1000);
        assert!((800..1200).contains(&half.len()), "{}", half.len());
        assert!(half[0].ends_with("|@0.5"));
    }
}
