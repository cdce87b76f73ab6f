//! Ring format 1: a JSON header and rows of two-byte ids in the writer's byte order.
//!
//! Which row is short and which is missing only the row count tells: rows before the last must be
//! full. Drawn in `docs/formats/ring.md`.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::device::Listed;
use crate::error::RingError;
use crate::ring_data::{RingData, next_power_of_ring, part_power};
use crate::table::Table;

/// Longest header taken: room for more devices than two-byte ids can name.
const MAX_HEADER: usize = 64 << 20;

#[derive(Deserialize)]
struct Header {
    devs: Vec<Option<Listed>>,
    part_shift: u64,
    replica_count: usize,
    byteorder: Option<String>,
    next_part_power: Option<i64>,
    version: Option<u64>,
}

/// Reads what follows magic and version.
pub(crate) fn read(rest: &[u8]) -> Result<RingData, RingError> {
    let (header, rows) = split_header(rest)?;
    let header: Header = serde_json::from_slice(header).map_err(|error| RingError::Json {
        section: "header",
        detail: error.to_string(),
    })?;
    let part_power = part_power(header.part_shift)?;
    let next_part_power = next_power_of_ring(part_power, header.next_part_power)?;
    let partitions = 1u32 << part_power;
    let cells = cells(rows, partitions, header.replica_count)?;
    let big = match header.byteorder.as_deref() {
        Some("big") => true,
        Some("little") | None => false,
        Some(_) => {
            let detail = "byteorder is neither little nor big".to_owned();
            return Err(RingError::Json {
                section: "header",
                detail,
            });
        }
    };
    let cells = cells.chunks_exact(2).map(|cell| [cell[0], cell[1]]);
    let cells: Vec<u16> = match big {
        true => cells.map(u16::from_be_bytes).collect(),
        false => cells.map(u16::from_le_bytes).collect(),
    };
    RingData {
        devices: devices(header.devs),
        table: Table::narrow(partitions, cells)?,
        part_power,
        next_part_power,
        version: header.version,
        dev_id_bytes: 2,
    }
    .checked()
}

fn split_header(rest: &[u8]) -> Result<(&[u8], &[u8]), RingError> {
    let (len, rest) = rest.split_first_chunk::<4>().ok_or(RingError::Truncated {
        what: "there is no header length",
    })?;
    let len = u32::from_be_bytes(*len) as usize;
    if len > MAX_HEADER {
        return Err(RingError::TooLarge { limit: MAX_HEADER });
    }
    rest.split_at_checked(len).ok_or(RingError::Truncated {
        what: "the header is cut short",
    })
}

/// The bytes of all rows; bytes beyond them are not ours to judge.
fn cells(rows: &[u8], partitions: u32, count: usize) -> Result<&[u8], RingError> {
    if count == 0 {
        return Err(RingError::Empty);
    }
    let row = partitions as usize * 2;
    let full = row.saturating_mul(count);
    let cells = &rows[..rows.len().min(full)];
    if !cells.len().is_multiple_of(2) || cells.len() <= full - row {
        return Err(RingError::Truncated {
            what: "rows of the partition table are missing",
        });
    }
    Ok(cells)
}

/// The devices of a JSON list, with its holes.
pub(crate) fn devices(raw: Vec<Option<Listed>>) -> Vec<Option<Box<crate::Device>>> {
    raw.into_iter().map(|device| device.map(|listed| listed.0)).collect()
}

/// Writes the whole content, magic included, as OpenStack Swift does on a little-endian machine.
pub(crate) fn write(ring: &RingData) -> Result<Vec<u8>, RingError> {
    if ring.dev_id_bytes != 2 {
        return Err(RingError::NeedsVersion2);
    }
    let mut header = Map::new();
    let devices = ring.devices.iter();
    let devices = devices.map(|device| device.as_ref().map_or(Value::Null, |it| it.to_json()));
    header.insert("byteorder".to_owned(), "little".into());
    header.insert("devs".to_owned(), Value::Array(devices.collect()));
    header.insert("part_shift".to_owned(), (32 - ring.part_power).into());
    header.insert("replica_count".to_owned(), ring.table.rows().into());
    if let Some(power) = ring.next_part_power {
        header.insert("next_part_power".to_owned(), power.into());
    }
    if let Some(version) = ring.version {
        header.insert("version".to_owned(), version.into());
    }
    let header = pythonic::json_sorted(&Value::Object(header));
    let mut out = b"R1NG\x00\x01".to_vec();
    let len = u32::try_from(header.len()).map_err(|_| RingError::NeedsVersion2)?;
    out.extend(len.to_be_bytes());
    out.extend(header.as_bytes());
    for id in ring.table.ids() {
        // 65535 is what Swift writes for "no device".
        let id = u16::try_from(id).ok().filter(|&id| id != u16::MAX);
        out.extend(id.ok_or(RingError::NeedsVersion2)?.to_le_bytes());
    }
    Ok(out)
}
