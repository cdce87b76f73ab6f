//! Whole clusters: gateways, object, container and account servers, and the daemons between them.
//!
//! Clients write objects of two policies through gateways, some of which expire, and make and delete containers. Object
//! servers inform container servers, those account servers; what could not be sent waits for the object-updater and the
//! container-updater. Two clients may make a container at once with different policies, which leaves objects to the
//! container-reconciler. When all is well again the daemons must bring everything to agree within a few rounds
//! (`agreement.rs`): objects, listings, accounts. A day later tombstones may go and nothing may come back.
//! Deliberately absent: POST, sharding, versions.
//!
//! | promise | planted bugs |
//! |---|---|
//! | rows and figures reach the listings | `DropsRows`, `DropsFigures` |
//! | … those that were under way when everything ended, too | `ForgetsIntents`, `ForgetsLateRows` |
//! | an expiry takes only the version it is of | `ExpiresNewerVersions` |
//! | what was deleted stays deleted | `ReclaimsEarly` |
//! | an object is in its container's policy | `MovesNothing` |

mod agreement;
mod client;
mod daemons;
mod history;
mod look;
mod names;
mod plan;
mod run;
mod whole_run;

pub use run::run;
