//! What Keystone is asked: a token for the gateway itself, and whose a client's token is.
//!
//! The gateway logs in as its own user and keeps that token until shortly before it expires; a 401 says that it is
//! no longer good and is answered by logging in once more. Tokens are validated at the endpoint that the catalogue of
//! that token names, or at `auth_url` when it names none.
//! Always holds: the password and tokens are in no message; while Keystone does not answer, questions are refused at
//! once (`outage.rs`); no token of a client makes it so that others' are.

use super::connections::{Ask, KeystoneConnections, KeystoneResponse, versioned};
use super::outage::REST;
use super::questions::{Answered, Cause, KeystoneQuestions};
use super::unavailable::Unavailable;
use identity::keystone::{Token, TokenError};
use parking_lot::RwLock;
use peer::Url;
use serde_json::{Value, json};
use settings::declare::Scope;
use settings::{AuthTokenSettings, SettingsError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use vocabulary::names::quote;
use world::World;

/// How long before its end a token of our own is replaced.
const EARLY: f64 = 60.0;

/// The gateway's own standing with Keystone.
struct Session {
    token: String,
    made: f64,
    expires: f64,
    /// Where tokens are validated, `/v3` included.
    endpoint: Url,
}

/// Keystone, as configured.
pub(in crate::access) struct Keystone {
    base: Url,
    credentials: Value,
    interface: String,
    region: String,
    questions: KeystoneQuestions,
    world: World,
    session: RwLock<Option<Arc<Session>>>,
    login: Mutex<()>,
    /// When Keystone may be asked next whether it answers.
    next_probe: Mutex<Duration>,
}

impl Keystone {
    pub(in crate::access) fn new(
        settings: &AuthTokenSettings,
        world: &World,
        options: &Scope,
    ) -> Result<Self, SettingsError> {
        let base = Url::parse(&settings.auth_url).ok_or_else(|| options.wrong("auth_url", "an address"))?;
        Ok(Self {
            base: versioned(&base),
            credentials: credentials(settings),
            interface: settings.interface.clone(),
            region: settings.region_name.clone(),
            questions: KeystoneQuestions::new(
                KeystoneConnections::new(settings, world, options)?,
                settings.http_request_max_retries,
                world.clone(),
            ),
            world: world.clone(),
            session: RwLock::default(),
            login: Mutex::default(),
            next_probe: Mutex::default(),
        })
    }

    /// Whose token it is; nothing when it is not good.
    pub(super) async fn validate(&self, subject: &str, allow_expired: bool) -> Result<Option<Token>, Unavailable> {
        let _place = self.questions.place().await?;
        let mut session = self.session().await?;
        for attempt in 0..2 {
            let answer = self.ask_about(&session, subject, allow_expired).await?;
            match answer.status() {
                200 => return Ok(Some(Token::parse(&answer.json()?)?)),
                404 => return Ok(None),
                401 if attempt == 0 => session = self.renew(&session).await?,
                status => return Err(Unavailable::Status(status)),
            }
        }
        Err(Unavailable::Status(401))
    }

    /// Whose signature of S3 it is; nothing when Keystone does not confirm it. `has_login`: the gateway's own user may
    /// ask this; of a Keystone that wants no user anybody may.
    pub(in crate::access) async fn signed(
        &self,
        address: &Url,
        question: &Value,
        has_login: bool,
    ) -> Result<Option<Token>, Unavailable> {
        let _place = self.questions.place().await?;
        let url = address.with("/s3tokens");
        let mut session = match has_login {
            true => Some(self.session().await?),
            false => None,
        };
        loop {
            let token = session.as_ref().map(|session| ("x-auth-token", session.token.as_str()));
            let ask = Ask {
                method: http::Method::POST,
                url: &url,
                headers: token.as_slice(),
                body: Some(question.to_string().into_bytes()),
            };
            let answer = self.ask(ask, session.as_deref()).await?;
            match (answer.status(), session.take()) {
                (200, _) => return Ok(Some(Token::parse(&answer.json()?)?)),
                // Of a wrong signature, or of a token of ours that is no longer good; a new one is.
                (401, Some(old)) if self.world.clock.now().as_f64() - old.made > EARLY => {
                    session = Some(self.renew(&old).await?);
                }
                (400 | 401 | 404, _) => return Ok(None),
                (status, _) => return Err(Unavailable::Signature(status)),
            }
        }
    }

    /// The secret of a user's access key; nothing when there is none, or it is not for the gateway's user to see.
    pub(in crate::access) async fn secret(
        &self,
        address: &Url,
        user: &str,
        access_key: &str,
    ) -> Result<Option<String>, Unavailable> {
        let _place = self.questions.place().await?;
        let session = self.session().await?;
        let url = address.with(&format!(
            "/users/{}/credentials/OS-EC2/{}",
            quote(user).replace('/', "%2F"),
            quote(access_key).replace('/', "%2F")
        ));
        let ask = Ask {
            method: http::Method::GET,
            url: &url,
            headers: &[("x-auth-token", session.token.as_str())],
            body: None,
        };
        let answer = self.ask(ask, Some(&session)).await?;
        match answer.status() {
            200 => Ok(answer.json()?["credential"]["secret"].as_str().map(str::to_owned)),
            400..=404 => Ok(None),
            status => Err(Unavailable::Status(status)),
        }
    }

    async fn ask_about(
        &self,
        session: &Session,
        subject: &str,
        allow_expired: bool,
    ) -> Result<KeystoneResponse, Unavailable> {
        let query = if allow_expired {
            "nocatalog&allow_expired=1"
        } else {
            "nocatalog"
        };
        let url = session.endpoint.with(&format!("/auth/tokens?{query}"));
        let headers = [("x-auth-token", session.token.as_str()), ("x-subject-token", subject)];
        let ask = Ask {
            method: http::Method::GET,
            url: &url,
            headers: &headers,
            body: None,
        };
        self.ask(ask, Some(session)).await
    }

    async fn session(&self) -> Result<Arc<Session>, Unavailable> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let failures = self.questions.outage.failures();
        let _turn = self.login.lock().await;
        match self.current() {
            Some(session) => Ok(session),
            // Another request has found out meanwhile that there is no answer.
            None if self.questions.outage.failures() != failures => Err(Unavailable::Away),
            None => self.log_in().await,
        }
    }

    fn current(&self) -> Option<Arc<Session>> {
        let soon = self.world.clock.now().as_f64() + EARLY;
        self.session.read().clone().filter(|session| session.expires > soon)
    }

    /// Logs in again unless another request has done so meanwhile.
    async fn renew(&self, old: &Arc<Session>) -> Result<Arc<Session>, Unavailable> {
        let _turn = self.login.lock().await;
        match self.current().filter(|session| !Arc::ptr_eq(session, old)) {
            Some(session) => Ok(session),
            None => self.log_in().await,
        }
    }

    async fn log_in(&self) -> Result<Arc<Session>, Unavailable> {
        let url = self.base.with("/auth/tokens");
        let body = self.credentials.to_string();
        let ask = Ask {
            method: http::Method::POST,
            url: &url,
            headers: &[],
            body: Some(body.into_bytes()),
        };
        let (Answered::Clear(answered) | Answered::Doubtful(answered)) =
            self.questions.send(&ask, Cause::Gateway).await;
        let answer = answered?;
        if answer.status() != 201 {
            return Err(Unavailable::Login(answer.status()));
        }
        let description = answer.json()?;
        let token = answer.header("x-subject-token").ok_or(TokenError::Shape)?;
        let session = Arc::new(Session {
            token: token.to_owned(),
            made: self.world.clock.now().as_f64(),
            expires: Token::parse(&description)?.expires,
            endpoint: self.endpoint(&description).unwrap_or_else(|| self.base.clone()),
        });
        *self.session.write() = Some(session.clone());
        Ok(session)
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

    /// Asks what a client is the reason for; where the client may be the reason that it fails, too, Keystone is probed.
    async fn ask(&self, ask: Ask<'_>, session: Option<&Session>) -> Result<KeystoneResponse, Unavailable> {
        match self.questions.send(&ask, Cause::Client).await {
            Answered::Clear(answered) => answered,
            Answered::Doubtful(answered) => {
                self.probe(session).await;
                answered
            }
        }
    }

    /// Finds out whether Keystone answers, unless that was done within the last second or is being done: asks about the
    /// gateway's own token, which takes what a question about a client's takes.
    async fn probe(&self, session: Option<&Session>) {
        let Ok(mut next) = self.next_probe.try_lock() else {
            return;
        };
        let now = || self.world.clock.elapsed();
        if now() < *next {
            return;
        }
        let (url, headers) = match session {
            Some(session) => {
                let own = session.token.as_str();
                let url = session.endpoint.with("/auth/tokens?nocatalog");
                (url, vec![("x-auth-token", own), ("x-subject-token", own)])
            }
            None => (self.base.clone(), vec![]),
        };
        let ask = Ask {
            method: http::Method::GET,
            url: &url,
            headers: &headers,
            body: None,
        };
        // What it says about Keystone is in `outage`.
        self.questions.send(&ask, Cause::Gateway).await;
        *next = now() + REST;
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
