//! The gateway's own user: how it logs in to Keystone, and the token that it has for it.
//!
//! The token is kept until shortly before it expires, or until Keystone refuses it. Questions are asked at the endpoint
//! that the catalogue of that token names, or at `auth_url` when it names none.
//! Always holds: the password and the token are in no message; one login is under way at a time, and none waits for it
//! for longer than [`LONGEST_WAIT`]; the failure of a login is that of all that waited for it, and no other is tried
//! for [`REST`], or [`REFUSED_REST`] where Keystone refused it: a service user with a wrong password is not locked out
//! by the rate of requests.

use super::connections::{Ask, versioned};
use super::outage::REST;
use super::questions::{Answered, Cause, KeystoneQuestions, LONGEST_WAIT};
use super::unavailable::Unavailable;
use identity::keystone::{Token, TokenError};
use parking_lot::RwLock;
use peer::Url;
use serde_json::{Value, json};
use settings::AuthTokenSettings;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How many seconds before its end a token of our own is replaced.
const EARLY: f64 = 60.0;

/// Between two logins that Keystone refuses.
const REFUSED_REST: Duration = Duration::from_secs(10);

/// The gateway's own standing with Keystone.
pub(super) struct GatewaySession {
    pub(super) token: String,
    /// By the clock that does not jump.
    pub(super) made: Duration,
    /// Seconds since 1970.
    expires: f64,
    /// Where tokens are validated, `/v3` included.
    pub(super) endpoint: Url,
}

/// A login that came to nothing.
struct FailedLogin {
    why: Unavailable,
    /// When the next may be tried, by the clock that does not jump.
    next: Duration,
}

/// How the gateway logs in, and what it has got.
pub(super) struct GatewayLogin {
    base: Url,
    credentials: Value,
    interface: String,
    region: String,
    session: RwLock<Option<Arc<GatewaySession>>>,
    failed: RwLock<Option<FailedLogin>>,
    turn: Mutex<()>,
}

impl GatewayLogin {
    /// `base` is Keystone's address, `/v3` included.
    pub(super) fn new(settings: &AuthTokenSettings, base: &Url) -> Self {
        Self {
            base: base.clone(),
            credentials: credentials(settings),
            interface: settings.interface.clone(),
            region: settings.region_name.clone(),
            session: RwLock::default(),
            failed: RwLock::default(),
            turn: Mutex::default(),
        }
    }

    /// The session that there is, or a new one.
    pub(super) async fn session(&self, questions: &KeystoneQuestions) -> Result<Arc<GatewaySession>, Unavailable> {
        match self.current(questions) {
            Some(session) => Ok(session),
            None => self.replace(questions, None).await,
        }
    }

    /// Another session than `old`, whose token Keystone has refused.
    pub(super) async fn renew(
        &self,
        questions: &KeystoneQuestions,
        old: &Arc<GatewaySession>,
    ) -> Result<Arc<GatewaySession>, Unavailable> {
        self.replace(questions, Some(old)).await
    }

    fn current(&self, questions: &KeystoneQuestions) -> Option<Arc<GatewaySession>> {
        let soon = questions.world.clock.now().as_f64() + EARLY;
        self.session.read().clone().filter(|session| session.expires > soon)
    }

    /// Logs in unless another request has done so meanwhile, or has found out that it comes to nothing.
    async fn replace(
        &self,
        questions: &KeystoneQuestions,
        old: Option<&Arc<GatewaySession>>,
    ) -> Result<Arc<GatewaySession>, Unavailable> {
        let now = || questions.world.clock.elapsed();
        self.not_failed(now())?;
        let Ok(_turn) = questions.world.timeout(LONGEST_WAIT, self.turn.lock()).await else {
            questions.outage.failed(now());
            return Err(Unavailable::Away);
        };
        let is_other = |session: &Arc<GatewaySession>| old.is_none_or(|old| !Arc::ptr_eq(session, old));
        if let Some(session) = self.current(questions).filter(is_other) {
            return Ok(session);
        }
        self.not_failed(now())?;
        // A new token that is refused, too, is not the reason.
        if old.is_some_and(|old| now() < old.made + REST) {
            return Err(Unavailable::Status(401));
        }
        match self.log_in(questions).await {
            Ok(session) => {
                *self.session.write() = Some(session.clone());
                Ok(session)
            }
            Err(why) => {
                let rest = match why {
                    Unavailable::Login(400..=428 | 430..=499) => REFUSED_REST,
                    _ => REST,
                };
                let next = now() + rest;
                *self.failed.write() = Some(FailedLogin { why: why.clone(), next });
                Err(why)
            }
        }
    }

