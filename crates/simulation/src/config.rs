//! What the nodes of a run are like.

use crate::bugs::Bug;
use std::time::Duration;

/// After so long whole clusters may forget what was deleted.
pub const RECLAIM_AGE: Duration = Duration::from_secs(86_400);

/// What nodes of a run are like.
#[derive(Debug, Clone, Copy)]
pub struct ClusterConfig {
    /// Jobs a drive does at a time, and how many may wait.
    pub threads: usize,
    /// See `threads`.
    pub queue: usize,
    /// Whether a body that was verified is believed for a while: then no bit may be flipped, which is
    /// what that gives up.
    pub marks: bool,
    /// The node that data may be lost on.
    pub unlucky: usize,
    /// About how much time lies between two passes of a replicator; none before the end without.
    pub replicates_every: Option<Duration>,
    /// Nodes speak HTTP to one another, over connections; else what they say arrives as messages.
    pub over_bytes: bool,
    /// Each process watches its drives.
    pub watches_drives: bool,
    /// Gateways wait for what is slow: they give no connection up for that, and pass no silent node over.
    pub waits: bool,
    /// A planted bug.
    pub bug: Option<Bug>,
    /// Containers are databases; without they are played.
    pub databases: Option<DatabaseConfig>,
    /// Accounts are databases, too, and there are two policies.
    pub whole: bool,
}

/// How replicators of databases go about it.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseConfig {
    /// Rows per request.
    pub per_diff: usize,
    /// Requests with rows per database and pass.
    pub max_diffs: usize,
    /// How long a database that was level is taken on trust.
    pub trust: Duration,
}
