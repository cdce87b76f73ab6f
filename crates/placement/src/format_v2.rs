//! Ring format 2: sections with checksums, and an index at the end that says where they are.
//!
//! OpenStack seeks to the sections in the compressed file; here the whole file is inflated (its
//! CRC is checked that way) and the uncompressed offsets are used. Writing keeps the compressed
//! ones right: each section is a deflate stream of its own, ended by a full flush, and the tail is
//! the 31 bytes that readers go back from the end. Drawn in `docs/formats/ring.md`.

use std::collections::HashMap;
use vocabulary::{Partition, hex};

use flate2::{Compress, Crc, FlushCompress};
use md5::Md5;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::device::Listed;
use crate::error::RingError;
use crate::format_v1;
use crate::gzip::{LEVEL, MTIME};
use crate::ring_data::{RingData, next_power_of_ring, part_power};
use crate::table::Table;

const METADATA: &str = "swift/ring/metadata";
const DEVICES: &str = "swift/ring/devices";
const ASSIGNMENTS: &str = "swift/ring/assignments";

/// Longest JSON section taken.
const MAX_JSON: usize = 256 << 20;

/// Compressed start, start, compressed end, end, checksum method, checksum.
type Entry = (Value, u64, Value, Option<u64>, Option<String>, Option<String>);

#[derive(Deserialize)]
struct Metadata {
    part_shift: u64,
    dev_id_bytes: u64,
    next_part_power: Option<i64>,
    version: Option<u64>,
}

/// Reads the whole content, magic included.
pub(crate) fn read(content: &[u8]) -> Result<RingData, RingError> {
    let sections = Sections::find(content)?;
    let metadata: Metadata = sections.json(METADATA)?;
    let devices: Vec<Option<Listed>> = sections.json(DEVICES)?;
    let part_power = part_power(metadata.part_shift)?;
    let next_part_power = next_power_of_ring(part_power, metadata.next_part_power)?;
    let partitions = 1u32 << part_power;
    let cells = sections.data(ASSIGNMENTS)?;
    RingData {
        devices: format_v1::devices(devices),
        table: table(cells, partitions, metadata.dev_id_bytes)?,
        part_power,
        next_part_power,
        version: metadata.version,
        dev_id_bytes: metadata.dev_id_bytes as u8,
    }
    .checked()
}

fn table(cells: &[u8], partitions: u32, bytes: u64) -> Result<Table, RingError> {
    if !matches!(bytes, 2 | 4 | 8) {
        return Err(RingError::DeviceIdBytes { bytes });
    }
    if !cells.len().is_multiple_of(bytes as usize) {
        return Err(RingError::Truncated {
            what: "the partition table ends within an id",
        });
    }
    let word = |cell: &[u8]| cell.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
    if bytes == 2 {
        let ids = cells.chunks_exact(2).map(|cell| u16::from_be_bytes([cell[0], cell[1]]));
        return Table::narrow(partitions, ids.collect());
    }
    let ids = cells.chunks_exact(bytes as usize).enumerate().map(|(place, cell)| {
        u32::try_from(word(cell)).map_err(|_| RingError::UnknownDevice {
            partition: Partition((place % partitions as usize) as u32),
            replica: place / partitions as usize,
            device: word(cell),
        })
    });
    Table::wide(partitions, ids.collect::<Result<_, _>>()?)
}

/// The sections of a file, by the index at its end.
struct Sections<'c> {
    content: &'c [u8],
    index: HashMap<String, Entry>,
}

