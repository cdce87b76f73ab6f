//! [`Identity`]: the user of a request, as groups.

use std::fmt;

/// A user with a valid token.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    groups: Vec<String>,
}

impl Identity {
    /// From groups in OpenStack's order: account, account:user, then the others.
    pub fn new(groups: Vec<String>) -> Self {
        Self { groups }
    }

    /// All groups, those of a service token included.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// `account:user`, for the access log.
    pub fn user(&self) -> &str {
        self.groups.get(1).or(self.groups.first()).map_or("", String::as_str)
    }

    /// Whether it is in a group.
    pub fn has(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// May do anything to any account; the gateway lets such requests past some limits.
    pub fn is_reseller(&self) -> bool {
        self.has(".reseller_admin")
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.groups.join(","))
    }
}
