//! `cluster_tls`: how much of the traffic between nodes is TLS.
//!
//! Four steps, so that a cluster can take them node by node: TLS is understood from the second step on, spoken from the
//! third, and from the fourth nothing else is answered.

use crate::kinds::OptionValue;

/// The steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterTlsMode {
    /// None of it.
    Off,
    /// Taken from those that connect, along with plain connections.
    Allow,
    /// Also spoken to others.
    Prefer,
    /// Plain connections are closed.
    Require,
}

impl ClusterTlsMode {
    /// Whether other servers are spoken to with TLS.
    pub fn is_spoken(self) -> bool {
        matches!(self, Self::Prefer | Self::Require)
    }
}

impl OptionValue for ClusterTlsMode {
    const EXPECTS: &'static str = "off, allow, prefer or require";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "off" => Some(Self::Off),
            "allow" => Some(Self::Allow),
            "prefer" => Some(Self::Prefer),
            "require" => Some(Self::Require),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::{Options, Scope};
    use crate::ini::Document;
    use crate::server::ServerCommon;
    use std::path::Path;

    fn read(text: &str) -> Result<ServerCommon, String> {
        let document = Document::parse(Path::new("object-server.conf"), text).unwrap();
        let scope = Scope::plain(&document, "object-replicator").unwrap();
        ServerCommon::read(&scope).map_err(|error| error.to_string())
    }

    #[test]
    fn a_daemon_may_have_a_certificate_of_its_own() {
        let text = "[DEFAULT]\ncluster_tls = require\ncluster_tls_cert_file = /a.pem\ncluster_tls_plain = 10.0.0.7:6200, h\n\
                    [object-replicator]\ncluster_tls_cert_file = /b.pem\n";
        let common = read(text).unwrap();
        assert_eq!(common.cluster_tls, ClusterTlsMode::Require);
        assert_eq!(common.cluster_tls_cert_file.as_deref(), Some(Path::new("/b.pem")));
        assert_eq!(common.cluster_tls_plain, ["10.0.0.7:6200", "h"]);
        assert_eq!(read("").unwrap().cluster_tls, ClusterTlsMode::Off);
    }

    #[test]
    fn what_is_no_step_is_refused() {
        let message = read("[DEFAULT]\ncluster_tls = yes\n").unwrap_err();
        assert!(message.contains("expected off, allow, prefer or require"), "{message}");
    }

    #[test]
    fn each_step_adds_something() {
        use ClusterTlsMode::{Allow, Off, Prefer, Require};
        let spoken = [Off, Allow, Prefer, Require].map(ClusterTlsMode::is_spoken);
        assert_eq!(spoken, [false, false, true, true]);
    }
}
