//! Where the reaper works: a device, and which containers of an account are its share.

use super::NAME;
use md5::{Digest, Md5};
use std::sync::Arc;
use world::Workers;

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
}
