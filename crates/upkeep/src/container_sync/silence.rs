//! Containers and clusters of the other side that do not answer.
//!
//! Always holds: a wait in vain is not repeated for [`REST`]; one container that is slow stops no other one.

use super::target::SyncTarget;
use parking_lot::Mutex;
use peer::PeerError;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a container that was waited for in vain is left alone, and a cluster after [`MOST_WAITS`].
const REST: Duration = Duration::from_secs(60);
/// Waits in vain, one after the other, after which a whole cluster is taken for silent.
const MOST_WAITS: u32 = 3;

/// Where no answer came in time.
#[derive(Clone, Default)]
pub(super) struct SilentClusters(Arc<Mutex<HashMap<(String, u16), Silence>>>);

/// What is known of one cluster.
#[derive(Default)]
struct Silence {
    /// Containers that were waited for in vain, and when.
    containers: HashMap<String, Duration>,
    /// Waits in vain since an answer came; one for a connection counts as [`MOST_WAITS`].
    waits: u32,
    /// The last of them.
    last: Duration,
}

impl SilentClusters {
    /// Takes note of how a request ended.
    pub(super) fn note(&self, target: &SyncTarget, now: Duration, failure: Option<&PeerError>) {
        let mut known = self.0.lock();
        let cluster = known.entry((target.host.clone(), target.port)).or_default();
        cluster.containers.retain(|_, since| now.saturating_sub(*since) < REST);
        let waits = match failure {
            Some(PeerError::ConnectTimeout) => MOST_WAITS,
            Some(PeerError::ResponseTimeout) => 1,
            _ => {
                cluster.containers.remove(&target.place());
                cluster.waits = 0;
                return;
            }
        };
        cluster.containers.insert(target.place(), now);
        cluster.waits = cluster.waits.saturating_add(waits);
        cluster.last = now;
    }

    /// Whether it is to be left alone for now.
    pub(super) fn has(&self, target: &SyncTarget, now: Duration) -> bool {
        let known = self.0.lock();
        let Some(cluster) = known.get(&(target.host.clone(), target.port)) else {
            return false;
        };
        let is_recent = |since: &Duration| now.saturating_sub(*since) < REST;
        let is_container_silent = cluster.containers.get(&target.place()).is_some_and(is_recent);
        is_container_silent || (cluster.waits >= MOST_WAITS && is_recent(&cluster.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_sync::target::target_of;

    #[test]
    fn a_cluster_is_silent_after_some_containers_of_it_were() {
        let (silent, now) = (SilentClusters::default(), Duration::from_secs(100));
        let note = |container: &str, failure: Option<&PeerError>| silent.note(&target_of(container), now, failure);
        note("a", Some(&PeerError::ResponseTimeout));
        note("b", Some(&PeerError::ResponseTimeout));
        assert!(silent.has(&target_of("a"), now) && !silent.has(&target_of("d"), now));
        note("d", None);
        note("c", Some(&PeerError::ResponseTimeout));
        assert!(!silent.has(&target_of("d"), now));
        note("a", Some(&PeerError::ResponseTimeout));
        note("b", Some(&PeerError::ResponseTimeout));
        assert!(silent.has(&target_of("d"), now) && !silent.has(&target_of("d"), now + REST));
        let broken = PeerError::Broken("x".into());
        note("d", Some(&broken));
        assert!(!silent.has(&target_of("d"), now) && silent.has(&target_of("a"), now));
        note("d", Some(&PeerError::ConnectTimeout));
        assert!(silent.has(&target_of("e"), now));
    }
}
