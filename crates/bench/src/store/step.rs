//! One request of an operation that takes several, for either API: its verb, its path, its query.
//!
//! Always holds: for S3 everything that must be signed is: the query, sorted, and headers that begin with `x-amz-`.

use super::http_store::{Dialect, HttpStore};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::io::Write;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// What a value of a query has as it is.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request.
pub(super) struct StepRequest<'a> {
    pub verb: &'static str,
    pub container: &'a str,
    /// Empty for requests to the container.
    pub object: &'a str,
    /// Names and values, sorted by names.
    pub query: &'a [(&'a str, &'a str)],
    /// Names in small letters, sorted.
    pub headers: &'a [(&'a str, &'a str)],
    /// Of the body, where there is one.
    pub length: Option<u64>,
}

impl StepRequest<'_> {
    /// Request line and headers. An object server is asked for single requests only.
    pub fn head(&self, store: &HttpStore, now: Timestamp, head: &mut Vec<u8>) {
        let (base, host) = (store.url.path(), store.url.authority());
        let path = match self.object {
            "" => format!("{base}/{}", quote(self.container)),
            object => format!("{base}/{}/{}", quote(self.container), quote(object)),
        };
        let encoded = |text: &str| utf8_percent_encode(text, QUERY).to_string();
        let query: Vec<String> = (self.query.iter())
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        let query = query.join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        head.clear();
        // Writing to memory does not fail.
        let _ = write!(head, "{} {path}{mark}{query} HTTP/1.1\r\nHost: {host}\r\n", self.verb);
        let signature = match &store.dialect {
            Dialect::Swift(swift) => swift.user_header(),
            Dialect::S3(s3) => {
                let is_signed = |header: &&(&str, &str)| header.0.starts_with("x-amz-");
                let signed: Vec<_> = self.headers.iter().filter(is_signed).copied().collect();
                s3.sign(self.verb, &path, &query, &host, now, &signed)
            }
            Dialect::DirectObjectServer(_) => String::new(),
        };
        head.extend_from_slice(signature.as_bytes());
        for (name, value) in self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if let Some(length) = self.length {
            let _ = write!(head, "Content-Length: {length}\r\n");
        }
        head.extend_from_slice(b"\r\n");
    }
}
