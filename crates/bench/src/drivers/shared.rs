//! What all connections of a driver share, and the one place for a controller.

use super::secret::DriverSecret;
use crate::store::auth::Trust;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::sync::{Semaphore, mpsc};
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
    pub(super) greetings: Semaphore,
    pub(super) lines: mpsc::Sender<String>,
}

impl DriverShared {
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
