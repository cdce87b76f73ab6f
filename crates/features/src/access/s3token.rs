//! `s3token`: has signatures of S3 verified by Keystone, whose EC2 credentials they are made with.
//!
//! Comes in: a request of which `s3api` has read the signature. Keystone is sent what was signed and the signature, and
//! says whose they are; that goes down the pipeline as headers, for `keystoneauth` to read, and the request is aimed at
//! the account of the credentials' project.
//! Always holds: headers of that kind that a client sent are taken off first; a signature that Keystone does not
//! confirm ends the request, unless `delay_auth_decision` leaves it to an authenticator behind.
//! With `secret_cache_duration` the secret is asked for as well and kept in this process for so long: Keystone is not
//! asked about each request, and chunks of a body can be signed.
//!
//! Tests: `tests/api/test_keystone.py` with a real Keystone and OpenStack's own filter.

use super::authtoken::keystone::Keystone;
use super::authtoken::take_off;
use super::authtoken::unavailable::Unavailable;
use crate::context::FeatureContext;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use identity::keystone::{Token, Whose};
use identity::{SignatureRefusal, SignedRequest, VerifiedKey};
use lru::LruCache;
use parking_lot::Mutex;
use peer::Url;
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::{Value, json};
use settings::declare::{Options, Scope};
use settings::{S3TokenSettings, SettingsError};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use world::World;

/// Access keys whose secrets are kept at the same time.
const MOST_KEPT: NonZeroUsize = NonZeroUsize::new(8192).expect("not zero");

/// Swift's `s3token`.
pub struct S3Token {
    settings: S3TokenSettings,
    keystone: Keystone,
    /// Keystone's address, `/v3` included.
    address: Url,
    kept: Mutex<LruCache<String, Kept>>,
    world: World,
}

/// What is known of an access key.
#[derive(Clone)]
struct Kept {
    token: Arc<Token>,
    secret: String,
    /// By the clock that does not jump.
    until: Duration,
}

impl S3Token {
    /// As configured.
    pub fn new(context: &FeatureContext<'_>, options: &Scope) -> Result<Self, SettingsError> {
        let settings = S3TokenSettings::read(options)?;
        let address = Url::parse(&settings.auth_uri);
        let address = address.ok_or_else(|| options.wrong("auth_uri", "the address of Keystone, /v3 included"))?;
        Ok(Self {
            keystone: Keystone::new(&settings.login(), context.world, options)?,
            address,
            kept: Mutex::new(LruCache::new(MOST_KEPT)),
            world: context.world.clone(),
            settings,
        })
    }

    /// Whose signature it is, and the secret where it is known.
    async fn whose(
        &self,
        signed: &SignedRequest,
        key: &str,
        from: IpAddr,
    ) -> Result<Option<(Arc<Token>, Option<String>)>, Unavailable> {
        let now = self.world.clock.elapsed();
        let kept = self.kept.lock().get(key).cloned();
        if let Some(kept) = kept.filter(|kept| kept.until > now)
            && signed.is_signed_with(&kept.secret)
        {
            return Ok(Some((kept.token, Some(kept.secret))));
        }
        let Some(token) = self.confirmed(signed, key, from).await? else {
            return Ok(None);
        };
        let secret = match self.settings.secret_cache_duration.is_zero() || !self.has_login() {
            true => None,
            false => self.learn(signed, key, &token, from).await,
        };
        Ok(Some((token, secret)))
    }

    /// The gateway has a user of its own with Keystone.
    fn has_login(&self) -> bool {
        !self.settings.auth_url.is_empty()
    }

    /// Whose signature it is by Keystone's word.
    async fn confirmed(
        &self,
        signed: &SignedRequest,
        key: &str,
        from: IpAddr,
    ) -> Result<Option<Arc<Token>>, Unavailable> {
        for text in std::iter::once(&signed.string_to_sign).chain(&signed.alternative) {
            let question = question(key, text, &signed.signature);
            let (keystone, has_login) = (&self.keystone, self.has_login());
            if let Some(token) = keystone.signed(&self.address, &question, has_login, from).await? {
                return Ok(Some(Arc::new(token)));
            }
        }
        Ok(None)
    }

    /// Fetches the secret of a key whose signature Keystone has confirmed, and keeps it.
    async fn learn(&self, signed: &SignedRequest, key: &str, token: &Arc<Token>, from: IpAddr) -> Option<String> {
        let now = self.world.clock.elapsed();
        let user = header(token, "x-user-id");
        match self.keystone.secret(&self.address, &user, key, from).await {
            Ok(Some(secret)) if signed.is_signed_with(&secret) => {
                self.keep(key, token, &secret, now);
                Some(secret)
            }
            // The key was changed in between, or is not for the gateway's user to see.
            Ok(_) => None,
            Err(unavailable) => {
                let about = "the secret of an access key could not be fetched";
                self.keystone.report(about, &unavailable);
                None
            }
        }
    }

    fn keep(&self, key: &str, token: &Arc<Token>, secret: &str, now: Duration) {
        let known = Kept {
            token: token.clone(),
            secret: secret.to_owned(),
            until: now + self.settings.secret_cache_duration,
        };
        self.kept.lock().put(key.to_owned(), known);
    }

