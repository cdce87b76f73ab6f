//! What the gateway asks of any authenticator, in the order it asks.
//!
//! 1. [`Authenticator::serve`]: is the request for the authenticator itself (`/auth/v1.0`)?
//! 2. [`Authenticator::identify`]: who is asking? A token that is not good ends the request here.
//! 3. [`Authenticator::authorize`]: may they? Asked by the verb once it knows the container's ACL.

use crate::access_key::KeyHolder;
use crate::decide::{AccountAclSource, Decision, RequestFacts};
use crate::signed_request::{SignatureRefusal, SignedIdentity, SignedRequest};
use crate::user::Identity;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::borrow::Cow;
use std::sync::Arc;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// A request as far as an authenticator needs it. Not shown in debug output: its headers hold secrets.
#[derive(Clone, Copy)]
pub struct AuthRequest<'a> {
    /// The verb.
    pub method: &'a Method,
    /// The path of the URL, percent-decoded.
    pub path: &'a str,
    /// As the client sent them.
    pub headers: &'a HeaderMap,
    /// `http` or `https`, as the request came in.
    pub scheme: &'a str,
    /// The `Host` header, or the address it came to.
    pub host: &'a str,
    /// The time.
    pub now: Timestamp,
    /// Makes random bytes fit for a token.
    pub random: &'a (dyn Fn() -> [u8; 16] + Sync),
}

/// An answer of the authenticator itself; the body is the usual one of the status.
#[derive(Debug, Clone)]
pub struct AuthReply {
    /// The status.
    pub status: StatusCode,
    /// Headers to add.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The user that was named, for the access log.
    pub user: Option<String>,
}

/// The token is not valid: answer 401 with this header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unauthorized(pub HeaderValue);

/// Identifies the user of a request and decides what the user may do.
#[async_trait::async_trait]
pub trait Authenticator: Send + Sync {
    /// Answers requests for the authenticator itself; nothing for all others.
    async fn serve(&self, request: &AuthRequest<'_>) -> Option<AuthReply>;

    /// The user whose token is sent; `None` when the request has no token of ours.
    async fn identify(&self, request: &AuthRequest<'_>) -> Result<Option<Arc<Identity>>, Unauthorized>;

    /// The user who has signed a request with an access key of this authenticator.
    fn identify_signed(&self, _signed: &SignedRequest) -> Result<SignedIdentity, SignatureRefusal> {
        Err(SignatureRefusal::UnknownKey)
    }

    /// The user for whom an access key of this account was made, as of now; nothing when there is no such user of the
    /// account (any more).
    fn identify_holder(&self, _holder: &KeyHolder, _account: &str) -> Option<Arc<Identity>> {
        None
    }

    /// Whether the user may do what the request asks.
    fn authorize(
        &self,
        facts: &RequestFacts<'_>,
        identity: Option<&Identity>,
        container_acl: Option<&str>,
        account_acl: AccountAclSource<'_>,
    ) -> Decision;

    /// Its entry in `/info`: name and content.
    fn info(&self) -> (&'static str, serde_json::Value);
}

/// `Swift realm="AUTH_test"`: the value of `WWW-Authenticate` for a percent-decoded path.
pub fn www_authenticate(path: &str) -> HeaderValue {
    realm(path.split('/').nth(2).unwrap_or_default())
}

fn realm(account: &str) -> HeaderValue {
    let name = if account.is_empty() { "unknown" } else { account };
    let text = format!("Swift realm=\"{}\"", quote(name));
    // Percent-encoded text is always a header value.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("Swift realm=\"unknown\""))
}

/// The same where OpenStack does not encode: for the account of a token request.
pub(crate) fn realm_as_given(account: &str) -> HeaderValue {
    let name = if account.is_empty() { "unknown" } else { account };
    let text = format!("Swift realm=\"{name}\"");
    HeaderValue::from_bytes(text.as_bytes()).unwrap_or_else(|_| realm(account))
}

/// The text of the first of these headers that is there; nothing when it is empty. Sent several times they are joined,
/// as OpenStack's HTTP server joins them.
pub fn header_text<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<Cow<'a, str>> {
    let name = names.iter().find(|name| headers.contains_key(**name))?;
    let mut values = headers
        .get_all(*name)
        .iter()
        .map(|value| std::str::from_utf8(value.as_bytes()));
    let first = values.next()?.ok()?;
    let mut text = Cow::Borrowed(first);
    for more in values {
        let joined = text.to_mut();
        joined.push(',');
        joined.push_str(more.ok()?);
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_sent_twice_are_joined() {
        let mut headers = HeaderMap::new();
        headers.append("x-auth-token", HeaderValue::from_static("a"));
        headers.append("x-storage-token", HeaderValue::from_static("s"));
        assert_eq!(
            header_text(&headers, &["x-auth-token", "x-storage-token"]).as_deref(),
            Some("a")
        );
        headers.append("x-auth-token", HeaderValue::from_static("a"));
        assert_eq!(header_text(&headers, &["x-auth-token"]).as_deref(), Some("a,a"));
        assert_eq!(header_text(&headers, &["x-service-token"]), None);
    }

    #[test]
    fn realms_as_openstack_writes_them() {
        for (path, expected) in [
            ("/v1/AUTH_test/c/o", "Swift realm=\"AUTH_test\""),
            ("/v1/AUTH_\"x", "Swift realm=\"AUTH_%22x\""),
            ("/v1/AUTH_ü/c", "Swift realm=\"AUTH_%C3%BC\""),
            ("/v1/a\r\nX: y", "Swift realm=\"a%0D%0AX%3A%20y\""),
            ("/v1", "Swift realm=\"unknown\""),
            ("/", "Swift realm=\"unknown\""),
            ("", "Swift realm=\"unknown\""),
        ] {
            assert_eq!(www_authenticate(path), expected);
        }
    }
}
