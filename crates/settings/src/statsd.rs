//! Where metrics are sent, by StatsD's protocol: options of every server, daemon and filter.
//!
//! Deliberately absent: `access_log_statsd_…`, which `[filter:proxy-logging]` alone has.

use crate::declare::options;

options! {
    /// `log_statsd_…`; in `[DEFAULT]` for all, or in the section of a server, daemon or filter.
    pub struct StatsdSettings {
        /// Host that takes StatsD metrics; none are sent when empty.
        log_statsd_host: Option<String> = "",
        /// Its port.
        log_statsd_port: u16 = "8125",
        /// Share that is sent of metrics that have none of their own.
        log_statsd_default_sample_rate: f64 = "1.0",
        /// Multiplies the share of every metric.
        log_statsd_sample_rate_factor: f64 = "1.0",
        /// First part of metrics' names.
        log_statsd_metric_prefix: String = "",
        /// false: send no metrics without labels.
        statsd_emit_legacy: bool = "true",
    }
}
