//! TempAuth: users from the configuration, tokens from `/auth/v1.0`.
//!
//! Always holds: a token that begins with our prefix is either good or ends the request with 401; one
//! that does not is as if none had been sent (another authenticator's, perhaps).

use crate::access_key::KeyHolder;
use crate::authenticator::{
    AuthReply, AuthRequest, Authenticator, Unauthorized, header_text, realm_as_given, www_authenticate,
};
use crate::decide::{self, AccountAclSource, Decision, Prefixes, RequestFacts};
use crate::grant::{self, TokenRequest};
use crate::signed_request::{SignatureRefusal, SignedIdentity, SignedRequest, VerifiedKey};
use crate::tokens::{TokenCache, Tokens};
use crate::user::Identity;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;
use settings::{TempAuthSettings, TempAuthUser, UrlScheme};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use vocabulary::names::quote;

/// OpenStack's TempAuth.
#[derive(Debug)]
pub struct TempAuth {
    /// By `account:user`.
    users: HashMap<String, TempAuthUser>,
    /// What those are who sign requests, by `account:user` too.
    signers: HashMap<String, Signer>,
    prefixes: Prefixes,
    /// With slashes at both ends: `/auth/`.
    auth_prefix: String,
    token_life: u64,
    scheme: UrlScheme,
    tokens: Tokens,
}

/// A user, as the verification of a signature shows it.
#[derive(Debug)]
struct Signer {
    identity: Arc<Identity>,
    account: String,
}

impl TempAuth {
    /// From the configuration, with a shared cache for tokens if there is one.
    pub fn new(settings: &TempAuthSettings, cache: Option<Arc<dyn TokenCache>>) -> Self {
        let users = settings.users.iter();
        let first = settings.prefixes.first().map_or("", |p| p.prefix.as_str());
        let mut new = Self {
            users: users
                .map(|u| (format!("{}:{}", u.account, u.user), u.clone()))
                .collect(),
            signers: HashMap::new(),
            prefixes: Prefixes::new(settings.prefixes.clone()),
            auth_prefix: with_slashes(&settings.options.auth_prefix),
            token_life: settings.options.token_life,
            scheme: settings.options.storage_url_scheme,
            tokens: Tokens::new(first, cache),
        };
        let signers = new.users.iter().map(|(name, user)| {
            let (identity, account) = (Arc::new(Identity::new(new.groups(user))), new.own_account(user));
            (name.clone(), Signer { identity, account })
        });
        new.signers = signers.collect();
        new
    }

    /// The prefix of our tokens and of the accounts that users get.
    fn first_prefix(&self) -> &str {
        self.prefixes.iter().next().map_or("", |p| p.prefix.as_str())
    }

    async fn grant(&self, request: &AuthRequest<'_>, account: &str, user: &str, key: &str) -> AuthReply {
        let name = format!("{account}:{user}");
        let known = self.users.get(&name);
        let same = is_key(known.map_or("", |u| u.key.as_str()), key);
        let Some(known) = known.filter(|_| same) else {
            return refused(account, Some(name));
        };
        let groups = self.groups(known);
        let (token, held) = match self.tokens.of_user(&name, &groups, request.now).await {
            Some(found) => found,
            None => {
                let token = format!(
                    "{}tk{}",
                    self.first_prefix(),
                    vocabulary::hex::encode((request.random)())
                );
                let held = self
                    .tokens
                    .store(&name, &token, groups, self.token_life, request.now)
                    .await;
                (token, held)
            }
        };
        let left = (held.expires - request.now.as_f64()).max(0.0) as u64;
        let reply = |token: &str| -> Option<Vec<(HeaderName, HeaderValue)>> {
            let mut secret = HeaderValue::from_str(token).ok()?;
            secret.set_sensitive(true);
            let url = HeaderValue::from_bytes(self.storage_url(known, request).as_bytes()).ok()?;
            Some(vec![
                (HeaderName::from_static("x-auth-token"), secret.clone()),
                (HeaderName::from_static("x-storage-token"), secret),
                (HeaderName::from_static("x-auth-token-expires"), HeaderValue::from(left)),
                (HeaderName::from_static("x-storage-url"), url),
            ])
        };
        match reply(&token) {
            Some(headers) => AuthReply {
                status: StatusCode::OK,
                headers,
                user: Some(name),
            },
            // A host or storage URL that cannot stand in a header.
            None => AuthReply {
                status: StatusCode::BAD_REQUEST,
                headers: vec![],
                user: Some(name),
            },
        }
    }

    /// Account, user, groups; `.admin` becomes the accounts it makes one admin of.
    fn groups(&self, user: &TempAuthUser) -> Vec<String> {
        let mut groups = vec![user.account.clone(), format!("{}:{}", user.account, user.user)];
        let is_admin = user.groups.iter().any(|g| g == ".admin");
        groups.extend(user.groups.iter().filter(|g| *g != ".admin").cloned());
        if is_admin {
            let named = self.prefixes.iter().map(|p| format!("{}{}", p.prefix, user.account));
            // The last part of the storage URL, which stands there percent-encoded.
            let own = match &user.storage_url {
                Some(url) => url.rsplit('/').next().map(Into::into),
                None => Some(self.own_account_in_url(user)),
            };
            for account in named.chain(own) {
                if !groups.contains(&account) {
                    groups.push(account);
                }
            }
        }
        groups
    }

