//! The queue: an object for each event and target, in a hidden account of the cluster.
//!
//! ```text
//! .notifications / TARGET-07 / 1795197314.12345-6f0c…-0    when it was noted, its id, the number of its rule
//! ```
//! Entries of a key lie in the same one of a target's [`SHARDS`] containers, in the order in which they were noted. An
//! entry is first an intent: a write is about to be made. Once the write is done the entry is written again, with what
//! is known of it.
//! Always holds: damaged text is no entry.

use crate::arn::is_target_name;
use crate::event::ObjectEvent;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use vocabulary::Timestamp;

/// Behind the prefix of hidden accounts.
pub const QUEUE_ACCOUNT: &str = "notifications";
/// Containers of a target.
pub const SHARDS: u8 = 16;
/// Bytes of an entry: the longest key with every letter escaped, and the rest.
pub const LARGEST_ENTRY: u64 = 64 << 10;
/// System metadata of an object: the id of the event that its write is.
pub const EVENT_MARK: &str = "x-object-sysmeta-notification-id";

/// A container of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueContainer {
    /// Whose events are in it.
    pub target: String,
    /// Which of the target's.
    pub shard: u8,
}

impl QueueContainer {
    /// Where events of an object go.
    pub fn of(target: &str, account: &str, bucket: &str, key: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [account, bucket, key] {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
        Self {
            target: target.to_owned(),
            shard: digest.finalize()[0] % SHARDS,
        }
    }

    /// Reads a container's name.
    pub fn read(name: &str) -> Option<Self> {
        let (target, shard) = name.rsplit_once('-')?;
        let shard = shard.parse().ok().filter(|shard| *shard < SHARDS)?;
        let read = Self {
            target: target.to_owned(),
            shard,
        };
        (is_target_name(target) && read.name() == name).then_some(read)
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("{}-{:02}", self.target, self.shard)
    }
}

/// The name of an entry.
pub fn entry_name(noted: Timestamp, id: &str, rule: usize) -> String {
    format!("{}-{id}-{rule}", noted.normal())
}

/// When an entry of this name was noted.
pub fn noted_at(name: &str) -> Option<Timestamp> {
    name.split('-').next()?.parse().ok()
}

/// What is known of a write that is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WrittenFacts {
    /// Its timestamp, in ticks; absent where it is not known.
    pub at: Option<u64>,
    /// Bytes of the object.
    pub size: Option<u64>,
    /// Its entity tag, bare.
    pub etag: Option<String>,
    /// Its version, where versions are kept.
    pub version: Option<String>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedEvent {
    /// The event's own, alike in the entries of all targets.
    pub id: String,
    /// The account of the bucket.
    pub account: String,
    /// The bucket.
    pub bucket: String,
    /// The key.
    pub key: String,
    /// What becomes of the object.
    pub event: ObjectEvent,
    /// The rule that the event fits.
    pub rule: String,
    /// When it was noted, in ticks.
    pub noted: u64,
    /// The write, once it is done. Without it the entry is an intent.
    pub written: Option<WrittenFacts>,
    /// The version that a deletion names.
    pub version: Option<String>,
    /// The region that the gateway says it is in.
    pub region: String,
    /// The transaction.
    pub request: String,
    /// The user; empty for an anonymous one.
    pub user: String,
    /// The address that the request came from.
    pub from: String,
}

impl QueuedEvent {
    /// As it is stored.
    pub fn to_text(&self) -> Vec<u8> {
        // A struct of texts and numbers is always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Of stored text.
    pub fn of_text(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// When it was noted.
    pub fn noted(&self) -> Timestamp {
        Timestamp::from_ticks(self.noted).unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An entry for tests.
    pub(crate) fn entry(event: ObjectEvent) -> QueuedEvent {
        QueuedEvent {
            id: "6f0c".into(),
            account: "AUTH_test".into(),
            bucket: "b".into(),
            key: "in/a +ü".into(),
            event,
            rule: "new".into(),
            noted: 179_519_731_412_345,
            written: None,
            version: None,
            region: "us-east-1".into(),
            request: "tx1".into(),
            user: "test:tester".into(),
            from: "192.0.2.1".into(),
        }
    }

    #[test]
    fn containers_and_names_are_read_back() {
        let container = QueueContainer::of("my-hook", "AUTH_test", "b", "k");
        assert_eq!(QueueContainer::read(&container.name()), Some(container.clone()));
        assert_eq!(container, QueueContainer::of("my-hook", "AUTH_test", "b", "k"));
        for none in ["", "x", "x-", "x-16", "x-7", "-07", "a/b-07", "x-+7", "x-007"] {
            assert_eq!(QueueContainer::read(none), None, "{none}");
        }
        let noted = Timestamp::from_seconds(1_795_197_314);
        let name = entry_name(noted, "6f0c", 3);
        assert_eq!(name, "1795197314.00000-6f0c-3");
        assert_eq!(noted_at(&name), Some(noted));
        assert_eq!(noted_at("x-6f0c"), None);
    }

    #[test]
    fn keys_spread_over_all_shards() {
        let of = |number: u32| QueueContainer::of("t", "a", "b", &number.to_string()).shard;
        let shards: std::collections::BTreeSet<u8> = (0..1000).map(of).collect();
        assert_eq!(shards.len(), usize::from(SHARDS));
    }

    #[test]
    fn entries_are_read_back() {
        let mut entry = entry(ObjectEvent::Copy);
        assert_eq!(QueuedEvent::of_text(&entry.to_text()), Some(entry.clone()));
        entry.written = Some(WrittenFacts {
            at: Some(7),
            size: Some(0),
            etag: Some("e".into()),
            version: None,
        });
        let text = entry.to_text();
        assert_eq!(QueuedEvent::of_text(&text), Some(entry));
        assert_eq!(QueuedEvent::of_text(&text[..text.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn any_name_is_read(name in "\\PC{0,40}") {
            let _ = QueueContainer::read(&name);
            let _ = noted_at(&name);
        }
    }
}
