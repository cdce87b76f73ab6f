//! Which headers are metadata, and whose: the client's, Swift's own, or neither.
//!
//! Header names are compared in lower case; callers pass them so (`http::HeaderName` is).
//! Source: `doc/source/development_middleware.rst`.

/// The three kinds of thing that carry metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// An account.
    Account,
    /// A container.
    Container,
    /// An object.
    Object,
}

impl Entity {
    /// `account`, `container` or `object`.
    pub fn word(self) -> &'static str {
        match self {
            Entity::Account => "account",
            Entity::Container => "container",
            Entity::Object => "object",
        }
    }

    /// `x-account-meta-`, …: what clients own.
    pub fn user_prefix(self) -> &'static str {
        match self {
            Entity::Account => "x-account-meta-",
            Entity::Container => "x-container-meta-",
            Entity::Object => "x-object-meta-",
        }
    }

    /// `x-account-sysmeta-`, …: what Swift's features keep, hidden from clients.
    pub fn system_prefix(self) -> &'static str {
        match self {
            Entity::Account => "x-account-sysmeta-",
            Entity::Container => "x-container-sysmeta-",
            Entity::Object => "x-object-sysmeta-",
        }
    }

    /// `x-remove-account-meta-`, …: asks for removal of a user item.
    pub fn remove_prefix(self) -> &'static str {
        match self {
            Entity::Account => "x-remove-account-meta-",
            Entity::Container => "x-remove-container-meta-",
            Entity::Object => "x-remove-object-meta-",
        }
    }

    /// Whether `name` is the client's metadata of this kind, with something after the prefix.
    pub fn is_user_meta(self, name: &str) -> bool {
        has_tail(name, self.user_prefix())
    }

    /// Whether `name` is Swift's own metadata of this kind.
    pub fn is_system_meta(self, name: &str) -> bool {
        has_tail(name, self.system_prefix())
    }

    /// Either of the two.
    pub fn is_user_or_system_meta(self, name: &str) -> bool {
        self.is_user_meta(name) || self.is_system_meta(name)
    }
}

/// Metadata of features that a POST replaces, unlike [`Entity::is_system_meta`].
pub const TRANSIENT_SYSTEM_PREFIX: &str = "x-object-transient-sysmeta-";

/// Whether `name` is an object's transient system metadata.
pub fn is_transient_system_meta(name: &str) -> bool {
    has_tail(name, TRANSIENT_SYSTEM_PREFIX)
}

fn has_tail(name: &str, prefix: &str) -> bool {
    name.len() > prefix.len() && name.starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_is_it() {
        assert!(Entity::Object.is_user_meta("x-object-meta-a"));
        assert!(!Entity::Object.is_user_meta("x-object-meta-"));
        assert!(!Entity::Object.is_user_meta("x-container-meta-a"));
        assert!(Entity::Container.is_user_or_system_meta("x-container-sysmeta-acl"));
        assert!(is_transient_system_meta("x-object-transient-sysmeta-crypto"));
    }
}
