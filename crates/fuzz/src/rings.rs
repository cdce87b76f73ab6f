//! Files of rings: what is read is written and read alike, and lookups in it never fail.

use crate::input::text;
use flate2::{Compression, write::GzEncoder};
use placement::{Ring, RingBuilder, RingData};
use ring_builder::rewritten_composite;
use std::io::Write;
use std::path::Path;
use vocabulary::Partition;

/// Larger ones are read as well, but take too long to look at here.
const LARGEST: usize = 1 << 16;

/// A ring, compressed or still to be compressed: checksums are no obstacle to the engine.
pub(crate) fn ring(bytes: &[u8]) {
    let compressed = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => bytes.to_vec(),
        false => gzip(bytes),
    };
    let Ok(data) = RingData::from_bytes(&compressed) else {
        return;
    };
    assert!(RingData::format_of(&compressed).is_ok());
    let second = RingData::from_bytes(&data.to_bytes_v2());
    assert!(
        second.is_ok_and(|second| second.same_as(&data)),
        "format 2 says something else"
    );
    if let Ok(first) = data.to_bytes_v1() {
        assert!(
            RingData::from_bytes(&first).is_ok_and(|first| first.same_as(&data)),
            "format 1 says something else"
        );
    }
    if bytes.len() > LARGEST {
        return;
    }
    let ring = Ring::new(data);
    for partition in [0, 1, u32::MAX].map(Partition) {
        let primaries = ring.primaries(partition).len();
        assert!(primaries <= ring.replica_count());
        assert!(ring.handoffs(partition).take(50).count() <= 50);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::none());
    // Writing to a Vec cannot fail.
    writer
        .write_all(bytes)
        .and_then(|()| writer.finish())
        .unwrap_or_default()
}

/// A builder; what it makes a ring of is a ring.
pub(crate) fn builder(bytes: &[u8]) {
    let Ok(builder) = RingBuilder::from_bytes(bytes) else {
        return;
    };
    let written = builder.to_bytes();
    match RingBuilder::from_bytes(&written) {
        Ok(again) => assert_eq!(again.to_bytes(), written),
        // A set in a field without a meaning is written in a form that is refused.
        Err(error) => assert!(error.to_string().contains("__builtin__.set"), "{error}"),
    }
    let is_finite = |ring: &RingData| ring.devices().all(|device| device.weight.is_finite());
    if let Some(ring) = builder.to_ring().ok().filter(is_finite) {
        let read = RingData::from_bytes(&ring.to_bytes_v2());
        assert!(read.as_ref().is_ok_and(|read| read.same_as(&ring)), "{:?}", read.err());
    }
}

/// What the composer remembers.
pub(crate) fn composite(bytes: &[u8]) {
    let path = Path::new("/etc/swift/object.composite");
    if let Some(written) = rewritten_composite(bytes, path) {
        assert_eq!(
            rewritten_composite(written.as_bytes(), path),
            Some(written),
            "{}",
            text(bytes)
        );
    }
}
