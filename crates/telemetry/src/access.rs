//! What is known of a request that is over, for the proxy's line about it; `access_format.rs` writes that line.
//!
//! Always holds: secrets are cut short; of keys that encrypt nothing is shown.

use crate::fields::{Obscured, QuotedField, TwiceQuoted};
use crate::template::{Anonymizer, Template};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use settings::ProxyLoggingSettings;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;
use vocabulary::{EntityPath, header_name};

/// Parameters of a query whose values open doors.
const SECRET_PARAMETERS: &[&str] = &["temp_url_sig", "X-Amz-Signature", "Signature", "signature"];
/// Headers whose values do, when headers are logged.
const SECRET_HEADERS: &[&str] = &[
    "x-auth-token",
    "x-storage-token",
    "x-service-token",
    "x-auth-key",
    "x-storage-pass",
    "x-account-meta-temp-url-key",
    "x-account-meta-temp-url-key-2",
    "x-container-meta-temp-url-key",
    "x-container-meta-temp-url-key-2",
];

/// In the names of headers and parameters with keys of clients (S3's SSE-C), whose first characters open nothing and
/// would say too much.
const KEY_OF_CLIENT: &str = "server-side-encryption-customer-key";

/// Whether a header or a parameter of this name has such a key; its MD5 is no secret.
fn is_key_of_client(name: &str) -> bool {
    let end = name.len().checked_sub(KEY_OF_CLIENT.len());
    let end = end.and_then(|start| name.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(KEY_OF_CLIENT))
}

/// A request that is over. [`std::fmt::Display`] is its line.
#[derive(Clone, Copy)]
pub struct AccessLine<'a> {
    /// Address of the other end of the connection, without port; empty when unknown.
    pub remote: &'a str,
    /// The verb.
    pub method: &'a str,
    /// The path, percent-decoded.
    pub path: &'a str,
    /// The query, as sent, without `?`.
    pub query: Option<&'a str>,
    /// `HTTP/1.1`.
    pub protocol: &'a str,
    /// What the client was answered; 499 when it did not wait.
    pub status: u16,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// Bytes of body that came.
    pub received: u64,
    /// Bytes of body that went.
    pub sent: u64,
    /// Its id.
    pub transaction_id: &'a str,
    /// What made the request, when no client did.
    pub source: &'a str,
    /// Remarks of features, separated by commas.
    pub info: &'a str,
    /// When it began, since 1970.
    pub start: Duration,
    /// When it ended, since 1970.
    pub end: Duration,
    /// The storage policy it touched.
    pub policy: Option<u32>,
    /// How long the head of the answer took.
    pub first_byte: Option<Duration>,
    /// The status that was sent, whatever became of the body behind it.
    pub wire_status: u16,
    /// What the path names, when it names something.
    pub entity: Option<&'a EntityPath>,
    /// `account:user`, empty without a user.
    pub user: &'a str,
    /// How it is written.
    pub style: &'a Style,
}

/// The options of `[filter:proxy-logging]` that shape the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Characters of secrets that are shown: `reveal_sensitive_prefix`.
    pub reveal: usize,
    /// Show the request's headers: `access_log_headers`.
    pub headers: bool,
    /// Only these of them, in lower case: `access_log_headers_only`.
    pub headers_only: Vec<String>,
    /// Other than the default: `log_msg_template`.
    pub template: Option<Template>,
    /// `log_anonymization_method` and `log_anonymization_salt`.
    pub anonymizer: Anonymizer,
}

/// An option whose value cannot be, and what it could be.
pub type Wrong = (&'static str, String);

impl Default for Style {
    fn default() -> Self {
        Self {
            reveal: 16,
            headers: false,
            headers_only: Vec::new(),
            template: None,
            anonymizer: Anonymizer::default(),
        }
    }
}

impl Style {
    /// As configured.
    pub fn read(settings: &ProxyLoggingSettings) -> Result<Self, Wrong> {
        let names = settings.access_log_headers_only.iter();
        let text = &settings.log_msg_template;
        let is_default = *text == ProxyLoggingSettings::default().log_msg_template;
        let (method, salt) = (&settings.log_anonymization_method, &settings.log_anonymization_salt);
        Ok(Self {
            reveal: settings.reveal_sensitive_prefix,
            headers: settings.access_log_headers,
            headers_only: names.map(|n| n.to_ascii_lowercase()).collect(),
            template: match is_default {
                true => None,
                false => Some(Template::parse(text).map_err(|fault| ("log_msg_template", fault.what))?),
            },
            anonymizer: Anonymizer::new(method, salt).ok_or((
                "log_anonymization_method",
                "MD5, SHA1, SHA224, SHA256, SHA384 or SHA512".to_owned(),
            ))?,
        })
    }
}

/// The names of an account, a container and an object, empty where there are none.
#[derive(Default)]
pub(crate) struct EntityNames<'a> {
    pub(crate) account: &'a str,
    pub(crate) container: &'a str,
    pub(crate) object: &'a str,
}

