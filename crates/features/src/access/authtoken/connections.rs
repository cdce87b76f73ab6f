//! Questions to Keystone, or to another server that is no storage node, and their answers.
//!
//! Always holds: an answer is at most [`LONGEST`] bytes; a question takes at most the configured time, from
//! connecting to the last byte.

use super::tls;
use bytes::Bytes;
use http::Method;
use identity::keystone::TokenError;
use peer::{HttpClient, PeerError, Url};
use serde_json::Value;
use settings::declare::Scope;
use settings::{AuthTokenSettings, SettingsError};
use std::time::Duration;
use world::World;

const LONGEST: u64 = 4 << 20;
const USUAL_PATIENCE: Duration = Duration::from_secs(60);

/// The address with `/v3` at its end.
pub fn versioned(url: &Url) -> Url {
    let path = url.path();
    let path = path.strip_suffix("/v2.0").unwrap_or(path);
    let path = path.strip_suffix("/v3").unwrap_or(path);
    url.with_path(format!("{path}/v3"))
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
pub struct KeystoneResponse(http::Response<Bytes>);

impl KeystoneResponse {
    /// Its status.
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// Its body, understood.
    pub fn json(&self) -> Result<Value, TokenError> {
        serde_json::from_slice(self.0.body()).map_err(|_| TokenError::Shape)
    }

    /// One of its headers, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }
}

/// The connections.
pub struct KeystoneConnections {
    client: HttpClient,
    patience: Duration,
}

impl KeystoneConnections {
    /// As configured; none is made yet.
    pub fn new(settings: &AuthTokenSettings, world: &World, options: &Scope) -> Result<Self, SettingsError> {
        let tls = tls::connector(settings, &*world.files, options)?;
        Ok(Self {
            client: HttpClient::with_tls(world.clone(), tls),
            patience: settings.http_connect_timeout.unwrap_or(USUAL_PATIENCE),
        })
    }

    /// Asks, on a connection that is open or on a new one.
    pub async fn send(&self, ask: &Ask<'_>) -> Result<KeystoneResponse, PeerError> {
        let request = request(ask).map_err(|error| PeerError::Unspeakable(error.to_string()))?;
        let response = self.client.fetch(ask.url, request, LONGEST, self.patience).await?;
        Ok(KeystoneResponse(response))
    }
}

fn request(ask: &Ask<'_>) -> http::Result<http::Request<Bytes>> {
    let mut builder = http::Request::builder()
        .method(ask.method.clone())
        .header("accept", "application/json")
        .header("user-agent", "martlet");
    for (name, value) in ask.headers {
        builder = builder.header(*name, value.as_bytes());
    }
    if ask.body.is_some() {
        builder = builder.header("content-type", "application/json");
    }
    builder.body(ask.body.clone().unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_one_version() {
        for (text, expected) in [
            ("http://k:5000", "/v3"),
            ("http://k:5000/v3/", "/v3"),
            ("https://k/identity", "/identity/v3"),
            ("http://k/v2.0", "/v3"),
        ] {
            assert_eq!(versioned(&Url::parse(text).unwrap()).path(), expected, "{text}");
        }
    }
}
