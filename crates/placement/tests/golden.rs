//! Compares rings, primaries and handoffs with what OpenStack Swift says (`golden/make.py`).

#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::path::PathBuf;
use vocabulary::Partition;

use placement::{Ring, RingBuilder, RingData, RingError};
use serde_json::Value;

fn golden(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn described() -> Vec<(String, Value)> {
    let all: Value = serde_json::from_slice(&golden("rings.json")).unwrap();
    all.as_object().unwrap().clone().into_iter().collect()
}

fn ring(name: &str) -> Ring {
    let read = Ring::from_bytes(&golden(&format!("{name}.ring.gz")));
    read.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn inflated(file: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut content).unwrap();
    content
}

fn ids(value: &Value) -> Vec<u64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap())
        .collect()
}

#[test]
fn counts_and_devices_are_what_openstack_reads() {
    for (name, expected) in described() {
        let ring = ring(&name);
        assert_eq!(Some(ring.replicas()), expected["replicas"].as_f64(), "{name}");
        assert_eq!(
            Some(u64::from(ring.partition_count())),
            expected["parts"].as_u64(),
            "{name}"
        );
        assert_eq!(
            Some(u64::from(ring.part_power())),
            expected["part_power"].as_u64(),
            "{name}"
        );
        assert_eq!(ring.data().version(), expected["version"].as_u64(), "{name}");
        let next = ring.data().next_part_power().map(u64::from);
        assert_eq!(next, expected["next_part_power"].as_u64(), "{name}");
        for (id, device) in (0..).zip(expected["devices"].as_array().unwrap()) {
            let Some(ours) = ring.device(id) else {
                assert!(device.is_null(), "{name}: device {id} is missing");
                continue;
            };
            let number = |field: &str| device[field].as_u64().unwrap();
            assert_eq!(ours.ip, device["ip"].as_str().unwrap());
            assert_eq!(ours.replication_ip, device["replication_ip"].as_str().unwrap());
            assert_eq!(ours.device, device["device"].as_str().unwrap());
            assert_eq!(ours.meta, device["meta"].as_str().unwrap());
            assert_eq!(u64::from(ours.port), number("port"));
            assert_eq!(u64::from(ours.replication_port), number("replication_port"));
            assert_eq!(u64::from(ours.region), number("region"));
            assert_eq!(u64::from(ours.zone), number("zone"));
            assert_eq!(Some(ours.weight), device["weight"].as_f64());
        }
    }
}

#[test]
fn primaries_and_handoffs_come_in_openstacks_order() {
    let mut compared = 0;
    for (name, expected) in described() {
        let ring = ring(&name);
        for lookup in expected["lookups"].as_array().unwrap() {
            let partition = lookup[0].as_u64().unwrap() as u32;
            let primaries: Vec<u64> = ring
                .primaries(Partition(partition))
                .iter()
                .map(|device| u64::from(device.id))
                .collect();
            assert_eq!(primaries, ids(&lookup[1]), "{name}: primaries of {partition}");
            let handoffs: Vec<u64> = ring
                .handoffs(Partition(partition))
                .take(80)
                .map(|device| u64::from(device.id))
                .collect();
            assert_eq!(handoffs, ids(&lookup[2]), "{name}: handoffs of {partition}");
            compared += 1;
        }
    }
    assert!(compared > 250, "only {compared} lookups compared");
}

#[test]
fn a_hash_leads_to_openstacks_partition() {
    for (name, expected) in described() {
        let ring = ring(&name);
        for sample in expected["hashes"].as_array().unwrap() {
            let hex = sample[0].as_str().unwrap();
            let mut hash = [0; 16];
            for (place, byte) in hash.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&hex[place * 2..place * 2 + 2], 16).unwrap();
            }
            assert_eq!(
                Some(u64::from(ring.partition_of(&hash).0)),
                sample[1].as_u64(),
                "{name}"
            );
        }
    }
}

#[test]
fn format_1_is_written_byte_for_byte() {
    let by_hand = ["old", "big-endian", "doubles", "corner"];
    for (name, _) in described() {
        let file = golden(&format!("{name}.ring.gz"));
        let content = inflated(&file);
        let ring = RingData::from_bytes(&file).unwrap();
        if content[5] == 1 && !by_hand.contains(&name.as_str()) {
            let ours = ring.content_v1().unwrap();
            assert_eq!(
                ours.escape_ascii().to_string(),
                content.escape_ascii().to_string(),
                "{name}"
            );
        }
        if ring.dev_id_bytes() != 2 {
            assert_eq!(ring.to_bytes_v1(), Err(RingError::NeedsVersion2), "{name}");
            continue;
        }
        let again = RingData::from_bytes(&ring.to_bytes_v1().unwrap()).unwrap();
        assert_eq!(again.content_v1(), ring.content_v1(), "{name}");
    }
}

#[test]
fn format_2_inflates_to_openstacks_bytes_but_for_the_places_of_its_sections() {
    for name in ["second-format", "second-format-wide", "power-16"] {
        let file = golden(&format!("{name}.ring.gz"));
        let ring = RingData::from_bytes(&file).unwrap();
        let ours = ring.to_bytes_v2();
        assert_eq!(RingData::from_bytes(&ours).unwrap(), ring, "{name}");
        let (ours, theirs) = (inflated(&ours), inflated(&file));
        let start = |content: &[u8]| {
            let tail = content.len() - 16;
            u64::from_be_bytes(content[tail..tail + 8].try_into().unwrap()) as usize
        };
        assert_eq!(start(&ours), start(&theirs), "{name}");
        let sections = start(&ours);
        assert_eq!(
            ours[..sections].escape_ascii().to_string(),
            theirs[..sections].escape_ascii().to_string()
        );
    }
}

#[test]
fn builder_files_lead_to_the_rings_openstack_made_of_them() {
    for name in ["half", "removed", "names", "second-format-wide"] {
        let builder = RingBuilder::from_bytes(&golden(&format!("{name}.builder"))).unwrap();
        let ring = RingData::from_bytes(&golden(&format!("{name}.ring.gz"))).unwrap();
        assert_eq!(builder.to_ring().unwrap(), ring, "{name}");
        assert_eq!(RingBuilder::from_bytes(&builder.to_bytes()).unwrap(), builder, "{name}");
    }
    let created = RingBuilder::from_bytes(&golden("created.builder")).unwrap();
    assert!(created.to_ring().unwrap_err().to_string().contains("rebalance first"));
    assert_eq!(created.to_bytes(), golden("created.builder"));
}

/// Of such weights `serde_json` changes the last digit of one in thirteen, unless its `float_roundtrip` is on.
#[test]
fn weights_of_seventeen_digits_survive_both_formats() {
    let weights = [
        1_823.352_145_355_240_3,
        924.213_251_281_359_5,
        9_259.338_926_496_359,
        9_395.774_263_991_487,
        7_461.279_256_838_367_5,
    ];
    let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
    for (number, weight) in (0..).zip(weights) {
        let device = placement::Device {
            zone: number,
            weight,
            device: format!("sd{number}"),
            ip: "10.0.0.1".into(),
            port: 6200,
            ..placement::Device::default()
        };
        builder.add(device).unwrap();
    }
    builder.rebalance(1, 0).unwrap();
    let ring = builder.to_ring().unwrap();
    for bytes in [ring.to_bytes_v1().unwrap(), ring.to_bytes_v2()] {
        let read = RingData::from_bytes(&bytes).unwrap();
        let found: Vec<f64> = read.devices().map(|device| device.weight).collect();
        assert_eq!(found, weights);
    }
}
