//! Known limits of drives, networks and a balancer, which no curve through runs goes beyond.
//!
//! They are those of `docs/advise.md`, with what is known of a measured cluster: a control group bounds a drive's bytes
//! and operations, and its reads and writes, each by itself; a piece takes one operation at least.
//! Always holds: what is not limited bounds nothing.

use super::device_limits::DeviceLimits;
use super::points::Configuration;
use crate::model::limits::{FRAMES, Resource};

/// A limit: what ends first, and the seconds between two answers at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownBound {
    /// What.
    pub resource: Resource,
    /// Seconds.
    pub seconds: f64,
}

/// Limits of clusters and what is asked of them, alike in all runs of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KnownLimits {
    /// Of drives, networks and a balancer.
    pub devices: DeviceLimits,
    /// Of all requests, from 0 to 1.
    pub write_share: f64,
    /// Copies of an object.
    pub pieces: f64,
}

impl KnownLimits {
    /// The limit that ends first; none without any.
    pub fn bound(&self, configuration: Configuration) -> Option<KnownBound> {
        let (limits, size) = (&self.devices, configuration.size);
        let (reads, written) = (1.0 - self.write_share, self.write_share * self.pieces.max(1.0));
        // A network carries both directions at once: the fuller one limits.
        let (of_gateway, of_storage) = ((reads + written) * size * FRAMES, reads.max(written) * size * FRAMES);
        let (gateways, nodes) = (configuration.gateways, configuration.storage_nodes);
        let drives = nodes * limits.drives.map_or(1.0, f64::from);
        let all = [
            (Resource::GatewayNetwork, limits.gateway_network, of_gateway / gateways),
            (Resource::StorageNetwork, limits.storage_network, of_storage / nodes),
            (Resource::Balancer, limits.balancer, size),
            (
                Resource::Drives,
                limits.drive_transfer,
                reads.max(written) * size / drives,
            ),
            (Resource::Drives, limits.drive_operations, reads.max(written) / drives),
        ];
        let seconds = all.iter().filter_map(|(resource, limit, amount)| {
            Some(KnownBound {
                resource: *resource,
                seconds: amount / (*limit)?,
            })
        });
        seconds.max_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }

    /// Seconds between two answers at least; nothing without limits.
    pub fn seconds(&self, configuration: Configuration) -> f64 {
        self.bound(configuration).map_or(0.0, |bound| bound.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::KnownLimits;
    use crate::fit::device_limits::DeviceLimits;
    use crate::fit::device_limits::tests::ALL;
    use crate::fit::points::Configuration;
    use crate::model::cluster::BalancerGroup;
    use crate::model::limits::{Resource, throughput};
    use crate::model::rates::SoftwareRates;
    use crate::model::tests::{cluster, mix};

    #[test]
    fn networks_and_balancers_are_those_of_the_model() {
        let mut model = cluster();
        (model.gateways.network, model.storage.network) = (3e6, 2e6);
        let throughput_of_one = 4e6;
        model.balancers = Some(BalancerGroup {
            count: 1,
            throughput: throughput_of_one,
        });
        let configuration = Configuration {
            gateways: f64::from(model.gateways.count),
            storage_nodes: f64::from(model.storage.count),
            size: 1e6,
            workers: 8.0,
        };
        for write_share in [0.0, 0.3, 1.0] {
            let model_says = throughput(&model, &mix(1e6, write_share), &SoftwareRates::built_in().unwrap());
            for (resource, devices) in [
                (
                    Resource::GatewayNetwork,
                    DeviceLimits {
                        gateway_network: ALL.gateway_network,
                        ..Default::default()
                    },
                ),
                (
                    Resource::StorageNetwork,
                    DeviceLimits {
                        storage_network: ALL.storage_network,
                        ..Default::default()
                    },
                ),
                (
                    Resource::Balancer,
                    DeviceLimits {
                        balancer: ALL.balancer,
                        ..Default::default()
                    },
                ),
            ] {
                let known = KnownLimits {
                    devices,
                    write_share,
                    pieces: 3.0,
                };
                let bound = known.bound(configuration).unwrap();
                let model = model_says.limits.iter().find(|one| one.resource == resource).unwrap();
                assert_eq!(bound.resource, resource);
                assert!(
                    (bound.seconds * model.requests.value - 1.0).abs() < 1e-9,
                    "{resource:?} {bound:?}"
                );
            }
        }
    }

    #[test]
    fn a_drive_bounds_bytes_and_operations_each_by_itself() {
        let known = |size: f64| {
            KnownLimits {
                devices: DeviceLimits {
                    gateway_network: None,
                    storage_network: None,
                    balancer: None,
                    ..ALL
                },
                write_share: 0.5,
                pieces: 3.0,
            }
            .seconds(Configuration {
                gateways: 1.0,
                storage_nodes: 2.0,
                size,
                workers: 8.0,
            })
        };
        // 1.5 pieces are written for each request, and half of one is read: 24 drives.
        assert!((known(1000.0) - 1.5 / 100.0 / 24.0).abs() < 1e-12);
        assert!((known(1e6) - 1.5e6 / 5e6 / 24.0).abs() < 1e-12);
        assert_eq!(
            KnownLimits::default().seconds(Configuration {
                gateways: 1.0,
                storage_nodes: 1.0,
                size: 1.0,
                workers: 1.0
            }),
            0.0
        );
    }
}
