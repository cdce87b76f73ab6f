//! The page that Prometheus scrapes, in the OpenMetrics text format, or in the older one for scrapers that do not
//! accept OpenMetrics.
//!
//! Always holds: what belongs to one metric stands together, whichever source reports it; labels are escaped; a value
//! for a metric with the wrong number of labels is left out.
//! The text itself is `prometheus-client`'s; its own counters are not used, as its histograms take a lock and its
//! families look a label up for each request.

use super::catalogue::{ALL, Metric, MetricKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// How the page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// What Prometheus asks for.
    OpenMetrics,
    /// What everybody reads.
    Text,
}

const OPEN_METRICS: &str = "application/openmetrics-text";

impl MetricsFormat {
    /// The one that a request's `Accept` headers ask for.
    pub fn accepted<'a>(mut accept: impl Iterator<Item = &'a str>) -> Self {
        match accept.any(|value| value.contains(OPEN_METRICS)) {
            true => MetricsFormat::OpenMetrics,
            false => MetricsFormat::Text,
        }
    }

    /// Of the page.
    pub fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            MetricsFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What a metric says.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    /// Of a counter or a gauge that counts.
    Whole(u64),
    /// Of one that measures.
    Real(f64),
    /// Of a histogram.
    Spread {
        /// All values added up.
        sum: f64,
        /// Up to which value, and how many since the bound before.
        buckets: Vec<(f64, u64)>,
    },
}

/// What will be on the page.
#[derive(Debug, Default)]
pub struct MetricsPage(Vec<Row>);

type Row = (&'static Metric, Vec<String>, MetricValue);

impl MetricsPage {
    /// Says a value of a metric, with the values of its labels in their order.
    pub fn put(&mut self, metric: &'static Metric, labels: &[&str], value: MetricValue) {
        debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        if metric.labels.len() == labels.len() {
            let labels = labels.iter().map(|label| (*label).to_owned()).collect();
            self.0.push((metric, labels, value));
        }
    }

    /// A number.
    pub fn whole(&mut self, metric: &'static Metric, labels: &[&str], value: u64) {
        self.put(metric, labels, MetricValue::Whole(value));
    }

    /// A measure.
    pub fn real(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.put(metric, labels, MetricValue::Real(value));
    }

    /// Its text.
    pub fn write_as(self, format: MetricsFormat) -> String {
        let text = self.write();
        match format {
            MetricsFormat::OpenMetrics => text,
            MetricsFormat::Text => older(&text),
        }
    }

    /// Its text as OpenMetrics has it.
    pub fn write(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::with_capacity(16 << 10);
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

/// The format before OpenMetrics has counters' whole names before their rows as well, and no end.
fn older(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + 256);
    for line in page.lines().filter(|line| *line != "# EOF") {
        let (named, rest) = match line.strip_prefix("# HELP ").or(line.strip_prefix("# TYPE ")) {
            Some(words) => line.split_at(line.len() - words.len() + words.find(' ').unwrap_or(words.len())),
            None => (line, ""),
        };
        text.push_str(named);
        if named.len() < line.len() && is_counter(&named["# HELP ".len()..]) {
            text.push_str("_total");
        }
        text.push_str(rest);
        text.push('\n');
    }
    text
}

fn is_counter(name: &str) -> bool {
    let is_its = |metric: &&&Metric| metric.name.strip_suffix("_total") == Some(name);
    ALL.iter()
        .find(is_its)
        .is_some_and(|metric| metric.kind == MetricKind::Counter)
}

impl Collector for MetricsPage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in ALL {
            let mut rows = self.0.iter().filter(|row| std::ptr::eq(row.0, *metric)).peekable();
            if rows.peek().is_none() {
                continue;
            }
            let (name, kind) = match metric.kind {
                MetricKind::Counter => (metric.name.trim_end_matches("_total"), MetricType::Counter),
                MetricKind::Gauge => (metric.name, MetricType::Gauge),
                MetricKind::Histogram => (metric.name, MetricType::Histogram),
            };
            let help = format!("{}.", metric.help);
            let mut family = encoder.encode_descriptor(name, &help, None, kind)?;
            for (metric, labels, value) in rows {
                let labels: Vec<(&str, &str)> = metric
                    .labels
                    .iter()
                    .copied()
                    .zip(labels.iter().map(String::as_str))
                    .collect();
                match labels.is_empty() {
                    true => encode_value(&mut family, metric.kind, value)?,
                    false => encode_value(&mut family.encode_family(&labels)?, metric.kind, value)?,
                }
            }
        }
        Ok(())
    }
}

