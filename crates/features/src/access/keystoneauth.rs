//! `keystoneauth`: what Keystone's users may do, by what `authtoken` wrote down about them.
//!
//! On the way in: reads who asks, tidies the ACLs that a container is to get. The core asks the authorizer
//! once it knows the container's ACL. An account gets the domain of its project as system metadata, and shows it.
//! Always holds: a request that a feature in front vouches for passes as it is, unless `allow_overrides` is off.
//! Deliberately absent: tokens (`authtoken`), the decision itself (`identity::keystone`), account ACLs, which
//! OpenStack has for TempAuth only.
//!
//! Tests: beside the code, and `tests/api/test_keystone.py` with a real Keystone.

use crate::access::auth_shared::{facts, is_container_sync, tidy_container_acls, unauthorised};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use identity::keystone::{
    AccountDomain, Caller, DOMAIN_STORED_HEADER, DomainSource, KeystoneRules as Rules, KeystoneVerdict, UNKNOWN_DOMAIN,
};
use identity::{KeyHolder, www_authenticate};
use request_pipeline::{AccountInfo, Authorizer, ClientRequest, Feature, InfoSource, Next, Request, Response, reply};
use serde_json::Value;
use settings::KeystoneAuthSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What clients see of the stored domain.
const DOMAIN_SHOWN: HeaderName = HeaderName::from_static("x-account-project-domain-id");
/// Its name in an account's system metadata.
const DOMAIN_KEY: &str = "project-domain-id";

/// Swift's `keystoneauth`.
pub struct KeystoneAuth {
    rules: Arc<Rules>,
}

impl KeystoneAuth {
    /// As configured.
    pub fn new(settings: KeystoneAuthSettings) -> Self {
        Self {
            rules: Arc::new(Rules::new(settings)),
        }
    }

    fn equip(&self, request: &mut ClientRequest) {
        let is_keystones = |holder: &&KeyHolder| holder.keystone.is_some();
        let holder = request.extensions.get::<KeyHolder>().filter(is_keystones).cloned();
        let caller = match holder.and_then(|holder| holder.keystone) {
            Some(kept_headers) => {
                request.extensions.remove::<KeyHolder>();
                Caller::of(&as_headers(&kept_headers))
            }
            None => Caller::of(&request.headers),
        };
        if let Some(caller) = &caller {
            request.notes.set_user(caller.user_id.as_str());
            request.remote_user = Some(caller.project_name.as_str().into());
            request.is_reseller_admin = self.rules.is_reseller(caller);
        }
        request.authorizer = Some(Arc::new(Judge {
            rules: self.rules.clone(),
            caller,
        }));
    }
}

#[async_trait::async_trait]
impl Feature for KeystoneAuth {
    fn name(&self) -> &'static str {
        "keystoneauth"
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        if !(request.authorize_override && self.rules.allows_overrides()) {
            self.equip(&mut request);
        }
        if let Err(refusal) = tidy_container_acls(&mut request) {
            return *refusal;
        }
        let mut response = next.run(request).await;
        if let Some(domain) = response.headers().get(DOMAIN_STORED_HEADER).cloned() {
            response.headers_mut().insert(DOMAIN_SHOWN, domain);
        }
        response
    }
}

/// What is kept of Keystone's word about a user for whom an access key is made.
const KEPT: [&str; 8] = [
    "x-identity-status",
    "x-user-id",
    "x-user-name",
    "x-user-domain-id",
    "x-project-id",
    "x-project-name",
    "x-project-domain-id",
    "x-roles",
];

fn as_headers(kept_headers: &BTreeMap<String, String>) -> HeaderMap {
    let pair = |(name, value): (&String, &String)| {
        let name = HeaderName::try_from(name).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    };
    kept_headers.iter().filter_map(pair).collect()
}

/// Decides for one request.
struct Judge {
    rules: Arc<Rules>,
    caller: Option<Caller>,
}

impl Judge {
    fn decide(&self, request: &ClientRequest, domain: DomainSource<'_>) -> KeystoneVerdict {
        let facts = facts(request);
        let acl = request.acl.as_deref();
        self.rules.authorize(&facts, self.caller.as_ref(), acl, domain)
    }

    async fn decide_knowing_the_domain(&self, request: &ClientRequest, info: &dyn InfoSource) -> KeystoneVerdict {
        let account = account_of(request, info).await;
        let domain = match account.exists() {
            true => account.sysmeta.get(DOMAIN_KEY).map(String::as_str),
            false => Some(UNKNOWN_DOMAIN),
        };
        self.decide(request, DomainSource::Fetched(domain))
    }