    fn storage_url(&self, user: &TempAuthUser, request: &AuthRequest<'_>) -> String {
        let scheme = match self.scheme {
            UrlScheme::Default => request.scheme,
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        };
        let default_port = if request.scheme == "https" { ":443" } else { ":80" };
        let host = request.host.strip_suffix(default_port).unwrap_or(request.host);
        let host_url = format!("{scheme}://{host}");
        match &user.storage_url {
            Some(url) => url.replace("$HOST", &host_url),
            None => format!("{host_url}/v1/{}", self.own_account_in_url(user)),
        }
    }

    fn own_account_in_url(&self, user: &TempAuthUser) -> String {
        quote(&format!("{}{}", self.first_prefix(), user.account))
    }

    /// The account of a user who signs requests: the last part of the storage URL.
    fn own_account(&self, user: &TempAuthUser) -> String {
        let named = user.storage_url.as_deref().and_then(|url| url.rsplit('/').next());
        let decoded = named.and_then(|name| vocabulary::names::unquote(name).ok());
        decoded.unwrap_or_else(|| format!("{}{}", self.first_prefix(), user.account))
    }
}

#[async_trait::async_trait]
impl Authenticator for TempAuth {
    async fn serve(&self, request: &AuthRequest<'_>) -> Option<AuthReply> {
        let rest = request.path.strip_prefix(&self.auth_prefix)?;
        Some(match grant::read(request, rest) {
            TokenRequest::Token { account, user, key } => self.grant(request, account, user, key).await,
            TokenRequest::Anonymous { account } => refused(account, None),
            TokenRequest::Refuse(status) => AuthReply {
                status,
                headers: vec![],
                user: None,
            },
        })
    }

    async fn identify(&self, request: &AuthRequest<'_>) -> Result<Option<Arc<Identity>>, Unauthorized> {
        let Some(token) = header_text(request.headers, &["x-auth-token", "x-storage-token"]) else {
            return Ok(None);
        };
        if !token.starts_with(self.first_prefix()) {
            return Ok(None);
        }
        let Some(held) = self.tokens.find(&token, request.now).await else {
            return Err(Unauthorized(www_authenticate(request.path)));
        };
        let service = match header_text(request.headers, &["x-service-token"]) {
            Some(token) if token.starts_with(self.first_prefix()) => self.tokens.find(&token, request.now).await,
            _ => None,
        };
        Ok(Some(match service {
            None => held.identity,
            Some(service) => {
                let groups = held.identity.groups().iter().chain(service.identity.groups());
                Arc::new(Identity::new(groups.cloned().collect()))
            }
        }))
    }

    /// An access key is `account:user`, its secret the user's key.
    fn identify_signed(&self, signed: &SignedRequest) -> Result<SignedIdentity, SignatureRefusal> {
        let name = &signed.access_key;
        let (Some(user), Some(signer)) = (self.users.get(name), self.signers.get(name)) else {
            return Err(SignatureRefusal::UnknownKey);
        };
        let signing_key = signed.check(&user.key)?;
        Ok(SignedIdentity {
            identity: signer.identity.clone(),
            account: signer.account.clone(),
            key: VerifiedKey {
                signing_key,
                user: signed.access_key.clone(),
                principal: signed.access_key.clone(),
            },
        })
    }

    /// A user who is configured, in the user's own account and without a reseller's rights.
    fn identify_holder(&self, holder: &KeyHolder, account: &str) -> Option<Arc<Identity>> {
        let user = self.users.get(&holder.user)?;
        if holder.keystone.is_some() || self.own_account(user) != account {
            return None;
        }
        let groups = self.groups(user).into_iter();
        let groups = groups.filter(|group| !group.starts_with(".reseller"));
        Some(Arc::new(Identity::new(groups.collect())))
    }

    fn authorize(
        &self,
        facts: &RequestFacts<'_>,
        identity: Option<&Identity>,
        container_acl: Option<&str>,
        account_acl: AccountAclSource<'_>,
    ) -> Decision {
        decide::authorize(&self.prefixes, facts, identity, container_acl, account_acl)
    }

    fn info(&self) -> (&'static str, serde_json::Value) {
        ("tempauth", json!({"account_acls": true}))
    }
}

fn refused(account: &str, user: Option<String>) -> AuthReply {
    AuthReply {
        status: StatusCode::UNAUTHORIZED,
        headers: vec![(header::WWW_AUTHENTICATE, realm_as_given(account))],
        user,
    }
}

/// Compares digests, so that time tells neither a key's length nor, with an empty one for users that do
/// not exist, who exists.
fn is_key(expected: &str, given: &str) -> bool {
    Sha256::digest(expected).ct_eq(&Sha256::digest(given)).into()
}

fn with_slashes(prefix: &str) -> String {
    match prefix.trim_matches('/') {
        // An empty prefix would swallow every request; OpenStack falls back likewise.
        "" => "/auth/".into(),
        inner => format!("/{inner}/"),
    }
}
