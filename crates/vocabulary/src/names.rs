//! Names of accounts, containers and objects, and the URL paths that carry them.
//!
//! Always holds: a name is valid UTF-8, not empty, without NUL unless it is a reserved name
//! ([`RESERVED`]), and an account or container name has no slash. Length limits are checked by
//! [`crate::Limits`], which a cluster may configure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode, utf8_percent_encode};
use std::borrow::Cow;
use std::iter;

/// Names that begin with this character belong to Swift itself; clients cannot spell them.
pub const RESERVED: char = '\0';

/// What Python's `urllib.parse.quote` leaves as it is: letters, digits and `_.-~/`.
pub const QUOTED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'.')
    .remove(b'-')
    .remove(b'~')
    .remove(b'/');

/// An account, a container in it, or an object in that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntityPath {
    /// The account; never empty.
    pub account: String,
    /// The container, for containers and objects.
    pub container: Option<String>,
    /// The object; only with a container. May hold slashes.
    pub object: Option<String>,
}

/// Why a URL path names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Percent-decoded bytes are not UTF-8, or hold a NUL.
    #[error("Invalid UTF8 or contains NULL")]
    NotText,
    /// A segment that must not be empty is.
    #[error("the path has an empty account, container or object name")]
    Empty,
}

impl EntityPath {
    /// An account.
    pub fn account(account: impl Into<String>) -> Self {
        Self {
            account: account.into(),
            container: None,
            object: None,
        }
    }

    /// This account's `container`.
    pub fn with_container(&self, container: impl Into<String>) -> Self {
        Self {
            account: self.account.clone(),
            container: Some(container.into()),
            object: None,
        }
    }

    /// This container's `object`.
    pub fn with_object(&self, object: impl Into<String>) -> Self {
        Self {
            object: Some(object.into()),
            ..self.clone()
        }
    }

    /// Reads `a`, `a/c` or `a/c/o` from text that is decoded already. A trailing slash after an
    /// account or container adds nothing; inside an object name slashes are part of the name.
    pub fn split(path: &str) -> Result<Self, NameError> {
        let mut parts = path.splitn(3, '/');
        let account = parts.next().filter(|a| !a.is_empty()).ok_or(NameError::Empty)?;
        let container = parts.next().filter(|c| !c.is_empty());
        let object = parts.next().filter(|o| !o.is_empty());
        if container.is_none() && (object.is_some() || path.matches('/').count() > 1) {
            return Err(NameError::Empty);
        }
        Ok(Self {
            account: account.into(),
            container: container.map(Into::into),
            object: object.map(Into::into),
        })
    }

    /// `/a`, `/a/c` or `/a/c/o`, not encoded.
    pub fn path(&self) -> String {
        let parts = || iter::once(&self.account).chain(&self.container).chain(&self.object);
        let mut path = String::with_capacity(parts().map(|part| 1 + part.len()).sum());
        for part in parts() {
            path.push('/');
            path.push_str(part);
        }
        path
    }

    /// [`Self::path`], percent-encoded for a request line.
    pub fn quoted(&self) -> String {
        quote(&self.path())
    }
}

/// Percent-encodes text for a URL path, as Python's `quote` does.
pub fn quote(text: &str) -> String {
    quote_lazily(text).into_owned()
}

/// The same, without a copy where nothing has to be encoded.
pub fn quote_lazily(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, QUOTED).into()
}

/// What is percent-encoded in any spelling, in the one of [`quote`]; it need not be text.
pub fn requote(quoted: &str) -> String {
    let bytes: Vec<u8> = percent_decode(quoted.as_bytes()).collect();
    percent_encode(&bytes, QUOTED).to_string()
}

/// Percent-decodes a URL path or query value; refuses what is not UTF-8. NUL is for the caller to judge.
pub fn unquote(text: &str) -> Result<String, NameError> {
    percent_decode(text.as_bytes())
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| NameError::NotText)
}

/// The value of `key` in a query string, decoded (`+` is a space). The last one wins, as in Swift.
pub fn query_value(query: &str, key: &str) -> Option<Result<String, NameError>> {
    query
        .split('&')
        .filter_map(|pair| {
            let (k, v) = pair.split_once('=').unwrap_or((pair, ""));
            let k = percent_decode(k.as_bytes()).decode_utf8().ok()?;
            (k == key).then_some(v)
        })
        .next_back()
        .map(|v| unquote(&v.replace('+', " ")))
}

