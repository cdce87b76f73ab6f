//! TempAuth in the pipeline: who asks, and the means to decide later whether they may.
//!
//! Adapts an [`identity::Authenticator`] (TempAuth; another could stand here) to [`Feature`] and
//! [`Authorizer`]. On the way in: answers `/auth/v1.0`, finds out who asks, tidies the ACLs that a
//! container is to get. The core then asks the authorizer once it knows the container's ACL.
//! Always holds: a token that is not good goes no further; answers to HEAD have no page; an account's
//! ACL is only taken from users who may set it, and is stored as system metadata.
//! Deliberately absent: users, tokens, the decision itself (`identity`).

use crate::access::auth_shared::{facts, is_container_sync, tidy_container_acls, unauthorised};
use http::header::HeaderValue;
use http::{Method, StatusCode};
use identity::account_acl::{HEADER as ACCOUNT_ACL, STORED_HEADER as STORED_ACCOUNT_ACL};
use identity::{
    AccountAcl, AccountAclSource, AuthReply, AuthRequest, Authenticator, Decision, Identity, KeyHolder,
    SignatureRefusal, SignedRequest, www_authenticate,
};
use request_pipeline::{Authorizer, ClientRequest, Feature, InfoSource, Next, Request, Response, reply, set_header};
use serde_json::Value;
use std::sync::Arc;
use telemetry::Statsd;
use vocabulary::Fault;
use world::World;

/// Swift's `tempauth`, or any other authenticator in its place.
pub struct Auth {
    name: &'static str,
    authenticator: Arc<dyn Authenticator>,
    world: World,
    allow_overrides: bool,
    statsd: Statsd,
}

impl Auth {
    /// `name` is that of the filter.
    pub fn new(name: &'static str, authenticator: Arc<dyn Authenticator>, world: World) -> Self {
        Self {
            name,
            authenticator,
            world,
            allow_overrides: true,
            statsd: Statsd::default(),
        }
    }

    /// With refusals reported to `statsd`.
    pub fn counting(self, statsd: Statsd) -> Self {
        Self { statsd, ..self }
    }

    /// Whether features in front may vouch for a request (`allow_overrides`).
    pub fn allowing_overrides(self, allow_overrides: bool) -> Self {
        Self {
            allow_overrides,
            ..self
        }
    }

    /// Answers for the authenticator itself, or learns who asks.
    async fn meet(&self, request: &mut ClientRequest) -> Result<(), Box<Response>> {
        let random = || {
            let mut bytes = [0; 16];
            self.world.random.fill(&mut bytes);
            bytes
        };
        let asked = AuthRequest {
            method: &request.method,
            path: &request.path,
            headers: &request.headers,
            scheme: request.scheme,
            host: request.header("host").unwrap_or("localhost"),
            now: self.world.clock.now(),
            random: &random,
        };
        if let Some(answer) = self.authenticator.serve(&asked).await {
            self.statsd
                .increment_if(answer.status == StatusCode::UNAUTHORIZED, "token_denied");
            self.statsd.increment_if(answer.status.is_server_error(), "errors");
            return Err(Box::new(answered(request, answer)));
        }
        match self.authenticator.identify(&asked).await {
            Ok(identity) => self.equip(request, identity),
            Err(unauthorized) => {
                self.statsd.increment("unauthorized");
                return Err(Box::new(unauthorised(&request.method, unauthorized.0)));
            }
        }
        Ok(())
    }

    /// Learns who has signed the request, and aims it at the account of the access key, which it names in its place.
    fn identify_signed(&self, request: &mut ClientRequest, signed: &SignedRequest) -> Result<(), SignatureRefusal> {
        let signer = self.authenticator.identify_signed(signed)?;
        if let Some(entity) = request
            .entity
            .as_deref()
            .filter(|entity| entity.account == signed.access_key)
        {
            let mut owned = entity.clone();
            owned.account = signer.account;
            request.aim_at(owned);
        }
        request.extensions.insert(signer.key);
        self.equip(request, Some(signer.identity));
        Ok(())
    }

    /// The user for whom the access key of the request was made, where TempAuth has made users.
    fn identify_holder(&self, request: &mut ClientRequest, holder: &KeyHolder) -> Result<(), SignatureRefusal> {
        let account = request.entity.as_deref().map_or("", |entity| &entity.account);
        let identity = self.authenticator.identify_holder(holder, account);
        self.equip(request, Some(identity.ok_or(SignatureRefusal::InactiveKey)?));
        Ok(())
    }

    /// What is verified of the signature of the request, if it has one.
    fn identify_key(&self, request: &mut ClientRequest) -> Option<Result<(), SignatureRefusal>> {
        if let Some(signed) = request.extensions.remove::<Arc<SignedRequest>>() {
            return Some(self.identify_signed(request, &signed));
        }
        let is_ours = |holder: &&KeyHolder| holder.keystone.is_none();
        let holder = request.extensions.get::<KeyHolder>().filter(is_ours).cloned()?;
        request.extensions.remove::<KeyHolder>();
        Some(self.identify_holder(request, &holder))
    }

