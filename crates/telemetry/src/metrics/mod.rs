//! Figures for Prometheus: what a process exports at `/metrics`.
//!
//! A component with figures is a [`MetricsSource`]; [`Metrics`] asks all sources at each scrape and writes the page.
//! Always holds: every metric is declared once, in the [`catalogue`], and no other is exported; no label holds a
//! name of a client's (account, container, object, user); counting costs a request a few atomic additions that
//! threads do not share; nothing is put together before a scrape.
//! Deliberately absent: sockets, access control, what the figures mean.
//!
//! | question | file |
//! |---|---|
//! | which metrics are there | `catalogue.rs`, [docs/reference/metrics.md](../../../../docs/reference/metrics.md) |
//! | requests: counted how | `requests.rs` |
//! | the page | `page.rs` |
//! | this process and its memory | `process.rs` |

pub mod catalogue;
pub mod page;
pub mod process;
pub mod requests;

pub use catalogue::{Metric, MetricKind};
pub use page::{MetricValue, MetricsFormat, MetricsPage};
pub use requests::{Requests, Role, Under};

use parking_lot::Mutex;
use std::sync::Arc;

/// A component that has figures.
pub trait MetricsSource: Send + Sync {
    /// Puts them on the page. It may read files of the machine, and is called where that may take a moment.
    fn report(&self, page: &mut MetricsPage);
}

/// All figures of a process.
#[derive(Default)]
pub struct Metrics(Mutex<Vec<Arc<dyn MetricsSource>>>);

impl Metrics {
    /// From now on `source` is asked, too.
    pub fn add(&self, source: Arc<dyn MetricsSource>) {
        self.0.lock().push(source);
    }

    /// The page as of now.
    pub fn page(&self, format: MetricsFormat) -> String {
        let sources = self.0.lock().clone();
        let mut page = MetricsPage::default();
        for source in sources {
            source.report(&mut page);
        }
        page.write_as(format)
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Metrics({} sources)", self.0.lock().len())
    }
}
