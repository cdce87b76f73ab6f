//! `/info`: what this cluster can do, for clients, and a little more for its administrators.
//!
//! Stands last, in front of the core verbs (in Swift it belongs to the proxy itself).
//! An administrator signs the request with `admin_key`: `swiftinfo_sig` is the HMAC-SHA1 of
//! `METHOD\nEXPIRES\n/info`, `swiftinfo_expires` a time in the future.
//! Always holds: keys of capabilities are OpenStack's; signatures are compared in constant time.

use hmac::{Hmac, KeyInit, Mac};
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, HeaderValue, WWW_AUTHENTICATE};
use request_pipeline::{ClientRequest, Feature, Next, Response, cors, reply};
use serde_json::{Map, Value, json};
use settings::ProxySettings;
use sha1::Sha1;
use std::sync::Arc;
use vocabulary::{Limits, Policies};
use world::Clock;

/// The level of OpenStack Swift's API that is served, and who serves it. Sorts like the former.
pub const VERSION: &str = concat!("2.38.3+martlet.", env!("CARGO_PKG_VERSION"));

/// Answers `/info`.
pub struct SwiftInfo {
    exposed: bool,
    denied_hosts: Vec<String>,
    admin_key: String,
    for_clients: String,
    for_administrators: String,
    clock: Arc<dyn Clock>,
}

/// What there is to tell: one section per feature, each a set of named capabilities.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    for_all: Map<String, Value>,
    for_administrators: Map<String, Value>,
}

impl Capabilities {
    /// The section `swift`: limits, policies and what the proxy allows.
    pub fn of_core(proxy: &ProxySettings, limits: &Limits, policies: &Policies, hidden_prefix: &str) -> Self {
        let mut capabilities = Self::default();
        let section = json!({
            "version": VERSION,
            "strict_cors_mode": proxy.strict_cors_mode,
            "policies": shown_policies(policies),
            "allow_account_management": proxy.allow_account_management,
            "account_autocreate": proxy.account_autocreate,
            "allow_open_expired": proxy.allow_open_expired,
            "max_file_size": limits.max_file_size,
            "max_meta_name_length": limits.max_meta_name_length,
            "max_meta_value_length": limits.max_meta_value_length,
            "max_meta_count": limits.max_meta_count,
            "max_meta_overall_size": limits.max_meta_overall_size,
            "max_header_size": limits.max_header_size,
            "max_request_line": limits.max_request_line,
            "max_object_name_length": limits.max_object_name_length,
            "container_listing_limit": limits.container_listing_limit,
            "account_listing_limit": limits.account_listing_limit,
            "max_account_name_length": limits.max_account_name_length,
            "max_container_name_length": limits.max_container_name_length,
            "valid_api_versions": limits.valid_api_versions,
            "extra_header_count": limits.extra_header_count,
            "auto_create_account_prefix": hidden_prefix,
        });
        capabilities.add("swift", section);
        capabilities
    }

    /// Adds a feature's section.
    pub fn add(&mut self, feature: &str, section: Value) {
        self.for_all.insert(feature.into(), section);
    }

    /// Adds a feature's section that only administrators see.
    pub fn add_for_administrators(&mut self, feature: &str, section: Value) {
        self.for_administrators.insert(feature.into(), section);
    }

