//! May they? One decision, as OpenStack's TempAuth makes it.
//!
//! In order: accounts that are not ours are refused; reseller administrators and readers; owners;
//! `OPTIONS`; the account's ACL, which can make owners; referrers; groups of the container's ACL.
//! Always holds: pure. `tests/openstack.rs` compares it with the real thing over thousands of cases.

use crate::account_acl::{Access, AccountAcl};
use crate::container_acl::ContainerAcl;
use crate::referrer;
use crate::user::Identity;
use http::{Method, StatusCode};
use settings::ResellerPrefix;

/// What a request is about.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    /// The verb.
    pub method: &'a Method,
    /// The account, decoded; nothing for paths without one.
    pub account: Option<&'a str>,
    /// The container, if it is about one or its objects.
    pub container: Option<&'a str>,
    /// The object.
    pub object: Option<&'a str>,
    /// The `Referer` header.
    pub referer: Option<&'a str>,
}

/// The account's ACL, which costs a look-up and is seldom needed.
#[derive(Debug, Clone, Copy)]
pub enum AccountAclSource<'a> {
    /// Not looked up yet; [`Decision::NeedsAccountAcl`] asks for it.
    NotFetched,
    /// Looked up; nothing when the account has none.
    Fetched(Option<&'a AccountAcl>),
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow {
        /// As owner: sees and sets what only owners do (`swift_owner`).
        owner: bool,
    },
    /// They may not: 401 when it is not known who they are (with `WWW-Authenticate`), else 403.
    Deny(StatusCode),
    /// It depends on the account's ACL: fetch it and ask again.
    NeedsAccountAcl,
}

/// The account prefixes an authenticator answers for.
#[derive(Debug, Clone)]
pub struct Prefixes(Vec<ResellerPrefix>);

impl Prefixes {
    /// In the order of the configuration.
    pub fn new(prefixes: Vec<ResellerPrefix>) -> Self {
        Self(prefixes)
    }

