//! Figures for Prometheus: what a process tells whoever scrapes `/metrics`.
//!
//! Whoever has figures is a [`Source`]; [`Metrics`] asks all of them when somebody scrapes and writes the page.
//! Always holds: every metric is declared once, in the [`catalogue`], and none is told that is not; no label holds a
//! name of a client's (account, container, object, user); counting costs a request a few atomic additions that
//! threads do not share; nothing is put together before somebody asks.
//! Deliberately absent: sockets, who may ask, what the figures mean for whom.
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

pub use catalogue::{Kind, Metric};
pub use page::{Format, Page, Value};
pub use requests::{Requests, Role, Under};

use parking_lot::Mutex;
use std::sync::Arc;

/// Somebody who has figures.
pub trait Source: Send + Sync {
    /// Puts them on the page. It may read files of the machine, and is called where that may take a moment.
    fn tell(&self, page: &mut Page);
}

/// All figures of a process.
#[derive(Default)]
pub struct Metrics(Mutex<Vec<Arc<dyn Source>>>);

impl Metrics {
    /// From now on `source` is asked, too.
    pub fn add(&self, source: Arc<dyn Source>) {
        self.0.lock().push(source);
    }

    /// The page as of now.
    pub fn page(&self, format: Format) -> String {
        let sources = self.0.lock().clone();
        let mut page = Page::default();
        for source in sources {
            source.tell(&mut page);
        }
        page.write_as(format)
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Metrics({} sources)", self.0.lock().len())
    }
}
