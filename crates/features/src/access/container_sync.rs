//! The receiving side of container sync: requests that another cluster of a realm has signed.
//!
//! Swift's `container_sync`. `X-Container-Sync-Auth: REALM NONCE SIGNATURE` is the HMAC-SHA1, by the realm's key,
//! of verb, path, timestamp, nonce and the container's own sync key. Such a request is allowed whatever it asks
//! of its container, keeps the timestamp that the peer gives, and stores what comes as it comes.
//! Always holds: signatures are compared in constant time, all that could be; a signature that is not good
//! goes no further (401). What `/info` says of the realms is what their file said at start.

use crate::access::sync_realms::SyncRealms;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderName, Method};
use peer::message::header_names::X_INBOUND_TIMESTAMP;
use request_pipeline::{ClientRequest, Feature, Next, Response, is_true, reply};
use serde_json::{Map, Value, json};
use settings::gateway_filters::ContainerSyncSettings;
use settings::realms::Realms;
use sha1::Sha1;
use std::path::Path;
use subtle::{Choice, ConstantTimeEq};
use vocabulary::EntityPath;
use vocabulary::names::quote;
use world::World;

static AUTH: HeaderName = HeaderName::from_static("x-container-sync-auth");
const REFUSED: &str = "X-Container-Sync-Auth header not valid; contact cluster operator for support.";
const VERSIONED: &str = "Cannot configure container sync on a container with object versioning configured.";
const NO_FULL_URLS: &str = "Full URLs are not allowed for X-Container-Sync-To values. Only realm values of the \
                            format //realm/cluster/account/container are allowed.\n";

/// Swift's `container_sync`.
pub struct ContainerSync {
    allow_full_urls: bool,
    current: Option<(String, String)>,
    realms: SyncRealms,
}

impl ContainerSync {
    /// With the realms' file in `swift_dir`.
    pub fn new(settings: &ContainerSyncSettings, swift_dir: &Path, world: World) -> Self {
        let realms = SyncRealms::new(swift_dir, world);
        Self {
            allow_full_urls: settings.allow_full_urls,
            current: current(&settings.current, &realms.now()),
            realms,
        }
    }

    /// Checks the signature; says what is noted in the log, and whether it is good.
    async fn check(&self, auth: &str, request: &ClientRequest, next: &Next) -> Result<&'static str, &'static str> {
        let words: Vec<&str> = auth.split_whitespace().collect();
        let [realm, nonce, signature] = words[..] else {
            return Err("cs:not-3-args");
        };
        let realms = self.realms.now();
        let Some((realm, key)) = realms.get(realm).and_then(|realm| Some((realm, realm.key.as_deref()?))) else {
            return Err("cs:no-local-realm-key");
        };
        let Some((entity, container)) = request
            .entity
            .as_deref()
            .and_then(|e| Some((e, e.container.as_deref()?)))
        else {
            return Err("cs:no-local-user-key");
        };
        let info = next.info().container(&entity.account, container).await;
        let Some(user_key) = info.sync_key.as_deref().filter(|key| !key.is_empty()) else {
            return Err("cs:no-local-user-key");
        };
        let timestamp = timestamp(request).unwrap_or("0");
        let signed = format!(
            "{}\n{}\n{timestamp}\n{nonce}\n{user_key}",
            request.method,
            quote(&request.path)
        );
        let keys = std::iter::once(key).chain(realm.key2.as_deref());
        let good = keys.fold(Choice::from(0), |good, key| {
            good | sign(key, &signed)
                .as_bytes()
                .ct_eq(signature.to_ascii_lowercase().as_bytes())
        });
        if bool::from(good) {
            Ok("cs:valid")
        } else {
            Err("cs:invalid-sig")
        }
    }
}

/// `//REALM/CLUSTER` of the option, if the file knows it.
fn current(option: &str, realms: &Realms) -> Option<(String, String)> {
    if option.is_empty() {
        return None;
    }
    let upper = option.to_uppercase();
    let Some((realm, cluster)) = upper.trim_start_matches('/').split_once('/') else {
        tracing::error!("Invalid current //REALM/CLUSTER ({option})");
        return None;
    };
    if !realms
        .get(realm)
        .is_some_and(|realm| realm.clusters.contains_key(cluster))
    {
        tracing::error!("Unknown current //REALM/CLUSTER (//{realm}/{cluster})");
    }
    Some((realm.to_owned(), cluster.to_owned()))
}

fn sign(key: &str, text: &str) -> String {
    // HMAC takes keys of any length.
    let mut mac = Hmac::<Sha1>::new_from_slice(key.as_bytes()).expect("any length is a key's");
    mac.update(text.as_bytes());
    vocabulary::hex::encode(mac.finalize().into_bytes())
}