    /// An account that is written to or may come into being gets its domain.
    async fn send_domain(&self, request: &mut ClientRequest, info: &dyn InfoSource) {
        let Some(caller) = self.caller.as_ref().filter(|_| may_store_domain(request)) else {
            return;
        };
        let account = account_of(request, info).await;
        let name = request.entity.as_ref().map_or("", |entity| entity.account.as_str());
        let domain = AccountDomain {
            own: self.rules.is_own(name, caller),
            exists: account.exists(),
            stored: account.sysmeta.get(DOMAIN_KEY).map(String::as_str),
        };
        if let Some(domain) = self.rules.domain_to_store(domain, caller) {
            request.set_header(DOMAIN_STORED_HEADER, domain);
        }
    }
}

async fn account_of(request: &ClientRequest, info: &dyn InfoSource) -> Arc<AccountInfo> {
    match &request.entity {
        Some(entity) => info.account(&entity.account).await,
        None => Arc::default(),
    }
}

fn may_store_domain(request: &ClientRequest) -> bool {
    let Some(entity) = request.entity.as_deref() else {
        return false;
    };
    match (&entity.container, &entity.object) {
        (None, _) => request.method == Method::PUT || request.method == Method::POST,
        (Some(_), None) => request.method == Method::PUT,
        _ => false,
    }
}

