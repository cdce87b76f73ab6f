//! What replication asks of a device: what partitions hold, by digest and one by one, without opening
//! an object.
//!
//! All of it is known from the names of files alone. Calls block, as those of the engine do.

use crate::error::EngineError;
use crate::key::PartitionKey;
use crate::metadata::ObjectMetadata;
use crate::rules::{Choice, FileName, FilePart, lone_posts};
use crate::suffixes::{Hashes, Suffix, SuffixHash};
use md5::{Digest, Md5};
use std::collections::BTreeMap;
use std::time::Duration;
use vocabulary::{PathHash, PolicyIndex, Timestamp};

/// The digest of each suffix that holds anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuffixHashes {
    /// The hashes.
    pub hashes: Hashes,
    /// How many of them had to be computed now.
    pub computed: usize,
    /// How many suffixes were left out because something in them could not be read; that was logged.
    pub unreadable: usize,
    /// What was found on the way, if [`Rehash::seen`] asks for it.
    pub seen: SeenVersions,
}

/// What [`Replica::versions_under`] would have returned for a suffix when it was hashed.
pub type SeenVersions = BTreeMap<Suffix, Vec<(PathHash, Versions)>>;

/// What to look at besides the suffixes that are known to have changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rehash<'a> {
    /// These suffixes, changed or not.
    pub suffixes: &'a [String],
    /// Suffixes whose change was not announced, too.
    pub list: bool,
    /// Whether the objects under the suffixes that are hashed are returned, too; no more than [`MOST_SEEN`].
    pub seen: bool,
}

/// Objects that one call returns; suffixes that hold more are left out of [`SuffixHashes::seen`].
pub const MOST_SEEN: usize = 4096;

/// When the parts of an object, or of its absence, were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Versions {
    /// The PUT, or the DELETE; [`Timestamp::ZERO`] where there are only POSTs, of a body that is elsewhere.
    pub data: Timestamp,
    /// Whether it was a DELETE.
    pub deleted: bool,
    /// The newest POST since, if there was one.
    pub meta: Option<Timestamp>,
    /// When the content type was set, if that was after the PUT.
    pub content_type: Option<Timestamp>,
}

impl Versions {
    /// What a choice among `files` amounts to; `None` when there is neither a body nor a deletion.
    pub fn of(files: &[FileName], choice: &Choice) -> Option<Self> {
        let ruler = choice.data.or(choice.tombstone)?;
        Some(Self {
            data: files[ruler].timestamp,
            deleted: choice.data.is_none(),
            meta: choice.meta.map(|at| files[at].timestamp),
            content_type: choice.content_type.and_then(|at| match files[at].part {
                FilePart::Meta(time) => time,
                _ => None,
            }),
        })
    }

    /// [`Versions::of`], also of POSTs whose body is not here.
    pub fn of_whatever(files: &[FileName], choice: &Choice) -> Option<Self> {
        let lone = || {
            let (meta, content_type) = lone_posts(files);
            let typed = |at: usize| match files[at].part {
                FilePart::Meta(time) => time,
                _ => None,
            };
            Some(Self {
                data: Timestamp::ZERO,
                deleted: false,
                meta: Some(files[meta?].timestamp),
                content_type: content_type.or(meta).and_then(typed),
            })
        };
        Self::of(files, choice).or_else(lone)
    }

    /// Whether there is a body and no POST since.
    pub fn is_plain(&self) -> bool {
        !self.deleted && !self.is_lone() && self.meta.is_none() && self.content_type.is_none()
    }

    /// Whether there are only POSTs, of a body that is elsewhere.
    pub fn is_lone(&self) -> bool {
        self.data == Timestamp::ZERO && !self.deleted
    }

    /// Adds what OpenStack Swift adds to the digest of a suffix for such an object.
    pub(crate) fn digest(&self, digest: &mut Md5) {
        if let Some(meta) = self.meta {
            digest.update(meta.internal());
            digest.update(".meta");
        }
        digest.update(self.data.internal());
        digest.update(if self.deleted { ".ts" } else { ".data" });
        if let Some(content_type) = self.content_type {
            digest.update(content_type.internal());
            digest.update("_ctype");
        }
    }
}

