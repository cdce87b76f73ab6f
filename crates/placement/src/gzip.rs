//! Inflating with a bound, and the gzip header OpenStack Swift writes.

use std::io::Write;

use flate2::{Compression, Decompress, FlushDecompress, GzBuilder, Status};

use crate::error::RingError;

/// The most a ring may inflate to: a table of 2^26 partitions with three replicas fits.
pub(crate) const MAX_INFLATED: usize = 512 << 20;

/// The time Swift writes into every ring, so that equal rings are equal files.
pub(crate) const MTIME: u32 = 1_300_507_380;

/// What gzip files are inflated with.
const LARGEST_WINDOW: u8 = 15;

/// How much room is made for what a file says it inflates to: so many times the file, at most. It may say anything.
const BELIEVED: usize = 8;

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
    let mut inflate = Decompress::new_gzip(LARGEST_WINDOW);
    let mut content = Vec::with_capacity(room(file));
    loop {
        let taken = inflate.total_in() as usize;
        let status = inflate.decompress_vec(&file[taken..], &mut content, FlushDecompress::None);
        if content.len() > MAX_INFLATED {
            return Err(RingError::TooLarge { limit: MAX_INFLATED });
        }
        match status {
            Err(_) => return Err(RingError::Damaged),
            Ok(Status::StreamEnd) => return Ok(content),
            Ok(_) if content.len() < content.capacity() => {
                return Err(RingError::Truncated {
                    what: "the gzip stream has no end",
                });
            }
            Ok(_) => content.reserve(content.len()),
        }
    }
}

/// Room for what the end of the file says it inflates to: without it, the content would be copied again and again as it
/// grows.
fn room(file: &[u8]) -> usize {
    let length = file
        .last_chunk::<4>()
        .map_or(0, |length| u32::from_le_bytes(*length) as usize);
    // A byte more, so that the end is seen at once.
    length.min(file.len().saturating_mul(BELIEVED)).min(MAX_INFLATED) + 1
}

/// How hard rings are compressed. A table of ids has next to nothing that repeats: the last level would take twice as
/// long as this for a larger file.
pub(crate) const LEVEL: Compression = Compression::new(8);

/// Deflates content as a gzip file.
pub(crate) fn deflate(content: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().mtime(MTIME).write(Vec::new(), LEVEL);
    // Writing to a Vec cannot fail.
    writer
        .write_all(content)
        .and_then(|()| writer.finish())
        .unwrap_or_default()
}