#[async_trait::async_trait]
impl Authorizer for Judge {
    /// The user who asks, in the project whose account it is, with the roles of now.
    fn key_holder(&self, request: &Request, account: &str, user: Option<&str>) -> Option<Value> {
        let caller = self
            .caller
            .as_ref()
            .filter(|caller| self.rules.is_own(account, caller))?;
        let name = format!("{}:{}", caller.project_name, caller.user_name);
        if user.is_some_and(|user| user != name) {
            return None;
        }
        let kept = KEPT
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), request.header(name)?.to_owned())));
        serde_json::to_value(KeyHolder {
            user: name,
            keystone: Some(kept.collect()),
        })
        .ok()
    }

    fn refuses_keys(&self) -> Option<String> {
        let delegation = self.caller.as_ref()?.delegation.as_ref()?;
        Some(format!(
            "The token is of a delegation ({delegation}); keys are made and changed with a token of the user's own."
        ))
    }

    async fn authorize(&self, request: &mut ClientRequest, info: &dyn InfoSource) -> Result<(), Response> {
        let verdict = match self.decide(request, DomainSource::NotFetched) {
            KeystoneVerdict::NeedsDomain => self.decide_knowing_the_domain(request, info).await,
            verdict => verdict,
        };
        match verdict {
            KeystoneVerdict::Allow { owner } => {
                request.is_owner = owner;
                self.send_domain(request, info).await;
                Ok(())
            }
            KeystoneVerdict::Deny(_) if is_container_sync(request, info).await => Ok(()),
            KeystoneVerdict::Deny(StatusCode::UNAUTHORIZED) => {
                Err(unauthorised(&request.method, www_authenticate(&request.path)))
            }
            KeystoneVerdict::Deny(status) => Err(reply::status_for(&request.method, status.as_u16())),
            // Only asked for when it was not fetched.
            KeystoneVerdict::NeedsDomain => Err(reply::status_for(&request.method, 403)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{request, with_headers};
    use request_pipeline::{Core, Pipeline};
    use settings::Document;
    use settings::declare::Scope;
    use std::path::Path;

    /// Authorises as the core does and tells what it saw.
    struct AccountCore(AccountInfo);

    #[async_trait::async_trait]
    impl Core for AccountCore {
        async fn handle(&self, mut request: ClientRequest) -> Response {
            if let Some(authorizer) = request.authorizer.clone()
                && let Err(refusal) = authorizer.authorize(&mut request, self).await
            {
                return refusal;
            }
            let domain = request.header(DOMAIN_STORED_HEADER).unwrap_or("-");
            let text = format!(
                "owner={} reseller={} {domain}",
                request.is_owner, request.is_reseller_admin
            );
            let mut response = reply::plain(200, text);
            response
                .headers_mut()
                .insert(DOMAIN_STORED_HEADER, "d".parse().unwrap());
            response
        }

        fn info(&self) -> &dyn InfoSource {
            self
        }
    }

    #[async_trait::async_trait]
    impl InfoSource for AccountCore {
        async fn account(&self, _account: &str) -> Arc<AccountInfo> {
            Arc::new(self.0.clone())
        }

        async fn container(&self, _account: &str, _container: &str) -> Arc<request_pipeline::ContainerInfo> {
            Arc::default()
        }
    }

    async fn reply_to(method: &str, target: &str, headers: &[(&'static str, &str)], vouched: bool) -> (u16, String) {
        let document = Document::parse(Path::new("p.conf"), "[filter:k]\nuse = egg:swift#keystoneauth\n").unwrap();
        let settings = KeystoneAuthSettings::read(&Scope::paste(&document, "filter:k").unwrap()).unwrap();
        let core = Arc::new(AccountCore(AccountInfo::default()));
        let pipeline = Pipeline::new(vec![Arc::new(KeystoneAuth::new(settings))], core);
        let mut asked = with_headers(request(method, target), headers);
        asked.authorize_override = vouched;
        let notes = asked.notes.clone();
        let response = pipeline.run(asked).await;
        let status = response.status().as_u16();
        if status == 200 {
            assert_eq!(response.headers()[DOMAIN_SHOWN], "d");
        }
        let user = notes.read().user.unwrap_or_default();
        let body = response.body().as_whole().unwrap();
        (status, format!("{user} {}", String::from_utf8_lossy(&body)))
    }

    const ADMIN: [(&str, &str); 5] = [
        ("x-identity-status", "Confirmed"),
        ("x-user-id", "u1"),
        ("x-project-id", "p1"),
        ("x-project-domain-id", "default"),
        ("x-roles", "admin"),
    ];

    #[tokio::test]
    async fn operators_strangers_and_nobody() {
        let own = reply_to("PUT", "/v1/AUTH_p1", &ADMIN, false).await;
        assert_eq!(own, (200, "u1 owner=true reseller=false default".into()));
        assert_eq!(reply_to("GET", "/v1/AUTH_p2", &ADMIN, false).await.0, 403);
        assert_eq!(reply_to("GET", "/v1/AUTH_p1", &[], false).await.0, 401);
        let vouched = reply_to("GET", "/v1/AUTH_p1/c/o", &[], true).await;
        assert_eq!(vouched, (200, " owner=false reseller=false -".into()));
    }

    #[tokio::test]
    async fn accounts_of_other_projects_have_no_known_domain() {
        let mut reseller = ADMIN;
        reseller[4].1 = "ResellerAdmin";
        let made = reply_to("PUT", "/v1/AUTH_p2/c", &reseller, false).await;
        assert_eq!(made, (200, "u1 owner=true reseller=true _unknown".into()));
    }

    #[tokio::test]
    async fn a_key_is_made_for_the_user_who_asks() {
        let document = Document::parse(Path::new("p.conf"), "[filter:k]\nuse = egg:swift#keystoneauth\n").unwrap();
        let settings = KeystoneAuthSettings::read(&Scope::paste(&document, "filter:k").unwrap()).unwrap();
        let auth = KeystoneAuth::new(settings);
        let names = [("x-user-name", "u"), ("x-project-name", "p")];
        let mut asked = with_headers(with_headers(request("POST", "/v1/AUTH_p1"), &ADMIN), &names);
        auth.equip(&mut asked);
        let authorizer = asked.authorizer.clone().unwrap();
        assert_eq!(authorizer.key_holder(&asked, "AUTH_p2", None), None);
        assert_eq!(authorizer.key_holder(&asked, "AUTH_p1", Some("p:other")), None);
        let holder = authorizer.key_holder(&asked, "AUTH_p1", Some("p:u")).unwrap();
        let holder: KeyHolder = serde_json::from_value(holder).unwrap();
        assert_eq!(holder.principal(), "p1:u1");
        assert_eq!(authorizer.refuses_keys(), None);
        let mut lent = with_headers(request("POST", "/v1/AUTH_p1"), &ADMIN);
        lent.set_header("x-token-delegation", "trust");
        auth.equip(&mut lent);
        let refusal = lent.authorizer.clone().unwrap().refuses_keys().unwrap();
        assert!(refusal.contains("(trust)"), "{refusal}");
        // A request with the key has the user's rights, whatever its own headers say.
        for (account, expected) in [("AUTH_p1", true), ("AUTH_p2", false)] {
            let mut signed = with_headers(
                request("PUT", &format!("/v1/{account}/c")),
                &[
                    ("x-identity-status", "Confirmed"),
                    ("x-project-id", "p2"),
                    ("x-roles", "admin"),
                ],
            );
            signed.extensions.insert(holder.clone());
            auth.equip(&mut signed);
            assert!(signed.extensions.get::<KeyHolder>().is_none());
            let authorizer = signed.authorizer.clone().unwrap();
            let core = AccountCore(AccountInfo::default());
            assert_eq!(
                authorizer.authorize(&mut signed, &core).await.is_ok(),
                expected,
                "{account}"
            );
        }
    }
}