    /// The prefix an account has; the longest that fits.
    pub fn of(&self, account: &str) -> Option<&ResellerPrefix> {
        let fitting = self.0.iter().filter(|p| account.starts_with(&p.prefix));
        fitting.max_by_key(|p| p.prefix.len())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &ResellerPrefix> {
        self.0.iter()
    }

    /// Whether a reseller may enter: not a bare prefix, nor an account that begins with a dot.
    fn is_open_to_resellers(&self, account: &str) -> bool {
        let is_prefix = self.0.iter().any(|p| p.prefix == account);
        let is_dotted = self.0.iter().any(|p| {
            let rest = account.strip_prefix(p.prefix.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        });
        !is_prefix && !is_dotted
    }
}

/// Whether they may.
pub fn authorize(
    prefixes: &Prefixes,
    facts: &RequestFacts<'_>,
    identity: Option<&Identity>,
    container_acl: Option<&str>,
    account_acl: AccountAclSource<'_>,
) -> Decision {
    let denied = match identity {
        Some(_) => Decision::Deny(StatusCode::FORBIDDEN),
        None => Decision::Deny(StatusCode::UNAUTHORIZED),
    };
    let Some(account) = facts.account.filter(|a| !a.is_empty()) else {
        return denied;
    };
    let Some(prefix) = prefixes.of(account) else {
        return denied;
    };
    if let Some(identity) = identity
        && let Some(owner) = by_rank(prefixes, prefix, facts, account, identity)
    {
        return Decision::Allow { owner };
    }
    if facts.method == Method::OPTIONS {
        return Decision::Allow { owner: false };
    }
    let by_account = match (identity, account_acl) {
        // Account ACLs name groups; a request without an identity has none.
        (None, _) | (_, AccountAclSource::Fetched(None)) => None,
        (Some(_), AccountAclSource::NotFetched) => return Decision::NeedsAccountAcl,
        (Some(identity), AccountAclSource::Fetched(Some(acl))) => by_account_acl(facts, acl.grants(identity)),
    };
    match by_account {
        Some(decision) => decision,
        None if by_container_acl(facts, identity, container_acl) => Decision::Allow { owner: false },
        None => denied,
    }
}

/// Allowed by what they are: whether as owner.
fn by_rank(
    prefixes: &Prefixes,
    prefix: &ResellerPrefix,
    facts: &RequestFacts<'_>,
    account: &str,
    identity: &Identity,
) -> Option<bool> {
    let open = prefixes.is_open_to_resellers(account);
    if open && identity.is_reseller() {
        return Some(true);
    }
    if open && identity.has(".reseller_reader") && is_read(facts.method) {
        return Some(false);
    }
    let on_account = facts.container.is_none();
    let only_resellers = on_account && matches!(*facts.method, Method::PUT | Method::DELETE);
    let in_group = prefix.require_group.as_ref().is_none_or(|g| identity.has(g));
    (identity.has(account) && !only_resellers && in_group).then_some(true)
}

fn by_container_acl(facts: &RequestFacts<'_>, identity: Option<&Identity>, stored: Option<&str>) -> bool {
    let acl = ContainerAcl::parse(stored.unwrap_or_default());
    if referrer::allowed(facts.referer, &acl.referrers) && (facts.object.is_some() || acl.rlistings()) {
        return true;
    }
    identity.is_some_and(|identity| acl.groups.iter().any(|group| identity.has(group)))
}

fn by_account_acl(facts: &RequestFacts<'_>, access: Access) -> Option<Decision> {
    match access {
        Access::Admin => Some(Decision::Allow { owner: true }),
        Access::ReadWrite if is_read(facts.method) || facts.container.is_some() => {
            Some(Decision::Allow { owner: false })
        }
        Access::ReadOnly if is_read(facts.method) => Some(Decision::Allow { owner: false }),
        _ => None,
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes() -> Prefixes {
        let prefix = |prefix: &str, group: Option<&str>| ResellerPrefix {
            prefix: prefix.into(),
            require_group: group.map(Into::into),
        };
        Prefixes::new(vec![prefix("AUTH_", None), prefix("SERVICE_", Some("service"))])
    }

    fn decide(method: Method, account: &str, groups: &[&str], account_acl: AccountAclSource<'_>) -> Decision {
        let facts = RequestFacts {
            method: &method,
            account: Some(account),
            container: None,
            object: None,
            referer: None,
        };
        let identity = Identity::new(groups.iter().map(|g| (*g).to_owned()).collect());
        authorize(&prefixes(), &facts, Some(&identity), None, account_acl)
    }

    #[test]
    fn account_acls_are_asked_for_only_when_they_matter() {
        let source = AccountAclSource::NotFetched;
        let owner = decide(Method::GET, "AUTH_a", &["a", "a:b", "AUTH_a"], source);
        assert_eq!(owner, Decision::Allow { owner: true });
        let other = decide(Method::GET, "AUTH_a", &["c", "c:d"], source);
        assert_eq!(other, Decision::NeedsAccountAcl);
        let alien = decide(Method::GET, "OTHER_a", &["c", "c:d"], source);
        assert_eq!(alien, Decision::Deny(StatusCode::FORBIDDEN));
        let acl = AccountAcl::parse("{\"read-only\":[\"c\"]}");
        let read = decide(
            Method::GET,
            "AUTH_a",
            &["c", "c:d"],
            AccountAclSource::Fetched(Some(&acl)),
        );
        assert_eq!(read, Decision::Allow { owner: false });
    }

    #[test]
    fn who_owns_an_account_owns_it_whatever_a_container_opens() {
        let facts = RequestFacts {
            method: &Method::GET,
            account: Some("AUTH_a"),
            container: Some("c"),
            object: None,
            referer: None,
        };
        let admin = Identity::new(vec!["c".into(), "c:d".into()]);
        let acl = AccountAcl::parse("{\"admin\":[\"c\"]}");
        let account_acl = AccountAclSource::Fetched(Some(&acl));
        for open in [".r:*,.rlistings", "c:d", "c"] {
            let decision = authorize(&prefixes(), &facts, Some(&admin), Some(open), account_acl);
            assert_eq!(decision, Decision::Allow { owner: true }, "{open}");
        }
    }

    #[test]
    fn service_accounts_need_the_service_group() {
        let fetched = AccountAclSource::Fetched(None);
        let alone = decide(Method::GET, "SERVICE_a", &["a", "a:b", "SERVICE_a"], fetched);
        assert_eq!(alone, Decision::Deny(StatusCode::FORBIDDEN));
        let both = decide(Method::GET, "SERVICE_a", &["a", "a:b", "SERVICE_a", "service"], fetched);
        assert_eq!(both, Decision::Allow { owner: true });
    }
}
