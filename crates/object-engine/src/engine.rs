//! The engine interface: one object on one device.
//!
//! Blocking by design: the caller owns the device's I/O workers and runs these there, one closure
//! per request where it can (`open` then `put` in the same closure costs no extra thread hop).
//! A small GET is one call ([`ObjectEngine::open`] brings the first bytes along), a small PUT is
//! one call ([`ObjectEngine::put_all`]); what was read lately needs no worker at all
//! ([`ObjectEngine::open_hot`]); big bodies stream through [`ObjectReader`] and [`ObjectWriter`].

use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::listing_intents::ListingIntents;
use crate::listing_update::ListingUpdate;
use crate::metadata::ObjectMetadata;
use crate::replica::Replica;
use crate::rules::{CONTENT_TYPE_TIMESTAMP, FileName, FilePart, is_fixed};
use bytes::Bytes;
use durable_fs::Locked;
use vocabulary::{Partition, PathHash, PolicyIndex, Timestamp};

/// How much to bring along when opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Bytes of the body to read in the same call. An object no longer than this is read whole and
    /// its checksum verified before `open` returns; of a longer one this much comes unverified. 0: metadata only.
    pub first: usize,
    /// The object may be asked for again soon.
    pub again: bool,
    /// The caller has just seen that there is a body of this time and nothing newer: the directory need not be listed
    /// again. Parts that came since may be missing in what is found.
    pub listed: Option<Timestamp>,
}

impl OpenOptions {
    /// For HEAD: metadata only.
    pub const HEAD: OpenOptions = OpenOptions {
        first: 0,
        again: true,
        listed: None,
    };
    /// For GET: up to 64 KiB come along.
    pub const GET: OpenOptions = OpenOptions {
        first: 64 * 1024,
        again: true,
        listed: None,
    };
    /// For looking before a write, after which everything is different.
    pub const BEFORE_WRITE: OpenOptions = OpenOptions {
        first: 0,
        again: false,
        listed: None,
    };

    /// With [`OpenOptions::listed`] set.
    pub fn listed_at(self, data: Timestamp) -> Self {
        let listed = Some(data);
        Self { listed, ..self }
    }
}

/// When the parts of an object were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// The PUT that wrote the body.
    pub data: Timestamp,
    /// The newest POST since, if there was one.
    pub meta: Option<Timestamp>,
    /// The write that set the content type: the PUT, or a later POST.
    pub content_type: Timestamp,
    /// When the body became durable: the PUT's timestamp in replicated policies.
    pub durable: Timestamp,
}

impl Timestamps {
    /// The newest write of any part: `X-Timestamp` of the object, what a new write must beat.
    pub fn newest(&self) -> Timestamp {
        self.meta.map_or(self.data, |meta| meta.max(self.data))
    }
}

/// An object that exists.
pub struct FoundObject {
    /// What a GET shows: the PUT's metadata under the newest POST's, by Swift's rules. `X-Timestamp`
    /// in it is [`Timestamps::newest`].
    pub metadata: ObjectMetadata,
    /// What the PUT itself wrote.
    pub data_metadata: ObjectMetadata,
    /// When the parts were written.
    pub timestamps: Timestamps,
    /// The body's length, equal to `Content-Length` in the metadata.
    pub size: u64,
    /// The beginning of the body, `min(size, options.first)` bytes. When it is the whole body its
    /// checksum has been verified.
    pub first: Bytes,
    /// The rest: its sequential position is after `first`. `None` when `first` is the whole body, and
    /// when only the metadata were asked for.
    pub reader: Option<Box<dyn ObjectReader>>,
}

impl FoundObject {
    /// What the newest POST said, in the order it is stored; nothing when there was none. Its timestamp
    /// and its content type are left out.
    pub fn posted(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let own = |name: &str| {
            let others = ["X-Timestamp", CONTENT_TYPE_TIMESTAMP];
            !is_fixed(name) && !others.iter().any(|other| other.eq_ignore_ascii_case(name))
        };
        let was_posted = self.timestamps.meta.is_some();
        self.metadata.iter().filter(move |(name, _)| was_posted && own(name))
    }
}

/// The body of one opened object; it stays readable when the object is replaced or deleted meanwhile.
pub trait ObjectReader: Send {
    /// The next bytes in sequence, at most `max` (the engine may give fewer); empty at the end.
    ///
    /// Verifies the checksum on the way when it has not been verified lately: then the last bytes
    /// come only after all matched. A mismatch is [`EngineError::Corrupt`]; the object is then
    /// already quarantined.
    fn read(&mut self, max: usize) -> Result<Bytes, EngineError>;

    /// `length` bytes from `offset`, fewer only at the end of the body; for ranges. Not verified
    /// against the checksum of the whole, and without effect on [`ObjectReader::read`].
    fn read_at(&mut self, offset: u64, length: usize) -> Result<Bytes, EngineError>;
}

/// What makes written bytes an object.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The PUT's timestamp.
    pub timestamp: Timestamp,
    /// All of `X-Timestamp`, `Content-Type`, `Content-Length`, `ETag` and the headers to keep, in the
    /// order to store. The engine adds `name` at the end. `Content-Length` must equal what was written.
    pub metadata: ObjectMetadata,
}

/// A body being written. Dropped without [`ObjectWriter::commit`], it never existed.
pub trait ObjectWriter: Send {
    /// Appends.
    fn write(&mut self, bytes: &[u8]) -> Result<(), EngineError>;

