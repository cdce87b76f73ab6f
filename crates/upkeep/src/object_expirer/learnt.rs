//! What the expirer learns in a pass: of containers their policy, of object servers whether they take deletions in
//! batches, of policies whether the gateway can delete anything of theirs.
//!
//! Always holds: no more than [`MOST_CONTAINERS`] are remembered; a server that did not take a batch is not sent
//! another for [`ASK_AGAIN`], twice as long each time that it refuses, and then asked by one with an empty batch first.

use super::NAME;
use crate::failure_memory::FailureMemory;
use crate::peer_failures::PeerFailures;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use vocabulary::{EntityPath, PolicyIndex};

/// Containers remembered.
const MOST_CONTAINERS: usize = 10_000;
/// A server that did not take a batch may have been restarted since.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// How often that is doubled: an hour and four minutes at most.
const DOUBLED: u32 = 6;

/// Address and port for what daemons ask.
pub(super) type ServerAddress = (String, u16);

/// What has been learnt in a pass.
pub(super) struct ExpirerKnowledge {
    /// What did not get done, for the log.
    pub(super) failures: PeerFailures,
    containers: Mutex<HashMap<EntityPath, Option<KnownContainer>>>,
    servers: Mutex<HashMap<ServerAddress, Standing>>,
    /// Deletions through the gateway that failed.
    pub(super) gateway: FailureMemory<FailureScope>,
}

/// A container that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownContainer {
    pub(super) policy: PolicyIndex,
    /// It is not spread over shards: its objects can be deleted at their servers.
    pub(super) is_whole: bool,
    /// It belongs to a bucket with an object lock: nothing in it is deleted before most of its servers have said that
    /// nothing holds it.
    pub(super) may_hold: bool,
}

/// What failures have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum FailureScope {
    Policy(PolicyIndex),
    /// Of no known policy.
    Container(EntityPath),
}

impl Default for ExpirerKnowledge {
    fn default() -> Self {
        Self {
            failures: PeerFailures::new(NAME),
            containers: Mutex::default(),
            servers: Mutex::default(),
            gateway: FailureMemory::default(),
        }
    }
}

/// Whether a server takes batches.
#[derive(Clone, Copy)]
enum Standing {
    Takes,
    /// It did not, or is being asked again, since that time; and how often so far.
    Refused(Duration, u32),
}

impl ExpirerKnowledge {
    /// Those of the containers that are not known.
    pub(super) fn not_yet(&self, mut named: HashSet<EntityPath>) -> HashSet<EntityPath> {
        let mut containers = self.containers.lock();
        if containers.len() >= MOST_CONTAINERS {
            containers.clear();
        }
        named.retain(|path| !containers.contains_key(path));
        named
    }

    /// Remembers of containers what was found.
    pub(super) fn learn(&self, found: Vec<(EntityPath, Option<KnownContainer>)>) {
        self.containers.lock().extend(found);
    }

    /// What is known of a container, if it is there.
    pub(super) fn container(&self, path: &EntityPath) -> Option<KnownContainer> {
        *self.containers.lock().get(path)?
    }

    /// With what a deletion in this container fails.
    pub(super) fn scope(&self, container: EntityPath) -> FailureScope {
        match self.container(&container) {
            Some(known) => FailureScope::Policy(known.policy),
            None => FailureScope::Container(container),
        }
    }

    /// Whether a server is to be asked what it takes; the others then go on without it.
    pub(super) fn is_to_be_asked(&self, server: &ServerAddress, now: Duration) -> bool {
        match self.servers.lock().get_mut(server) {
            None => true,
            Some(Standing::Refused(since, times))
                if now.saturating_sub(*since) >= ASK_AGAIN * (1 << times.saturating_sub(1).min(DOUBLED)) =>
            {
                *since = now;
                true
            }
            Some(_) => false,
        }
    }

    pub(super) fn takes_batches(&self, server: &ServerAddress) -> bool {
        matches!(self.servers.lock().get(server), Some(Standing::Takes))
    }

    /// What a server said to a batch. A refusal stands against what others hear who asked at the same time; not against
    /// what it says when it is `asked` what it takes.
    pub(super) fn note(&self, server: &ServerAddress, asked: bool, took: bool, now: Duration) {
        let mut servers = self.servers.lock();
        let standing = servers.entry(server.clone()).or_insert(Standing::Takes);
        *standing = match (took, *standing) {
            (true, Standing::Refused(..)) if !asked => *standing,
            (true, _) => Standing::Takes,
            (false, Standing::Takes) => Standing::Refused(now, 1),
            (false, Standing::Refused(since, times)) => match asked {
                true => Standing::Refused(now, times.saturating_add(1)),
                false => Standing::Refused(since, times),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refused_is_asked_again_after_a_while() {
        let (known, server) = (ExpirerKnowledge::default(), ("127.0.0.1".to_owned(), 6200));
        let at = Duration::from_secs;
        let state = |now| (known.is_to_be_asked(&server, at(now)), known.takes_batches(&server));
        assert_eq!(state(100), (true, false));
        known.note(&server, true, true, at(100));
        assert_eq!(state(1000), (false, true));
        known.note(&server, false, false, at(1000));
        // Others, who sent theirs at the same time.
        known.note(&server, false, true, at(1001));
        known.note(&server, false, false, at(1002));
        assert_eq!(state(1059), (false, false));
        assert_eq!(state(1060), (true, false));
        // One asks, the others go on.
        assert_eq!(state(1061), (false, false));
        known.note(&server, true, false, at(1065));
        assert_eq!(state(1184), (false, false));
        assert_eq!(state(1185), (true, false));
        known.note(&server, true, true, at(1186));
        assert_eq!(state(1187), (false, true));
        // For ever in vain.
        let hours = |count: u64| at(count * 3600);
        for hour in 1..1000 {
            known.note(&server, true, false, hours(hour));
        }
        assert!(!known.is_to_be_asked(&server, hours(1000)) && known.is_to_be_asked(&server, hours(1001)));
    }
}