/// The digest of a suffix that holds these objects, in ascending order, and nothing else; [`SuffixHashes`] has the same
/// of one that is clean.
pub fn suffix_hash<'a>(objects: impl IntoIterator<Item = &'a Versions>) -> SuffixHash {
    let mut digest = Md5::new();
    let counted = objects.into_iter().filter(|versions| !versions.is_lone());
    counted.for_each(|versions| versions.digest(&mut digest));
    SuffixHash(digest.finalize().into())
}

/// A partition that no other replication works on; until dropped.
pub struct PartitionLock {
    _held: Option<Box<dyn Send>>,
}

impl PartitionLock {
    pub(crate) fn new(held: Option<Box<dyn Send>>) -> Self {
        Self { _held: held }
    }
}

/// A device as replication sees it.
pub trait Replica: Send + Sync {
    /// Makes the place that partitions of a policy lie in: rsync of other nodes makes partitions only.
    fn prepare(&self, policy: PolicyIndex) -> Result<(), EngineError>;

    /// Removes what crashed writers left on the device, and what has lain among temporary files for longer than a
    /// deletion is remembered.
    fn sweep(&self);

    /// The digests of a partition's suffixes; those that changed since they were last asked for are
    /// computed, and obsolete files met on the way are removed. Empty when there is no such partition. A suffix
    /// with something that cannot be read is left out, and looked at again the next time.
    fn suffix_hashes(&self, partition: PartitionKey, rehash: Rehash<'_>) -> Result<SuffixHashes, EngineError>;

    /// Whether a change has been announced in the partition that its hashes do not know of yet; no when that cannot be
    /// found out. `None` when what is in its place is no directory.
    fn is_changed(&self, _partition: PartitionKey) -> Option<bool> {
        Some(false)
    }

    /// Puts what is in a partition's place and no directory into quarantine, with a line that names it.
    fn make_way(&self, _partition: PartitionKey) -> Result<(), EngineError> {
        Ok(())
    }

    /// Announces that these suffixes have been changed by another program, and makes durable what it wrote.
    fn invalidate(&self, partition: PartitionKey, suffixes: &[String]) -> Result<(), EngineError>;

    /// Keeps other replication out of a partition; an error when it is at work there for longer than
    /// `wait`. A partition that is not there needs no lock.
    fn lock_partition(&self, partition: PartitionKey, wait: Duration) -> Result<PartitionLock, EngineError>;

    /// What there is of an object.
    fn versions(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<Versions>, EngineError>;

    /// What there is of each of these objects, in their order; cheaper than one after the other. Nothing of one that
    /// cannot be read: it is to be asked for again, for what a server does not ask for counts as held there.
    fn versions_of(&self, partition: PartitionKey, hashes: &[PathHash]) -> Result<Vec<Option<Versions>>, EngineError> {
        hashes.iter().map(|hash| self.versions(partition, *hash)).collect()
    }

    /// What there is under a suffix, in ascending order; without what cannot be read. Also POSTs whose body is not
    /// here, as [`Versions::is_lone`] says.
    fn versions_under(&self, partition: PartitionKey, suffix: &str) -> Result<Vec<(PathHash, Versions)>, EngineError>;

    /// The `/account/container/object` whose hash this is; `None` when nothing is there.
    fn name_of(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<String>, EngineError>;

    /// The metadata of POSTs whose body is not here, with the object's name; `None` where there are none, or a body or
    /// a deletion is.
    fn lone_post(&self, _partition: PartitionKey, _hash: PathHash) -> Result<Option<ObjectMetadata>, EngineError> {
        Ok(None)
    }

    /// Forgets an object that others hold, unless anything about it differs from `versions`; whether it
    /// is gone. Leaves no tombstone.
    fn forget(&self, partition: PartitionKey, hash: PathHash, versions: &Versions) -> Result<bool, EngineError>;

    /// Removes a partition in which nothing is left; whether it is gone.
    fn forget_partition(&self, partition: PartitionKey) -> Result<bool, EngineError>;
}
