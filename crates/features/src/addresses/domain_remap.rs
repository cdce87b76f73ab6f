//! Accounts and containers named by the host: `photos.AUTH_test.example.com/cat.jpg`.
//!
//! Swift's `domain_remap`. Of requests whose `Host` is below one of the storage domains it makes the path
//! that they mean. Always holds: the path that the client sent stays in `raw_path` (redirects lead there);
//! hosts that do not name an account of a known reseller pass unchanged.

use http::header::HOST;
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde_json::{Value, json};
use settings::gateway_filters::DomainRemapSettings;

/// Swift's `domain_remap`.
pub struct DomainRemap {
    /// Each with a dot in front.
    domains: Vec<String>,
    path_root: String,
    prefixes: Vec<String>,
    default_prefix: Option<String>,
    mangle: bool,
}

/// What a host names.
#[derive(Debug, PartialEq)]
enum Named {
    /// Nothing of ours.
    Nothing,
    /// Too many parts.
    TooMuch,
    /// An account, and perhaps a container in it (else empty).
    Place { account: String, container: String },
}

impl DomainRemap {
    /// With its configuration.
    pub fn new(settings: DomainRemapSettings) -> Self {
        let dotted = |domain: &String| format!(".{}", domain.trim_start_matches('.'));
        Self {
            domains: settings.storage_domain.iter().map(dotted).collect(),
            path_root: settings.path_root.trim_matches('/').to_owned(),
            prefixes: settings.reseller_prefixes,
            default_prefix: settings.default_reseller_prefix,
            mangle: settings.mangle_client_paths,
        }
    }

    fn named_by(&self, request: &ClientRequest) -> Named {
        let host = request.headers.get(HOST);
        let host = host.and_then(|host| std::str::from_utf8(host.as_bytes()).ok());
        host.map_or(Named::Nothing, |host| self.named(host))
    }

    fn named(&self, host: &str) -> Named {
        let name = match host.rsplit_once(':') {
            Some((name, _)) => name,
            None => host,
        };
        let Some(name) = self
            .domains
            .iter()
            .find_map(|domain| name.strip_suffix(domain.as_str()))
        else {
            return Named::Nothing;
        };
        let parts: Vec<&str> = name.trim_end_matches('.').split('.').collect();
        let (container, account) = match parts[..] {
            [account] => ("", account),
            [container, account] => (container, account),
            _ => return Named::TooMuch,
        };
        match self.account(account) {
            Some(account) => Named::Place {
                account,
                container: container.to_owned(),
            },
            None => Named::Nothing,
        }
    }

    /// The account as it is spelled in Swift: browsers send hosts in lower case, and no underscores.
    fn account(&self, named: &str) -> Option<String> {
        let account = match named.contains('_') {
            true => named.to_owned(),
            false => named.replacen('-', "_", 1),
        };
        if self.prefixes.is_empty() {
            return Some(account);
        }
        let (prefix, rest) = account.split_at(account.find('_').unwrap_or(account.len()));
        let known = self.prefixes.iter().find(|known| known.eq_ignore_ascii_case(prefix));
        match (known, &self.default_prefix) {
            (Some(known), _) => Some(format!("{known}{rest}")),
            (None, Some(default)) => Some(format!("{default}_{named}")),
            (None, None) => None,
        }
    }

    fn path(&self, account: &str, container: &str, sent: &str) -> String {
        let mut rest = sent;
        if self.mangle
            && let Some(inner) = sent
                .strip_prefix('/')
                .and_then(|sent| sent.strip_prefix(&*self.path_root))
            && (inner.is_empty() || inner.starts_with('/'))
        {
            rest = inner;
        }
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        match container {
            "" => format!("/{}/{account}/{rest}", self.path_root),
            container => format!("/{}/{account}/{container}/{rest}", self.path_root),
        }
    }
}

#[async_trait::async_trait]
impl Feature for DomainRemap {
    fn name(&self) -> &'static str {
        "domain_remap"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        vec![("domain_remap", json!({"default_reseller_prefix": self.default_prefix}))]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        self.named_by(request) != Named::Nothing
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        match self.named_by(&request) {
            Named::Nothing => {}
            Named::TooMuch => {
                let refusal = reply::plain(400, "Bad domain in host header");
                return if request.method == http::Method::HEAD {
                    refusal.map(|_| peer::Body::empty())
                } else {
                    refusal
                };
            }
            Named::Place { account, container } => {
                let path = self.path(&account, &container, &request.path);
                request.take_path(path);
            }
        }
        next.run(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, with_headers};
    use proptest::prelude::*;
    use settings::declare::{Options, Scope};

