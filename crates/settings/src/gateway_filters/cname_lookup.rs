//! The options of `cname_lookup`.

use crate::declare::options;
use crate::kinds::{AtLeastOne, OptionValue};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

options! {
    /// `[filter:cname_lookup]`.
    pub struct CnameLookupSettings {
        /// Domains of this cluster: other host names must be aliases of names in them.
        storage_domain: Vec<String> = "example.com",
        /// How many aliases are followed from the name that a client uses.
        lookup_depth: AtLeastOne = "1",
        /// Name servers to ask, port 53 unless they say another; those of the machine (/etc/resolv.conf) when empty.
        nameservers: Nameservers = "",
    }
}

const PORT: u16 = 53;

/// Addresses of name servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nameservers(pub Vec<SocketAddr>);

impl OptionValue for Nameservers {
    const EXPECTS: &'static str =
        "IP addresses separated by commas, each perhaps with a port (127.0.0.1:5353, [::1]:5353)";

    fn parse(text: &str) -> Option<Self> {
        let servers = Vec::<String>::parse(text)?;
        servers
            .iter()
            .map(|server| address(server))
            .collect::<Option<_>>()
            .map(Self)
    }
}

fn address(server: &str) -> Option<SocketAddr> {
    if let Ok(address) = server.parse() {
        return Some(address);
    }
    let bare = server.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let ip = match bare {
        Some(inner) => IpAddr::V6(inner.parse::<Ipv6Addr>().ok()?),
        None => server.parse().ok()?,
    };
    Some(SocketAddr::new(ip, PORT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nameservers_are_addresses() {
        let read = |text| Nameservers::parse(text).map(|servers| servers.0.iter().map(ToString::to_string).collect());
        let servers: Option<Vec<String>> = read("127.0.0.1, 127.0.0.3:5353, [::1], [::1]:5353,::2,");
        let expected = ["127.0.0.1:53", "127.0.0.3:5353", "[::1]:53", "[::1]:5353", "[::2]:53"];
        assert_eq!(servers.unwrap(), expected);
        assert_eq!(read(""), Some(Vec::new()));
        for wrong in [
            "localhost",
            "127.0.0.1:x",
            "127.0.0",
            "[127.0.0.1]",
            "1.1.1.1, ns",
            "[::1]:99999",
            "[::1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,30}") {
            Nameservers::parse(&text);
        }
    }
}
