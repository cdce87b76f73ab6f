//! Kept-alive connections to an HTTP server that is no storage node, in the clear or over TLS.
//!
//! Always holds: an answer is at most [`LONGEST`] bytes; a question takes at most the configured time, from
//! connecting to the last byte; at most [`MOST_IDLE`] connections wait per server.

use super::tls;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use identity::keystone::TokenError;
use parking_lot::Mutex;
use serde_json::Value;
use settings::declare::Scope;
use settings::{AuthTokenSettings, SettingsError};
use std::collections::HashMap;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use world::{Stream, World};

const LONGEST: usize = 4 << 20;
const MOST_IDLE: usize = 16;
const USUAL_PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// To whom, and why not.
    #[error("no connection to {0}: {1}")]
    Connect(String, String),
    /// It took too long.
    #[error("no answer in time")]
    Late,
    /// Or it was not HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The caller's fault.
    #[error("what is to be sent is no request")]
    Unspeakable,
}

impl Unreachable {
    /// Whether another try could do better. What is late has been waited for long enough.
    pub fn may_retry(&self) -> bool {
        matches!(self, Self::Connect(..) | Self::Broken(_))
    }
}

/// An address of a server and a path there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Url {
    tls: bool,
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// Reads `http://host:port/path`.
    pub fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.trim().parse().ok()?;
        let tls = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        Some(Self {
            tls,
            host: uri.host()?.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// With `/v3` at the end.
    pub fn versioned(mut self) -> Self {
        if let Some(rest) = self.path.strip_suffix("/v2.0") {
            self.path.truncate(rest.len());
        }
        if !self.path.ends_with("/v3") {
            self.path.push_str("/v3");
        }
        self
    }

    /// Something below it.
    pub fn with(&self, more: &str) -> Self {
        Self {
            path: format!("{}{more}", self.path),
            ..self.clone()
        }
    }

    /// `host:port`, as the `Host` header has it.
    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// A question.
pub struct Ask<'a> {
    /// The verb.
    pub method: Method,
    /// What it is about.
    pub url: &'a Url,
    /// Besides the usual ones.
    pub headers: &'a [(&'static str, &'a str)],
    /// JSON.
    pub body: Option<Vec<u8>>,
}

/// The answer to it.
pub struct KeystoneResponse {
    /// Its status.
    pub status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl KeystoneResponse {
    /// Its body, understood.
    pub fn json(&self) -> Result<Value, TokenError> {
        serde_json::from_slice(&self.body).map_err(|_| TokenError::Shape)
    }

    /// One of its headers, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

type Sender = SendRequest<Full<Bytes>>;

/// The connections.
pub struct KeystoneConnections {
    world: World,
    tls: Option<TlsConnector>,
    patience: Duration,
    idle: Mutex<HashMap<(bool, String), Vec<Sender>>>,
}

impl KeystoneConnections {
    /// As configured; none is made yet.
    pub fn new(settings: &AuthTokenSettings, world: &World, options: &Scope) -> Result<Self, SettingsError> {
        Ok(Self {
            world: world.clone(),
            tls: Some(tls::connector(settings, &*world.files, options)?),
            patience: settings.http_connect_timeout.unwrap_or(USUAL_PATIENCE),
            idle: Mutex::default(),
        })
    }

    /// Asks, on a connection that is open or on a new one.
    pub async fn send(&self, ask: &Ask<'_>) -> Result<KeystoneResponse, Unreachable> {
        let place = (ask.url.tls, ask.url.authority());
        let work = async {
            while let Some(sender) = self.take_idle(&place) {
                // An idle connection may have been closed meanwhile: then the next, or a new one.
                if let Ok(answer) = self.exchange(&place, sender, ask).await {
                    return Ok(answer);
                }
            }
            let sender = self.connect(ask.url, &place.1).await?;
            self.exchange(&place, sender, ask).await
        };
        self.world
            .timeout(self.patience, work)
            .await
            .map_err(|_| Unreachable::Late)?
    }

    fn take_idle(&self, place: &(bool, String)) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let senders = idle.get_mut(place)?;
        std::iter::from_fn(|| senders.pop()).find(Sender::is_ready)
    }

    async fn connect(&self, url: &Url, place: &str) -> Result<Sender, Unreachable> {
        let failed = |error: String| Unreachable::Connect(place.to_owned(), error);
        let connecting = self.world.network.connect(url.host.clone(), url.port);
        let stream = connecting.await.map_err(|error| failed(error.to_string()))?;
        let stream: Box<dyn Stream> = match &self.tls {
            Some(connector) if url.tls => {
                let name = tls::name_of(&url.host).ok_or_else(|| failed("no name for a certificate".into()))?;
                let secured = connector.connect(name, stream).await;
                Box::new(secured.map_err(|error| failed(error.to_string()))?)
            }
            _ => stream,
        };
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| failed(error.to_string()))?;
        // Errors of the connection reach us through the request that is on it.
        self.world.spawn_unrelated(async move { drop(connection.await) });
        Ok(sender)
    }

    async fn exchange(
        &self,
        place: &(bool, String),
        mut sender: Sender,
        ask: &Ask<'_>,
    ) -> Result<KeystoneResponse, Unreachable> {
        let request = request(ask, &place.1).ok_or(Unreachable::Unspeakable)?;
        let broken = |error: &dyn std::fmt::Display| Unreachable::Broken(error.to_string());
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LONGEST)
            .collect()
            .await
            .map_err(|error| broken(&error))?;
        if sender.ready().await.is_ok() {
            let mut idle = self.idle.lock();
            let senders = idle.entry(place.clone()).or_default();
            if senders.len() < MOST_IDLE {
                senders.push(sender);
            }
        }
        Ok(KeystoneResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}

fn request(ask: &Ask<'_>, host: &str) -> Option<http::Request<Full<Bytes>>> {
    let mut builder = http::Request::builder()
        .method(ask.method.clone())
        .uri(ask.url.path.as_str())
        .header("host", host)
        .header("accept", "application/json")
        .header("user-agent", "martlet");
    for (name, value) in ask.headers {
        builder = builder.header(*name, http::HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    if ask.body.is_some() {
        builder = builder.header("content-type", "application/json");
    }
    builder.body(Full::from(ask.body.clone().unwrap_or_default())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("http://k:5000", Some("k:5000/v3")),
            ("http://k:5000/v3/", Some("k:5000/v3")),
            ("https://k/identity", Some("k:443/identity/v3")),
            ("http://k/v2.0", Some("k:80/v3")),
            ("http://[::1]:5000/", Some("[::1]:5000/v3")),
            ("k:5000", None),
            ("ftp://k", None),
        ] {
            let url = Url::parse(text).map(Url::versioned);
            let shown = url.map(|url| format!("{}{}", url.authority(), url.path));
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "(https?://)?\\PC*") {
            let _ = Url::parse(&text).map(Url::versioned);
        }
    }
}
