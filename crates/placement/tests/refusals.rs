//! A ring or builder file that is corrupt, cut short or something else gets a named error.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use vocabulary::Partition;

use flate2::{Compression, write::GzEncoder};
use pickle::{PickleLimits, Value};
use placement::{Ring, RingBuilder, RingError};
use proptest::prelude::*;

const FIRST: &[u8] = include_bytes!("golden/zones.ring.gz");
const SECOND: &[u8] = include_bytes!("golden/second-format.ring.gz");
const BUILDER: &[u8] = include_bytes!("golden/half.builder");

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn first_format(header: &str, rows: &[u8]) -> Vec<u8> {
    let len = (header.len() as u32).to_be_bytes();
    packed(&[b"R1NG\x00\x01", len.as_slice(), header.as_bytes(), rows].concat())
}

/// Sections without checksums, and their index.
fn second_format(metadata: &str, devices: &str, cells: &[u8]) -> Vec<u8> {
    let blob = |content: &mut Vec<u8>, data: &[u8]| {
        let start = content.len();
        content.extend((data.len() as u64).to_be_bytes());
        content.extend(data);
        (start, content.len())
    };
    let mut content = b"R1NG\x00\x02".to_vec();
    let mut entry = |name: &str, data: &[u8]| {
        let (start, end) = blob(&mut content, data);
        format!(r#""swift/ring/{name}": [0, {start}, 0, {end}, null, null]"#)
    };
    let entries = [
        entry("metadata", metadata.as_bytes()),
        entry("devices", devices.as_bytes()),
        entry("assignments", cells),
    ];
    let (index, _) = blob(&mut content, format!("{{{}}}", entries.join(", ")).as_bytes());
    content.extend((index as u64).to_be_bytes());
    content.extend([0; 8]);
    packed(&content)
}

fn refusal(file: &[u8]) -> String {
    Ring::from_bytes(file).unwrap_err().to_string()
}

const DEVICE: &str = r#"{"id": 0, "zone": 1, "ip": "::1", "port": 6200, "device": "sda", "weight": 1}"#;

#[test]
fn a_small_old_ring_is_read_with_defaults() {
    let header = format!(r#"{{"devs": [{DEVICE}], "part_shift": 31, "replica_count": 1}}"#);
    let ring = Ring::from_bytes(&first_format(&header, &[0, 0, 0, 0])).unwrap();
    let device = ring.device(0).unwrap();
    assert_eq!((device.region, device.replication_port), (1, 6200));
    assert_eq!(device.replication_ip, "::1");
    assert_eq!(ring.partition_count(), 2);
    assert_eq!(ring.partition_of(&[0xff; 16]), Partition(1));
    assert_eq!(ring.primaries(Partition(2)).len(), 0);
    assert_eq!(ring.handoffs(Partition(2)).count(), 0);
    let header = header.replace("31", "32");
    let ring = Ring::from_bytes(&first_format(&header, &[0, 0])).unwrap();
    assert_eq!(ring.partition_of(&[0xff; 16]), Partition(0));
    assert_eq!(ring.primaries(Partition(0)).len(), 1);
}

#[test]
fn other_files_are_no_ring() {
    assert!(refusal(b"").contains("truncated"));
    assert!(refusal(b"\x1f\x8b").contains("truncated"));
    assert!(refusal(b"[filter:tempauth]\n").contains("not a gzip file"));
    assert!(refusal(&packed(b"")).contains("no ring"));
    assert!(refusal(&packed(b"\x80\x02}q\x00.")).contains("no ring"));
    assert!(refusal(&packed(b"R1NG\x00\x09")).contains("format version 9"));
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    for file in [FIRST, SECOND] {
        for len in 0..file.len() {
            let error = Ring::from_bytes(&file[..len]).unwrap_err();
            assert!(matches!(error, RingError::Truncated { .. }), "{len}: {error}");
        }
    }
    assert!(refusal(FIRST.split_last().unwrap().1).contains("copy it again"));
}

#[test]
fn a_flipped_bit_is_found_by_the_crc() {
    let mut file = FIRST.to_vec();
    let middle = file.len() / 2;
    file[middle] ^= 4;
    assert!(refusal(&file).contains("corrupt"));
}

#[test]
fn a_header_that_lies_is_refused() {
    let with = |header: &str, rows: &[u8]| refusal(&first_format(header, rows));
    assert!(with("{", &[]).contains("header"));
    assert!(with(r#"{"devs": []}"#, &[]).contains("part_shift"));
    let header = |devs: &str, shift: u32, rows: u32| {
        format!(r#"{{"devs": [{devs}], "part_shift": {shift}, "replica_count": {rows}}}"#)
    };
    assert!(with(&header(DEVICE, 31, 0), &[]).contains("rebalance"));
    assert!(with(&header(DEVICE, 33, 1), &[0; 4]).contains("part_shift 33"));
    assert!(with(&header(DEVICE, 0, 1), &[0; 4]).contains("part_shift 0"));
    assert!(with(&header(DEVICE, 1, 3), &[0; 4]).contains("truncated"));
    assert!(with(&header(DEVICE, 31, 2), &[0; 4]).contains("truncated"));
    assert!(with(&header(DEVICE, 31, 2), &[0; 5]).contains("truncated"));
    let message = with(&header(DEVICE, 31, 1), &[0, 0, 7, 0]);
    assert!(message.contains("partition 1 replica 0 is on device 7"), "{message}");
    assert!(with(&header(&format!("null, {DEVICE}"), 31, 1), &[0; 4]).contains("place 1"));
    assert!(with(&header("null", 31, 1), &[0; 4]).contains("device 0"));
    let order = header(DEVICE, 31, 1).replace("\"part", "\"byteorder\": \"middle\", \"part");
    assert!(with(&order, &[0; 4]).contains("byteorder"));
}

/// Each step of an increase of OpenStack's ring builder: not begun, prepared, and increased or cancelled.
#[test]
fn only_next_powers_that_an_increase_makes_are_taken() {
    let first = |next: &str| {
        let devices = format!(r#""devs": [{DEVICE}], "part_shift": 31, "replica_count": 1"#);
        first_format(&format!("{{{devices}, \"next_part_power\": {next}}}"), &[0; 4])
    };
    let second = |next: &str| {
        let metadata = format!(r#"{{"part_shift": 31, "dev_id_bytes": 2, "next_part_power": {next}}}"#);
        second_format(&metadata, &format!("[{DEVICE}]"), &[0; 4])
    };
    for (next, taken) in [("null", None), ("1", Some(1)), ("2", Some(2))] {
        for file in [first(next), second(next)] {
            assert_eq!(Ring::from_bytes(&file).unwrap().data().next_part_power(), taken);
        }
    }
    for next in ["0", "3", "32", "-1", "4294967297"] {
        let named = format!("next_part_power {next} beside part power 1: possible are none, 1 and 2;");
        for file in [first(next), second(next)] {
            let message = refusal(&file);
            assert!(message.contains(&named), "{message}");
        }
    }
}

#[test]
fn a_header_longer_than_the_file_reserves_nothing() {
    let file = packed(b"R1NG\x00\x01\x03\xff\xff\xff{}");
    assert!(refusal(&file).contains("truncated"));
    let file = packed(b"R1NG\x00\x01\xff\xff\xff\xff{}");
    assert!(refusal(&file).contains("more than"));
}

#[test]
fn a_section_with_a_wrong_checksum_is_named() {
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(SECOND), &mut content).unwrap();
    let place = content.windows(6).position(|window| window == b"weight").unwrap();
    content[place + 9] ^= 1;
    assert!(refusal(&packed(&content)).contains("swift/ring/devices"));
    let tail = content.len() - 16;
    content[tail..].fill(0xff);
    assert!(refusal(&packed(&content)).contains("swift/index"));
}

#[test]
fn a_builder_that_is_something_else_is_named() {
    let refusal = |file: &[u8]| RingBuilder::from_bytes(file).unwrap_err().to_string();
    assert!(refusal(b"").contains("backups"));
    assert!(refusal(b"cswift.common.ring.builder\nRingBuilder\n.").contains("RingBuilder"));
    assert!(refusal(b"}.").contains("part_power"));
    assert!(
        refusal(
            b"}(X\x0a\x00\x00\x00part_powerK\x63X\x0e\x00\x00\x00min_part_hoursK\x01X\x08\x00\x00\x00replicasK\x03u."
        )
        .contains("part power 99")
    );
}

#[test]
fn a_builder_with_a_next_power_that_no_increase_makes_is_refused() {
    let with = |next: Value| {
        let mut value = pickle::loads(BUILDER, &PickleLimits::for_builder()).unwrap();
        let Value::Dict(fields) = &mut value else {
            panic!("no dict")
        };
        let field = fields
            .iter_mut()
            .find(|(name, _)| *name == Value::str("next_part_power"));
        field.unwrap().1 = next;
        RingBuilder::from_bytes(&pickle::dumps(&value))
    };
    let power = RingBuilder::from_bytes(BUILDER).unwrap().part_power();
    for next in [power, power + 1] {
        let builder = with(Value::Int(i64::from(next))).unwrap();
        assert_eq!(builder.next_part_power(), Some(next));
    }
    for next in [
        i64::from(power) - 1,
        i64::from(power) + 2,
        -1,
        (1 << 32) + i64::from(power),
    ] {
        let message = with(Value::Int(next)).unwrap_err().to_string();
        assert!(
            message.contains(&format!("next_part_power {next} beside part power {power}:")),
            "{message}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn mutated_files_never_panic(
        which in 0..2usize,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut file = [FIRST, SECOND][which].to_vec();
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let _ = Ring::from_bytes(&file);
    }

    /// Behind a right CRC, so that the parsers themselves meet the damage; whatever is still a
    /// ring must answer.
    #[test]
    fn mutated_contents_never_panic(
        which in 0..2usize,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut content = Vec::new();
        let file = [FIRST, SECOND][which];
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut content).unwrap();
        for (at, byte) in edits {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if cuts {
            content.truncate(cut.index(content.len()));
        }
        if let Ok(ring) = Ring::from_bytes(&packed(&content)) {
            for partition in [0, 1, ring.partition_count() - 1, u32::MAX] {
                let all = ring.primaries(Partition(partition)).len() + ring.handoffs(Partition(partition)).count();
                prop_assert!(all <= ring.devices().count());
            }
            let _ = (ring.data().to_bytes_v1(), ring.data().to_bytes_v2());
        }
    }

    #[test]
    fn random_headers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0u8..4) {
        let _ = Ring::from_bytes(&packed(&[b"R1NG\x00", [version].as_slice(), &bytes].concat()));
        let _ = Ring::from_bytes(&bytes);
    }

    #[test]
    fn mutated_builders_never_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut file = BUILDER.to_vec();
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(builder) = RingBuilder::from_bytes(&file) {
            let _ = builder.to_ring();
        }
    }
}
