//! OpenStack Swift opens what we write, rings of both formats and builder files with ids of two and of four bytes, and
//! we what it writes of the same.
//!
//! Needs a Python with OpenStack Swift, named by `MARTLET_SWIFT_PYTHON`; without it, nothing is
//! tested here.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use vocabulary::Partition;

use placement::{Device, Ring, RingBuilder, RingData};

fn device(number: u32) -> Device {
    Device {
        region: 1 + number / 12,
        zone: 1 + number % 3,
        weight: 100.0 + f64::from(number % 4) * 25.5,
        ip: format!("10.0.{}.{}", number % 3, number % 6),
        port: 6200 + (number / 6) as u16,
        replication_ip: format!("10.1.0.{number}"),
        replication_port: 6300,
        device: format!("sd{number}"),
        meta: "grün \"x\"".to_owned(),
        ..Device::default()
    }
}

/// A builder with so many devices, placed.
fn built(power: u32, replicas: f64, devices: impl Iterator<Item = u32>) -> RingBuilder {
    let mut builder = RingBuilder::new(power, replicas, 1).unwrap();
    for id in devices {
        builder.add_with_id(Device { id, ..device(id) }).unwrap();
    }
    builder.rebalance(3, 1_700_000_000).unwrap();
    builder
}

/// Writes a ring and its builder, and what we say about it for the script to compare.
fn write(folder: &Path, name: &str, builder: &RingBuilder) {
    let data = builder.to_ring().unwrap();
    std::fs::write(folder.join(format!("{name}.builder")), builder.to_bytes()).unwrap();
    // Format 1 has no room for wide ids.
    if let Ok(first) = data.to_bytes_v1() {
        std::fs::write(folder.join(format!("{name}.ring.gz")), first).unwrap();
    }
    std::fs::write(folder.join(format!("{name}-2.ring.gz")), data.to_bytes_v2()).unwrap();
    let ring = Ring::new(data);
    let lookups: Vec<(Vec<u32>, Vec<u32>)> = (0..ring.partition_count())
        .map(|partition| {
            let primaries = ring
                .primaries(Partition(partition))
                .iter()
                .map(|device| device.id)
                .collect();
            (
                primaries,
                ring.handoffs(Partition(partition)).map(|device| device.id).collect(),
            )
        })
        .collect();
    std::fs::write(
        folder.join(format!("{name}.json")),
        serde_json::to_vec(&lookups).unwrap(),
    )
    .unwrap();
}

#[test]
fn rings_and_builders_are_opened_validated_and_agree() {
    let Some(python) = std::env::var_os("MARTLET_SWIFT_PYTHON") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wide = |mut builder: RingBuilder| {
        builder.set_dev_id_bytes(4).unwrap();
        builder
    };
    let builders = [
        ("up", built(10, 3.0, 0..4)),
        ("half", built(7, 2.5, 0..9)),
        ("large", built(9, 3.0, 0..30)),
        ("wide", wide(built(8, 3.0, 0..12))),
        // No two bytes can hold these.
        ("beyond", built(5, 3.0, (0..6).chain(65_533..65_542).chain([70_000]))),
    ];
    for (name, builder) in &builders {
        write(folder.path(), name, builder);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/check.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    // And back: what it wrote of what it read.
    for (name, builder) in &builders {
        let theirs = |ending: &str| std::fs::read(folder.path().join(format!("{name}-theirs{ending}"))).unwrap();
        let data = builder.to_ring().unwrap();
        let ring = RingData::from_bytes(&theirs("-2.ring.gz")).unwrap();
        assert!(ring.same_as(&data), "{name}");
        assert_eq!(ring.dev_id_bytes(), data.dev_id_bytes(), "{name}");
        let read = RingBuilder::from_bytes(&theirs(".builder")).unwrap();
        assert!(read.to_ring().unwrap().same_as(&data), "{name}");
        assert_eq!(read.dev_id_bytes(), builder.dev_id_bytes(), "{name}");
        // A rebalance takes what two bytes hold back to them, theirs as ours.
        let mut again = read;
        again.rebalance(1, 1_700_000_000).unwrap();
        assert_eq!(again.dev_id_bytes(), if *name == "beyond" { 4 } else { 2 }, "{name}");
    }
}
