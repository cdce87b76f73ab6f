//! Where the reaper works: which devices are this server's, and which containers of an account are its share.

use super::NAME;
use md5::{Digest, Md5};
use placement::Device;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use world::Workers;

/// How the account ring names this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// Addresses of this machine that its server listens on.
    pub addresses: Vec<IpAddr>,
    /// The port of its server (`bind_port`); 0 for any.
    pub port: u16,
}

impl Here {
    /// Whether a device of the ring is this server's. Names of hosts are looked up, which may take its time.
    pub fn serves(&self, device: &Device) -> bool {
        (self.port == 0 || device.port == self.port) && self.has(&device.ip)
    }

    fn has(&self, host: &str) -> bool {
        match host.parse::<IpAddr>() {
            Ok(address) => self.addresses.contains(&address),
            Err(_) => (host, self.port)
                .to_socket_addrs()
                .is_ok_and(|mut found| found.any(|found| self.addresses.contains(&found.ip()))),
        }
    }
}

/// Which of an account's containers are this server's to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) number: usize,
    pub(super) of: usize,
}

impl Share {
    pub(super) fn has(self, container: &str) -> bool {
        let hash: [u8; 16] = Md5::digest(container.as_bytes()).into();
        let of = u128::try_from(self.of.max(1)).unwrap_or(1);
        u128::from_be_bytes(hash) % of == u128::try_from(self.number).unwrap_or(0)
    }
}

/// The device that is being worked on.
#[derive(Clone)]
pub(super) struct OpenDevice {
    pub(super) name: String,
    pub(super) thread: Arc<Workers>,
}

impl OpenDevice {
    /// Runs `job` on the device's thread. What fails is logged.
    pub(super) async fn run<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Option<T> {
        let said = match self.thread.run(job).await {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!("{NAME}: device {}: {said}", self.name);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The containers that OpenStack Swift 2.38.3's reaper took on the first, second and third primary.
    #[test]
    fn shares_are_openstacks() {
        for (number, expected) in [(0, vec!["c3"]), (1, vec!["c1", "c5"]), (2, vec!["c0", "c2", "c4"])] {
            let share = Share { number, of: 3 };
            let names = (0..6).map(|number| format!("c{number}"));
            assert_eq!(names.filter(|name| share.has(name)).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_device_is_known_by_address_and_port() {
        let device = |ip: &str, port| Device {
            ip: ip.into(),
            port,
            ..Device::default()
        };
        let here = |port| Here {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            port,
        };
        assert!(here(6202).serves(&device("127.0.0.1", 6202)) && here(0).serves(&device("localhost", 7)));
        assert!(!here(6202).serves(&device("127.0.0.1", 6203)) && !here(6202).serves(&device("127.0.0.2", 6202)));
    }
}