fn encode_value(encoder: &mut MetricEncoder<'_>, kind: MetricKind, value: &MetricValue) -> fmt::Result {
    match (kind, value) {
        (MetricKind::Counter, MetricValue::Whole(count)) => encoder.encode_counter::<NoLabelSet, _, u64>(count, None),
        (MetricKind::Counter, MetricValue::Real(count)) => encoder.encode_counter::<NoLabelSet, _, u64>(count, None),
        (MetricKind::Gauge, MetricValue::Whole(now)) => encoder.encode_gauge(now),
        (MetricKind::Gauge, MetricValue::Real(now)) => encoder.encode_gauge(now),
        (_, MetricValue::Spread { sum, buckets }) => {
            let count = buckets.iter().map(|bucket| bucket.1).sum();
            encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
        (MetricKind::Histogram, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{BUILD, DEVICE_BYTES, REQUEST_SECONDS, REQUESTS, THREADS};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_whole_page() {
        let mut page = MetricsPage::default();
        page.whole(&REQUESTS, &["proxy", "GET", "2xx"], 7);
        page.real(&DEVICE_BYTES, &["sda"], 1.5);
        page.whole(&THREADS, &[], 9);
        page.whole(&REQUESTS, &["proxy", "GET", "4xx"], 1);
        let buckets = vec![(0.1, 2), (f64::INFINITY, 1)];
        page.put(
            &REQUEST_SECONDS,
            &["proxy", "GET"],
            MetricValue::Spread { sum: 0.75, buckets },
        );
        assert_eq!(
            page.write(),
            "# HELP martlet_requests Requests that are over, by the class of their status (2xx); gone: the client did \
             not wait for an answer.\n\
             # TYPE martlet_requests counter\n\
             martlet_requests_total{role=\"proxy\",verb=\"GET\",status=\"2xx\"} 7\n\
             martlet_requests_total{role=\"proxy\",verb=\"GET\",status=\"4xx\"} 1\n\
             # HELP martlet_request_seconds Seconds from a request's head to that of its answer.\n\
             # TYPE martlet_request_seconds histogram\n\
             martlet_request_seconds_sum{role=\"proxy\",verb=\"GET\"} 0.75\n\
             martlet_request_seconds_count{role=\"proxy\",verb=\"GET\"} 3\n\
             martlet_request_seconds_bucket{le=\"0.1\",role=\"proxy\",verb=\"GET\"} 2\n\
             martlet_request_seconds_bucket{le=\"+Inf\",role=\"proxy\",verb=\"GET\"} 3\n\
             # HELP martlet_device_bytes Room on a device.\n\
             # TYPE martlet_device_bytes gauge\n\
             martlet_device_bytes{device=\"sda\"} 1.5\n\
             # HELP process_threads Threads of the process.\n\
             # TYPE process_threads gauge\n\
             process_threads 9\n\
             # EOF\n"
        );
    }

    #[test]
    fn the_older_format_is_for_those_who_ask_for_nothing_else() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(
            MetricsFormat::accepted([prometheus].into_iter()),
            MetricsFormat::OpenMetrics
        );
        assert_eq!(
            MetricsFormat::accepted(["text/plain", "*/*"].into_iter()),
            MetricsFormat::Text
        );
        assert_eq!(MetricsFormat::accepted(std::iter::empty()), MetricsFormat::Text);
        let mut page = MetricsPage::default();
        page.whole(&REQUESTS, &["proxy # HELP", "GET", "2xx"], 7);
        page.whole(&THREADS, &[], 9);
        assert_eq!(
            page.write_as(MetricsFormat::Text),
            "# HELP martlet_requests_total Requests that are over, by the class of their status (2xx); gone: the client \
             did not wait for an answer.\n\
             # TYPE martlet_requests_total counter\n\
             martlet_requests_total{role=\"proxy # HELP\",verb=\"GET\",status=\"2xx\"} 7\n\
             # HELP process_threads Threads of the process.\n\
             # TYPE process_threads gauge\n\
             process_threads 9\n"
        );
    }

    proptest! {
        #[test]
        fn any_page_has_an_older_form(text in "(# (HELP|TYPE) )?\\PC*\\n?\\PC*") {
            older(&text);
        }

        #[test]
        fn a_label_is_one_line_whatever_it_holds(label in "\\PC*|[\\n\"\\\\a]*") {
            let mut page = MetricsPage::default();
            page.whole(&BUILD, &[&label], 1);
            let text = page.write();
            prop_assert_eq!(text.lines().count(), 4, "{}", text);
        }
    }
}
