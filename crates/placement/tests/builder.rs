//! Rings the builder makes: balanced by weight, spread over places, the same for the same seed.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use vocabulary::Partition;

use pickle::{PickleLimits, Value};
use placement::{Device, Ring, RingBuilder};
use proptest::prelude::*;

fn device(region: u32, zone: u32, server: u32, disk: u32, weight: f64) -> Device {
    let ip = format!("10.{region}.{zone}.{server}");
    Device {
        region,
        zone,
        weight,
        replication_ip: ip.clone(),
        ip,
        port: 6200,
        replication_port: 6200,
        device: format!("sd{disk}"),
        ..Device::default()
    }
}

fn built(power: u32, replicas: f64, devices: impl IntoIterator<Item = Device>, seed: u64) -> RingBuilder {
    let mut builder = RingBuilder::new(power, replicas, 1).unwrap();
    for device in devices {
        builder.add(device).unwrap();
    }
    builder.rebalance(seed, 1_700_000_000).unwrap();
    builder
}

fn grid(regions: u32, zones: u32, servers: u32, disks: u32) -> Vec<Device> {
    let mut devices = Vec::new();
    for region in 1..=regions {
        for zone in 1..=zones {
            for server in 1..=servers {
                devices.extend((0..disks).map(|disk| device(region, zone, server, disk, 100.0)));
            }
        }
    }
    devices
}

#[test]
fn four_disks_of_one_server_hold_a_fourth_each() {
    let builder = built(10, 3.0, grid(1, 1, 1, 4), 1);
    assert!((0..4).all(|id| builder.parts_of(id) == Some(768)));
    let ring = Ring::new(builder.to_ring().unwrap());
    assert!((0..1024).all(|partition| ring.primaries(Partition(partition)).len() == 3));
    assert!((0..1024).all(|partition| ring.handoffs(Partition(partition)).count() == 1));
}

#[test]
fn zones_and_servers_share_the_replicas_evenly() {
    let ring = Ring::new(built(8, 3.0, grid(2, 3, 2, 2), 1).to_ring().unwrap());
    for partition in 0..256 {
        let primaries = ring.primaries(Partition(partition));
        let mut regions: HashMap<u32, usize> = HashMap::new();
        primaries
            .iter()
            .for_each(|device| *regions.entry(device.region).or_default() += 1);
        assert_eq!(regions.len(), 2, "{partition}");
        let mut zones: Vec<_> = primaries.iter().map(|device| (device.region, device.zone)).collect();
        zones.sort_unstable();
        zones.dedup();
        assert_eq!(zones.len(), 3, "{partition}");
    }
}

#[test]
fn copies_of_a_lost_disk_are_spread_over_the_others() {
    let ring = Ring::new(built(10, 3.0, grid(1, 3, 2, 4), 1).to_ring().unwrap());
    let mut others: HashMap<u32, usize> = HashMap::new();
    for partition in 0..1024 {
        let primaries = ring.primaries(Partition(partition));
        if primaries.iter().any(|device| device.id == 0) {
            primaries
                .iter()
                .for_each(|device| *others.entry(device.id).or_default() += 1);
        }
    }
    // Disk 0 is in zone 1: all sixteen disks of the two other zones help.
    assert_eq!(others.len(), 17);
    let most = others.iter().filter(|(id, _)| **id != 0).map(|(_, count)| *count).max();
    assert!(most.unwrap() < 40, "{others:?}");
}

#[test]
fn half_a_replica_is_on_half_of_the_partitions() {
    let ring = Ring::new(built(8, 2.5, grid(1, 3, 1, 2), 1).to_ring().unwrap());
    assert_eq!(ring.replicas(), 2.5);
    assert_eq!(ring.replica_count(), 3);
    let counts = (0..256)
        .filter(|&partition| ring.primaries(Partition(partition)).len() == 3)
        .count();
    assert_eq!(counts, 128);
}

#[test]
fn where_a_replica_is_a_fraction_no_zone_gets_two_of_a_partition_that_has_room_elsewhere() {
    // Two thirds of the weight stand in zone 1: one replica of each partition, not two of some that have two.
    let devices = [(1, 1), (1, 2), (2, 1)].map(|(zone, server)| device(1, zone, server, 1, 100.0));
    let ring = Ring::new(built(7, 1.5, devices, 1).to_ring().unwrap());
    for partition in 0..128 {
        let zones: Vec<u32> = ring
            .primaries(Partition(partition))
            .iter()
            .map(|device| device.zone)
            .collect();
        assert_eq!(
            zones.iter().filter(|&&zone| zone == 1).count(),
            1,
            "{partition}: {zones:?}"
        );
    }
}

#[test]
fn a_seed_is_a_ring() {
    let devices = || grid(1, 2, 2, 2);
    assert_eq!(
        built(6, 3.0, devices(), 7).to_bytes(),
        built(6, 3.0, devices(), 7).to_bytes()
    );
    assert_ne!(
        built(6, 3.0, devices(), 7).to_bytes(),
        built(6, 3.0, devices(), 8).to_bytes()
    );
}

