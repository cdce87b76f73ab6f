//! An engine that keeps objects in memory: for tests and as the second proof of the interface.
//!
//! It keeps the same parts a hash directory would hold and decides with the same [`rules`], so it
//! cannot drift from the `files` engine in anything but storage. Nothing survives it.

use crate::engine::{Commit, FoundObject, MetadataUpdate, ObjectEngine, ObjectReader, ObjectWriter, OpenOptions};
use crate::error::EngineError;
use crate::key::{ObjectKey, PartitionKey};
use crate::listing_update::ListingUpdate;
use crate::metadata::ObjectMetadata;
use crate::parts::{check_commit, describe, named, update_metadata};
use crate::replica::{PartitionLock, Rehash, Replica, SeenVersions, SuffixHashes, Versions, suffix_hash};
use crate::rules::{self, FileName, FilePart};
use crate::suffixes::{Hashes, Suffix};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{Partition, PathHash, PolicyIndex, Timestamp};

type MemoryKey = (PolicyIndex, Partition, PathHash);
type MemoryDevice = Mutex<BTreeMap<MemoryKey, Vec<StoredPart>>>;

#[derive(Clone)]
struct StoredPart {
    file: FileName,
    metadata: ObjectMetadata,
    body: Bytes,
}

/// An engine that keeps objects in memory.
#[derive(Default)]
pub struct MemoryEngine {
    device: Arc<MemoryDevice>,
    updates: Mutex<Vec<ListingUpdate>>,
}

struct MemoryWriter {
    device: Arc<MemoryDevice>,
    key: ObjectKey,
    body: Vec<u8>,
}

struct MemoryReader {
    body: Bytes,
    position: usize,
}

impl MemoryEngine {
    /// An empty device.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.device.lock().clear();
        self.updates.lock().clear();
    }

    /// The listing updates that were saved, oldest first.
    pub fn saved_updates(&self) -> Vec<ListingUpdate> {
        self.updates.lock().clone()
    }

    fn put_body(device: &MemoryDevice, key: &ObjectKey, body: Bytes, commit: Commit) -> Result<(), EngineError> {
        check_commit(&commit, body.len() as u64)?;
        let (timestamp, part) = (commit.timestamp, FilePart::Data);
        let metadata = named(commit.metadata, key);
        Self::keep(device, key, FileName { timestamp, part }, metadata, body);
        Ok(())
    }

    fn keep(device: &MemoryDevice, key: &ObjectKey, file: FileName, metadata: ObjectMetadata, body: Bytes) {
        let mut places = device.lock();
        let kept = places.entry(place(key)).or_default();
        kept.retain(|old| old.file != file);
        kept.push(StoredPart { file, metadata, body });
        let files: Vec<FileName> = kept.iter().map(|part| part.file).collect();
        let mut position = 0;
        let obsolete = rules::choose(&files).obsolete;
        kept.retain(|_| {
            position += 1;
            !obsolete.contains(&(position - 1))
        });
    }
}

fn place(key: &ObjectKey) -> MemoryKey {
    (key.policy, key.partition, key.hash)
}

impl ObjectEngine for MemoryEngine {
    fn replica(&self) -> &dyn Replica {
        self
    }

    fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError> {
        let places = self.device.lock();
        let kept = places.get(&place(key)).map_or(&[][..], Vec::as_slice);
        let files: Vec<FileName> = kept.iter().map(|part| part.file).collect();
        let choice = rules::choose(&files);
        let Some(data) = choice.data.map(|at| &kept[at]) else {
            let deleted_at = choice.tombstone.map(|at| files[at].timestamp);
            return Err(EngineError::NotFound { deleted_at });
        };
        crate::parts::check_name(key, &data.metadata, || format!("{}/{}", key.hash, data.file))?;
        let of = |at: Option<usize>| at.map(|at| (kept[at].file, &kept[at].metadata));
        let (metadata, timestamps) = describe((data.file, &data.metadata), of(choice.meta), of(choice.content_type));
        let first = data.body.slice(..data.body.len().min(options.first));
        let rest = first.len() < data.body.len() && options.first > 0;
        Ok(FoundObject {
            metadata,
            data_metadata: data.metadata.clone(),
            timestamps,
            size: data.body.len() as u64,
            reader: rest.then(|| {
                let (body, position) = (data.body.clone(), first.len());
                Box::new(MemoryReader { body, position }) as Box<dyn ObjectReader>
            }),
            first,
        })
    }

