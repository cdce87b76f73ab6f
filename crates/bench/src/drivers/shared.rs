//! What all connections of a driver share, and the one place for a controller.

use super::secret::DriverSecret;
use crate::store::auth::Trust;
use parking_lot::Mutex;
use peer::FairPlaces;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use world::World;

/// What all connections of a driver share.
pub(super) struct DriverShared {
    pub(super) world: World,
    pub(super) secret: DriverSecret,
    pub(super) acceptor: TlsAcceptor,
    /// The controller that is served.
    pub(super) serves: Mutex<Option<SocketAddr>>,
    /// Below this folder `filewrite` may read.
    pub(super) files: Option<PathBuf>,
    /// Threads for each work.
    pub(super) threads: usize,
    /// Which certificates of stores are believed.
    pub(super) trust: Trust,
    pub(super) greetings: FairPlaces<IpAddr>,
    pub(super) refusals: Mutex<Refusals>,
    pub(super) lines: mpsc::Sender<String>,
}

/// Between two lines about peers that were refused, so that strangers cannot fill a log.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(1);

/// Peers that were refused.
#[derive(Default)]
pub(super) struct Refusals {
    /// When a line about one was said.
    last: Option<Duration>,
    /// How many were passed over since.
    more: u64,
}

impl Refusals {
    /// The line about a peer that was refused at this time; nothing when the last one was a moment ago.
    fn line(&mut self, now: Duration, from: SocketAddr, why: &dyn fmt::Display) -> Option<String> {
        if self
            .last
            .is_some_and(|last| now.saturating_sub(last) < BETWEEN_REFUSALS)
        {
            self.more += 1;
            return None;
        }
        self.last = Some(now);
        Some(match std::mem::take(&mut self.more) {
            0 => format!("{from} was refused: {why}"),
            more => format!("{from} was refused: {why} ({more} more before)"),
        })
    }
}

impl DriverShared {
    /// Says that a peer was refused, not too often.
    pub(super) fn refuse(&self, from: SocketAddr, why: &dyn fmt::Display) {
        let line = self.refusals.lock().line(self.world.clock.elapsed(), from, why);
        if let Some(line) = line {
            self.say(line);
        }
    }

    /// Says a line on standard output, unless too many wait.
    pub(super) fn say(&self, line: String) {
        let _ = self.lines.try_send(line);
    }
}

/// The one place for a controller; free again once it is dropped.
pub(super) struct ServingPlace<'a>(&'a DriverShared);

impl<'a> ServingPlace<'a> {
    /// Takes it for a controller, unless another one has it.
    pub(super) fn take(shared: &'a DriverShared, from: SocketAddr) -> Option<Self> {
        let mut serves = shared.serves.lock();
        if serves.is_some() {
            return None;
        }
        *serves = Some(from);
        Some(Self(shared))
    }
}

impl Drop for ServingPlace<'_> {
    fn drop(&mut self) {
        *self.0.serves.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::Refusals;
    use std::time::Duration;

    #[test]
    fn refusals_are_reported_once_a_second() {
        let (mut refusals, from) = (Refusals::default(), "192.0.2.1:7".parse().unwrap());
        let mut line = |millis| refusals.line(Duration::from_millis(millis), from, &"why");
        assert_eq!(line(5).unwrap(), "192.0.2.1:7 was refused: why");
        assert_eq!((line(500), line(1004)), (None, None));
        assert_eq!(line(1005).unwrap(), "192.0.2.1:7 was refused: why (2 more before)");
        assert_eq!(line(2500).unwrap(), "192.0.2.1:7 was refused: why");
    }
}
