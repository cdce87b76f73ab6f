//! What the expirer learns in a pass: of containers their policy, of object servers whether they take deletions in lots.
//!
//! Always holds: no more than [`MOST_CONTAINERS`] are remembered; a server that did not take a lot is not sent another
//! for [`ASK_AGAIN`], and then asked with an empty one first.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use vocabulary::{EntityPath, PolicyIndex};

/// Containers remembered.
const MOST_CONTAINERS: usize = 10_000;
/// A server that did not take a lot may have been restarted since.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Address and port for what daemons ask.
pub(super) type Server = (String, u16);

/// What has been learnt in a pass.
#[derive(Default)]
pub(super) struct Known {
    /// The policy of each container; `None` where it takes a gateway to delete something.
    containers: Mutex<HashMap<EntityPath, Option<PolicyIndex>>>,
    servers: Mutex<HashMap<Server, Standing>>,
}

/// Whether a server takes lots.
#[derive(Clone, Copy)]
enum Standing {
    Takes,
    /// It did not, at that time.
    Refused(Duration),
}

impl Known {
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
    pub(super) fn learn(&self, found: Vec<(EntityPath, Option<PolicyIndex>)>) {
        self.containers.lock().extend(found);
    }

    /// The policy of a container whose objects can be deleted at their servers.
    pub(super) fn policy_of(&self, container: &EntityPath) -> Option<PolicyIndex> {
        *self.containers.lock().get(container)?
    }

    /// Whether a server is to be asked what it takes. Who refused long ago is forgotten.
    pub(super) fn is_to_be_asked(&self, server: &Server, now: Duration) -> bool {
        let mut servers = self.servers.lock();
        if let Some(Standing::Refused(at)) = servers.get(server)
            && now.saturating_sub(*at) >= ASK_AGAIN
        {
            servers.remove(server);
        }
        !servers.contains_key(server)
    }

    pub(super) fn takes_lots(&self, server: &Server) -> bool {
        matches!(self.servers.lock().get(server), Some(Standing::Takes))
    }

    /// A refusal stands against what others say who were asked at the same time.
    pub(super) fn note(&self, server: &Server, took: bool, now: Duration) {
        let mut servers = self.servers.lock();
        match took {
            true => drop(servers.entry(server.clone()).or_insert(Standing::Takes)),
            false => drop(servers.insert(server.clone(), Standing::Refused(now))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refused_is_asked_again_after_a_while() {
        let (known, server) = (Known::default(), ("127.0.0.1".to_owned(), 6200));
        let at = Duration::from_secs;
        let state = |now| (known.is_to_be_asked(&server, at(now)), known.takes_lots(&server));
        assert_eq!(state(100), (true, false));
        known.note(&server, true, at(100));
        assert_eq!(state(1000), (false, true));
        known.note(&server, false, at(1000));
        // Others, who were asked at the same time.
        known.note(&server, true, at(1001));
        assert_eq!(state(1059), (false, false));
        assert_eq!(state(1060), (true, false));
        known.note(&server, true, at(1061));
        assert_eq!(state(1061), (false, true));
    }
}