    fn create(&self, key: &ObjectKey, _expected_size: Option<u64>) -> Result<Box<dyn ObjectWriter>, EngineError> {
        let (device, key) = (self.device.clone(), key.clone());
        let body = Vec::new();
        Ok(Box::new(MemoryWriter { device, key, body }))
    }

    fn write_metadata(&self, key: &ObjectKey, update: MetadataUpdate) -> Result<(), EngineError> {
        let (file, metadata) = update_metadata(key, update)?;
        Self::keep(&self.device, key, file, metadata, Bytes::new());
        Ok(())
    }

    fn put_all(&self, puts: Vec<(ObjectKey, Bytes, Commit)>) -> Vec<Result<(), EngineError>> {
        let puts = puts.into_iter();
        puts.map(|(key, body, commit)| Self::put_body(&self.device, &key, body, commit))
            .collect()
    }

    fn delete_all(&self, deletions: Vec<(ObjectKey, Timestamp)>) -> Vec<Result<(), EngineError>> {
        let part = FilePart::Tombstone;
        let delete = |(key, timestamp): (ObjectKey, Timestamp)| {
            let metadata = crate::parts::tombstone(&key, timestamp);
            let file = FileName { timestamp, part };
            Self::keep(&self.device, &key, file, metadata, Bytes::new());
            Ok(())
        };
        deletions.into_iter().map(delete).collect()
    }

    fn link(&self, key: &ObjectKey, partition: Partition) -> Result<(), EngineError> {
        let kept = self.device.lock().get(&place(key)).cloned().unwrap_or_default();
        let other = ObjectKey {
            partition,
            ..key.clone()
        };
        for part in kept {
            Self::keep(&self.device, &other, part.file, part.metadata, part.body);
        }
        Ok(())
    }

    fn quarantine(&self, key: &ObjectKey, _why: &str) -> Result<(), EngineError> {
        self.device.lock().remove(&place(key));
        Ok(())
    }

    fn save_listing_update(&self, update: &ListingUpdate) -> Result<(), EngineError> {
        self.updates.lock().push(update.clone());
        Ok(())
    }