impl AccessLine<'_> {
    /// Whom the proxies in front name, or who the connection is from.
    pub(crate) fn client(&self) -> &[u8] {
        let named = |name: &str| self.headers.get(name).map(|v| v.as_bytes()).filter(|v| !v.is_empty());
        let first = |list: &'_ [u8]| list.iter().position(|b| *b == b',').unwrap_or(list.len());
        match (named("x-cluster-client-ip"), named("x-forwarded-for")) {
            (Some(client), _) => client,
            (None, Some(list)) => list[..first(list)].trim_ascii(),
            (None, None) => self.remote.as_bytes(),
        }
    }

    pub(crate) fn entity(&self) -> EntityNames<'_> {
        self.entity.map_or_else(EntityNames::default, |entity| EntityNames {
            account: &entity.account,
            container: entity.container.as_deref().unwrap_or_default(),
            object: entity.object.as_deref().unwrap_or_default(),
        })
    }

    /// The path and, behind it, the query.
    pub(crate) fn write_path(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&TwiceQuoted(self.path), f)?;
        self.write_query(f)
    }

    /// The same as a URL has them, secrets cut short.
    pub(crate) fn path_and_query(&self) -> String {
        let mut text = vocabulary::names::quote(self.path);
        for (index, pair) in self.query.unwrap_or_default().split('&').enumerate() {
            match (pair, index) {
                ("", 0) => continue,
                (_, 0) => text.push('?'),
                _ => text.push('&'),
            }
            match pair.split_once('=') {
                Some((name, _)) if is_key_of_client(name) => {
                    text.push_str(name);
                    text.push_str("=...");
                }
                Some((name, value)) if SECRET_PARAMETERS.contains(&name) => {
                    text.push_str(name);
                    text.push('=');
                    text.push_str(&String::from_utf8_lossy(&self.cut_short(value.as_bytes())));
                }
                _ => text.push_str(pair),
            }
        }
        text
    }

    fn write_query(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(query) = self.query.filter(|q| !q.is_empty()) else {
            return Ok(());
        };
        for (index, pair) in query.split('&').enumerate() {
            f.write_str(if index == 0 { "%3F" } else { "%26" })?;
            match pair.split_once('=') {
                Some((name, _)) if is_key_of_client(name) => write!(f, "{name}%3D...")?,
                Some((name, value)) if SECRET_PARAMETERS.contains(&name) => {
                    write!(f, "{name}%3D{}", self.obscured(value.as_bytes()))?;
                }
                _ if pair.is_empty() => {}
                _ => write!(f, "{}", QuotedField(pair.as_bytes()))?,
            }
        }
        Ok(())
    }

    pub(crate) fn write_token(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.headers.get("x-auth-token").filter(|t| !t.is_empty()) {
            None => f.write_str("-"),
            Some(token) => Display::fmt(&self.obscured(token.as_bytes()), f),
        }
    }

    pub(crate) fn write_headers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.style.headers {
            true => Display::fmt(&QuotedField(&self.header_lines()), f),
            false => f.write_str("-"),
        }
    }

    /// The headers to be logged, one a line, secrets cut short.
    pub(crate) fn header_lines(&self) -> Vec<u8> {
        let only = &self.style.headers_only;
        let wanted = |name: &HeaderName| only.is_empty() || only.iter().any(|n| n == name.as_str());
        let mut lines = Vec::new();
        for (name, value) in self
            .headers
            .iter()
            .filter(|(name, _)| self.style.headers && wanted(name))
        {
            let secret = SECRET_HEADERS.contains(&name.as_str()) || name == AUTHORIZATION || value.is_sensitive();
            if !lines.is_empty() {
                lines.push(b'\n');
            }
            lines.extend_from_slice(&header_name::decode(&header_name::title(name.as_str())));
            lines.extend_from_slice(b": ");
            match secret {
                _ if is_key_of_client(name.as_str()) => lines.extend_from_slice(b"..."),
                true => lines.extend(self.cut_short(value.as_bytes())),
                false => lines.extend_from_slice(value.as_bytes()),
            }
        }
        lines
    }

    fn cut_short(&self, secret: &[u8]) -> Vec<u8> {
        match secret.get(..self.style.reveal) {
            Some(shown) if shown.len() < secret.len() => [shown, b"..."].concat(),
            _ => secret.to_vec(),
        }
    }

    fn obscured<'s>(&self, secret: &'s [u8]) -> Obscured<'s> {
        Obscured {
            secret,
            reveal: self.style.reveal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn line<'a>(headers: &'a HeaderMap, style: &'a Style) -> AccessLine<'a> {
        AccessLine {
            remote: "1.2.3.4",
            method: "GET",
            path: "/v1/a/c/o p",
            query: Some("format=json&temp_url_sig=0123456789abcdef0123"),
            protocol: "HTTP/1.1",
            status: 200,
            headers,
            received: 0,
            sent: 5,
            transaction_id: "tx123-006b003bd2",
            source: "",
            info: "",
            start: Duration::new(1_795_177_426, 550_146_341),
            end: Duration::new(1_795_177_426, 550_279_140),
            policy: Some(0),
            first_byte: None,
            wire_status: 200,
            entity: None,
            user: "test:tester",
            style,
        }
    }

    #[test]
    fn a_whole_line() {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", HeaderValue::from_static("curl 8"));
        headers.insert("x-auth-token", HeaderValue::from_static("AUTH_tk0123456789abcdef"));
        assert_eq!(
            line(&headers, &Style::default()).to_string(),
            "1.2.3.4 1.2.3.4 20/Nov/2026/12/23/46 GET \
             /v1/a/c/o%2520p%3Fformat%3Djson%26temp_url_sig%3D0123456789abcdef... HTTP/1.1 200 - curl%208 \
             AUTH_tk012345678... - 5 - tx123-006b003bd2 - 0.0001 - - 1795177426.550146341 1795177426.550279140 \
             0 test:tester"
        );
    }

    #[test]
    fn secrets_in_headers_are_cut_short() {
        let mut headers = HeaderMap::new();
        headers.insert("x-auth-key", HeaderValue::from_static("a-key-that-is-long-enough"));
        headers.insert("authorization", HeaderValue::from_static("AWS4 with a long signature"));
        let style = Style {
            headers: true,
            ..Style::default()
        };
        const KEY: &str = "x-amz-server-side-encryption-customer-key";
        const SOURCES: &str = "x-amz-copy-source-server-side-encryption-customer-key";
        headers.insert(KEY, HeaderValue::from_static("c2VjcmV0"));
        headers.insert(SOURCES, HeaderValue::from_static("c2VjcmV0"));
        let query = format!("a=b&X-{}=c2VjcmV0", &KEY[2..]);
        let line = AccessLine {
            query: Some(&query),
            ..line(&headers, &style)
        };
        let text = line.to_string();
        assert!(
            !text.contains("c2VjcmV0") && !line.path_and_query().contains("c2Vj"),
            "{text}"
        );
        assert!(text.contains("X-Auth-Key:%20a-key-that-is-lo..."), "{text}");
        assert!(!text.contains("signature"), "{text}");
    }

    proptest! {
        #[test]
        fn always_one_line_of_fields(
            path in "\\PC*", query in "\\PC*", agent in prop::collection::vec(any::<u8>(), 0..30), info in "\\PC*"
        ) {
            let mut headers = HeaderMap::new();
            if let Ok(agent) = HeaderValue::from_bytes(&agent) {
                headers.insert("user-agent", agent.clone());
                headers.insert("x-forwarded-for", agent);
            }
            let style = Style { headers: true, ..Style::default() };
            let line = AccessLine { path: &format!("/{path}"), query: Some(&query), info: &info, ..line(&headers, &style) };
            let text = line.to_string();
            prop_assert!(text.is_ascii() && !text.contains('\n'));
            prop_assert_eq!(text.split(' ').count(), 22);
        }
    }
}
