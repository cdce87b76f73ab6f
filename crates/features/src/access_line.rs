//! The line that the access log has for a request, in OpenStack Swift's format.
//!
//! Fields are separated by spaces, percent-encoded, `-` when empty:
//! `client remote day/month/year/hour/minute/second method path protocol status referer agent token
//! received sent etag transaction headers seconds source remarks start end policy user`.
//! Always holds: a line has these 22 fields and no line break, whatever a client sent; of a token no
//! more than configured is shown. Source: `doc/source/logs.rst` and observed lines.

use crate::ClientRequest;
use crate::notes::Notes;
use http::{HeaderMap, HeaderName};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use settings::ProxyLoggingSettings;
use std::fmt::Write;
use std::time::Duration;
use vocabulary::names::quote;
use vocabulary::{PolicyIndex, Timestamp, http_date};

/// What stays as it is in a field: letters, digits and `_.-~/:`.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'.')
    .remove(b'-')
    .remove(b'~')
    .remove(b'/')
    .remove(b':');

/// OpenStack's server says so of every request, whatever the client spoke.
const PROTOCOL: &str = "HTTP/1.0";

/// Headers of which only the beginning is shown.
const SECRET: [&str; 7] = [
    "authorization",
    "cookie",
    "x-auth-key",
    "x-auth-token",
    "x-service-token",
    "x-storage-pass",
    "x-storage-token",
];

/// What is known when a request comes in.
pub struct Begun {
    /// `client remote`.
    who: String,
    /// `method path protocol`.
    what: String,
    /// `referer agent token`.
    caller: String,
    etag: String,
    trans_id: String,
    headers: String,
    /// When, on the world's clock and as a timestamp.
    began: (Duration, Timestamp),
    notes: Notes,
}

/// What is known when it is over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Over {
    /// What the client got, or would have.
    pub status: u16,
    /// Bytes of the request's body that were taken.
    pub received: u64,
    /// Bytes of the response's body that were delivered.
    pub sent: u64,
    /// The policy that the response named.
    pub policy: Option<PolicyIndex>,
    /// When, on the world's clock.
    pub at: Duration,
}

impl Begun {
    /// Of a request that comes in.
    pub fn new(request: &ClientRequest, settings: &ProxyLoggingSettings) -> Self {
        let reveal = settings.reveal_sensitive_prefix;
        let header = |name: &str| request.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        let remote = request.from.ip().to_string();
        let mut path = quote(&request.path);
        if !request.query.is_empty() {
            path.push('?');
            path.push_str(&request.query);
        }
        let token = shortened(header("x-auth-token"), reveal);
        let caller = [field(header("referer")), field(header("user-agent")), field(&token)];
        Self {
            who: format!(
                "{} {remote}",
                field(client(&request.headers).unwrap_or(remote.as_bytes()))
            ),
            what: format!(
                "{} {} {PROTOCOL}",
                field(request.method.as_str().as_bytes()),
                field(path.as_bytes())
            ),
            caller: caller.join(" "),
            etag: field(header("etag")),
            trans_id: field(request.trans_id.as_bytes()),
            headers: field(&shown_headers(&request.headers, settings)),
            began: request.began,
            notes: request.notes.clone(),
        }
    }

    /// The line, now that it is over.
    pub fn line(&self, over: &Over) -> String {
        let noted = self.notes.read();
        let took = over.at.saturating_sub(self.began.0);
        let start = self.began.1;
        let end = Timestamp::from_micros(start.ticks() * 10 + u64::try_from(took.as_micros()).unwrap_or(0));
        let policy = over
            .policy
            .or(noted.policy)
            .map_or("-".into(), |policy| policy.to_string());
        let mut line = String::with_capacity(512);
        // Writing to a string cannot fail.
        let _ = write!(
            line,
            "{} {} {} {} {} {} {} {} {} {} {:.4} {} {} {}0000 {}0000 {policy} {}",
            self.who,
            day_and_time(end),
            self.what,
            over.status,
            self.caller,
            count(over.received),
            count(over.sent),
            self.etag,
            self.trans_id,
            self.headers,
            took.as_secs_f64(),
            noted.source.unwrap_or("-"),
            field(noted.remarks.join(",").as_bytes()),
            start.normal(),
            end.normal(),
            field(noted.user.unwrap_or_default().as_bytes()),
        );
        line
    }
}

fn field(bytes: &[u8]) -> String {
    match bytes {
        b"" => "-".into(),
        _ => percent_encode(bytes, PLAIN).to_string(),
    }
}

fn count(bytes: u64) -> String {
    match bytes {
        0 => "-".into(),
        bytes => bytes.to_string(),
    }
}

/// `20/Nov/2026/12/07/20`.
fn day_and_time(time: Timestamp) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (year, month, day, hour, minute, second) = http_date::civil(time.seconds());
    let month = MONTHS.get(month as usize - 1).copied().unwrap_or("-");
    format!("{day:02}/{month}/{year:04}/{hour:02}/{minute:02}/{second:02}")
}

/// Who asks according to the proxies in front of us, if they say.
fn client(headers: &HeaderMap) -> Option<&[u8]> {
    let first = |name: &str| {
        let value = headers.get(name)?.as_bytes();
        let first = value.split(|b| *b == b',').next()?.trim_ascii();
        (!first.is_empty()).then_some(first)
    };
    first("x-cluster-client-ip").or_else(|| first("x-forwarded-for"))
}

