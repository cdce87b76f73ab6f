//! Networks of limited nodes: each node has an interface of its own, all of them are joined by one bridge.
//!
//! The bridge lies in a namespace of its own, in which the load runs. Each node is a pair of interfaces (`veth`): what
//! it sends is limited at its own end, what it takes at the bridge's, by a token bucket (`tbf`).
//! Always holds: the other end of a limit waits and loses nothing, unless more waits than [`WAITS`]; the load's own end
//! has no limit.

use super::namespaces::{Namespaces, OwnParts};
use vocabulary::Fault;
use world::World;

/// The end of a pair that is a node's.
const INTERFACE: &str = "eth0";
/// Bytes that may wait for a limit.
const WAITS: u32 = 16 << 20;
/// A bucket holds what the limit passes on in as many seconds, but a packet of the largest size at least. The kernel
/// looks 250 times a second at least.
const BUCKET: (f64, f64) = (0.005, 65_536.0);
/// Makes the bridge and tries what is needed, so that a lack is found before anything runs.
const BRIDGE: &str = "ip link set lo up
ip link add nodes type bridge
ip link set nodes up
ip addr add 10.0.0.254/24 dev nodes
ip link add name tried type veth peer name other
tc qdisc add dev tried root tbf rate 1000000bit burst 65536 limit 65536
ip link del tried";
/// What is missing where that fails.
const NEEDED: &str = "networks of nodes (needs root, ip and tc of iproute2, and a kernel with veth, bridge and \
                      CONFIG_NET_SCH_TBF; without them leave network and [balancer] out of the plan)";

/// The address of a node; the plan has at most 129 of them.
pub fn address(number: u32) -> String {
    format!("10.0.0.{}", number + 1)
}

/// Bytes a second in each direction as words of `tc`.
fn bucket(interface: &str, limit: f64) -> String {
    let (bits, burst) = (limit * 8.0, (limit * BUCKET.0).max(BUCKET.1));
    format!(
        "tc qdisc replace dev {interface} root tbf rate {bits:.0}bit burst {burst:.0} limit {:.0}\n",
        burst + f64::from(WAITS)
    )
}

/// The bridge of a cluster.
pub struct ClusterNetwork {
    bridge: Namespaces,
    limited: Vec<(u32, f64)>,
}

impl ClusterNetwork {
    /// One without nodes.
    pub fn make() -> Result<Self, Fault> {
        let own = OwnParts {
            network: true,
            mounts: false,
        };
        Ok(Self {
            bridge: Namespaces::make(NEEDED, own, BRIDGE, &[])?,
            limited: vec![],
        })
    }

    /// Joins a node; its limit, if it has one, does not hold yet.
    pub fn join(&mut self, node: &Namespaces, number: u32, limit: Option<f64>) -> Result<(), Fault> {
        let pid = node.pid();
        self.bridge.run(
            NEEDED,
            &format!(
                "ip link add n{number} type veth peer name {INTERFACE} netns {pid}\nip link set n{number} master nodes up\n"
            ),
        )?;
        self.limited.extend(limit.map(|limit| (number, limit)));
        node.run(
            NEEDED,
            &format!(
                "ip link set lo up\nip addr add {}/24 dev {INTERFACE}\nip link set {INTERFACE} up\n",
                address(number)
            ),
        )
    }

    /// Sets or lifts the limits of what nodes take.
    pub fn limit(&self, holds: bool) -> Result<(), Fault> {
        let lines = self.limited.iter().map(|(number, limit)| match holds {
            true => bucket(&format!("n{number}"), *limit),
            false => format!("tc qdisc del dev n{number} root\n"),
        });
        self.bridge.run(NEEDED, &lines.collect::<String>())
    }

    /// Words before those of a program that loads the cluster.
    pub fn inside(&self) -> Vec<String> {
        self.bridge.inside()
    }
}

/// Sets or lifts the limit of what a node sends.
pub fn limit_sending(node: &Namespaces, limit: f64, holds: bool) -> Result<(), Fault> {
    let line = match holds {
        true => bucket(INTERFACE, limit),
        false => format!("tc qdisc del dev {INTERFACE} root\n"),
    };
    node.run(NEEDED, &line)
}

/// Seconds at its limit that a node has taken and sent for until now.
pub fn used(world: &World, node: &Namespaces, limit: f64) -> [f64; 2] {
    let (taken, sent) = node.passed(world, INTERFACE);
    [taken / limit, sent / limit]
}

#[cfg(test)]
mod tests {
    use super::{address, bucket};

    #[test]
    fn a_bucket_holds_a_packet_or_what_passes_meanwhile() {
        let slow = "tc qdisc replace dev eth0 root tbf rate 8000000bit burst 65536 limit 16842752\n";
        assert_eq!(bucket("eth0", 1e6), slow);
        assert!(bucket("n3", 1e9).contains(" dev n3 root tbf rate 8000000000bit burst 5000000 limit "));
        assert_eq!(
            (address(0), address(128)),
            ("10.0.0.1".to_owned(), "10.0.0.129".to_owned())
        );
    }
}
