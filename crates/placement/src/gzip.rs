//! Inflating with a bound, and the gzip header OpenStack Swift writes.

use std::io::{ErrorKind, Read, Write};

use flate2::{Compression, GzBuilder, read::GzDecoder};

use crate::error::RingError;

/// The most a ring may inflate to: a table of 2^26 partitions with three replicas fits.
pub(crate) const MAX_INFLATED: usize = 512 << 20;

/// The time Swift writes into every ring, so that equal rings are equal files.
pub(crate) const MTIME: u32 = 1_300_507_380;

/// Inflates a whole gzip file, its CRC checked.
pub(crate) fn inflate(file: &[u8]) -> Result<Vec<u8>, RingError> {
    if file.len() < 2 && [0x1f, 0x8b].starts_with(file) {
        return Err(RingError::Truncated {
            what: "the file has no content",
        });
    }
    if !file.starts_with(&[0x1f, 0x8b]) {
        return Err(RingError::NotGzip);
    }
    let mut content = Vec::new();
    let read = GzDecoder::new(file)
        .take(MAX_INFLATED as u64 + 1)
        .read_to_end(&mut content);
    read.map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => RingError::Truncated {
            what: "the gzip stream has no end",
        },
        _ => RingError::Damaged,
    })?;
    if content.len() > MAX_INFLATED {
        return Err(RingError::TooLarge { limit: MAX_INFLATED });
    }
    Ok(content)
}

/// Deflates content as a gzip file.
pub(crate) fn deflate(content: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().mtime(MTIME).write(Vec::new(), Compression::best());
    // Writing to a Vec cannot fail.
    writer
        .write_all(content)
        .and_then(|()| writer.finish())
        .unwrap_or_default()
}