    fn check(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn partitions(&self, policy: PolicyIndex) -> Result<Vec<Partition>, EngineError> {
        let mut found: Vec<Partition> = self
            .device
            .lock()
            .keys()
            .filter(|at| at.0 == policy)
            .map(|at| at.1)
            .collect();
        found.dedup();
        Ok(found)
    }

    fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<Vec<String>, EngineError> {
        let places = self.device.lock();
        let mut found: Vec<String> = places
            .keys()
            .filter(|at| (at.0, at.1) == (policy, partition))
            .map(|at| at.2.suffix())
            .collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn hashes(&self, policy: PolicyIndex, partition: Partition, suffix: &str) -> Result<Vec<PathHash>, EngineError> {
        let places = self.device.lock();
        let here = places
            .keys()
            .filter(|at| (at.0, at.1) == (policy, partition) && at.2.suffix() == suffix);
        Ok(here.map(|at| at.2).collect())
    }
}

impl MemoryEngine {
    /// What there is of an object, and its name.
    fn kept(places: &BTreeMap<MemoryKey, Vec<StoredPart>>, place: &MemoryKey) -> Option<(Versions, String)> {
        let kept = places.get(place)?;
        let files: Vec<FileName> = kept.iter().map(|part| part.file).collect();
        let choice = rules::choose(&files);
        let ruler = &kept[choice.data.or(choice.tombstone)?];
        let name = ruler.metadata.text("name").unwrap_or_default().to_owned();
        Some((Versions::of(&files, &choice)?, name))
    }

    fn all_under(
        places: &BTreeMap<MemoryKey, Vec<StoredPart>>,
        partition: PartitionKey,
        suffix: &str,
    ) -> Vec<(PathHash, Versions)> {
        let PartitionKey { policy, partition } = partition;
        let here = places
            .keys()
            .filter(|at| (at.0, at.1) == (policy, partition) && at.2.suffix() == suffix);
        here.filter_map(|at| Some((at.2, Self::kept(places, at)?.0))).collect()
    }
}

impl Replica for MemoryEngine {
    fn sweep(&self) {}

    fn prepare(&self, _policy: PolicyIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn suffix_hashes(&self, partition: PartitionKey, _rehash: Rehash<'_>) -> Result<SuffixHashes, EngineError> {
        let mut hashes = Hashes::new();
        for name in self.suffixes(partition.policy, partition.partition)? {
            let objects = self.versions_under(partition, &name)?;
            let hash = suffix_hash(objects.iter().map(|(_, versions)| versions));
            hashes.extend(Suffix::parse(&name).map(|suffix| (suffix, hash)));
        }
        let computed = hashes.len();
        Ok(SuffixHashes {
            hashes,
            computed,
            unreadable: 0,
            seen: SeenVersions::new(),
        })
    }

    fn invalidate(&self, _partition: PartitionKey, _suffixes: &[String]) -> Result<(), EngineError> {
        Ok(())
    }

    fn lock_partition(&self, _partition: PartitionKey, _wait: Duration) -> Result<PartitionLock, EngineError> {
        Ok(PartitionLock::new(None))
    }

    fn versions(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<Versions>, EngineError> {
        let place = (partition.policy, partition.partition, hash);
        Ok(Self::kept(&self.device.lock(), &place).map(|(versions, _)| versions))
    }

    fn versions_under(&self, partition: PartitionKey, suffix: &str) -> Result<Vec<(PathHash, Versions)>, EngineError> {
        Ok(Self::all_under(&self.device.lock(), partition, suffix))
    }

    fn name_of(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<String>, EngineError> {
        let place = (partition.policy, partition.partition, hash);
        Ok(Self::kept(&self.device.lock(), &place).map(|(_, name)| name))
    }

    fn forget(&self, partition: PartitionKey, hash: PathHash, versions: &Versions) -> Result<bool, EngineError> {
        let place = (partition.policy, partition.partition, hash);
        let mut places = self.device.lock();
        match Self::kept(&places, &place) {
            Some((found, _)) if found != *versions => Ok(false),
            _ => {
                places.remove(&place);
                Ok(true)
            }
        }
    }

    fn forget_partition(&self, partition: PartitionKey) -> Result<bool, EngineError> {
        let PartitionKey { policy, partition } = partition;
        let places = self.device.lock();
        Ok(!places.keys().any(|at| (at.0, at.1) == (policy, partition)))
    }
}

impl ObjectWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn written(&self) -> u64 {
        self.body.len() as u64
    }

    fn commit(self: Box<Self>, commit: Commit) -> Result<(), EngineError> {
        MemoryEngine::put_body(&self.device, &self.key, self.body.into(), commit)
    }
}

impl ObjectReader for MemoryReader {
    fn read(&mut self, max: usize) -> Result<Bytes, EngineError> {
        let end = self.position.saturating_add(max).min(self.body.len());
        let chunk = self.body.slice(self.position..end);
        self.position = end;
        Ok(chunk)
    }

    fn read_at(&mut self, offset: u64, length: usize) -> Result<Bytes, EngineError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.body.len());
        Ok(self
            .body
            .slice(start..start.saturating_add(length).min(self.body.len())))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn conforms() {
        crate::conformance::run(|| Box::new(super::MemoryEngine::new()));
    }
}
