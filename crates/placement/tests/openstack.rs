//! OpenStack Swift opens what we write: rings of both formats and builder files.
//!
//! Needs a Python with OpenStack Swift, named by `MARTLET_SWIFT_PYTHON`; without it, nothing is
//! tested here.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use placement::{Device, Ring, RingBuilder};

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

/// Writes a ring and its builder, and what we say about it for the script to compare.
fn write(folder: &Path, name: &str, power: u32, replicas: f64, devices: u32) {
    let mut builder = RingBuilder::new(power, replicas, 1).unwrap();
    for number in 0..devices {
        builder.add(device(number)).unwrap();
    }
    builder.rebalance(3, 1_700_000_000).unwrap();
    let data = builder.to_ring().unwrap();
    std::fs::write(folder.join(format!("{name}.builder")), builder.to_bytes()).unwrap();
    std::fs::write(folder.join(format!("{name}.ring.gz")), data.to_bytes_v1().unwrap()).unwrap();
    std::fs::write(folder.join(format!("{name}-2.ring.gz")), data.to_bytes_v2()).unwrap();
    let ring = Ring::new(data);
    let said: Vec<(Vec<u32>, Vec<u32>)> = (0..ring.partition_count())
        .map(|partition| {
            let primaries = ring.primaries(partition).iter().map(|device| device.id).collect();
            (primaries, ring.handoffs(partition).map(|device| device.id).collect())
        })
        .collect();
    std::fs::write(folder.join(format!("{name}.json")), serde_json::to_vec(&said).unwrap()).unwrap();
}

#[test]
fn rings_and_builders_are_opened_validated_and_agree() {
    let Some(python) = std::env::var_os("MARTLET_SWIFT_PYTHON") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "up", 10, 3.0, 4);
    write(folder.path(), "half", 7, 2.5, 9);
    write(folder.path(), "large", 9, 3.0, 30);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/check.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}
