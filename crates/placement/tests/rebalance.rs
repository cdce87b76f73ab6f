//! What every rebalance keeps, whatever the history: no partition twice on a device, no more than one replica of a
//! partition moved before its hours have passed, weights honoured once they have.

#![allow(clippy::unwrap_used)]

use placement::{Device, RingBuilder};
use proptest::prelude::*;
use vocabulary::Partition;

const HOUR: i64 = 3600;

fn device(number: u32, zone: u32, weight: f64) -> Device {
    let ip = format!("10.0.{zone}.{}", number % 3);
    Device {
        region: 1 + zone % 2,
        zone,
        weight,
        replication_ip: ip.clone(),
        ip,
        port: 6200,
        replication_port: 6200,
        device: format!("sd{number}"),
        ..Device::default()
    }
}

fn holders(builder: &RingBuilder) -> Vec<Vec<u32>> {
    let ids = |partition| builder.part_devices(partition).iter().map(|it| it.id).collect();
    (0..builder.partition_count()).map(Partition).map(ids).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn partitions_move_one_replica_at_a_time(
        weights in proptest::collection::vec(prop_oneof![Just(100.0), 10.0..400.0], 6..20),
        changes in proptest::collection::vec((0u32..4, any::<u32>(), 0i64..3), 1..8),
        seed in any::<u64>(),
    ) {
        let mut builder = RingBuilder::new(6, 3.0, 2).unwrap();
        let mut number = 0;
        for weight in weights {
            builder.add(device(number, number % 4, weight)).unwrap();
            number += 1;
        }
        let mut now = 1_700_000_000;
        builder.rebalance(seed, now).unwrap();
        let mut last_moved = vec![now; 64];
        for (what, which, hours) in changes {
            let ids: Vec<u32> = builder.devices().map(|it| it.id).collect();
            let one = ids[which as usize % ids.len()];
            match what {
                0 if ids.len() > 5 => builder.remove(one).unwrap(),
                1 => builder.set_weight(one, 10.0 + f64::from(which % 300)).unwrap(),
                2 => builder.set_zone(one, which % 5).unwrap(),
                _ => { builder.add(device(number, which % 5, 100.0)).unwrap(); number += 1; }
            }
            now += hours * HOUR;
            let removed = builder.removed().to_vec();
            let before = holders(&builder);
            builder.rebalance(seed ^ u64::from(which), now).unwrap();
            builder.validate().unwrap();
            for (partition, (before, after)) in before.iter().zip(holders(&builder)).enumerate() {
                let lost = before.iter().filter(|id| removed.contains(id)).count();
                let left = before.iter().filter(|id| !after.contains(id) && !removed.contains(id)).count();
                let waited = now - last_moved[partition] >= 2 * HOUR;
                prop_assert!(left <= usize::from(waited && lost == 0), "{partition}: {before:?} {after:?}");
                if left + lost > 0 {
                    last_moved[partition] = now;
                }
            }
        }
        for _ in 0..6 {
            now += 100 * HOUR;
            builder.rebalance(seed, now).unwrap();
        }
        prop_assert!(builder.devices().all(|it| builder.parts_wanted(it.id) == Some(0)));
    }
}
