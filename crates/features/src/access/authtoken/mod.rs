//! `authtoken`: has tokens validated by Keystone and writes down who they are for.
//!
//! OpenStack's proxies use keystonemiddleware for this; options, headers and the shared cache are the same. A
//! request's `X-Auth-Token` (or `X-Storage-Token`) and `X-Service-Token` are looked up in the cache or shown to
//! Keystone; what it says goes down the pipeline as headers, for `keystoneauth` to read.
//! Always holds: headers of that kind that a client sent are taken off first; without a good token the request
//! says so (`X-Identity-Status: Invalid`), or ends here when `delay_auth_decision` is off; a token that has
//! expired is good only together with a service token of a trusted role; what cannot be a token is none of Keystone's.
//! Deliberately absent: what anybody may do; the service catalogue, which nothing behind reads; tokens with
//! access rules (Keystone does not confirm them to a filter that does not announce it knows such rules, and those
//! that OpenStack's filter left in the shared cache are not taken).
//!
//! | question | file |
//! |---|---|
//! | which tokens are known | `cache.rs` |
//! | what Keystone is asked for clients, and as which user | `keystone.rs`, `login.rs` |
//! | how often, and whether Keystone answers | `questions.rs`, `outage.rs`, `unavailable.rs` |
//! | connections to it | `connections.rs`, `tls.rs` |
//!
//! Tests: beside the code, and `tests/api/test_keystone.py` with a real Keystone and OpenStack's own filter.

mod cache;
pub mod connections;
pub(super) mod keystone;
mod login;
mod outage;
mod questions;
pub mod tls;
pub(super) mod unavailable;

use crate::context::FeatureContext;
use cache::{Confirmed, KnownToken};
use http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method};
use identity::header_text;
use identity::keystone::{Whose, is_identity_header};
use keystone::Keystone;
use request_pipeline::{ClientRequest, Feature, Next, Response, SharedCache, reply};
use settings::declare::Scope;
use settings::{AuthTokenSettings, SettingsError};
use std::borrow::Cow;
use std::sync::Arc;
use unavailable::Unavailable;
use world::World;

const IDENTITY_STATUS: HeaderName = HeaderName::from_static("x-identity-status");
const SERVICE_STATUS: HeaderName = HeaderName::from_static("x-service-identity-status");
const INVALID: HeaderValue = HeaderValue::from_static("Invalid");

/// Characters of a token about which Keystone is asked. Servers that take longer headers are rare.
const LONGEST_TOKEN: usize = 8 << 10;

const REFUSED: &str = r#"{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}"#;
const AWAY: &str = "503 Service Unavailable\n\nThe server is currently unavailable. Please try again at a later time.\n\n The Keystone service is temporarily unavailable.  ";

/// keystonemiddleware's `auth_token`.
pub struct AuthToken {
    settings: AuthTokenSettings,
    /// `Keystone uri="…"`.
    challenge: HeaderValue,
    known: KnownToken,
    keystone: Keystone,
    world: World,
}

/// What became of a token.
enum Checked {
    Good(Arc<Confirmed>),
    Bad,
}

impl AuthToken {
    /// As configured.
    pub fn new(context: &FeatureContext<'_>, options: &Scope) -> Result<Self, SettingsError> {
        let settings = AuthTokenSettings::of(options)?;
        let uri = format!("Keystone uri=\"{}\"", settings.where_tokens_come_from());
        let challenge = HeaderValue::from_str(&uri);
        Ok(Self {
            challenge: challenge.map_err(|_| options.wrong("www_authenticate_uri", "an address"))?,
            known: KnownToken::new(shared(&settings, context.cache.clone()), settings.token_cache_time),
            keystone: Keystone::new(&settings, context.world, options)?,
            world: context.world.clone(),
            settings,
        })
    }

    /// Puts the identity of both tokens on the request; the answer when it goes no further.
    async fn identify(&self, request: &mut ClientRequest) -> Result<(), Box<Response>> {
        take_off(&mut request.headers);
        let service = match header_text(&request.headers, &["x-service-token"]).map(Cow::into_owned) {
            Some(token) => {
                let checked = self.check(&token, Whose::Service, false, request).await?;
                self.write_down(&mut request.headers, Whose::Service, &checked, &request.method)?;
                Some(checked)
            }
            None => None,
        };
        let trusted = match &service {
            Some(Checked::Good(service)) => service.token.has_role_of(&self.settings.service_token_roles),
            _ => false,
        };
        let checked = match header_text(&request.headers, &["x-auth-token", "x-storage-token"]).map(Cow::into_owned) {
            Some(token) => self.check(&token, Whose::User, trusted, request).await?,
            None => Checked::Bad,
        };
        self.write_down(&mut request.headers, Whose::User, &checked, &request.method)
    }

