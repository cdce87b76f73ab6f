//! Containers as databases: container servers and their replicators as they are, rows from object servers, and what
//! gateways ask of containers.
//!
//! Clients write to few containers and few names in them, each replica by itself, and remember what each has
//! acknowledged: such a row is binding whether other replicas have it or not, for its object server relies on that.
//! Faults are those of all runs; besides, calls may come twice, containers come to belong elsewhere, and a stranger
//! brings databases with triggers of their own (`foreign.rs`). When all is well again replicators must make all
//! replicas equal within a few passes: see `inspect.rs`.
//! SQLite has its files on the simulated drives (`sqlite-files`): each of its writes is a step at which the power may
//! go, and sectors of a database and of its journal survive that each by itself.
//! Deliberately absent: accounts, reclaiming, several policies (`whole/` has them), shard ranges, flipped bits (SQLite
//! has no checksums).
//!
//! | promise | planted bugs |
//! |---|---|
//! | an acknowledged row, deletion or item survives | `CommitsNothing`, `SyncsNoDatabases`, `ReplacesDatabases` |
//! | a loss of power leaves a database whole | `SyncsNoJournals` |
//! | the newest timestamp wins, of rows, items, the whole | `TakesOlderRows`, `TakesOlderMetadata` |
//! | … deletions included | `ForgetsDeletedRows`, `ForgetsDeletedContainers` |
//! | replicas become equal | `TrustsLostRows` |
//! | no stranger at a port takes data away | `ObeysForeignSchemas` |

mod client;
mod database_run;
mod foreign;
mod history;
mod inspect;
mod names;
mod plan;
mod replicas;
pub(crate) mod replication;
mod run;

pub use run::run;
