//! The roles in a cluster's certificates: what the process is that holds one.
//!
//! A role is a URI among the certificate's alternative names, `martlet-role:object` for example, and there may be
//! several. The alternative names are what TLS identifies a peer by, and any tool shows them; an organizational unit
//! is free text of the subject, which certificate authorities have stopped to vouch for.
//! Always holds: a certificate without a known role has none, whatever else it says.

use std::fmt;
use std::str::FromStr;
use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// What a role's URI begins with.
const SCHEME: &str = "martlet-role:";

/// What a process of a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ClusterRole {
    /// A gateway.
    Proxy,
    /// An account server, and the daemons that share its configuration.
    Account,
    /// A container server, and the daemons that share its configuration.
    Container,
    /// An object server, and the daemons that share its configuration.
    Object,
    /// A daemon that sends requests as a client does: the expirer, the reconciler.
    Upkeep,
}

/// A word that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; expected proxy, account, container, object or upkeep")]
pub struct UnknownRole(pub String);

impl ClusterRole {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Proxy, Self::Account, Self::Container, Self::Object, Self::Upkeep];

    /// As command lines and logs have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Account => "account",
            Self::Container => "container",
            Self::Object => "object",
            Self::Upkeep => "upkeep",
        }
    }

    /// As certificates have it.
    pub fn uri(self) -> String {
        format!("{SCHEME}{}", self.word())
    }

    /// Whether others connect to it.
    pub fn is_server(self) -> bool {
        matches!(self, Self::Account | Self::Container | Self::Object)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for ClusterRole {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        let role = Self::ALL.into_iter().find(|role| role.word() == word);
        role.ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterRoles(u8);

impl ClusterRoles {
    /// Those of a certificate that has been verified already.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Self {
        let Ok(parsed) = EndEntityCert::try_from(certificate) else {
            return Self::default();
        };
        let words = parsed.valid_uri_names().filter_map(|uri| uri.strip_prefix(SCHEME));
        words.filter_map(|word| word.parse::<ClusterRole>().ok()).collect()
    }

    /// Whether this one is among them.
    pub fn has(self, role: ClusterRole) -> bool {
        self.0 & role.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = ClusterRole> {
        ClusterRole::ALL.into_iter().filter(move |role| self.has(*role))
    }
}

impl FromIterator<ClusterRole> for ClusterRoles {
    fn from_iter<I: IntoIterator<Item = ClusterRole>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |all, role| all | role.bit()))
    }
}

impl fmt::Display for ClusterRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(ClusterRole::word).collect();
        f.write_str(if words.is_empty() { "none" } else { "" })?;
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for role in ClusterRole::ALL {
            assert_eq!(role.word().parse(), Ok(role));
        }
        assert!("Object".parse::<ClusterRole>().is_err());
        let both: ClusterRoles = [ClusterRole::Object, ClusterRole::Upkeep].into_iter().collect();
        assert_eq!(both.to_string(), "object,upkeep");
        assert!(both.has(ClusterRole::Object) && !both.has(ClusterRole::Proxy));
        assert_eq!(ClusterRoles::default().to_string(), "none");
    }

    #[test]
    fn what_is_no_certificate_has_no_role() {
        assert!(ClusterRoles::of_certificate(&CertificateDer::from(vec![0x30, 0x03, 1, 1, 0])).is_empty());
    }
}
