//! Whose domain an account is in: kept as its system metadata, so that names in ACLs can be trusted.
//!
//! Names are unique within a domain only. When an account comes into being (and at some later chances) the
//! domain of its project is stored with it, if the caller's token tells; [`UNKNOWN`] where it does not.

use super::Caller;

/// The system metadata it is stored in.
pub const STORED_HEADER: &str = "x-account-sysmeta-project-domain-id";

/// Stored when the account was made by a user of another project.
pub const UNKNOWN: &str = "_unknown";

/// An account, as far as its domain goes.
#[derive(Debug, Clone, Copy)]
pub struct AccountDomain<'a> {
    /// Whether it is one of the caller's project.
    pub own: bool,
    /// Whether it is there already.
    pub exists: bool,
    /// What is stored with it.
    pub stored: Option<&'a str>,
}

/// What to store with an account, if anything. One that is there without a domain is from before domains and so in
/// the `default` one; a token that says otherwise is not believed.
pub fn domain_to_store<'a>(account: AccountDomain<'_>, caller: &'a Caller, default: &str) -> Option<&'a str> {
    let domain = caller.project_domain.as_deref();
    match account.stored {
        None if account.own && (!account.exists || domain == Some(default)) => domain,
        Some(UNKNOWN) if account.own => Some(domain.unwrap_or_default()),
        None if !account.own && !account.exists => Some(UNKNOWN),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored() {
        let caller = |domain: Option<&str>| Caller {
            project_domain: domain.map(Into::into),
            ..Caller::default()
        };
        for (domain, own, exists, stored, expected) in [
            (Some("d"), true, false, None, Some("d")),
            (Some("d"), true, true, None, None),
            (Some("default"), true, true, None, Some("default")),
            (Some("d"), true, true, Some("d"), None),
            (Some("d"), true, true, Some("e"), None),
            (Some("d"), true, true, Some(UNKNOWN), Some("d")),
            (None, true, true, Some(UNKNOWN), Some("")),
            (None, true, false, None, None),
            (Some("d"), false, false, None, Some(UNKNOWN)),
            (Some("d"), false, true, None, None),
            (Some("d"), false, true, Some(UNKNOWN), None),
        ] {
            let account = AccountDomain { own, exists, stored };
            assert_eq!(domain_to_store(account, &caller(domain), "default"), expected);
        }
    }
}
