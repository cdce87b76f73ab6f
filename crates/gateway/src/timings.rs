//! How long servers took to answer lately, for `sorting_method = timing`.

use crate::nodes::Node;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// How long servers took to answer lately.
pub struct Timings {
    world: World,
    /// `timing_expiry`.
    expiry: Duration,
    known: Mutex<HashMap<(Arc<str>, u16), Timing>>,
}

struct Timing {
    took: Duration,
    at: Duration,
}

impl Timings {
    /// None known yet.
    pub fn new(world: World, expiry: Duration) -> Self {
        let known = Mutex::default();
        Self { world, expiry, known }
    }

    /// The node's server took that long.
    pub(crate) fn note(&self, node: &Node, took: Duration) {
        let at = self.world.clock.elapsed();
        self.known
            .lock()
            .insert((node.ip.clone(), node.port), Timing { took, at });
    }

    /// `None` for a server not asked lately: it is asked first, so that it is known again.
    pub(crate) fn of(&self, node: &Node) -> Option<Duration> {
        let known = self.known.lock();
        let timing = known.get(&(node.ip.clone(), node.port))?;
        let age = self.world.clock.elapsed().saturating_sub(timing.at);
        // Differences below a millisecond are luck.
        (age < self.expiry).then(|| Duration::from_millis(timing.took.as_millis() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::tests::node;

    #[test]
    fn a_timing_is_good_for_a_while() {
        let timings = |expiry| Timings::new(World::real(), expiry);
        let (lasting, fleeting) = (timings(Duration::from_secs(60)), timings(Duration::ZERO));
        let took = Duration::from_micros(7_600);
        for known in [&lasting, &fleeting] {
            known.note(&node(1, "sda"), took);
        }
        assert_eq!(lasting.of(&node(1, "sdb")), Some(Duration::from_millis(7)));
        assert_eq!(lasting.of(&node(2, "sda")), None);
        assert_eq!(fleeting.of(&node(1, "sda")), None);
    }
}
