//! The proxy's line about a request, in OpenStack's default format.
//!
//! ```text
//! client_ip remote_addr end_time.datetime method path protocol status_int referer user_agent
//! auth_token bytes_recvd bytes_sent client_etag transaction_id headers request_time source log_info
//! start_time end_time policy_index access_user_id
//! ```
//!
//! Always holds: one line, twenty-two fields, no spaces within one.
//! One difference from OpenStack, on purpose: it encodes the bytes of headers beyond ASCII twice over
//! (`ü` becomes `%C3%83%C2%BC`); here they are encoded once (`%C3%BC`).

use crate::fields::{Count, Moment, Nanoseconds, Obscured, Policy, Quoted, TwiceQuoted};
use http::header::{AUTHORIZATION, ETAG, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

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

/// A request that is over. [`Display`] is its line.
#[derive(Clone, Copy)]
pub struct AccessLine<'a> {
    /// Who the connection is from, without port; empty when unknown.
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
    /// `account:user`, empty for nobody.
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
}

impl Default for Style {
    fn default() -> Self {
        Self {
            reveal: 16,
            headers: false,
            headers_only: Vec::new(),
        }
    }
}

impl From<&settings::ProxyLoggingSettings> for Style {
    fn from(settings: &settings::ProxyLoggingSettings) -> Self {
        let names = settings.access_log_headers_only.iter();
        Self {
            reveal: settings.reveal_sensitive_prefix,
            headers: settings.access_log_headers,
            headers_only: names.map(|n| n.to_ascii_lowercase()).collect(),
        }
    }
}

impl Display for AccessLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ended = Moment {
            seconds: self.end.as_secs(),
            separators: ('/', '/'),
        };
        write!(
            f,
            "{} {} {ended} {} {}",
            Quoted(self.client()),
            Quoted(self.remote.as_bytes()),
            Quoted(self.method.as_bytes()),
            TwiceQuoted(self.path),
        )?;
        self.write_query(f)?;
        let header = |name: &HeaderName| Quoted(self.headers.get(name).map_or(b"", |v| v.as_bytes()));
        write!(
            f,
            " {} {} {} {} ",
            self.protocol,
            self.status,
            header(&REFERER),
            header(&USER_AGENT)
        )?;
        self.write_token(f)?;
        write!(
            f,
            " {} {} {} {} ",
            Count(self.received),
            Count(self.sent),
            header(&ETAG),
            Quoted(self.transaction_id.as_bytes())
        )?;
        self.write_headers(f)?;
        write!(
            f,
            " {:.4} {} {} {} {} {} {}",
            self.end.saturating_sub(self.start).as_secs_f64(),
            Quoted(self.source.as_bytes()),
            Quoted(self.info.as_bytes()),
            Nanoseconds(self.start),
            Nanoseconds(self.end),
            Policy(self.policy),
            Quoted(self.user.as_bytes()),
        )
    }
}

impl AccessLine<'_> {
    /// Whom the proxies in front name, or who the connection is from.
    fn client(&self) -> &[u8] {
        let named = |name: &str| self.headers.get(name).map(|v| v.as_bytes()).filter(|v| !v.is_empty());
        let first = |list: &'_ [u8]| list.iter().position(|b| *b == b',').unwrap_or(list.len());
        match (named("x-cluster-client-ip"), named("x-forwarded-for")) {
            (Some(client), _) => client,
            (None, Some(list)) => list[..first(list)].trim_ascii(),
            (None, None) => self.remote.as_bytes(),
        }
    }

    fn write_query(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(query) = self.query.filter(|q| !q.is_empty()) else {
            return Ok(());
        };
        for (index, pair) in query.split('&').enumerate() {
            f.write_str(if index == 0 { "%3F" } else { "%26" })?;
            match pair.split_once('=') {
                Some((name, value)) if SECRET_PARAMETERS.contains(&name) => {
                    write!(f, "{name}%3D{}", self.obscured(value.as_bytes()))?;
                }
                _ if pair.is_empty() => {}
                _ => write!(f, "{}", Quoted(pair.as_bytes()))?,
            }
        }
        Ok(())
    }

    fn write_token(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.headers.get("x-auth-token").filter(|t| !t.is_empty()) {
            None => f.write_str("-"),
            Some(token) => Display::fmt(&self.obscured(token.as_bytes()), f),
        }
    }

    fn write_headers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let only = &self.style.headers_only;
        let wanted = |name: &HeaderName| only.is_empty() || only.iter().any(|n| n == name.as_str());
        let mut shown = self
            .headers
            .iter()
            .filter(|(name, _)| self.style.headers && wanted(name))
            .peekable();
        if shown.peek().is_none() {
            return f.write_str("-");
        }
        for (index, (name, value)) in shown.enumerate() {
            let gap = if index == 0 { "" } else { "%0A" };
            let secret = SECRET_HEADERS.contains(&name.as_str()) || name == AUTHORIZATION || value.is_sensitive();
            write!(f, "{gap}{}:%20", Quoted(name.as_str().as_bytes()))?;
            match value.as_bytes() {
                b"" => {}
                bytes if secret => Display::fmt(&self.obscured(bytes), f)?,
                bytes => Display::fmt(&Quoted(bytes), f)?,
            }
        }
        Ok(())
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
        let text = line(&headers, &style).to_string();
        assert!(text.contains("x-auth-key:%20a-key-that-is-lo..."), "{text}");
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