    async fn check(
        &self,
        secret: &str,
        whose: Whose,
        allow_expired: bool,
        request: &ClientRequest,
    ) -> Result<Checked, Box<Response>> {
        if !may_be_token(secret) {
            return Ok(Checked::Bad);
        }
        let clock = &self.world.clock;
        let (wall, now) = (clock.now().as_f64(), clock.elapsed());
        let known = self.known.find(secret, now).await;
        let confirmed = match known {
            Some(known) => Some(known),
            None if self.known.is_refused(secret, allow_expired, now) => None,
            None => match self.keystone.validate(secret, allow_expired, request.from.ip()).await {
                Ok(Some(token)) => Some(self.known.remember(secret, token, wall, now).await),
                Ok(None) => {
                    self.known.refuse(secret, allow_expired, now);
                    None
                }
                Err(unavailable) => return self.unavailable(&unavailable, &request.method).map_err(Box::new),
            },
        };
        Ok(match confirmed {
            Some(confirmed) if self.is_good(&confirmed, whose, allow_expired, wall) => Checked::Good(confirmed),
            _ => Checked::Bad,
        })
    }

    fn is_good(&self, confirmed: &Confirmed, whose: Whose, allow_expired: bool, wall: f64) -> bool {
        if confirmed.token.expires <= wall && !allow_expired {
            return false;
        }
        whose == Whose::User
            || !self.settings.service_token_roles_required
            || confirmed.token.has_role_of(&self.settings.service_token_roles)
    }

    /// Keystone cannot say: as if the token were bad where others decide, else 503.
    fn unavailable(&self, unavailable: &Unavailable, method: &Method) -> Result<Checked, Response> {
        self.keystone.report("a token could not be validated", unavailable);
        if self.settings.delay_auth_decision {
            return Ok(Checked::Bad);
        }
        let plain = HeaderValue::from_static("text/plain; charset=UTF-8");
        Err(reply::with_body(503, plain, page(method, AWAY)))
    }

    fn write_down(
        &self,
        headers: &mut HeaderMap,
        whose: Whose,
        checked: &Checked,
        method: &Method,
    ) -> Result<(), Box<Response>> {
        let (status, identity) = match whose {
            Whose::User => (IDENTITY_STATUS, Confirmed::user as fn(&Confirmed) -> &[_]),
            Whose::Service => (SERVICE_STATUS, Confirmed::service as fn(&Confirmed) -> &[_]),
        };
        match checked {
            Checked::Good(confirmed) => headers.extend(identity(confirmed).iter().cloned()),
            Checked::Bad if self.settings.delay_auth_decision => {
                headers.insert(status, INVALID);
            }
            Checked::Bad => {
                let json = HeaderValue::from_static("application/json");
                let mut response = reply::with_body(401, json, page(method, REFUSED));
                self.challenge(&mut response);
                return Err(Box::new(response));
            }
        }
        Ok(())
    }

    fn challenge(&self, response: &mut Response) {
        response.headers_mut().append(WWW_AUTHENTICATE, self.challenge.clone());
    }
}

#[async_trait::async_trait]
impl Feature for AuthToken {
    fn name(&self) -> &'static str {
        "authtoken"
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        if let Err(answer) = self.identify(&mut request).await {
            return *answer;
        }
        let mut response = next.run(request).await;
        if response.status() == 401 {
            self.challenge(&mut response);
        }
        response
    }
}

/// Whether Keystone may have made this: Fernet's tokens have some 200 characters, signed ones up to two thousand. Two
/// headers with a token, joined by a comma, are none.
fn may_be_token(secret: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    (1..=LONGEST_TOKEN).contains(&secret.len()) && secret.bytes().all(is_fit)
}

fn page(method: &Method, text: &str) -> String {
    if method == Method::HEAD {
        String::new()
    } else {
        text.into()
    }
}

/// The cache that tokens are shared through. With `memcache_security_strategy` entries of others would have to be
/// signed as OpenStack's filter signs them: none is believed then, and none is written.
fn shared(settings: &AuthTokenSettings, cache: Option<Arc<dyn SharedCache>>) -> Option<Arc<dyn SharedCache>> {
    let cache = cache.filter(|_| !settings.cache.is_empty())?;
    if settings.wants_secured_cache() {
        tracing::warn!(
            "authtoken: tokens are not shared through memcached: memcache_security_strategy = {} is set, and entries \
             are neither signed nor encrypted here; this gateway keeps those that it has validated in memory",
            settings.memcache_security_strategy
        );
        return None;
    }
    Some(cache)
}

/// Takes off what only this filter and `s3token` may say.
pub(super) fn take_off(headers: &mut HeaderMap) {
    let forged: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_identity_header(name.as_str()))
        .cloned()
        .collect();
    for name in forged {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;
