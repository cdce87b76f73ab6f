//! Which devices of a ring are this server's: those at its addresses and port.
//!
//! A device is named in the ring by `ip:port/name`; the same name may exist on many servers.

use crate::work_share::WorkShare;
use placement::{Device, Ring};
use std::net::IpAddr;
use vocabulary::Partition;
use world::network::addresses_of;

/// How other nodes reach this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Addresses of this machine that its server listens on.
    pub addresses: Vec<IpAddr>,
    /// The port of its server (`bind_port`); 0 for any, as of a server with many.
    pub port: u16,
}

impl LocalServer {
    /// The device called `name` of this server by its replication address, if the ring has it. Host names are looked
    /// up, which may take a while.
    pub(crate) fn device<'r>(&self, ring: &'r Ring, name: &str) -> Option<&'r Device> {
        let mut named = ring.devices().filter(|device| device.device == name);
        named.find(|device| self.is_at(&device.replication_ip, device.replication_port))
    }

    /// Whether a device of the ring is this server's by its address for clients. Host names are looked up, which may
    /// take a while.
    pub fn serves(&self, device: &Device) -> bool {
        self.is_at(&device.ip, device.port)
    }

    /// The part of a partition that falls to its primary `device` of this server, by its address for clients; `None`
    /// when the device is no primary of it.
    pub(crate) fn share_of(&self, ring: &Ring, partition: Partition, device: &str) -> Option<WorkShare> {
        if partition.0 >= ring.partition_count() {
            return None;
        }
        let primaries = ring.primaries(partition);
        let is_own = |primary: &&Device| primary.device == device && self.serves(primary);
        Some(WorkShare {
            number: primaries.iter().position(is_own)? as u64,
            of: primaries.len() as u64,
        })
    }

    fn is_at(&self, host: &str, port: u16) -> bool {
        (self.port == 0 || port == self.port)
            && match host.parse::<IpAddr>() {
                Ok(address) => self.addresses.contains(&address),
                Err(_) => {
                    addresses_of(host).is_ok_and(|found| found.iter().any(|found| self.addresses.contains(found)))
                }
            }
    }
}

/// Whether device `id` is a primary of a partition, which the ring need not have.
pub(crate) fn is_primary(ring: &Ring, partition: Partition, id: u32) -> bool {
    partition.0 < ring.partition_count() && ring.primaries(partition).iter().any(|device| device.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::RingBuilder;

    #[test]
    fn a_device_is_known_by_name_address_and_port() {
        let mut builder = RingBuilder::new(2, 2.0, 1).unwrap();
        for (zone, replication_ip, replication_port) in
            [(1, "10.0.0.1", 6201), (2, "10.0.0.2", 6201), (3, "localhost", 6301)]
        {
            let device = Device {
                region: 1,
                zone,
                weight: 1.0,
                ip: format!("10.1.0.{zone}"),
                port: 6201,
                replication_ip: replication_ip.into(),
                replication_port,
                device: "sda".into(),
                ..Device::default()
            };
            builder.add(device).unwrap();
        }
        builder.rebalance(1, 0).unwrap();
        let ring = Ring::new(builder.to_ring().unwrap());
        let own = |address: &str, port| LocalServer {
            addresses: vec![address.parse().unwrap()],
            port,
        };
        let zone = |own: LocalServer, name: &str| own.device(&ring, name).map(|device| device.zone);
        assert_eq!(zone(own("10.0.0.2", 6201), "sda"), Some(2));
        assert_eq!(zone(own("10.0.0.2", 6202), "sda"), None);
        assert_eq!(zone(own("10.0.0.2", 0), "sda"), Some(2));
        assert_eq!(zone(own("10.0.0.2", 6201), "sdb"), None);
        assert_eq!(zone(own("10.1.0.1", 6201), "sda"), None);
        assert_eq!(zone(own("127.0.0.1", 6301), "sda"), Some(3));
    }

    #[test]
    fn a_device_is_known_by_its_address_for_clients() {
        let device = |ip: &str, port| Device {
            ip: ip.into(),
            port,
            ..Device::default()
        };
        let here = |port| LocalServer {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            port,
        };
        assert!(here(6202).serves(&device("127.0.0.1", 6202)) && here(0).serves(&device("localhost", 7)));
        assert!(!here(6202).serves(&device("127.0.0.1", 6203)) && !here(6202).serves(&device("127.0.0.2", 6202)));
    }
}
