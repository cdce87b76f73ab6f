//! Which devices of a ring are this server's: those at its own addresses and port.
//!
//! A device is named in the ring by `ip:port/name`; the same name may exist on many servers.

use placement::{Device, Ring};
use std::net::{IpAddr, ToSocketAddrs};

/// How others reach this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Addresses of this machine that its server listens on.
    pub addresses: Vec<IpAddr>,
    /// The port of its server (`bind_port`); 0 for any, as of a server with many.
    pub port: u16,
}

impl Own {
    /// The device called `name` of this server, if the ring has it. Names of hosts are looked up, which may
    /// take its time.
    pub(crate) fn device<'r>(&self, ring: &'r Ring, name: &str) -> Option<&'r Device> {
        let mut named = ring.devices().filter(|device| device.device == name);
        named.find(|device| {
            (self.port == 0 || device.replication_port == self.port) && self.is_here(&device.replication_ip)
        })
    }

    fn is_here(&self, host: &str) -> bool {
        match host.parse::<IpAddr>() {
            Ok(address) => self.addresses.contains(&address),
            Err(_) => (host, self.port)
                .to_socket_addrs()
                .is_ok_and(|mut found| found.any(|found| self.addresses.contains(&found.ip()))),
        }
    }
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
        let own = |address: &str, port| Own {
            addresses: vec![address.parse().unwrap()],
            port,
        };
        let zone = |own: Own, name: &str| own.device(&ring, name).map(|device| device.zone);
        assert_eq!(zone(own("10.0.0.2", 6201), "sda"), Some(2));
        assert_eq!(zone(own("10.0.0.2", 6202), "sda"), None);
        assert_eq!(zone(own("10.0.0.2", 0), "sda"), Some(2));
        assert_eq!(zone(own("10.0.0.2", 6201), "sdb"), None);
        assert_eq!(zone(own("10.1.0.1", 6201), "sda"), None);
        assert_eq!(zone(own("127.0.0.1", 6301), "sda"), Some(3));
    }
}
