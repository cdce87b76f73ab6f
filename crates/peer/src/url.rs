//! Addresses of servers that are no storage nodes: `http://host:port/path`.

use http::Uri;

/// An address of a server and a path there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Url {
    pub(crate) over_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    path: String,
}

impl Url {
    /// Reads `http://host:port/path`; nothing when it is no such address.
    pub fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.trim().parse().ok()?;
        let over_tls = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        Some(Self {
            over_tls,
            host: uri.host()?.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(if over_tls { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Whether it begins with `https`.
    pub fn is_over_tls(&self) -> bool {
        self.over_tls
    }

    /// A name or an address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; the scheme's own where none was given.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, without a slash at its end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same server with `more` behind the path.
    pub fn with(&self, more: &str) -> Self {
        self.with_path(format!("{}{more}", self.path))
    }

    /// The same server with another path.
    pub fn with_path(&self, path: String) -> Self {
        Self { path, ..self.clone() }
    }

    /// `host:port`, as the `Host` header has it.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("http://k:5000", Some("k:5000")),
            ("http://k:5000/v3/", Some("k:5000/v3")),
            ("https://k/identity", Some("k:443/identity")),
            (" http://k/v2.0", Some("k:80/v2.0")),
            ("http://[::1]:5000/", Some("[::1]:5000")),
            ("k:5000", None),
            ("ftp://k", None),
        ] {
            let shown = Url::parse(text).map(|url| format!("{}{}", url.authority(), url.path()));
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "(https?://)?\\PC*") {
            let _ = Url::parse(&text);
        }
    }
}
