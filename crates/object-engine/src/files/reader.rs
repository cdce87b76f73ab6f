//! The body of one object, verified on the way.

use super::EngineState;
use super::hashing;
use super::quarantine::distrust;
use crate::engine::ObjectReader;
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use crate::parts::ETAG;
use bytes::Bytes;
use md5::{Digest, Md5};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocabulary::PathHash;
use world::files::{File, FileInfo, read_bytes_at};

/// No single read is longer, whatever the caller asks, so that a worker answers in bounded time.
const LONGEST_READ: usize = 4 << 20;
/// How much is read before it is dropped from the page cache again.
const DROP_WINDOW: u64 = 1 << 20;

/// What is known about a body: whose it is, how long, and what its checksum must be.
pub(super) struct ObjectBody {
    state: Arc<EngineState>,
    key: ObjectKey,
    directory: PathBuf,
    name: String,
    info: FileInfo,
    etag: Vec<u8>,
    verify: bool,
}

impl ObjectBody {
    pub(super) fn new(
        state: &Arc<EngineState>,
        key: &ObjectKey,
        (directory, name): (&Path, &str),
        info: &FileInfo,
        metadata: &ObjectMetadata,
    ) -> Self {
        Self {
            state: state.clone(),
            key: key.clone(),
            directory: directory.to_owned(),
            name: name.to_owned(),
            info: *info,
            etag: metadata.get(ETAG).unwrap_or_default().to_vec(),
            verify: state.must_verify(info),
        }
    }

    /// The file system failed while reading it.
    pub(super) fn failed(&self, error: std::io::Error) -> EngineError {
        self.state.io("read", &self.directory, error)
    }

    /// Quarantines the object after part of it was handed out, unless another has taken its place.
    fn corrupt(&self, why: String) -> EngineError {
        let file = self.directory.join(&self.name);
        let path = file.display().to_string();
        let still_there = self
            .state
            .device
            .files()
            .info(&file)
            .is_ok_and(|info| info.inode == self.info.inode);
        if !still_there {
            return EngineError::Corrupt { path, why };
        }
        match distrust(&self.state, &self.key, &self.directory, why) {
            EngineError::Quarantined { why, .. } => EngineError::Corrupt { path, why },
            other => other,
        }
    }
}

/// An [`ObjectReader`] over a file.
pub(super) struct FileReader {
    body: ObjectBody,
    file: Box<dyn File>,
    position: u64,
    dropped: u64,
    /// The checksum so far; `None` once judged or when this read is not to be verified.
    md5: Option<Md5>,
    /// What the checksum does not have yet: the first look is for its reader not to wait.
    unhashed: Bytes,
}

impl FileReader {
    /// Continues after `first`, which the caller has already.
    pub(super) fn begin(body: ObjectBody, file: Box<dyn File>, first: Bytes) -> Self {
        Self {
            file,
            position: first.len() as u64,
            dropped: 0,
            md5: body.verify.then(Md5::new),
            unhashed: if body.verify { first } else { Bytes::new() },
            body,
        }
    }

    /// Adds what the checksum lacks, and lets go of it.
    fn hash_first(&mut self) {
        let first = std::mem::take(&mut self.unhashed);
        if let Some(md5) = self.md5.as_mut().filter(|_| !first.is_empty()) {
            hashing::update(md5, &first);
        }
    }

    fn fill(&self, offset: u64, length: usize) -> Result<Vec<u8>, EngineError> {
        let left = self.body.info.size.saturating_sub(offset);
        let length = length
            .min(LONGEST_READ)
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = read_bytes_at(&*self.file, length, offset).map_err(|error| self.body.failed(error))?;
        match bytes.len() == length {
            true => Ok(bytes),
            false => Err(self
                .body
                .corrupt(format!("it ends after {} bytes", offset + bytes.len() as u64))),
        }
    }

    /// A body too long to keep in the page cache leaves it behind the reader.
    fn drop_behind(&mut self) {
        let size = self.body.info.size;
        if size > self.body.state.config.keep_cache_size
            && (self.position - self.dropped >= DROP_WINDOW || self.position == size)
        {
            // Only advice: a kernel that does not take it costs cache, nothing else.
            let _ = self.file.forget_cached(self.dropped, self.position - self.dropped);
            self.dropped = self.position;
        }
    }
}

impl ObjectReader for FileReader {
    fn read(&mut self, max: usize) -> Result<Bytes, EngineError> {
        self.hash_first();
        let chunk = self.fill(self.position, max)?;
        self.position += chunk.len() as u64;
        if let Some(md5) = &mut self.md5 {
            hashing::update(md5, &chunk);
        }
        if self.position == self.body.info.size
            && let Some(md5) = self.md5.take()
        {
            let judged = self.body.state.judge(&self.body.info, &self.body.etag, md5);
            judged.map_err(|mismatch| self.body.corrupt(mismatch.to_string()))?;
        }
        self.drop_behind();
        Ok(chunk.into())
    }

    fn read_at(&mut self, offset: u64, length: usize) -> Result<Bytes, EngineError> {
        self.hash_first();
        let chunk = self.fill(offset, length)?;
        if self.body.info.size > self.body.state.config.keep_cache_size {
            // Only advice: a kernel that does not take it costs cache, nothing else.
            let _ = self.file.forget_cached(offset, chunk.len() as u64);
        }
        Ok(chunk.into())
    }
}

/// A body is not what its ETag says.
#[derive(Debug, thiserror::Error)]
#[error("its checksum is {found}, its ETag {stated}")]
pub(super) struct ChecksumMismatch {
    found: PathHash,
    stated: String,
}

impl EngineState {
    /// Checks a body that has been read whole.
    pub(super) fn verify_whole(
        &self,
        info: &FileInfo,
        metadata: &ObjectMetadata,
        bytes: &[u8],
    ) -> Result<(), ChecksumMismatch> {
        match self.must_verify(info) {
            true => self.judge(
                info,
                metadata.get(ETAG).unwrap_or_default(),
                Md5::new_with_prefix(bytes),
            ),
            false => Ok(()),
        }
    }

    fn must_verify(&self, info: &FileInfo) -> bool {
        self.is_chosen_for_check() && !self.verified.holds(info, self.world.clock.elapsed())
    }

    fn judge(&self, info: &FileInfo, etag: &[u8], md5: Md5) -> Result<(), ChecksumMismatch> {
        let found = PathHash(md5.finalize().into());
        let stated = String::from_utf8_lossy(etag);
        if PathHash::from_hex(&stated) != Some(found) {
            let stated = stated.into_owned();
            return Err(ChecksumMismatch { found, stated });
        }
        self.verified
            .mark(info, self.world.clock.elapsed(), self.world.clock.now());
        Ok(())
    }

    /// Rolls `etag_validate_pct`.
    fn is_chosen_for_check(&self) -> bool {
        const PARTS: usize = 1_000_000;
        let percent = self.config.etag_validate_percent;
        percent >= 100.0 || (self.world.random.below(PARTS) as f64) < percent / 100.0 * PARTS as f64
    }
}
