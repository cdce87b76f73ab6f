//! Sampling: one gateway, N storage nodes, N raised until throughput stops; and the N at which it is cheapest.
//!
//! Between the limit of the gateway, a, and that of N storage nodes, N b, throughput bends:
//! X(N) = (a^-p + (N b)^-p)^(-1/p).
//! The two limits meet at N = a / b, where throughput stops growing in the large. p says how sharp the knee is; p = 1
//! is a request that spends its time first at one and then at the other.
//! The cost of a unit of throughput is (P + N c) / X(N). Its least value lies at N = ((P / c) (a / b)^p)^(1 / (p + 1)).

/// One gateway and its storage nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingCurve {
    /// What the gateway bears.
    pub gateway: f64,
    /// What one storage node bears.
    pub storage: f64,
    /// How sharp the knee is.
    pub knee: f64,
}

/// A step of sampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingStep {
    /// Storage nodes.
    pub nodes: u32,
    /// Throughput.
    pub throughput: f64,
    /// Cost of a unit of throughput.
    pub cost: f64,
}

impl SamplingCurve {
    /// Throughput with N storage nodes.
    pub fn throughput(self, nodes: f64) -> f64 {
        let sum = self.gateway.powf(-self.knee) + (nodes * self.storage).powf(-self.knee);
        sum.powf(-1.0 / self.knee)
    }

    /// The number of storage nodes at which throughput stops growing.
    pub fn saturation(self) -> f64 {
        self.gateway / self.storage
    }

    /// The number at which a unit of throughput costs least, for a gateway's price in storage nodes.
    pub fn cheapest(self, price_ratio: f64) -> f64 {
        (price_ratio * self.saturation().powf(self.knee)).powf(1.0 / (self.knee + 1.0))
    }

    /// Every step of a grid.
    pub fn steps(self, grid: &[u32], gateway_price: f64, storage_price: f64) -> Vec<SamplingStep> {
        let step = |nodes: &u32| {
            let throughput = self.throughput(f64::from(*nodes));
            SamplingStep {
                nodes: *nodes,
                throughput,
                cost: (gateway_price + f64::from(*nodes) * storage_price) / throughput,
            }
        };
        grid.iter().map(step).collect()
    }
}

/// The cheapest step; none of no steps.
pub fn magic_number(steps: &[SamplingStep]) -> Option<SamplingStep> {
    let cheapest = steps.iter().min_by(|one, other| one.cost.total_cmp(&other.cost));
    cheapest.copied()
}

#[cfg(test)]
mod tests {
    use super::{SamplingCurve, magic_number};

    #[test]
    fn the_cheapest_number_is_that_of_trying_all() {
        for (knee, storage, ratio) in [(1.0, 3.0, 16.0), (2.0, 10.0, 65.0), (4.0, 20.0, 8.0)] {
            let curve = SamplingCurve {
                gateway: 100.0,
                storage,
                knee,
            };
            let grid: Vec<u32> = (1..=300).collect();
            let found = magic_number(&curve.steps(&grid, ratio, 1.0)).unwrap();
            assert!(
                (f64::from(found.nodes) - curve.cheapest(ratio)).abs() < 1.0,
                "{found:?}"
            );
            // At the knee each limit alone would bear the gateway's most; both together 2^(1/p) times less.
            let at_knee = curve.throughput(curve.saturation());
            assert!((at_knee * 2f64.powf(1.0 / knee) - 100.0).abs() < 1e-9);
        }
        assert_eq!(magic_number(&[]), None);
    }
}