    /// The reason for which the last login came to nothing, where it is too early for the next.
    fn not_failed(&self, now: Duration) -> Result<(), Unavailable> {
        match &*self.failed.read() {
            Some(failed) if now < failed.next => Err(failed.why.clone()),
            _ => Ok(()),
        }
    }

    async fn log_in(&self, questions: &KeystoneQuestions) -> Result<Arc<GatewaySession>, Unavailable> {
        let url = self.base.with("/auth/tokens");
        let body = self.credentials.to_string();
        let ask = Ask {
            method: http::Method::POST,
            url: &url,
            headers: &[],
            body: Some(body.into_bytes()),
        };
        let (Answered::Clear(answered) | Answered::Doubtful(answered)) = questions.send(&ask, Cause::Gateway).await;
        let answer = answered?;
        if answer.status() != 201 {
            return Err(Unavailable::Login(answer.status()));
        }
        let description = answer.json()?;
        let token = answer.header("x-subject-token").ok_or(TokenError::Shape)?;
        Ok(Arc::new(GatewaySession {
            token: token.to_owned(),
            made: questions.world.clock.elapsed(),
            expires: Token::parse(&description)?.expires,
            endpoint: self.endpoint(&description).unwrap_or_else(|| self.base.clone()),
        }))
    }

    /// The identity service's address in a catalogue.
    fn endpoint(&self, description: &Value) -> Option<Url> {
        let services = description.get("token")?.get("catalog")?.as_array()?;
        let is_identity = |service: &&Value| service.get("type").and_then(Value::as_str) == Some("identity");
        let endpoints = services
            .iter()
            .filter(is_identity)
            .filter_map(|service| service.get("endpoints")?.as_array());
        let fits = |endpoint: &&Value| {
            let is = |key: &str, wanted: &str| endpoint.get(key).and_then(Value::as_str) == Some(wanted);
            is("interface", &self.interface) && (self.region.is_empty() || is("region_id", &self.region))
        };
        let endpoint = endpoints.flatten().find(fits)?;
        Some(versioned(&Url::parse(endpoint.get("url")?.as_str()?)?))
    }
}

/// The body of a request for a token of our own.
fn credentials(settings: &AuthTokenSettings) -> Value {
    let domain = |id: &str, name: &str| match (id, name) {
        ("", "") if !settings.default_domain_id.is_empty() => json!({"id": settings.default_domain_id}),
        ("", "") if !settings.default_domain_name.is_empty() => json!({"name": settings.default_domain_name}),
        ("", "") => json!({"id": "default"}),
        ("", name) => json!({"name": name}),
        (id, _) => json!({"id": id}),
    };
    let password = &settings.password.0;
    let user = match settings.user_id.as_str() {
        "" => {
            let domain = domain(&settings.user_domain_id, &settings.user_domain_name);
            json!({"name": settings.username, "domain": domain, "password": password})
        }
        id => json!({"id": id, "password": password}),
    };
    let mut auth = json!({"identity": {"methods": ["password"], "password": {"user": user}}});
    let project_domain = || domain(&settings.project_domain_id, &settings.project_domain_name);
    match (settings.project_id.as_str(), settings.project_name.as_str()) {
        ("", "") => {}
        ("", name) => auth["scope"] = json!({"project": {"name": name, "domain": project_domain()}}),
        (id, _) => auth["scope"] = json!({"project": {"id": id}}),
    }
    json!({ "auth": auth })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_we_say_we_are() {
        let settings = AuthTokenSettings {
            username: "swift".into(),
            project_name: "service".into(),
            user_domain_id: "u".into(),
            project_domain_name: "P".into(),
            ..AuthTokenSettings::default()
        };
        let sent = credentials(&settings);
        let user = &sent["auth"]["identity"]["password"]["user"];
        assert_eq!((&user["name"], &user["domain"]["id"]), (&json!("swift"), &json!("u")));
        assert_eq!(sent["auth"]["scope"]["project"]["domain"], json!({"name": "P"}));
        let by_id = AuthTokenSettings {
            user_id: "i".into(),
            ..AuthTokenSettings::default()
        };
        assert_eq!(credentials(&by_id)["auth"]["identity"]["password"]["user"]["id"], "i");
        assert_eq!(credentials(&by_id)["auth"].get("scope"), None);
    }
}
