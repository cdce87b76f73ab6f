//! The rings a gateway routes by; exchanged as a whole when their files change.
//!
//! Always holds: a request uses the ring it began with; a ring file that cannot be read leaves the
//! one before in place (its loader logs that).

use crate::nodes::NodeTables;
use crate::route::Route;
use arc_swap::ArcSwap;
use placement::Ring;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{HashPrefix, PathHash, Policies, PolicyIndex};

/// A ring that can be exchanged while it is in use.
pub type LiveRing = Arc<ArcSwap<Ring>>;

/// All rings of a cluster, and what else decides where things live.
#[derive(Clone)]
pub struct Rings {
    /// For accounts.
    pub account: LiveRing,
    /// For containers.
    pub container: LiveRing,
    /// For objects, one per policy.
    pub objects: BTreeMap<PolicyIndex, LiveRing>,
    /// The policies those belong to.
    pub policies: Policies,
    /// The cluster's path secrets.
    pub hash: HashPrefix,
    /// The nodes of these rings.
    pub nodes: NodeTables,
}

impl Rings {
    /// Where an account lives.
    pub fn account_route(&self, account: &str) -> Route {
        self.route(self.account.load_full(), &self.hash.account(account), "account")
    }

    /// Where a container lives.
    pub fn container_route(&self, account: &str, container: &str) -> Route {
        let hash = self.hash.container(account, container);
        self.route(self.container.load_full(), &hash, "container")
    }

    /// Where an object of `policy` lives; `None` when the policy has no ring.
    pub fn object_route(&self, policy: PolicyIndex, account: &str, container: &str, object: &str) -> Option<Route> {
        let ring = self.objects.get(&policy)?.load_full();
        let hash = self.hash.object(account, container, object);
        Some(self.route(ring, &hash, "object").of_policy(policy))
    }

    fn route(&self, ring: Arc<Ring>, hash: &PathHash, kind: &'static str) -> Route {
        let nodes = self.nodes.of(&ring);
        Route::new(ring, nodes, hash, kind)
    }

    /// The hash of an object's path.
    pub fn object_hash(&self, account: &str, container: &str, object: &str) -> PathHash {
        self.hash.object(account, container, object)
    }
}
