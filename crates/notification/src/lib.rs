//! Notifications of buckets: which events a bucket tells of, how an event waits in the queue, and what a webhook gets.
//!
//! Comes in: rules that the S3 dialect has read, or the text of a container's system metadata; a write that a gateway
//! is about to make; an entry of the queue. Goes out: that text, the rules that a write fits, the entry, the document
//! of the event and its signature.
//! Always holds: damaged text is an error, never other rules or another event; a rule names a target that the operator
//! has configured, never an address; what is printed is read back as the same.
//! Deliberately absent: XML and its errors (`s3`), the hook in the pipeline (`features`), deliveries (`upkeep`), the
//! file of targets (`settings`), clocks.
//!
//! | question | file |
//! |---|---|
//! | which events there are, and how rules name them | `event.rs` |
//! | what a rule consists of, how rules are stored | `rule.rs` |
//! | how rules name a target | `arn.rs` |
//! | an entry of the queue, and where it lies | `queue.rs` |
//! | the document that a webhook gets | `record.rs` |
//! | its signature | `signature.rs` |

mod arn;
mod event;
mod queue;
mod record;
mod rule;
mod signature;

pub use arn::{Destination, TargetArn, is_target_name};
pub use event::{EventPattern, ObjectEvent};
pub use queue::{
    EVENT_MARK, LARGEST_ENTRY, QUEUE_ACCOUNT, QueueContainer, QueuedEvent, SHARDS, WrittenFacts, entry_name, noted_at,
};
pub use record::{document, shown_of_large};
pub use rule::{CONFIGURATION, NotificationRule, NotificationRules, STORED_RULES, StoredNotificationError};
pub use signature::{SIGNATURE, SIGNED_AT, sign};