    fn remap(change: impl Fn(&mut DomainRemapSettings)) -> DomainRemap {
        let mut settings = DomainRemapSettings::read(&Scope::empty()).unwrap();
        change(&mut settings);
        DomainRemap::new(settings)
    }

    fn to(remap: &DomainRemap, host: &str, path: &str) -> String {
        match remap.named(host) {
            Named::Nothing => path.to_owned(),
            Named::TooMuch => "Bad domain".into(),
            Named::Place { account, container } => remap.path(&account, &container, path),
        }
    }

    #[test]
    fn hosts_name_what_openstack_says() {
        let usual = remap(|_| {});
        for (host, path, expected) in [
            ("example.com", "/", "/"),
            ("example.com:8080", "/", "/"),
            ("AUTH_a.example.com", "/", "/v1/AUTH_a/"),
            ("auth-uuid.example.com:80", "/", "/v1/AUTH_uuid/"),
            ("auth-a-b.example.com", "/", "/v1/AUTH_a-b/"),
            ("c.AUTH_a.example.com", "/", "/v1/AUTH_a/c/"),
            ("x.y.c.AUTH_a.example.com", "/", "Bad domain"),
            ("AUTH_a.example.com", "/v1", "/v1/AUTH_a/v1"),
            ("c.AUTH_a.example.com", "//v1", "/v1/AUTH_a/c//v1"),
            ("c.AUTH_a.example.com", "/v1//v1", "/v1/AUTH_a/c/v1//v1"),
            ("c.AUTH_a.example.com", "/obj/", "/v1/AUTH_a/c/obj/"),
            ("c.aexample.com", "/dontchange", "/dontchange"),
            ("uuid.example.com", "/x", "/x"),
        ] {
            assert_eq!(to(&usual, host, path), expected, "{host}{path}");
        }
        let two = remap(|s| s.storage_domain = vec!["foo.com".into(), ".bar.com".into()]);
        assert_eq!(to(&two, "AUTH_a.bar.com", "/c"), "/v1/AUTH_a/c");
        assert_eq!(to(&two, "AUTH_a.example.com", "/c"), "/c");
        let none = remap(|s| s.reseller_prefixes = vec![]);
        assert_eq!(to(&none, "c.uuid.example.com", "/t"), "/v1/uuid/c/t");
        let foo = remap(|s| s.default_reseller_prefix = Some("FOO".into()));
        assert_eq!(to(&foo, "uuid.example.com", "/t"), "/v1/FOO_uuid/t");
    }

    #[test]
    fn paths_that_name_the_root_may_be_mangled() {
        let mangling = remap(|s| s.mangle_client_paths = true);
        for (path, expected) in [
            ("/v1", "/v1/AUTH_a/c/"),
            ("//v1", "/v1/AUTH_a/c//v1"),
            ("/v1//v1", "/v1/AUTH_a/c//v1"),
            ("/v1/obj", "/v1/AUTH_a/c/obj"),
            ("/v1obj", "/v1/AUTH_a/c/v1obj"),
        ] {
            assert_eq!(to(&mangling, "c.AUTH_a.example.com", path), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn requests_are_about_what_the_host_names() {
        let core = Answer::new(|request| {
            let entity = request.entity.unwrap();
            reply::html(
                200,
                format!("{} {} {}", request.api_version, entity.path(), request.raw_path),
            )
        });
        let asked = with_headers(request("GET", "/%C3%BC"), &[("host", "c.auth-a.example.com")]);
        let answer = ask(remap(|_| {}), asked, core).await;
        assert_eq!(
            &answer.body().as_whole().unwrap()[..],
            "v1 /AUTH_a/c/ü /%C3%BC".as_bytes()
        );
    }

    proptest! {
        #[test]
        fn any_host_is_survived(host in "\\PC{0,20}", path in "\\PC{0,9}") {
            let mangling = remap(|s| s.mangle_client_paths = true);
            to(&mangling, &host, &path);
            to(&mangling, &format!("{host}.example.com"), &path);
        }
    }
}
