//! Changes of a builder: what each does, what it refuses by name, and which raise the version.

#![allow(clippy::unwrap_used)]

use placement::{BuilderError, Change, Device, RingBuilder};
use vocabulary::Partition;

fn device(number: u32) -> Device {
    let ip = format!("10.0.0.{}", number % 4);
    Device {
        region: 1,
        zone: number % 3,
        weight: 100.0,
        replication_ip: ip.clone(),
        ip,
        port: 6200,
        replication_port: 6200,
        device: format!("sd{number}"),
        ..Device::default()
    }
}

fn builder(devices: u32) -> RingBuilder {
    let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
    (0..devices).for_each(|number| assert_eq!(builder.add(device(number)), Ok(number)));
    builder
}

fn placed() -> RingBuilder {
    let mut builder = builder(6);
    builder.rebalance(1, 1_000_000).unwrap();
    builder
}

#[test]
fn a_device_gets_the_lowest_free_id_or_the_one_it_brings() {
    let mut builder = builder(5);
    let with_id = |id| Device {
        id,
        ..device(100 + id % 1000)
    };
    assert_eq!(builder.add_with_id(with_id(2)), Err(BuilderError::IdTaken { id: 2 }));
    assert_eq!(builder.add_with_id(with_id(7)), Ok(7));
    assert_eq!(builder.add(device(20)), Ok(5));
    assert_eq!(builder.add(device(21)), Ok(6));
    assert_eq!(builder.add(device(22)), Ok(8));
    assert_eq!((builder.version(), builder.dev_id_bytes()), (9, 2));
    assert_eq!(builder.add_with_id(with_id(65534)), Ok(65534));
    assert_eq!(builder.dev_id_bytes(), 2);
    assert_eq!(builder.add_with_id(with_id(65535)), Ok(65535));
    assert_eq!(builder.dev_id_bytes(), 4);
    assert_eq!(
        builder.set_dev_id_bytes(2),
        Err(BuilderError::DeviceIdBytes { bytes: 2 })
    );
    assert!(builder.add_with_id(with_id(u32::MAX)).is_err());
}

#[test]
fn changes_of_devices_raise_the_version_and_ask_for_a_rebalance() {
    let mut builder = placed();
    assert_eq!((builder.version(), builder.devices_changed()), (7, false));
    builder.set_weight(1, 50.0).unwrap();
    builder.set_zone(1, 9).unwrap();
    builder.set_region(1, 2).unwrap();
    assert_eq!((builder.version(), builder.devices_changed()), (10, true));
    builder.remove(2).unwrap();
    builder.remove(2).unwrap();
    assert_eq!((builder.version(), builder.removed()), (12, [2].as_slice()));
    assert_eq!(builder.device(2).unwrap().weight, 0.0);
    assert_eq!(builder.balance(), Ok(999.99));
    for (what, result) in [
        ("weight", builder.set_weight(2, 1.0)),
        ("zone", builder.set_zone(2, 1)),
        ("region", builder.set_region(2, 1)),
    ] {
        assert_eq!(result, Err(BuilderError::Removed { what, id: 2 }));
    }
    assert_eq!(builder.remove(77), Err(BuilderError::NoDevice { id: 77 }));
    for weight in [f64::NAN, f64::INFINITY, -1.0] {
        let message = builder.set_weight(0, weight).unwrap_err().to_string();
        assert!(message.contains("of device sd0"), "{message}");
    }
    assert_eq!(builder.version(), 12);
}

#[test]
fn the_rings_own_settings_leave_the_version_alone() {
    let mut builder = placed();
    builder.set_replicas(3.000_001).unwrap();
    assert!(!builder.devices_changed());
    builder.set_replicas(3.5).unwrap();
    assert!(builder.devices_changed());
    builder.set_overload(0.1).unwrap();
    builder.set_min_part_hours(5);
    builder.set_dev_id_bytes(4).unwrap();
    assert_eq!(
        (builder.version(), builder.replicas(), builder.overload()),
        (7, 3.5, 0.1)
    );
    assert!(builder.set_overload(-0.1).is_err() && builder.set_overload(f64::NAN).is_err());
    assert!(builder.set_replicas(0.9).is_err() && builder.set_replicas(f64::NAN).is_err());
    for bytes in [0, 1, 3, 8] {
        assert!(builder.set_dev_id_bytes(bytes).is_err());
    }
}

