//! `GET /auth/v1.0`: a name and a key for a token.
//!
//! Two forms, as in OpenStack: `<prefix>v1.0` (or `auth`) with `X-Auth-User: account:user`, and
//! `<prefix>v1/<account>/auth` with `X-Storage-User: user`. This file only reads the request.

use crate::authenticator::AuthRequest;
use http::{Method, StatusCode};

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenRequest<'a> {
    /// A token for this user with this key.
    Token {
        account: &'a str,
        user: &'a str,
        key: &'a str,
    },
    /// Not enough to know who; the account for the realm, if it was named.
    Anonymous { account: &'a str },
    /// Not something that is served.
    Refuse(StatusCode),
}

/// Reads a request whose path is below the prefix; `rest` is what follows it.
pub(crate) fn read<'a>(request: &AuthRequest<'a>, rest: &'a str) -> TokenRequest<'a> {
    if request.method != Method::GET {
        return TokenRequest::Refuse(StatusCode::METHOD_NOT_ALLOWED);
    }
    let segments: Vec<&str> = rest.splitn(4, '/').collect();
    let header = |name: &str| request.headers.get(name).and_then(|v| v.to_str_or_utf8());
    let auth = (header("x-auth-user"), header("x-auth-key"));
    let storage = (header("x-storage-user"), header("x-storage-pass"));
    match segments.as_slice() {
        ["", ..] | [_, "", _, ..] => TokenRequest::Refuse(StatusCode::NOT_FOUND),
        ["v1", account, "auth"] => {
            let user = match storage.0.filter(|u| !u.is_empty()) {
                Some(user) => Some(user),
                None => auth
                    .0
                    .and_then(|u| u.split_once(':'))
                    .filter(|(a, _)| a == account)
                    .map(|(_, u)| u),
            };
            complete(account, user, storage.1.or(auth.1))
        }
        ["auth" | "v1.0", ..] => {
            let name = auth.0.filter(|u| !u.is_empty()).or(storage.0);
            match name.and_then(|n| n.split_once(':')) {
                Some((account, user)) => complete(account, Some(user), auth.1.or(storage.1)),
                None => TokenRequest::Anonymous { account: "" },
            }
        }
        _ => TokenRequest::Refuse(StatusCode::BAD_REQUEST),
    }
}

fn complete<'a>(account: &'a str, user: Option<&'a str>, key: Option<&'a str>) -> TokenRequest<'a> {
    match (user, key) {
        (Some(user), Some(key)) if !account.is_empty() && !user.is_empty() && !key.is_empty() => {
            TokenRequest::Token { account, user, key }
        }
        _ => TokenRequest::Anonymous { account },
    }
}

/// Header values are UTF-8 in Swift, not only ASCII.
trait HeaderText {
    fn to_str_or_utf8(&self) -> Option<&str>;
}

impl HeaderText for http::HeaderValue {
    fn to_str_or_utf8(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }
}
