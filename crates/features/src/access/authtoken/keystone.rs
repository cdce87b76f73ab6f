//! What Keystone is asked for clients: whose a token is, whose a signature is, what the secret of a key is.
//!
//! The gateway asks as its own user (`login.rs`); a 401 says that the token which it has for that is no longer good.
//! Always holds: tokens are in no message; while Keystone does not answer, questions are refused at once
//! (`outage.rs`); no token of a client makes it so that others' are.

use super::connections::{Ask, KeystoneConnections, KeystoneResponse, versioned};
use super::login::{GatewayLogin, GatewaySession};
use super::outage::REST;
use super::questions::{Answered, Cause, KeystoneQuestions};
use super::unavailable::{Unavailable, UnavailableLog};
use identity::keystone::{Token, TokenError};
use peer::Url;
use serde_json::Value;
use settings::declare::Scope;
use settings::{AuthTokenSettings, SettingsError};
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::Mutex;
use vocabulary::names::quote;
use world::World;

/// How long after a login Keystone's 401 is about a signature and not about the gateway's own token.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// Keystone, as configured.
pub(in crate::access) struct Keystone {
    base: Url,
    questions: KeystoneQuestions,
    login: GatewayLogin,
    world: World,
    /// When Keystone may be asked next whether it answers.
    next_probe: Mutex<Duration>,
    log: UnavailableLog,
}

impl Keystone {
    pub(in crate::access) fn new(
        settings: &AuthTokenSettings,
        world: &World,
        options: &Scope,
    ) -> Result<Self, SettingsError> {
        let base = Url::parse(&settings.auth_url).ok_or_else(|| options.wrong("auth_url", "an address"))?;
        let base = versioned(&base);
        Ok(Self {
            login: GatewayLogin::new(settings, &base),
            base,
            questions: KeystoneQuestions::new(
                KeystoneConnections::new(settings, world, options)?,
                settings.http_request_max_retries,
                world.clone(),
            ),
            world: world.clone(),
            next_probe: Mutex::default(),
            log: UnavailableLog::default(),
        })
    }

    /// Whose token it is that a client at this address sent; nothing when it is not good.
    pub(super) async fn validate(
        &self,
        subject: &str,
        allow_expired: bool,
        from: IpAddr,
    ) -> Result<Option<Token>, Unavailable> {
        let _place = self.questions.place(from).await?;
        let mut session = self.login.session(&self.questions).await?;
        for attempt in 0..2 {
            let answer = self.ask_about(&session, subject, allow_expired).await?;
            match answer.status() {
                200 => return confirmed(&answer),
                404 => return Ok(None),
                401 if attempt == 0 => session = self.login.renew(&self.questions, &session).await?,
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
        from: IpAddr,
    ) -> Result<Option<Token>, Unavailable> {
        let _place = self.questions.place(from).await?;
        let url = address.with("/s3tokens");
        let mut session = match has_login {
            true => Some(self.login.session(&self.questions).await?),
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
                (200, _) => return confirmed(&answer),
                // Of a wrong signature, or of a token of ours that is no longer good; a new one is.
                (401, Some(old)) if self.world.clock.elapsed() > old.made + GOOD_FOR => {
                    session = Some(self.login.renew(&self.questions, &old).await?);
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
        from: IpAddr,
    ) -> Result<Option<String>, Unavailable> {
        let _place = self.questions.place(from).await?;
        let session = self.login.session(&self.questions).await?;
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

    /// Puts into the log that something (`failed`) came to nothing, in one line for many.
    pub(in crate::access) fn report(&self, failed: &str, why: &Unavailable) {
        if let Some(more) = self.log.line(why, self.world.clock.elapsed()) {
            tracing::warn!("{failed}: {why}{more}");
        }
    }

    async fn ask_about(
        &self,
        session: &GatewaySession,
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

    /// Asks what a client is the reason for; where the client may be the reason that it fails, too, Keystone is probed.
    async fn ask(&self, ask: Ask<'_>, session: Option<&GatewaySession>) -> Result<KeystoneResponse, Unavailable> {
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
    async fn probe(&self, session: Option<&GatewaySession>) {
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

/// The token that an answer describes; nothing where it is for some requests only, which nothing here checks.
fn confirmed(answer: &KeystoneResponse) -> Result<Option<Token>, Unavailable> {
    match Token::parse(&answer.json()?) {
        Ok(token) => Ok(Some(token)),
        Err(TokenError::AccessRules) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