impl<'c> Sections<'c> {
    fn find(content: &'c [u8]) -> Result<Sections<'c>, RingError> {
        let cut = RingError::Truncated {
            what: "there is no index",
        };
        let tail = content.len().checked_sub(16).ok_or(cut)?;
        let start = blob_length(&content[tail..]).unwrap_or(usize::MAX);
        let index = blob(content, start, "swift/index")?;
        let index = serde_json::from_slice(index).map_err(|error| RingError::Json {
            section: "index",
            detail: error.to_string(),
        })?;
        Ok(Sections { content, index })
    }

    /// The bytes of a section, its checksum verified.
    fn data(&self, name: &'static str) -> Result<&'c [u8], RingError> {
        let missing = RingError::Section { section: name };
        let (_, start, _, end, method, sum) = self.index.get(name).ok_or(missing.clone())?;
        let start = usize::try_from(*start).map_err(|_| missing.clone())?;
        let data = blob(self.content, start, name)?;
        let whole = &self.content[start..start + 8 + data.len()];
        if end.is_some_and(|end| end != (start + whole.len()) as u64) {
            return Err(missing);
        }
        let computed = match (method.as_deref(), sum) {
            (Some(method), Some(_)) => checksum(method, whole),
            _ => None,
        };
        if computed.is_some() && computed.as_ref() != sum.as_ref() {
            return Err(RingError::Checksum {
                section: name.to_owned(),
            });
        }
        Ok(data)
    }

    fn json<T: for<'d> Deserialize<'d>>(&self, name: &'static str) -> Result<T, RingError> {
        let data = self.data(name)?;
        if data.len() > MAX_JSON {
            return Err(RingError::TooLarge { limit: MAX_JSON });
        }
        serde_json::from_slice(data).map_err(|error| RingError::Json {
            section: name,
            detail: error.to_string(),
        })
    }
}

fn blob_length(content: &[u8]) -> Option<usize> {
    let len = content.first_chunk::<8>()?;
    usize::try_from(u64::from_be_bytes(*len)).ok()
}

/// The data behind a length at an offset.
fn blob<'c>(content: &'c [u8], start: usize, name: &'static str) -> Result<&'c [u8], RingError> {
    let missing = RingError::Section { section: name };
    let at = content.get(start..).ok_or(missing.clone())?;
    let len = blob_length(at).ok_or(missing.clone())?;
    at[8..].get(..len).ok_or(missing)
}

/// The checksum in hex; none for a method from the future, which is then not verified.
fn checksum(method: &str, data: &[u8]) -> Option<String> {
    match method {
        "md5" => Some(hex::encode(Md5::digest(data))),
        "sha1" => Some(hex::encode(Sha1::digest(data))),
        "sha256" => Some(hex::encode(Sha256::digest(data))),
        "sha512" => Some(hex::encode(Sha512::digest(data))),
        _ => None,
    }
}

/// Writes the gzip file.
pub(crate) fn write(ring: &RingData) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.section(METADATA, pythonic::json_sorted(&metadata(ring)).as_bytes());
    let devices = ring.devices.iter();
    let devices = devices.map(|device| device.as_ref().map_or(Value::Null, |it| it.to_json()));
    writer.section(
        DEVICES,
        pythonic::json_sorted(&Value::Array(devices.collect())).as_bytes(),
    );
    let width = usize::from(ring.dev_id_bytes);
    let mut cells = Vec::with_capacity(ring.table.len() * width);
    for id in ring.table.ids() {
        cells.extend(&u64::from(id).to_be_bytes()[8 - width..]);
    }
    writer.section(ASSIGNMENTS, &cells);
    writer.finish()
}

fn metadata(ring: &RingData) -> Value {
    let mut fields = Map::new();
    fields.insert("dev_id_bytes".to_owned(), ring.dev_id_bytes.into());
    fields.insert("part_shift".to_owned(), (32 - ring.part_power).into());
    fields.insert("replica_count".to_owned(), ring.replicas().into());
    if let Some(power) = ring.next_part_power {
        fields.insert("next_part_power".to_owned(), power.into());
    }
    if let Some(version) = ring.version {
        fields.insert("version".to_owned(), version.into());
    }
    Value::Object(fields)
}

/// A gzip file in the making: its bytes, and how much it inflates to.
struct Writer {
    file: Vec<u8>,
    inflated: u64,
    crc: Crc,
    index: Map<String, Value>,
}

impl Writer {
    fn new() -> Writer {
        let mut file = vec![0x1f, 0x8b, 8, 0];
        file.extend(MTIME.to_le_bytes());
        file.extend([2, 255]);
        let mut writer = Writer {
            file,
            inflated: 0,
            crc: Crc::new(),
            index: Map::new(),
        };
        writer.stored(b"R1NG\x00\x02");
        writer
    }

    /// An uncompressed block, and an empty one that stands for a full flush.
    fn stored(&mut self, data: &[u8]) {
        let len = data.len() as u16;
        self.file.push(0);
        self.file.extend(len.to_le_bytes());
        self.file.extend((!len).to_le_bytes());
        self.file.extend(data);
        self.file.extend([0, 0, 0, 0xff, 0xff]);
        self.count(data);
    }

    fn count(&mut self, data: &[u8]) {
        self.crc.update(data);
        self.inflated += data.len() as u64;
    }

    /// A length and data, compressed for themselves and flushed.
    fn blob(&mut self, data: &[u8]) -> Vec<u8> {
        let whole = [&(data.len() as u64).to_be_bytes(), data].concat();
        let mut deflate = Compress::new(LEVEL, false);
        let mut out = Vec::with_capacity(whole.len() / 2 + 64);
        loop {
            let taken = deflate.total_in() as usize;
            // Deflating to a Vec with room cannot fail; a full Vec means another round.
            let _ = deflate.compress_vec(&whole[taken..], &mut out, FlushCompress::Full);
            if deflate.total_in() as usize == whole.len() && out.len() < out.capacity() {
                break;
            }
            out.reserve(out.capacity());
        }
        self.file.extend(&out);
        self.count(&whole);
        whole
    }

    fn section(&mut self, name: &str, data: &[u8]) {
        let (packed, plain) = (self.file.len(), self.inflated);
        let whole = self.blob(data);
        let sum = checksum("sha256", &whole);
        let entry = json!([packed, plain, self.file.len(), self.inflated, "sha256", sum]);
        self.index.insert(name.to_owned(), entry);
    }

    fn finish(mut self) -> Vec<u8> {
        let (packed, plain) = (self.file.len() as u64, self.inflated);
        let index = pythonic::json_sorted(&Value::Object(std::mem::take(&mut self.index)));
        self.blob(index.as_bytes());
        self.stored(&plain.to_be_bytes());
        self.stored(&packed.to_be_bytes());
        self.file.extend([1, 0, 0, 0xff, 0xff]);
        self.file.extend(self.crc.sum().to_le_bytes());
        self.file.extend((self.inflated as u32).to_le_bytes());
        self.file
    }
}
