//! A cluster on one thread from one seed.
//!
//! Gateways, object servers, their engines and upkeep run as they are; clock, chance, the links between nodes,
//! disks and their workers are simulated, so that a seed decides everything and a run can be repeated to the
//! last step. A [`plan::RunPlan`] drawn from the seed has clients write to few names through different gateways
//! while replicators come by and nodes lose their power at any step of a write, drives fail, fill up, hang, lie,
//! are pulled and replaced, links are cut, answers get lost, bodies break off, clocks are off, objects come to
//! belong elsewhere. Then all is well again and everything is looked at ([`run::run`]): before replicators and
//! auditors have come to rest, and after.
//! Always holds: no thread, no real clock, file or socket. A broken promise comes with its seed.
//! Accounts and containers are played there; `databases/` has runs of their own for container servers and their
//! replicators, `whole/` has runs of whole clusters.
//! Deliberately absent: HTTP to gateways, and between nodes outside of the runs that have it (`doors.rs`); the program
//! rsync, jobs that meet on one drive in the middle of each other.
//!
//! What must always hold (DESIGN §5), and the bugs ([`bugs::Bug`]) that show that its breach is found:
//!
//! | promise | planted bugs |
//! |---|---|
//! | an acknowledged write survives crashes and losses of power | `SyncsNothing`, `AcknowledgesUnstored` |
//! | … and the loss of any minority of its replicas | `ForgetsReplicas`, `ForgetsHints` |
//! | no reader sees a torn object, or bytes that do not match their checksum | `TearsBodies`, `SkipsChecksums` |
//! | the newest timestamp wins | `LastArrivalWins`, `TakesOlderReplicas` |
//! | a 2xx is a write that won, or one beside or after it did, whatever the clocks | `TrustsOwnClock` |
//! | … deletions included | `ForgetsDeletions`, `KeepsDeletionsToItself` |
//! | replicas converge, whatever the order of messages | `ForgetsHints`, `SyncsNoReplicas` |
//! | upkeep never removes the last good copy | `ForgetsReplicas`, `RemovesHandoffsEarly` |
//! | a handoff goes only after every primary has what it holds | `RemovesHandoffsEarly`, `TrustsShortAnswers` |
//! | rows reach the listings | `ForgetsRows` |
//! | trouble with a drive is contained | `PanicsOnFaults`, `KeepsTemporaries` |
//! | no request leaves its account | `ForgetsAccounts` |
//! | no stranger at a port takes service away | `SeatsConnections` |
//! | memory has bounds | `QueuesWithoutBound`, `LeaksTasks` |
//! | a long job is no hung drive | `TrialsWaitForJobs` |
//!
//! | question | file |
//! |---|---|
//! | what happens in a run, and when | `plan.rs` |
//! | how a run goes, from seed to outcome | `run.rs`, `sim_run.rs` |
//! | what may be seen of what was written | `history.rs` |
//! | which times gateways gave to writes | `sent_times.rs` |
//! | what is looked at in the end | `inspect.rs`, `replicas.rs` |
//! | replicators and auditors | `replication.rs` |
//! | what replicators may take away | `watch.rs` |
//! | how clients ask, and what they are answered | `client.rs` |
//! | what a node is made of | `node.rs`, `cluster.rs`, `containers.rs` |
//! | what may be injected, and what that does | `fault.rs`, `injection.rs`, `disk/` |
//! | what belongs where | `topology.rs` |
//! | tasks, time, clocks | `executor.rs`, `clock.rs` |
//! | what a loss of power leaves of a drive | `disk/drive.rs` |
//! | what becomes of a message | `net.rs` |
//! | … and of bytes, where nodes speak HTTP | `doors.rs`, `sockets.rs`, `connections.rs` |
//! | work that blocks | `pool.rs` |
//! | … and the watch over drives | `drive_watch.rs` |
//! | does it find anything? | `bugs/` |
//! | containers as databases, and their replicators | `databases/` |
//! | whole clusters with accounts, two policies and all daemons | `whole/` |
//!
//! Tests: beside the code; `tests/seeds.rs` runs thousands of seeds and the planted bugs. One run in words:
//! `make simulate SEED=17`. Page: `docs/simulation.md`.

pub mod bugs;
mod client;
pub mod clock;
pub mod cluster;
pub mod config;
mod connections;
pub mod containers;
pub mod databases;
pub mod dice;
pub mod disk;
mod doors;
mod drive_watch;
pub mod executor;
pub mod fault;
pub mod history;
mod injection;
mod inspect;
pub mod net;
pub mod node;
pub mod plan;
pub mod pool;
mod replicas;
mod replication;
pub mod run;
pub mod sent_times;
mod sim_run;
mod sockets;
pub mod topology;
pub mod trace;
mod watch;
pub mod whole;