#[test]
fn where_a_device_is_reached_changes_unless_another_is_there() {
    let mut builder = placed();
    let change = Change {
        ip: Some("10.9.9.9".to_owned()),
        meta: Some("new".to_owned()),
        ..Change::default()
    };
    builder.set_info(3, change).unwrap();
    let changed = builder.device(3).unwrap();
    assert_eq!(
        (changed.ip.as_str(), changed.port, changed.meta.as_str()),
        ("10.9.9.9", 6200, "new")
    );
    assert_eq!((builder.version(), builder.devices_changed()), (7, false));
    let taken = Change {
        ip: Some("10.0.0.0".to_owned()),
        device: Some("sd0".to_owned()),
        ..Change::default()
    };
    let message = builder.set_info(1, taken.clone()).unwrap_err().to_string();
    assert!(
        message.contains("sd0 at 10.0.0.0:6200") && message.contains("device 0"),
        "{message}"
    );
    builder.set_info(0, taken).unwrap();
    assert!(builder.set_info(50, Change::default()).is_err());
}

#[test]
fn the_partition_power_grows_in_steps_that_answer() {
    let mut builder = placed();
    assert!(!builder.increase_partition_power().unwrap() && !builder.cancel_increase_partition_power());
    assert!(!builder.finish_increase_partition_power());
    let before: Vec<Vec<u32>> = (0..16).map(|it| ids(&builder, Partition(it))).collect();
    assert!(builder.prepare_increase_partition_power().unwrap());
    assert!(!builder.prepare_increase_partition_power().unwrap());
    assert!(!builder.finish_increase_partition_power());
    assert_eq!(builder.next_part_power(), Some(5));
    assert!(builder.increase_partition_power().unwrap());
    assert!(!builder.increase_partition_power().unwrap() && !builder.cancel_increase_partition_power());
    for partition in 0..32 {
        assert_eq!(ids(&builder, Partition(partition)), before[partition as usize / 2]);
    }
    builder.validate().unwrap();
    assert!(builder.finish_increase_partition_power());
    assert_eq!(
        (builder.part_power(), builder.next_part_power(), builder.version()),
        (5, None, 10)
    );
    assert!(builder.prepare_increase_partition_power().unwrap());
    assert!(builder.cancel_increase_partition_power());
    assert_eq!(builder.next_part_power(), Some(5));
    assert!(!builder.increase_partition_power().unwrap());
    assert!(builder.finish_increase_partition_power());
}

fn ids(builder: &RingBuilder, partition: Partition) -> Vec<u32> {
    builder.part_devices(partition).iter().map(|device| device.id).collect()
}

#[test]
fn a_builder_in_the_middle_of_things_survives_its_file() {
    let mut builder = placed();
    builder.set_id("77b2b3b4b5b6b7b8b9b0b1b2b3b4b5b6");
    builder.remove(2).unwrap();
    builder.set_replicas(3.5).unwrap();
    builder.prepare_increase_partition_power().unwrap();
    builder.add_with_id(Device { id: 9, ..device(50) }).unwrap();
    let read = RingBuilder::from_bytes(&builder.to_bytes()).unwrap();
    assert_eq!(read.to_bytes(), builder.to_bytes());
    assert_eq!(
        (read.removed(), read.next_part_power(), read.id()),
        ([2].as_slice(), Some(5), builder.id())
    );
    assert_eq!(read.slots().filter(Option::is_none).count(), 3);
    builder.pretend_min_part_hours_passed();
    assert_eq!(builder.min_part_seconds_left(1_000_001), 0);
    assert_eq!(read.min_part_seconds_left(1_000_001), 3599);
}

#[test]
fn parts_are_listed_by_how_many_of_the_devices_hold_them() {
    let builder = placed();
    let listed = builder.list_parts(&[0, 1, 2]);
    let expected = |partition| ids(&builder, partition).iter().filter(|id| **id < 3).count() as u32;
    assert!(listed.iter().all(|&(partition, count)| count == expected(partition)));
    assert_eq!(listed.iter().map(|it| it.1).sum::<u32>(), 24);
    assert!(listed.is_sorted_by_key(|&(partition, count)| (u32::MAX - count, partition)));
    assert_eq!(builder.list_parts(&[99]), []);
}