fn shortened(secret: &[u8], reveal: usize) -> Vec<u8> {
    match secret.get(..reveal) {
        Some(shown) if shown.len() < secret.len() => [shown, b"..."].concat(),
        _ => secret.to_vec(),
    }
}

/// `Name: value` lines of the headers that are to be logged.
fn shown_headers(headers: &HeaderMap, settings: &ProxyLoggingSettings) -> Vec<u8> {
    let mut shown = Vec::new();
    if !settings.access_log_headers {
        return shown;
    }
    let only = &settings.access_log_headers_only;
    let wanted =
        |name: &HeaderName| only.is_empty() || only.iter().any(|o| o.trim().eq_ignore_ascii_case(name.as_str()));
    for (name, value) in headers.iter().filter(|(name, _)| wanted(name)) {
        if !shown.is_empty() {
            shown.push(b'\n');
        }
        let is_secret = SECRET.contains(&name.as_str());
        let reveal = if is_secret {
            settings.reveal_sensitive_prefix
        } else {
            usize::MAX
        };
        shown.extend_from_slice(title(name.as_str()).as_bytes());
        shown.extend_from_slice(b": ");
        shown.extend_from_slice(&shortened(value.as_bytes(), reveal));
    }
    shown
}

/// `x-auth-token` → `X-Auth-Token`.
fn title(name: &str) -> String {
    let mut begins = true;
    let letter = |c: char| {
        let shown = if begins { c.to_ascii_uppercase() } else { c };
        begins = !c.is_ascii_alphanumeric();
        shown
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{request, with_headers};
    use proptest::prelude::*;

    const HEADERS: &[(&str, &str)] = &[
        ("x-auth-token", "AUTH_tk0123456789abcdef"),
        ("user-agent", "my agent/1 \"x\""),
        ("referer", "http://r/ä b"),
        ("etag", "\"e t\""),
        ("host", "h:80"),
        ("x-forwarded-for", " 1.2.3.4 , 5.6.7.8"),
    ];

    fn settings(reveal: usize, headers: bool) -> ProxyLoggingSettings {
        ProxyLoggingSettings {
            reveal_sensitive_prefix: reveal,
            access_log_headers: headers,
            access_log_headers_only: vec!["Host".into(), " X-Auth-token".into()],
            ..ProxyLoggingSettings::default()
        }
    }

    fn line(asked: &ClientRequest, settings: &ProxyLoggingSettings) -> String {
        let over = Over {
            status: 201,
            received: 5,
            sent: 0,
            policy: None,
            at: Duration::from_micros(123_456),
        };
        Begun::new(asked, settings).line(&over)
    }

    #[test]
    fn lines_are_openstacks() {
        let asked = with_headers(request("PUT", "/v1/a/c/o%20%C3%A9%25:?x=%20&y"), HEADERS);
        asked.notes.set_user("test:tester");
        asked.notes.remark("x-delete-at:1");
        asked.notes.remark("a b");
        asked.notes.set_policy(PolicyIndex(1));
        assert_eq!(
            line(&asked, &settings(16, false)),
            "1.2.3.4 127.0.0.1 14/Nov/2023/22/13/20 PUT /v1/a/c/o%2520%25C3%25A9%2525%253A%3Fx%3D%2520%26y HTTP/1.0 201 \
             http://r/%C3%A4%20b my%20agent/1%20%22x%22 AUTH_tk012345678... 5 - %22e%20t%22 tx1 - 0.1235 - \
             x-delete-at:1%2Ca%20b 1700000000.000000000 1700000000.123450000 1 test:tester"
        );
        let bare = line(&request("GET", "/"), &settings(16, false));
        assert_eq!(
            bare,
            "127.0.0.1 127.0.0.1 14/Nov/2023/22/13/20 GET / HTTP/1.0 201 - - - 5 - - tx1 - 0.1235 - - \
             1700000000.000000000 1700000000.123450000 - -"
        );
    }

    #[test]
    fn secrets_are_shortened() {
        let asked = with_headers(request("GET", "/"), HEADERS);
        for (reveal, expected) in [(0, " ... "), (4, " AUTH... "), (1000, " AUTH_tk0123456789abcdef ")] {
            assert!(line(&asked, &settings(reveal, false)).contains(expected));
        }
        let shown = line(&asked, &settings(4, true));
        assert!(shown.contains(" X-Auth-Token:%20AUTH...%0AHost:%20h:80 "), "{shown}");
    }

    proptest! {
        #[test]
        fn any_request_makes_one_line_of_22_fields(path in "/[^\\x00]{0,20}", value in "[^\\x00-\\x08\\x0a-\\x1f\\x7f]{0,20}") {
            let mut asked = with_headers(request("GET", "/"), &[("user-agent", &value), ("etag", &value), ("x-auth-token", &value)]);
            asked.path = path;
            asked.query = value;
            let line = line(&asked, &settings(3, true));
            prop_assert_eq!(line.split(' ').count(), 22);
            prop_assert!(line.is_ascii() && !line.contains('\n'));
        }
    }
}
