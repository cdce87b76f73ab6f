//! Whether a request is allowed: one decision, as OpenStack's `keystoneauth` makes it.
//!
//! In order: `OPTIONS`; reseller administrators; readers of the whole system; users may not delete their own account;
//! operators of the project, with a service token where one is asked for; ACLs that name a user (`project:user`, either
//! may be `*`); referrers; readers of the project; roles named in the container's ACL.
//! OpenStack's proxy asks its filter before it knows the container's ACL, and again with it where that was refused: so
//! owners are owners, whatever an ACL opens to everybody.
//! Always holds: pure. `tests/openstack_keystone.rs` compares it with the real filter over thousands of cases.

use super::Caller;
use super::domain::{AccountDomain, UNKNOWN as UNKNOWN_DOMAIN, domain_to_store};
use crate::container_acl::ContainerAcl;
use crate::decide::RequestFacts;
use crate::referrer;
use http::{Method, StatusCode};
use settings::{KeystoneAuthSettings, PrefixRoles};

/// The rules of one configuration.
#[derive(Debug, Clone)]
pub struct KeystoneRules {
    settings: KeystoneAuthSettings,
}

/// The domain stored with the account, which costs a look-up and is seldom needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainSource<'a> {
    /// Not looked up; [`KeystoneVerdict::NeedsDomain`] asks for it.
    NotFetched,
    /// Looked up; `None` for an account from before domains were stored, [`UNKNOWN_DOMAIN`] for one that is not there.
    Fetched(Option<&'a str>),
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeystoneVerdict {
    /// They may.
    Allow {
        /// As owner (`swift_owner`).
        owner: bool,
    },
    /// They may not: 401 when it is not known who they are, else 403.
    Deny(StatusCode),
    /// It depends on the domain the account is in: fetch it and ask again.
    NeedsDomain,
}

impl KeystoneRules {
    /// As configured.
    pub fn new(settings: KeystoneAuthSettings) -> Self {
        Self { settings }
    }

    /// Whether filters in front may vouch for a request.
    pub fn allows_overrides(&self) -> bool {
        self.settings.options.allow_overrides
    }

    /// Whether they may do anything to any account.
    pub fn is_reseller(&self, caller: &Caller) -> bool {
        caller.roles.contains(&self.settings.options.reseller_admin_role)
    }

    /// Whether the account is one of the caller's project.
    pub fn is_own(&self, account: &str, caller: &Caller) -> bool {
        self.prefix_of(account)
            .is_some_and(|prefix| is_of_project(account, prefix, caller))
    }

    /// The domain to store with an account, if any.
    pub fn domain_to_store<'a>(&self, account: AccountDomain<'_>, caller: &'a Caller) -> Option<&'a str> {
        domain_to_store(account, caller, &self.settings.options.default_domain_id)
    }

    /// Whether they may.
    pub fn authorize(
        &self,
        facts: &RequestFacts<'_>,
        caller: Option<&Caller>,
        container_acl: Option<&str>,
        domain: DomainSource<'_>,
    ) -> KeystoneVerdict {
        let acl = ContainerAcl::parse(container_acl.unwrap_or_default());
        let Some(caller) = caller else {
            return self.authorize_nobody(facts, &acl);
        };
        let denied = KeystoneVerdict::Deny(StatusCode::FORBIDDEN);
        let Some(account) = facts.account.filter(|account| !account.is_empty()) else {
            return denied;
        };
        let reads = matches!(*facts.method, Method::GET | Method::HEAD);
        if facts.method == Method::OPTIONS {
            return KeystoneVerdict::Allow { owner: false };
        }
        if self.is_reseller(caller) {
            return KeystoneVerdict::Allow { owner: true };
        }
        if reads && caller.has_role_of(&self.settings.options.system_reader_roles) {
            return KeystoneVerdict::Allow { owner: false };
        }
        if facts.container.is_none() && facts.method == Method::DELETE {
            return denied;
        }
        let own_prefix = self
            .prefix_of(account)
            .filter(|prefix| is_of_project(account, prefix, caller));
        if own_prefix.is_some_and(|prefix| operates(prefix, caller)) {
            return KeystoneVerdict::Allow { owner: true };
        }
        match self.names_caller(&acl, account, caller, domain) {
            Some(true) => return KeystoneVerdict::Allow { owner: false },
            Some(false) => {}
            None => return KeystoneVerdict::NeedsDomain,
        }
        let by_referrer = by_referrer(facts, &acl);
        if by_referrer == Some(true) {
            return KeystoneVerdict::Allow { owner: false };
        }
        let Some(prefix) = own_prefix else {
            return denied;
        };
        if reads && caller.has_role_of(&prefix.readers) {
            return KeystoneVerdict::Allow { owner: false };
        }
        let by_role = acl
            .groups
            .iter()
            .any(|group| caller.roles.contains(&group.to_lowercase()));
        match by_referrer.is_none() && by_role {
            true => KeystoneVerdict::Allow { owner: false },
            false => denied,
        }
    }

    fn authorize_nobody(&self, facts: &RequestFacts<'_>, acl: &ContainerAcl<'_>) -> KeystoneVerdict {
        let account = facts.account.unwrap_or_default();
        let ours = !account.is_empty() && self.prefix_of(account).is_some();
        let allowed =
            facts.method == Method::OPTIONS && !account.is_empty() || ours && by_referrer(facts, acl) == Some(true);
        match allowed {
            true => KeystoneVerdict::Allow { owner: false },
            false => KeystoneVerdict::Deny(StatusCode::UNAUTHORIZED),
        }
    }

    /// The prefix an account has; the longest that fits.
    fn prefix_of(&self, account: &str) -> Option<&PrefixRoles> {
        let fitting = self.settings.prefixes.iter().filter(|p| account.starts_with(&p.prefix));
        fitting.max_by_key(|p| p.prefix.len())
    }

    /// Whether the ACL has `project:user` for the caller; `None` when it depends on a domain that is not fetched.
    fn names_caller(
        &self,
        acl: &ContainerAcl<'_>,
        account: &str,
        caller: &Caller,
        domain: DomainSource<'_>,
    ) -> Option<bool> {
        let mut by_name = false;
        for group in &acl.groups {
            // Names may have colons of their own.
            for (colon, _) in group.match_indices(':') {
                let (project, user) = (&group[..colon], &group[colon + 1..]);
                let is = |written: &str, id: &str| written == "*" || (!id.is_empty() && written == id);
                if is(project, &caller.project_id) && is(user, &caller.user_id) {
                    return Some(true);
                }
                let could = |written: &str, id: &str, name: &str| is(written, id) || is(written, name);
                by_name |= could(project, &caller.project_id, &caller.project_name)
                    && could(user, &caller.user_id, &caller.user_name);
            }
        }
        if !by_name || !self.may_use_names(caller) {
            return Some(false);
        }
        let of_account = match domain {
            _ if self.is_own(account, caller) => caller.project_domain.as_deref(),
            DomainSource::Fetched(domain) => domain,
            DomainSource::NotFetched => return None,
        };
        Some(self.is_default(of_account))
    }

    fn may_use_names(&self, caller: &Caller) -> bool {
        self.settings.options.allow_names_in_acls
            && self.is_default(caller.user_domain.as_deref())
            && self.is_default(caller.project_domain.as_deref())
    }

    /// Whether that is the default domain, or from before there were domains.
    fn is_default(&self, domain: Option<&str>) -> bool {
        domain.is_none_or(|domain| domain != UNKNOWN_DOMAIN && domain == self.settings.options.default_domain_id)
    }
}

fn operates(prefix: &PrefixRoles, caller: &Caller) -> bool {
    let has_service = prefix.services.is_empty() || prefix.services.iter().any(|r| caller.service_roles.contains(r));
    caller.has_role_of(&prefix.operators) && has_service
}

fn is_of_project(account: &str, prefix: &PrefixRoles, caller: &Caller) -> bool {
    let project = account.strip_prefix(prefix.prefix.as_str());
    !caller.project_id.is_empty() && project == Some(&caller.project_id)
}

/// Whether a referrer rule fits; `Some(false)` when one does but listings are not open.
fn by_referrer(facts: &RequestFacts<'_>, acl: &ContainerAcl<'_>) -> Option<bool> {
    if !referrer::allowed(facts.referer, &acl.referrers) {
        return None;
    }
    Some(facts.object.is_some() || acl.rlistings())
}
