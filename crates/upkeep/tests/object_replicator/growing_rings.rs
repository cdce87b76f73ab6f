//! While the partition power of a ring is increased its policy is left alone.

use crate::common::{Log, pass};
use crate::site::{Site, names};
use std::sync::atomic::Ordering;

#[tokio::test]
async fn a_policy_is_left_alone_with_a_warning_for_each_pass_until_the_increase_is_over() {
    let mut site = Site::new();
    let names = names(8);
    for name in &names {
        let nodes = site.nodes(name);
        // One lacks it, and one has it that should not.
        for node in [&nodes[0], &nodes[1], &nodes[3]] {
            site.put(node, name, 1, b"content").await;
        }
    }
    let before: Vec<_> = (0..4).map(|id| site.content(&format!("sd{id}"))).collect();
    let (log, _listening) = Log::listen();
    let tries = async |site: &Site| {
        let mut replicator = site.replicator(|_| {});
        for _ in 0..2 {
            assert_eq!(pass(&mut replicator).await, (0, 0));
            let lines = log.lines("next_part_power");
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains("policy 0"), "{lines:?}");
        }
    };
    site.change_ring(|builder| assert!(builder.prepare_increase_partition_power().unwrap()));
    tries(&site).await;
    site.change_ring(|builder| assert!(builder.increase_partition_power().unwrap()));
    tries(&site).await;
    let after: Vec<_> = (0..4).map(|id| site.content(&format!("sd{id}"))).collect();
    assert!(after == before, "a copy was moved");
    assert_eq!(site.door.exchanges.load(Ordering::Relaxed), 0);
    site.change_ring(|builder| assert!(builder.finish_increase_partition_power()));
    assert_eq!(log.lines("next_part_power").len(), 0);
    let mut replicator = site.replicator(|options| options.handoffs_first = false);
    pass(&mut replicator).await;
    assert_eq!(log.lines("next_part_power").len(), 0);
}