/// When the peer says that it was written; the gatekeeper has set it aside.
fn timestamp(request: &ClientRequest) -> Option<&str> {
    let inbound = request.header(X_INBOUND_TIMESTAMP.as_str());
    inbound.or_else(|| request.header("x-timestamp"))
}

fn refused(request: &ClientRequest) -> Response {
    let mut response = reply::plain(401, REFUSED);
    let account = request
        .entity
        .as_ref()
        .map_or("unknown", |entity| entity.account.as_str());
    let realm = format!("SwiftContainerSync realm=\"{}\"", quote(account));
    if let Ok(realm) = HeaderValue::try_from(realm) {
        response.headers_mut().insert(WWW_AUTHENTICATE, realm);
    }
    match request.method == Method::HEAD {
        true => response.map(|_| peer::Body::empty()),
        false => response,
    }
}

/// Where a container is to be synced to from now on.
fn target(request: &ClientRequest) -> Option<(&EntityPath, &[u8])> {
    let entity = request.entity.as_deref()?;
    let is_container = entity.container.is_some() && entity.object.is_none();
    let writes = request.method == Method::PUT || request.method == Method::POST;
    let to = request.headers.get("x-container-sync-to")?.as_bytes();
    (is_container && writes && !to.is_empty()).then_some((entity, to))
}

impl ContainerSync {
    /// Whether a container is to be synced to a URL although only realms are allowed.
    fn names_full_url(&self, request: &ClientRequest) -> bool {
        !self.allow_full_urls && target(request).is_some_and(|(_, to)| !to.starts_with(b"//"))
    }
}

/// Whether the container to be synced from has versions: what stands there are links to what no other cluster has.
async fn is_versioned(request: &ClientRequest, next: &Next) -> bool {
    let Some((entity, _)) = target(request) else {
        return false;
    };
    let container = entity.container.as_deref().unwrap_or_default();
    let info = next.info().container(&entity.account, container).await;
    info.sysmeta
        .get("versions-enabled")
        .is_some_and(|enabled| is_true(enabled))
}