    /// The sender is slow: bytes that were appended are not to be held in memory for a long write.
    fn hold_nothing(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Bytes appended so far.
    fn written(&self) -> u64;

    /// Publishes; returns once body, metadata and directory entries are on stable storage. Losing to
    /// a newer write is success: the newer one stays.
    fn commit(self: Box<Self>, commit: Commit) -> Result<(), EngineError>;
}

/// A POST: replaces the user metadata of an object.
#[derive(Debug, Clone)]
pub struct MetadataUpdate {
    /// The POST's timestamp.
    pub timestamp: Timestamp,
    /// `X-Timestamp` and the headers to keep, in the order to store; `Content-Type` among them only
    /// together with `content_type_timestamp`. The engine adds `name` (and `Content-Type-Timestamp`).
    pub metadata: ObjectMetadata,
    /// When the content type in `metadata` was set: this POST, or an earlier one that is carried over.
    pub content_type_timestamp: Option<Timestamp>,
}

impl MetadataUpdate {
    /// The file it becomes.
    pub fn file(&self) -> FileName {
        FileName {
            timestamp: self.timestamp,
            part: FilePart::Meta(self.content_type_timestamp),
        }
    }
}

/// The write locks of a device are this process's until this is dropped. Held only while there are any, so that the
/// device can be unmounted.
pub struct WriteLocksOwned {
    pub(crate) _locked: Option<Locked>,
}

/// One device's objects. Calls block; all may run at the same time, on one object too.
pub trait ObjectEngine: Send + Sync {
    /// The device as replication sees it.
    fn replica(&self) -> &dyn Replica;

    /// Finds the object and brings its metadata and first bytes.
    fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError>;

    /// [`ObjectEngine::open`] for many objects of one partition, in their order; cheaper than one after the other.
    fn open_all(&self, keys: &[ObjectKey], options: OpenOptions) -> Vec<Result<FoundObject, EngineError>> {
        keys.iter().map(|key| self.open(key, options)).collect()
    }

    /// What [`ObjectEngine::open`] would answer, when that is known without waiting for the device; `None`
    /// says nothing about the object. Never blocks, so async threads may ask; the answer has no reader.
    fn open_hot(&self, _key: &ObjectKey, _options: OpenOptions) -> Option<FoundObject> {
        None
    }

    /// Begins a body of unknown or expected size; [`EngineError::NoSpace`] when the device's reserve
    /// would be touched.
    fn create(&self, key: &ObjectKey, expected_size: Option<u64>) -> Result<Box<dyn ObjectWriter>, EngineError>;

    /// Writes whole objects, each of them once; the outcome of each. An object by itself is a batch of one: it takes
    /// the steps of [`ObjectEngine::create`], write and commit and costs as much (`benches/one_or_many.rs`).
    fn put_all(&self, puts: Vec<(ObjectKey, Bytes, Commit)>) -> Vec<Result<(), EngineError>>;

    /// [`ObjectEngine::put_all`] of one object; copies the body.
    fn put(&self, key: &ObjectKey, body: &[u8], commit: Commit) -> Result<(), EngineError> {
        let put = (key.clone(), Bytes::copy_from_slice(body), commit);
        self.put_all(vec![put]).into_iter().collect()
    }

    /// Records a POST durably. That the object exists is the caller's to check.
    fn write_metadata(&self, key: &ObjectKey, update: MetadataUpdate) -> Result<(), EngineError>;

    /// Leaves tombstones durably; older parts of the objects go. Also for objects never seen here. The outcome of each.
    fn delete_all(&self, deletions: Vec<(ObjectKey, Timestamp)>) -> Vec<Result<(), EngineError>>;

    /// [`ObjectEngine::delete_all`] of one object.
    fn delete(&self, key: &ObjectKey, timestamp: Timestamp) -> Result<(), EngineError> {
        self.delete_all(vec![(key.clone(), timestamp)]).into_iter().collect()
    }

    /// Gives the object's files their names in another partition, too, durably: while the partition power of its ring
    /// is increased it has to be found there as well. Nothing is done for an object that is not here.
    fn link(&self, key: &ObjectKey, partition: Partition) -> Result<(), EngineError>;

    /// Takes the object out of sight, for replication to replace it from a good copy.
    fn quarantine(&self, key: &ObjectKey, why: &str) -> Result<(), EngineError>;

    /// The intent log of listing updates, so that a crash does not lose them; `None` where nothing survives one.
    fn listing_intents(&self) -> Option<&ListingIntents> {
        None
    }

    /// Takes the device's write locks into this process, for as long as what is returned lives; `None` while another
    /// process has them: the predecessor or the successor of this one.
    fn own_write_locks(&self) -> Result<Option<WriteLocksOwned>, EngineError> {
        Ok(Some(WriteLocksOwned { _locked: None }))
    }

    /// Keeps a listing update durably that no container server took.
    fn save_listing_update(&self, update: &ListingUpdate) -> Result<(), EngineError>;

    /// Whether the device can serve at all, and if not, why.
    fn check(&self) -> Result<(), EngineError>;

    /// The partitions present, in ascending order.
    fn partitions(&self, policy: PolicyIndex) -> Result<Vec<Partition>, EngineError>;

    /// The suffixes present in a partition (three hexadecimal digits), in ascending order.
    fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<Vec<String>, EngineError>;

    /// The objects present under a suffix (tombstones too), in ascending order.
    fn hashes(&self, policy: PolicyIndex, partition: Partition, suffix: &str) -> Result<Vec<PathHash>, EngineError>;
}