    fn equip(&self, request: &mut ClientRequest, identity: Option<Arc<Identity>>) {
        if let Some(identity) = &identity {
            request.notes.set_user(identity.user());
            request.remote_user = Some(identity.groups().join(",").into());
            request.is_reseller_admin = identity.is_reseller();
        }
        let authenticator = self.authenticator.clone();
        request.authorizer = Some(Arc::new(Judge {
            authenticator,
            identity,
            statsd: self.statsd.clone(),
        }));
    }
}

#[async_trait::async_trait]
impl Feature for Auth {
    fn name(&self) -> &'static str {
        self.name
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![self.authenticator.info()]
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        if request.authorize_override && self.allow_overrides {
            return next.run(request).await;
        }
        if let Some(verified) = self.identify_key(&mut request) {
            if let Err(refusal) = verified {
                self.statsd.increment("unauthorized");
                let mut response = reply::status_for(&request.method, 403);
                response.extensions_mut().insert(refusal);
                return response;
            }
        } else if let Err(answer) = self.meet(&mut request).await {
            return *answer;
        }
        if let Err(refusal) = tidy_container_acls(&mut request) {
            return *refusal;
        }
        next.run(request).await
    }
}

fn answered(request: &ClientRequest, answer: AuthReply) -> Response {
    if let Some(user) = answer.user {
        request.notes.set_user(user);
    }
    let mut response = reply::status_for(&request.method, answer.status.as_u16());
    response.headers_mut().extend(answer.headers);
    response
}

/// Decides for one request.
struct Judge {
    authenticator: Arc<dyn Authenticator>,
    identity: Option<Arc<Identity>>,
    statsd: Statsd,
}

impl Judge {
    fn decide(&self, request: &ClientRequest, account_acl: AccountAclSource<'_>) -> Decision {
        let facts = facts(request);
        let acl = request.acl.as_deref();
        self.authenticator
            .authorize(&facts, self.identity.as_deref(), acl, account_acl)
    }

    async fn decide_knowing_the_account(&self, request: &mut ClientRequest, info: &dyn InfoSource) -> Decision {
        let account = request.entity.as_ref().map(|entity| entity.account.clone());
        let account = info.account(&account.unwrap_or_default()).await;
        let stored = account.sysmeta.get("core-access-control").filter(|acl| !acl.is_empty());
        let acl = stored.map(|acl| AccountAcl::parse(acl));
        self.decide(request, AccountAclSource::Fetched(acl.as_ref()))
    }
}

#[async_trait::async_trait]
impl Authorizer for Judge {
    fn key_holder(&self, _request: &Request, account: &str, user: Option<&str>) -> Option<Value> {
        let holder = KeyHolder {
            user: user.or(self.identity.as_deref().map(Identity::user))?.to_owned(),
            keystone: None,
        };
        self.authenticator.identify_holder(&holder, account)?;
        serde_json::to_value(holder).ok()
    }

    async fn authorize(&self, request: &mut ClientRequest, info: &dyn InfoSource) -> Result<(), Response> {
        let decision = match self.decide(request, AccountAclSource::NotFetched) {
            Decision::NeedsAccountAcl => self.decide_knowing_the_account(request, info).await,
            decision => decision,
        };
        match decision {
            Decision::Allow { owner } => {
                request.is_owner = owner;
                if owner { take_account_acl(request) } else { Ok(()) }
            }
            Decision::Deny(_) if is_container_sync(request, info).await => Ok(()),
            Decision::Deny(StatusCode::UNAUTHORIZED) => {
                self.statsd.increment("unauthorized");
                Err(unauthorised(&request.method, www_authenticate(&request.path)))
            }
            Decision::Deny(status) => {
                self.statsd.increment("forbidden");
                Err(reply::status_for(&request.method, status.as_u16()))
            }
            // Only asked for when it was not fetched.
            Decision::NeedsAccountAcl => Err(reply::status_for(&request.method, 403)),
        }
    }
}

/// `X-Account-Access-Control` of an owner becomes what is stored, if it can be.
fn take_account_acl(request: &mut ClientRequest) -> Result<(), Response> {
    let writes = request.method == Method::PUT || request.method == Method::POST;
    let is_account = request
        .entity
        .as_deref()
        .is_some_and(|entity| entity.container.is_none());
    if !writes || !is_account {
        return Ok(());
    }
    let Some(wanted) = request.headers.get(ACCOUNT_ACL) else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(wanted.as_bytes());
    let refuse = |problem: Fault| {
        let plain = HeaderValue::from_static("text/plain; charset=UTF-8");
        reply::with_body(400, plain, problem.what)
    };
    let stored = AccountAcl::check(&text).map_err(refuse)?;
    set_header(&mut request.headers, STORED_ACCOUNT_ACL, &stored);
    Ok(())
}

#[cfg(test)]
mod tests;
