//! What was delivered to each target, for monitors.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use telemetry::metrics::catalogue::{
    NOTIFICATIONS_DELIVERED, NOTIFICATIONS_DROPPED, NOTIFICATIONS_FAILED, NOTIFICATIONS_PENDING,
};
use telemetry::metrics::{MetricsPage, MetricsSource};

/// Targets that have figures of their own; an operator has a handful.
const MOST_TARGETS: usize = 1000;

/// Of one target, or of one run over its events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TargetFigures {
    /// Events that the target has taken.
    pub(super) delivered: u64,
    /// Tries that failed; the event stays.
    pub(super) failed: u64,
    /// Events that were dropped undelivered.
    pub(super) dropped: u64,
    /// Intents that were dropped, as no write came of them.
    pub(super) unmade: u64,
    /// Events that wait, as of the last run.
    pub(super) pending: u64,
}

impl TargetFigures {
    pub(super) fn add(&mut self, more: Self) {
        self.delivered += more.delivered;
        self.failed += more.failed;
        self.dropped += more.dropped;
        self.unmade += more.unmade;
        self.pending += more.pending;
    }
}

/// Of all targets, since this process began.
#[derive(Debug, Default)]
pub(super) struct NotifierFigures(Mutex<BTreeMap<String, TargetFigures>>);

impl NotifierFigures {
    /// Adds what a run did.
    pub(super) fn note(&self, target: &str, run: TargetFigures) {
        let mut all = self.0.lock();
        if all.len() >= MOST_TARGETS && !all.contains_key(target) {
            return;
        }
        let figures = all.entry(target.to_owned()).or_default();
        figures.pending = 0;
        figures.add(run);
    }

    pub(super) fn sum(&self) -> TargetFigures {
        let mut sum = TargetFigures::default();
        self.0.lock().values().for_each(|figures| sum.add(*figures));
        sum
    }
}

impl MetricsSource for NotifierFigures {
    fn report(&self, page: &mut MetricsPage) {
        for (target, figures) in &*self.0.lock() {
            let labels: &[&str] = &[target];
            page.whole(&NOTIFICATIONS_DELIVERED, labels, figures.delivered);
            page.whole(&NOTIFICATIONS_FAILED, labels, figures.failed);
            page.whole(&NOTIFICATIONS_DROPPED, labels, figures.dropped);
            page.whole(&NOTIFICATIONS_PENDING, labels, figures.pending);
        }
    }
}
