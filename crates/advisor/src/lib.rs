//! Says what to buy for a cluster, what it would bear, and how sure that is.
//!
//! Comes in: an inventory (what can be bought, what is wanted), manifests of `martlet bench`. Goes out: answers with
//! bands in a terminal, as JSON and as a page.
//! Always holds: each figure has a band and a source; what lies outside of what was measured is named; prices are the
//! user's.
//! Deliberately absent: load (`bench` makes it; its JSON is read here as data), changes of a cluster (`look` reads
//! one).
//!
//! | question | file |
//! |---|---|
//! | what is said of a cluster: bill, figures, pitfalls | `advice.rs`, `advice/` |
//! | how that is shown | `report.rs`, `report/` |
//! | the published example of the method | `published.rs`, `published/` |
//! | curves through runs of `martlet bench` | `fit.rs`, `fit/` |
//! | measured configurations of limited processes | `measure.rs`, `measure/` |
//! | what to change first in a live cluster | `look.rs`, `look/` |
//! | the command line | `arguments.rs`, `command.rs` |
//! | files that are read and written | `text_files.rs` |
//! | which cluster answers a question best, contradictions | `search.rs`, `search/` |
//! | years to loss, hours of rebuilding | `durability.rs` |
//! | what can be bought, what is wanted | `inventory.rs`, `inventory/` |
//! | what hardware bears | `model.rs`, `model/` |

pub mod advice;
pub mod arguments;
pub mod command;
pub mod durability;
pub mod fit;
pub mod inventory;
pub mod look;
pub mod measure;
pub mod model;
pub mod published;
pub mod report;
pub mod search;
mod text_files;