/// Whether this path of a full address, as it is written, names a container by Swift's API: `/v1/ACCOUNT/CONTAINER`,
/// perhaps behind one plain word (`/swift/v1/…`). With an object's name behind it, it is then no path of a storage
/// server, `/DEVICE/PARTITION/ACCOUNT/…`: a version is no partition. A word that has a slash when it is decoded is
/// none, as servers decode before they split.
pub fn is_path_of_container(path: &str) -> bool {
    let words: Vec<&str> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
    let is_version = |word: &str| {
        let digits = word.strip_prefix('v').unwrap_or_default();
        let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        digits.split('.').count() <= 2 && digits.split('.').all(is_number)
    };
    let is_plain = |word: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !word.is_empty() && word.bytes().all(is_plain)
    };
    let is_name = |word: &str| {
        let decoded = unquote(word);
        decoded.is_ok_and(|name| !matches!(&*name, "" | "." | "..") && !name.contains(['/', '\0']))
    };
    match words[..] {
        [version, account, container] => is_version(version) && is_name(account) && is_name(container),
        [before, version, account, container] => {
            is_plain(before) && is_version(version) && is_name(account) && is_name(container)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splits_paths() {
        let object = EntityPath::split("a/c/o/p/").unwrap();
        assert_eq!(
            (object.container.as_deref(), object.object.as_deref()),
            (Some("c"), Some("o/p/"))
        );
        assert_eq!(EntityPath::split("a/").unwrap(), EntityPath::account("a"));
        assert_eq!(EntityPath::split("a/c/").unwrap().object, None);
        for bad in ["", "/c", "a//o", "a//"] {
            assert_eq!(EntityPath::split(bad), Err(NameError::Empty), "{bad}");
        }
        assert_eq!(object.path(), "/a/c/o/p/");
    }

    #[test]
    fn quotes_as_python_does() {
        assert_eq!(
            quote("/a b/ö%~+&=:@,'\"\n"),
            "/a%20b/%C3%B6%25~%2B%26%3D%3A%40%2C%27%22%0A"
        );
        assert!(matches!(quote_lazily("/v1/a~b"), Cow::Borrowed("/v1/a~b")));
        assert_eq!(quote_lazily("ab c"), "ab%20c");
        assert_eq!(unquote("%C3%28"), Err(NameError::NotText));
        assert_eq!(
            query_value("limit=1&prefix=a+b%2B&limit=2", "limit"),
            Some(Ok("2".into()))
        );
        assert_eq!(query_value("limit=1&prefix=a+b%2B", "prefix"), Some(Ok("a b+".into())));
        assert_eq!(query_value("a=1", "b"), None);
    }

    proptest! {
        #[test]
        fn quoting_is_inverse(text in "\\PC*") {
            prop_assert_eq!(unquote(&quote(&text)), Ok(text));
        }

        #[test]
        fn any_path_is_split_or_refused(text in "[a-z/%\\x00]*", query in "\\PC*") {
            let _ = EntityPath::split(&text);
            let _ = query_value(&query, "prefix");
        }
    }

    #[test]
    fn storage_servers_have_no_paths_of_containers() {
        for path in ["/v1/a/c", "/v1.0/AUTH_a/c", "/swift/v1/a/c%20d"] {
            assert!(is_path_of_container(path), "{path}");
        }
        for path in [
            "",
            "/",
            "v1/a/c",
            "/v1/a",
            "/v1/a/c/o",
            "/v1//c",
            "/v1/a/..",
            "/a/b/v1/a/c",
            "/sda1",
            "/sda1/17/AUTH_a",
            "/sda1/17/v1/a",
            "/x/a/c",
            "/v/a/c",
            "/v1./a/c",
            "/v1.0.0/a/c",
            "/sda1%2F17%2FAUTH_a%2Fc/v1/x/y",
            "/s.x/v1/a/c",
            "/v1/a%2Fb/c",
            "/v1/a/c%2fo",
            "/v1/a/%2e%2E",
            "/v1/a/c%00",
            "/v1/%ff/c",
        ] {
            assert!(!is_path_of_container(path), "{path}");
        }
    }
}
