//! Which server has a key: consistent hashing exactly as OpenStack's `MemcacheRing` (observed).
//!
//! Each server has fifty places on the hash ring: the MD5 of `<server>-<n>` in hexadecimal, compared
//! as text. A key belongs to the place **after the next** one clockwise from its own hash, and the
//! other servers follow in the order in which they appear further on.

use crate::protocol::KeyHash;

const PLACES_PER_SERVER: usize = 50;

pub(crate) struct ServerRing {
    /// Sorted places with the index of their server.
    places: Vec<(KeyHash, usize)>,
    servers: usize,
}

impl ServerRing {
    pub(crate) fn new(servers: &[String]) -> Self {
        let place = |server: &String, n: usize| crate::hash(&format!("{server}-{n}"));
        let each = servers.iter().enumerate();
        let mut places: Vec<(KeyHash, usize)> = each
            .flat_map(|(index, server)| (0..PLACES_PER_SERVER).map(move |n| (place(server, n), index)))
            .collect();
        places.sort();
        Self {
            places,
            servers: servers.len(),
        }
    }

    /// Every server once, the one that should have the key first.
    pub(crate) fn order(&self, key: &KeyHash) -> Vec<usize> {
        let next = self.places.partition_point(|(place, _)| place <= key);
        let mut order = Vec::with_capacity(self.servers);
        for step in 1..=self.places.len() {
            let (_, server) = self.places[(next + step) % self.places.len()];
            if !order.contains(&server) {
                order.push(server);
                if order.len() == self.servers {
                    break;
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What OpenStack Swift 2.38.3 answered for these servers.
    const GOLDEN: &[(&str, [usize; 5])] = &[
        ("key0", [3, 2, 1, 0, 4]),
        ("key1", [3, 2, 1, 4, 0]),
        ("key2", [4, 0, 1, 2, 3]),
        ("key3", [1, 2, 4, 0, 3]),
        ("key7", [0, 3, 2, 4, 1]),
        ("key12", [2, 1, 4, 3, 0]),
        ("key16", [0, 4, 3, 1, 2]),
        ("key19", [2, 3, 1, 4, 0]),
        ("key25", [0, 4, 1, 3, 2]),
        ("key30", [4, 3, 0, 1, 2]),
        ("key38", [2, 3, 1, 4, 0]),
        ("key39", [4, 0, 3, 2, 1]),
    ];

    #[test]
    fn same_servers_as_openstack() {
        let servers = [
            "127.0.0.1:23001",
            "127.0.0.1:23002",
            "10.0.0.3:11211",
            "[::1]:11211",
            "cache.example.com",
        ];
        let ring = ServerRing::new(&servers.map(String::from));
        for (key, expected) in GOLDEN {
            assert_eq!(ring.order(&crate::hash(key)), expected, "{key}");
        }
    }

    #[test]
    fn no_servers_no_order() {
        assert!(ServerRing::new(&[]).order(&crate::hash("key")).is_empty());
    }
}