#[test]
fn a_builder_file_holds_all_of_it() {
    let builder = built(6, 2.5, grid(1, 2, 2, 2), 7);
    let file = builder.to_bytes();
    let read = RingBuilder::from_bytes(&file).unwrap();
    assert_eq!(read.to_bytes(), file);
    assert_eq!(read.to_ring(), builder.to_ring());
    assert_eq!(read.version(), 9);
}

#[test]
fn impossible_wishes_are_refused_by_name() {
    let error = |result: Result<RingBuilder, placement::BuilderError>| result.unwrap_err().to_string();
    assert!(error(RingBuilder::new(32, 3.0, 1)).contains("part power 32"));
    assert!(error(RingBuilder::new(10, 0.5, 1)).contains("replica count 0.5"));
    assert!(error(RingBuilder::new(10, f64::NAN, 1)).contains("replica count NaN"));
    let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
    builder.add(device(1, 1, 1, 1, 1.0)).unwrap();
    let message = builder.add(device(1, 1, 1, 1, 1.0)).unwrap_err().to_string();
    assert!(message.contains("sd1 at 10.1.1.1:6200"), "{message}");
    assert!(builder.add(device(1, 1, 1, 2, f64::INFINITY)).is_err());
    builder.add(device(1, 1, 1, 2, 0.0)).unwrap();
    let message = builder.rebalance(1, 0).unwrap_err().to_string();
    assert!(message.contains("the ring has 1"), "{message}");
    assert!(builder.to_ring().unwrap_err().to_string().contains("rebalance first"));
    builder.add(device(1, 1, 1, 3, 1.0)).unwrap();
    builder.add(device(1, 1, 1, 4, 1.0)).unwrap();
    builder.rebalance(1, 0).unwrap();
}

#[test]
fn a_table_that_no_server_reads_is_refused_before_memory_is_asked_for() {
    let builder = RingBuilder::new(31, 3.0, 1).unwrap_err().to_string();
    assert!(
        builder.contains("part power 31 with 3 replicas is too large: its builder needs 192.0 GiB"),
        "{builder}"
    );
    assert!(builder.contains("choose 26 or less"), "{builder}");
    let mut builder = RingBuilder::new(26, 3.0, 1).unwrap();
    assert!(
        builder
            .set_replicas(5.0)
            .unwrap_err()
            .to_string()
            .contains("choose 25 or less")
    );
    let message = builder.prepare_increase_partition_power().unwrap_err().to_string();
    assert!(message.contains("part power 27"), "{message}");
    assert_eq!((builder.replicas(), builder.next_part_power()), (3.0, None));
}

#[test]
fn a_file_that_says_an_absurd_size_is_refused() {
    let file = RingBuilder::new(4, 3.0, 1).unwrap().to_bytes();
    let mut value = pickle::loads(&file, &PickleLimits::for_builder()).unwrap();
    let Value::Dict(fields) = &mut value else {
        panic!("no dict")
    };
    for (name, value) in fields {
        match name.text() {
            Some("part_power") => *value = Value::Int(31),
            Some("_last_part_moves") => *value = Value::None,
            _ => {}
        }
    }
    let message = RingBuilder::from_bytes(&pickle::dumps(&value)).unwrap_err().to_string();
    assert!(
        message.contains("part power 31 with 3 replicas is too large"),
        "{message}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_cluster_is_balanced_and_spread(
        places in proptest::collection::vec(
            (1u32..4, 1u32..4, 1u32..4, prop_oneof![Just(100.0), Just(0.0), 1.0..1000.0]),
            1..30,
        ),
        replicas in prop_oneof![Just(1.0), Just(2.0), Just(3.0), 1.0..4.0],
        power in 1u32..9,
        seed in any::<u64>(),
    ) {
        let devices: Vec<Device> = (0u32..).zip(&places)
            .map(|(disk, &(region, zone, server, weight))| device(region, zone, server, disk, weight))
            .collect();
        let weighted = devices.iter().filter(|device| device.weight > 0.0).count();
        prop_assume!(weighted as f64 >= f64::ceil(replicas));
        let builder = built(power, replicas, devices.clone(), seed);
        let ring = Ring::new(builder.to_ring().unwrap());
        let partitions = ring.partition_count();
        let total: f64 = devices.iter().map(|device| device.weight).sum();
        let cells = ring.replicas() * f64::from(partitions);
        let shares = devices.iter().map(|device| device.weight / total * cells);
        // Where no device is too heavy for one replica per partition, shares come out to within rounding. A
        // replica that only some partitions have is dealt out by itself, which costs a heavy device a little more:
        // `half_a_replica_is_on_half_of_the_partitions` says what holds there.
        let is_whole = replicas.fract() == 0.0;
        let even = is_whole && shares.clone().all(|share| share <= f64::from(partitions) * 0.99);
        for (id, share) in (0u32..).zip(shares) {
            let parts = builder.parts_of(id).unwrap() as f64;
            prop_assert!(!even || (parts - share).abs() <= 2.0 + 1e-6, "{} has {} for {}", id, parts, share);
        }
        for partition in 0..partitions {
            let whole = ring.primaries(Partition(partition)).len();
            prop_assert!(whole == replicas.floor() as usize || whole == replicas.ceil() as usize);
        }
    }
}
