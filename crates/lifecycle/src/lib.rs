//! Lifecycle rules of buckets: what they say, how a container keeps them, and what is due by them.
//!
//! Comes in: rules that the S3 dialect has read, or the text of a container's system metadata; what is known of an
//! object, and the time. Goes out: that text, and whether the object is due.
//! Always holds: a rule that is not enabled makes nothing due; of several rules the earliest counts; what is not known
//! of an object (its tags, its size) fits no filter that asks for it; damaged text is an error, never other rules.
//! Deliberately absent: XML and its errors (`s3`), listings and deletions (`upkeep`), clocks.
//!
//! | question | file |
//! |---|---|
//! | what a rule consists of, and which keys it is about | `rule.rs` |
//! | how rules are stored | `stored.rs` |
//! | when something is due | `due.rs` |
//! | which versions of a key are due, newest first | `history.rs` |

mod due;
mod history;
mod rule;
mod stored;

pub use due::{DayLength, ExpiryDue};
pub use history::{KeyHistory, ListedVersion, PlacedVersion, VersionFate};
pub use rule::{
    KnownTags, LifecycleExpiration, LifecycleFilter, LifecycleRule, LifecycleRules, LifecycleSubject,
    NoncurrentExpiration, read_tags,
};
pub use stored::{LARGEST_STORED, PIECE_HEADERS, StoredRulesError, pieces, text_of_pieces};
