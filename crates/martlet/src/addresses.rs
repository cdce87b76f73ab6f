//! The addresses of this machine, by which a daemon knows its own devices in a ring.

use std::net::{IpAddr, ToSocketAddrs};

/// What `bind_ip` stands for: itself, or every address of every interface when it stands for all.
pub fn of(host: &str) -> Vec<IpAddr> {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => all(),
        Ok(address) => vec![address],
        Err(_) => match (host, 0).to_socket_addrs() {
            Ok(found) => found.map(|found| found.ip()).collect(),
            Err(error) => {
                tracing::error!("{host:?} is no address and none can be found for it: {error}");
                vec![]
            }
        },
    }
}

fn all() -> Vec<IpAddr> {
    let interfaces = match nix::ifaddrs::getifaddrs() {
        Ok(interfaces) => interfaces,
        Err(error) => {
            tracing::error!("cannot list the addresses of this machine: {error}");
            return vec![];
        }
    };
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_include_loopback() {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(of("127.0.0.1"), [loopback]);
        assert!(of("0.0.0.0").contains(&loopback));
        assert!(of("localhost").iter().any(IpAddr::is_loopback));
    }
}