    /// All sections but these; a dot separates levels, as in `swift.policies`.
    fn without(&self, disallowed: &[String]) -> Map<String, Value> {
        let mut left = Value::Object(self.for_all.clone());
        for path in disallowed {
            let mut parent = Some(&mut left);
            let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
            for part in parents.split('.').filter(|part| !part.is_empty()) {
                parent = parent.and_then(|value| value.get_mut(part));
            }
            if let Some(Value::Object(fields)) = parent {
                fields.shift_remove(name);
            }
        }
        match left {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

fn shown_policies(policies: &Policies) -> Vec<Value> {
    let current = policies.iter().filter(|policy| !policy.deprecated);
    let show = |policy: &vocabulary::Policy| {
        let aliases: Vec<&str> = policy.names().collect();
        let mut shown = json!({"name": policy.name, "aliases": aliases.join(", ")});
        if policy.index == policies.default_policy().index {
            shown["default"] = Value::Bool(true);
        }
        shown
    };
    current.map(show).collect()
}

impl SwiftInfo {
    /// With everything the pipeline can do.
    pub fn new(proxy: &ProxySettings, capabilities: &Capabilities, clock: Arc<dyn Clock>) -> Self {
        let disallowed: Vec<String> = proxy
            .disallowed_sections
            .iter()
            .map(|path| path.trim().to_owned())
            .collect();
        let mut published = capabilities.without(&disallowed);
        let for_clients = pythonic::json(&Value::Object(published.clone()));
        let mut sorted = disallowed;
        sorted.sort();
        let mut for_administrators = capabilities.for_administrators.clone();
        for_administrators.insert("disallowed_sections".into(), json!(sorted));
        published.insert("admin".into(), Value::Object(for_administrators));
        Self {
            exposed: proxy.expose_info,
            denied_hosts: proxy.deny_host_headers.clone(),
            admin_key: proxy.admin_key.clone(),
            for_clients,
            for_administrators: pythonic::json(&Value::Object(published)),
            clock,
        }
    }

    fn tell(&self, request: &ClientRequest) -> Response {
        let param = |name| request.param(name).and_then(Result::ok).unwrap_or_default();
        let (signature, expires) = (param("swiftinfo_sig"), param("swiftinfo_expires"));
        let signed = !signature.is_empty() || !expires.is_empty();
        if !self.exposed || (signed && self.admin_key.is_empty()) {
            return reply::status_for(&request.method, 403);
        }
        let body = match signed {
            false => &self.for_clients,
            true if self.is_signed(request.method.as_str(), &signature, &expires) => &self.for_administrators,
            true => {
                let mut refusal = reply::status_for(&request.method, 401);
                let realm = HeaderValue::from_static("Swift realm=\"unknown\"");
                refusal.headers_mut().insert(WWW_AUTHENTICATE, realm);
                return refusal;
            }
        };
        let json = HeaderValue::from_static("application/json; charset=UTF-8");
        let mut response = reply::with_body(200, json, body.clone());
        if let Some(origin) = cors::origin(&request.headers) {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("x-trans-id"));
        }
        response
    }

    /// A client that may GET may HEAD.
    fn is_signed(&self, method: &str, signature: &str, expires: &str) -> bool {
        let Ok(expires) = expires.trim().parse::<u64>() else {
            return false;
        };
        let methods = if method == "HEAD" {
            &["HEAD", "GET"][..]
        } else {
            &["GET"]
        };
        let signed = methods
            .iter()
            .any(|method| verify(self.admin_key.as_bytes(), method, expires, signature));
        signed && expires > self.clock.now().seconds()
    }
}

fn verify(key: &[u8], method: &str, expires: u64, signature: &str) -> bool {
    let Some(signature) = vocabulary::hex::decode_lower(signature) else {
        return false;
    };
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else {
        return false;
    };
    mac.update(format!("{method}\n{expires}\n/info").as_bytes());
    mac.verify_slice(&signature).is_ok()
}

#[async_trait::async_trait]
impl Feature for SwiftInfo {
    fn name(&self) -> &'static str {
        "info"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        *request.path == *"/info"
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        if *request.path != *"/info" {
            return next.run(request).await;
        }
        if let Some(refusal) = request.denied_host(&self.denied_hosts) {
            return refusal;
        }
        let mut response = match request.method.as_str() {
            "GET" | "HEAD" => return self.tell(&request),
            "OPTIONS" => reply::html(200, String::new()),
            _ => reply::status(405),
        };
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, with_headers};
    use proptest::prelude::*;
    use vocabulary::{Policy, PolicyIndex};
    use world::clock::RealClock;

    fn info(change: impl FnOnce(&mut ProxySettings)) -> SwiftInfo {
        let mut proxy = ProxySettings::default();
        change(&mut proxy);
        let mut list = vec![Policy::replication(0, "gold"), Policy::replication(1, "silver")];
        list[0].aliases = vec!["yellow".into()];
        list[1].deprecated = true;
        let policies = Policies::new(list, Some(PolicyIndex(0))).unwrap();
        let mut capabilities = Capabilities::of_core(&proxy, &Limits::default(), &policies, ".");
        capabilities.add("tempauth", json!({"account_acls": true}));
        SwiftInfo::new(&proxy, &capabilities, Arc::new(RealClock::new()))
    }

    async fn answer(info: SwiftInfo, method: &str, target: &str) -> (u16, String) {
        let response = ask(info, request(method, target), Answer::new(|_| reply::status(404))).await;
        let body = response.body().as_whole().unwrap();
        (response.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
    }

    /// What OpenStack Swift 2.38.3 said of the same configuration, but for its version.
    const OPENSTACK: &str = r#"{"swift": {"version": "VERSION", "strict_cors_mode": true, "policies": [{"name": "gold", "aliases": "gold, yellow", "default": true}], "allow_account_management": false, "account_autocreate": false, "allow_open_expired": false, "max_file_size": 5368709122, "max_meta_name_length": 128, "max_meta_value_length": 256, "max_meta_count": 90, "max_meta_overall_size": 4096, "max_header_size": 8192, "max_request_line": 8192, "max_object_name_length": 1024, "container_listing_limit": 10000, "account_listing_limit": 10000, "max_account_name_length": 256, "max_container_name_length": 256, "extra_header_count": 0}, "tempauth": {"account_acls": true}}"#;

    #[tokio::test]
    async fn tells_what_openstack_tells() {
        let (status, body) = answer(info(|_| ()), "GET", "/info").await;
        assert_eq!((status, body.replace(VERSION, "VERSION").as_str()), (200, OPENSTACK));
        let (_, body) = answer(
            info(|p| p.disallowed_sections = vec!["swift".into(), "a.b".into()]),
            "GET",
            "/info",
        )
        .await;
        assert_eq!(body, r#"{"tempauth": {"account_acls": true}}"#);
        assert_eq!(answer(info(|p| p.expose_info = false), "GET", "/info").await.0, 403);
        assert_eq!(answer(info(|_| ()), "GET", "/info/").await.0, 404);
        assert_eq!(answer(info(|_| ()), "OPTIONS", "/info").await, (200, String::new()));
        assert_eq!(answer(info(|p| p.expose_info = false), "PUT", "/info").await.0, 405);
    }

    #[tokio::test]
    async fn administrators_sign() {
        let with_key = || info(|p| p.admin_key = "sekret".into());
        let sign = |method: &str, expires: u64| {
            let mut mac = Hmac::<Sha1>::new_from_slice(b"sekret").unwrap();
            mac.update(format!("{method}\n{expires}\n/info").as_bytes());
            let signature = vocabulary::hex::encode(mac.finalize().into_bytes());
            format!("/info?swiftinfo_sig={signature}&swiftinfo_expires={expires}")
        };
        let later = 9_000_000_000;
        let (status, body) = answer(with_key(), "GET", &sign("GET", later)).await;
        let admin =
            r#", "admin": {"disallowed_sections": ["swift.auto_create_account_prefix", "swift.valid_api_versions"]}}"#;
        assert!(status == 200 && body.ends_with(admin), "{body}");
        for (method, signed) in [("HEAD", "GET"), ("HEAD", "HEAD")] {
            assert_eq!(answer(with_key(), method, &sign(signed, later)).await.0, 200);
        }
        for target in [
            sign("HEAD", later),
            sign("GET", 5),
            "/info?swiftinfo_sig=x".into(),
            "/info?swiftinfo_expires=9".into(),
        ] {
            assert_eq!(answer(with_key(), "GET", &target).await.0, 401, "{target}");
        }
        assert_eq!(answer(info(|_| ()), "GET", &sign("GET", later)).await.0, 403);
        assert_eq!(
            answer(with_key(), "GET", "/info?swiftinfo_sig=&swiftinfo_expires=")
                .await
                .0,
            200
        );
    }

    #[tokio::test]
    async fn pages_from_elsewhere_may_read_it() {
        let asked = with_headers(request("GET", "/info"), &[("origin", "http://a.b")]);
        let response = ask(info(|_| ()), asked, Answer::new(|_| reply::status(404))).await;
        assert_eq!(response.headers()["access-control-allow-origin"], "http://a.b");
        assert_eq!(response.headers()["access-control-expose-headers"], "x-trans-id");
    }

    proptest! {
        #[test]
        fn any_signature_is_read_or_refused(
            text in any::<String>(),
            bytes in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            let _ = vocabulary::hex::decode_lower(&text);
            prop_assert_eq!(vocabulary::hex::decode_lower(vocabulary::hex::encode(&bytes)), Some(bytes));
        }
    }
}