    /// Writes down whose request it is, and aims it at the account of the project that it names or its key is of.
    fn equip(&self, request: &mut ClientRequest, signed: &SignedRequest, token: &Token, secret: Option<&str>) {
        request.headers.extend(token.headers(Whose::User));
        let own = header(token, "x-project-id");
        let project = split(&signed.access_key).1.unwrap_or(&own);
        if let Some(entity) = request
            .entity
            .as_deref()
            .filter(|entity| entity.account == signed.access_key)
        {
            let mut owned = entity.clone();
            owned.account = format!("{}{project}", self.settings.reseller_prefix);
            request.aim_at(owned);
        }
        let scope = signed.scope.as_ref();
        request.extensions.insert(VerifiedKey {
            signing_key: scope.zip(secret).map(|(scope, secret)| scope.signing_key(secret)),
            user: format!("{}:{}", header(token, "x-project-name"), header(token, "x-user-name")),
            // Other domains may have users and projects of the same names.
            principal: format!("{own}:{}", header(token, "x-user-id")),
        });
    }
}

#[async_trait::async_trait]
impl Feature for S3Token {
    fn name(&self) -> &'static str {
        "s3token"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.extensions.get::<Arc<SignedRequest>>().is_some()
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let Some(signed) = request.extensions.get::<Arc<SignedRequest>>().cloned() else {
            return next.run(request).await;
        };
        take_off(&mut request.headers);
        match self
            .whose(&signed, split(&signed.access_key).0, request.from.ip())
            .await
        {
            // A token for no project names no account.
            Ok(Some((token, secret))) if !header(&token, "x-project-id").is_empty() => {
                request.extensions.remove::<Arc<SignedRequest>>();
                self.equip(&mut request, &signed, &token, secret.as_deref());
            }
            Ok(_) if !self.settings.delay_auth_decision => {
                let mut response = reply::status_for(&request.method, 401);
                response.extensions_mut().insert(SignatureRefusal::WrongSignature);
                return response;
            }
            Err(unavailable) if !self.settings.delay_auth_decision => {
                self.keystone.report("a signature could not be verified", &unavailable);
                return reply::status_for(&request.method, 503);
            }
            Ok(_) | Err(_) => {}
        }
        next.run(request).await
    }
}

/// The key that Keystone knows, and the project whose account is meant in place of the key's own (`KEY:PROJECT`).
fn split(access_key: &str) -> (&str, Option<&str>) {
    match access_key.split_once(':') {
        Some((key, project)) => (key, Some(project)),
        None => (access_key, None),
    }
}

/// What Keystone is asked about a signature.
fn question(key: &str, text: &str, signature: &str) -> Value {
    json!({"credentials": {"access": key, "token": URL_SAFE.encode(text), "signature": signature}})
}

fn header(token: &Token, name: &str) -> String {
    let mut headers = token.headers(Whose::User).into_iter();
    let found = headers.find(|(known, _)| known.as_str() == name);
    found.map_or_else(String::new, |(_, value)| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::HandClock;

    #[test]
    fn keystone_is_asked_what_was_signed() {
        let asked = question("k", "what\nwas signed", "s");
        assert_eq!(asked["credentials"]["token"], "d2hhdAp3YXMgc2lnbmVk");
        assert_eq!(asked["credentials"]["signature"], "s");
    }

    #[test]
    fn a_key_may_name_another_project() {
        assert_eq!(split("key"), ("key", None));
        assert_eq!(split("key:project"), ("key", Some("project")));
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_keeps_no_key_alive() {
        let text = "[filter:s]\nauth_uri = http://127.0.0.1:9/v3\nsecret_cache_duration = 60\n";
        let document = settings::Document::parse(std::path::Path::new("p.conf"), text).unwrap();
        let scope = Scope::paste(&document, "filter:s").unwrap();
        let settings = S3TokenSettings::read(&scope).unwrap();
        let clock = Arc::new(HandClock::default());
        *clock.wall.lock() = 1_700_086_400;
        let world = World {
            clock: clock.clone(),
            ..World::real()
        };
        let filter = S3Token {
            keystone: Keystone::new(&settings.login(), &world, &scope).unwrap(),
            address: Url::parse(&settings.auth_uri).unwrap(),
            kept: Mutex::new(LruCache::new(MOST_KEPT)),
            world,
            settings,
        };
        let description = json!({"token": {"user": {"id": "u"}, "expires_at": "2040-01-01T00:00:00Z"}});
        let signed = SignedRequest {
            access_key: "k".into(),
            signature: "uDksI2kMz4cfN+wnC+FYLexXpQM=".into(),
            string_to_sign: "text".into(),
            alternative: None,
            canonical_request: None,
            scope: None,
            session_token: None,
        };
        assert!(signed.is_signed_with("secret"));
        let token = Arc::new(Token::parse(&description).unwrap());
        filter.keep("k", &token, "secret", filter.world.clock.elapsed());
        *clock.wall.lock() -= 86_400;
        *clock.elapsed.lock() += Duration::from_secs(59);
        assert!(filter.whose(&signed, "k", [10, 0, 0, 1].into()).await.is_ok());
        *clock.elapsed.lock() += Duration::from_secs(1);
        assert!(
            filter.whose(&signed, "k", [10, 0, 0, 1].into()).await.is_err(),
            "Keystone is asked, and away"
        );
    }
}