#[async_trait::async_trait]
impl Feature for ContainerSync {
    fn name(&self) -> &'static str {
        "container_sync"
    }

    fn info(&self) -> Vec<(&'static str, Value)> {
        let realms = self.realms.now();
        let mut shown = Map::new();
        for (name, realm) in &realms.realms {
            let cluster = |cluster: &String| {
                let is_current = self.current.as_ref().is_some_and(|(r, c)| r == name && c == cluster);
                let description = if is_current {
                    json!({"current": true})
                } else {
                    json!({})
                };
                (cluster.clone(), description)
            };
            let clusters: Map<String, Value> = realm.clusters.keys().map(cluster).collect();
            if !clusters.is_empty() {
                shown.insert(name.clone(), json!({"clusters": clusters}));
            }
        }
        vec![("container_sync", json!({"realms": shown}))]
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.headers.contains_key(&AUTH) || target(request).is_some()
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        if self.names_full_url(&request) {
            return reply::html(400, NO_FULL_URLS.into());
        }
        if is_versioned(&request, &next).await {
            return reply::html(400, VERSIONED.into());
        }
        let Some(auth) = request.headers.get(&AUTH) else {
            return next.run(request).await;
        };
        let is_about_a_container = request
            .entity
            .as_deref()
            .is_some_and(|entity| entity.container.is_some());
        if !is_about_a_container {
            return next.run(request).await;
        }
        let auth = String::from_utf8_lossy(auth.as_bytes()).into_owned();
        match self.check(&auth, &request, &next).await {
            Err(note) => {
                request.notes.remark(note);
                refused(&request)
            }
            Ok(note) => {
                request.notes.remark(note);
                request.authorize_override = true;
                request.is_synced = true;
                if let Some(timestamp) = request.headers.get(X_INBOUND_TIMESTAMP).cloned() {
                    request
                        .headers
                        .insert(HeaderName::from_static("x-timestamp"), timestamp);
                }
                next.run(request).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request, with_headers};
    use request_pipeline::ContainerInfo;
    use settings::realms::FILE;
    use std::sync::Arc;

    const CONF: &str = "[US]\nkey = 9ff3\nkey2 = 1a0a\ncluster_dfw1 = http://dfw1.host/v1/\n";

    fn feature(settings: &ContainerSyncSettings, folder: &Path) -> ContainerSync {
        std::fs::write(folder.join(FILE), CONF).unwrap();
        ContainerSync::new(settings, folder, World::real())
    }

    async fn asked(sync_key: Option<&str>, auth: &str, timestamp: &'static str) -> (u16, String) {
        let folder = tempfile::tempdir().unwrap();
        let core = Answer::new(|request| {
            let time = request.header("x-timestamp").unwrap_or("none").to_owned();
            reply::html(
                200,
                format!("{} {} {time}", request.authorize_override, request.is_synced),
            )
        });
        *core.container.lock().unwrap() = Arc::new(ContainerInfo {
            status: 204,
            sync_key: sync_key.map(str::to_owned),
            ..ContainerInfo::default()
        });
        let request = with_headers(request("PUT", "/v1/a/c/%C3%BC"), &[(AUTH.as_str(), auth)]);
        let request = match timestamp {
            "" => request,
            time => with_headers(request, &[("x-backend-inbound-x-timestamp", time)]),
        };
        let notes = request.notes.clone();
        let answer = ask(feature(&ContainerSyncSettings::default(), folder.path()), request, core).await;
        let status = answer.status().as_u16();
        match status {
            200 => (
                200,
                String::from_utf8(answer.body().as_whole().unwrap().to_vec()).unwrap(),
            ),
            _ => (status, notes.read().remarks.join(",")),
        }
    }

    fn signed(key: &str, timestamp: &str) -> String {
        let text = format!("PUT\n/v1/a/c/%C3%BC\n{timestamp}\nnonce\nabc");
        format!("us nonce {}", sign(key, &text))
    }

    #[tokio::test]
    async fn only_signed_requests_are_let_in() {
        for (key, auth, expected) in [
            (Some("abc"), "a", (401, "cs:not-3-args")),
            (Some("abc"), "invalid nonce sig", (401, "cs:no-local-realm-key")),
            (None, "US nonce sig", (401, "cs:no-local-user-key")),
            (Some(""), "US nonce sig", (401, "cs:no-local-user-key")),
            (Some("abc"), "US nonce sig", (401, "cs:invalid-sig")),
            (Some("abc"), &signed("other", "0"), (401, "cs:invalid-sig")),
            (Some("abc"), &signed("9ff3", "1"), (401, "cs:invalid-sig")),
            (Some("abc"), &signed("9ff3", "0"), (200, "true true none")),
            (Some("abc"), &signed("1a0a", "0"), (200, "true true none")),
        ] {
            let (status, seen) = asked(key, auth, "").await;
            assert_eq!((status, seen.as_str()), expected, "{auth}");
        }
        let time = "1455221706.72699_0123456789abcdef";
        assert_eq!(
            asked(Some("abc"), &signed("9ff3", time), time).await,
            (200, format!("true true {time}"))
        );
    }

    #[test]
    fn signatures_are_openstacks() {
        assert_eq!(
            sign("rk", "GET\n/v1/a/c\n0\nnonce\nuk"),
            "a0fd31aecabdda225371fcfb1ec9d80817f5ce0f"
        );
    }

    #[tokio::test]
    async fn full_urls_may_be_forbidden() {
        let folder = tempfile::tempdir().unwrap();
        let settings = ContainerSyncSettings {
            allow_full_urls: false,
            ..ContainerSyncSettings::default()
        };
        for (path, to, expected) in [
            ("/v1/a/c", "http://host/v1/a/c", 400),
            ("/v1/a/c", "//us/dfw1/a/c", 200),
            ("/v1/a/c", "", 200),
            ("/v1/a/c/o", "http://host/v1/a/c", 200),
        ] {
            let request = with_headers(request("PUT", path), &[("x-container-sync-to", to)]);
            let core = Answer::new(|_| reply::html(200, String::new()));
            let answer = ask(feature(&settings, folder.path()), request, core).await;
            assert_eq!(answer.status().as_u16(), expected, "{path} {to}");
        }
    }

    #[tokio::test]
    async fn containers_with_versions_are_not_synced_from() {
        let folder = tempfile::tempdir().unwrap();
        for (enabled, to, expected) in [
            ("True", "//us/dfw1/a/c", 400),
            ("False", "//us/dfw1/a/c", 200),
            ("True", "", 200),
        ] {
            let request = with_headers(request("POST", "/v1/a/c"), &[("x-container-sync-to", to)]);
            let core = Answer::new(|_| reply::html(200, String::new()));
            *core.container.lock().unwrap() = Arc::new(ContainerInfo {
                status: 204,
                sysmeta: [("versions-enabled".to_owned(), enabled.to_owned())].into(),
                ..ContainerInfo::default()
            });
            let answer = ask(feature(&ContainerSyncSettings::default(), folder.path()), request, core).await;
            assert_eq!(answer.status().as_u16(), expected, "{enabled} {to}");
        }
    }

    #[test]
    fn realms_are_shown_without_their_keys() {
        let folder = tempfile::tempdir().unwrap();
        for (option, expected) in [
            ("", json!({})),
            ("foo", json!({})),
            ("foo/bar", json!({})),
            ("//us/dfw1", json!({"current": true})),
        ] {
            let settings = ContainerSyncSettings {
                current: option.into(),
                ..ContainerSyncSettings::default()
            };
            let (_, section) = feature(&settings, folder.path()).info().remove(0);
            assert_eq!(section, json!({"realms": {"US": {"clusters": {"DFW1": expected}}}}));
        }
    }
}
