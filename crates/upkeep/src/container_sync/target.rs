//! Where a container is synced to, and how requests to there are signed.
//!
//! `//realm/cluster/account/container` names a cluster of a realm, whose key signs every request; a full
//! address is one of an allowed host, which knows the container's own key. Source: Swift's
//! `doc/source/overview_container_sync.rst`.
//! Always holds: nothing is sent to a host that the operator has not named, nor to what is no container there; no key
//! is printed.
//! Deliberately absent: TLS, reading the realms' file.

use hmac::{Hmac, KeyInit, Mac};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};
use sha1::Sha1;
use std::collections::BTreeMap;
use vocabulary::names::{is_path_of_container, quote};
use vocabulary::{Fault, Timestamp};
use world::World;

/// Clusters that trust each other.
#[derive(Clone)]
pub struct SyncRealm {
    /// Signs requests between them.
    pub key: String,
    /// Where each cluster is, by name in upper case.
    pub clusters: BTreeMap<String, String>,
}

/// Whom containers may be synced to.
#[derive(Clone, Default)]
pub struct SyncPeers {
    /// By name in upper case.
    pub realms: BTreeMap<String, SyncRealm>,
    /// Hosts of full addresses.
    pub allowed_hosts: Vec<String>,
}

/// Passes requests on to the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProxy {
    /// Its name or address.
    pub host: String,
    /// Where it listens.
    pub port: u16,
}

impl std::str::FromStr for HttpProxy {
    type Err = Fault;

    /// `http://host:port`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let (host, port, path) = parts(&format!("{}/", text.trim_end_matches('/')))?;
        match (host.is_empty(), path.as_str()) {
            (false, "/") => Ok(Self { host, port }),
            _ => Err(Fault::caller(format!("{text:?} is not http://host:port"))),
        }
    }
}

/// A container elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SyncTarget {
    pub(super) host: String,
    pub(super) port: u16,
    /// Encoded, without a slash at its end.
    path: String,
    /// Name and key.
    realm: Option<(String, String)>,
    key: String,
}

impl SyncPeers {
    /// The container that `to` names. `Err` says what is wrong with it.
    pub(super) fn resolve(&self, to: &str, key: &str) -> Result<SyncTarget, Fault> {
        let to = to.trim().trim_end_matches('/');
        let Some(name) = to.strip_prefix("//") else {
            let (host, port, path) = parts(to)?;
            let known = self
                .allowed_hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(&host));
            if !known {
                return Err(Fault::caller(format!("Invalid host '{host}' in X-Container-Sync-To")));
            }
            if !is_path_of_container(&path) {
                // Storage servers ask for no password.
                return Err(Fault::caller(format!(
                    "Path '{path}' in X-Container-Sync-To is not /v1/ACCOUNT/CONTAINER"
                )));
            }
            return Ok(SyncTarget {
                host,
                port,
                path,
                realm: None,
                key: key.to_owned(),
            });
        };
        let words: Vec<&str> = name.split('/').collect();
        let [realm, cluster, account, container] = words[..] else {
            return Err(Fault::caller(format!("Invalid X-Container-Sync-To format '{to}'")));
        };
        let realm = realm.to_uppercase();
        let known = self
            .realms
            .get(&realm)
            .ok_or_else(|| Fault::caller(format!("No realm key for '{realm}'")))?;
        let endpoint = known.clusters.get(&cluster.to_uppercase());
        let endpoint =
            endpoint.ok_or_else(|| Fault::caller(format!("No cluster endpoint for '{realm}' '{cluster}'")))?;
        let (host, port, path) = parts(endpoint.trim_end_matches('/'))?;
        Ok(SyncTarget {
            host,
            port,
            path: format!("{path}/{}/{}", quote(account), quote(container)),
            realm: Some((realm, known.key.clone())),
            key: key.to_owned(),
        })
    }
}

impl SyncTarget {
    /// The path of an object there, encoded.
    pub(super) fn path_of(&self, object: &str) -> String {
        format!("{}/{}", self.path, quote(object))
    }

    /// The whole address of `path` there, for a proxy on the way.
    pub(super) fn whole(&self, path: &str) -> String {
        match self.host.contains(':') {
            true => format!("http://[{}]:{}{path}", self.host, self.port),
            false => format!("http://{}:{}{path}", self.host, self.port),
        }
    }

    /// For the log.
    pub(super) fn place(&self) -> String {
        format!("{}:{}{}", self.host, self.port, self.path)
    }

    /// What proves that a request comes from here.
    pub(super) fn sign(&self, world: &World, method: &str, path: &str, time: Timestamp, headers: &mut HeaderMap) {
        let time = time.internal();
        let mut set = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        set("x-timestamp", &time);
        match &self.realm {
            None => set("x-container-sync-key", &self.key),
            Some((realm, key)) => {
                let nonce = format!("{:016x}{:016x}", world.random.next_u64(), world.random.next_u64());
                let text = format!("{method}\n{path}\n{time}\n{nonce}\n{}", self.key);
                set(
                    "x-container-sync-auth",
                    &format!("{realm} {nonce} {}", signature(key, &text)),
                );
            }
        }
    }
}

fn signature(key: &str, text: &str) -> String {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key.as_bytes()) else {
        return String::new();
    };
    mac.update(text.as_bytes());
    vocabulary::hex::encode(mac.finalize().into_bytes())
}

/// Host, port and path of `http://host:port/path`.
fn parts(address: &str) -> Result<(String, u16, String), Fault> {
    let Some(rest) = address.strip_prefix("http://") else {
        return Err(Fault::caller(format!("{address:?}: only http:// can be synced to")));
    };
    let (authority, path) = rest
        .split_once('/')
        .ok_or_else(|| Fault::caller("Path required in X-Container-Sync-To"))?;
    if path.contains(['?', '#', ';']) || authority.contains('@') {
        return Err(Fault::caller(
            "Params, queries, and fragments not allowed in X-Container-Sync-To",
        ));
    }
    let path = format!("/{path}");
    if PathAndQuery::try_from(path.as_str()).is_err() {
        return Err(Fault::caller(format!(
            "{path:?} in X-Container-Sync-To cannot be asked for as it is written"
        )));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (
            host,
            port.parse().map_err(|_| Fault::caller(format!("no port: {port:?}")))?,
        ),
        _ => (authority, 80),
    };
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    Ok((host, port, path))
}

/// A container elsewhere, for tests.
#[cfg(test)]
pub(super) fn target_of(container: &str) -> SyncTarget {
    let known = SyncPeers {
        allowed_hosts: vec!["127.0.0.1".into()],
        ..SyncPeers::default()
    };
    let address = format!("http://127.0.0.1/v1/a/{container}");
    known.resolve(&address, "key").expect("the host is allowed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peers() -> SyncPeers {
        let clusters = [("DFW1".to_owned(), "http://dfw1.host:8080/v1/".to_owned())].into();
        let realm = SyncRealm {
            key: "rk".into(),
            clusters,
        };
        SyncPeers {
            realms: [("US".to_owned(), realm)].into(),
            allowed_hosts: vec!["127.0.0.1".into()],
        }
    }

    #[test]
    fn only_who_is_known_is_synced_to() {
        let resolve = |to: &str| peers().resolve(to, "uk").map(|target| target.place());
        assert_eq!(
            resolve("//us/dfw1/AUTH_a/c 1").unwrap(),
            "dfw1.host:8080/v1/AUTH_a/c%201"
        );
        assert_eq!(resolve("http://127.0.0.1/v1/a/c/").unwrap(), "127.0.0.1:80/v1/a/c");
        for wrong in [
            "//us/dfw1/a",
            "//eu/dfw1/a/c",
            "//us/x/a/c",
            "http://other/v1/a/c",
            "http://127.0.0.1:6200/sda1",
            "http://127.0.0.1:6200/sda1/17/AUTH_a",
            "https://127.0.0.1/v1/a/c",
            "http://127.0.0.1",
            "http://127.0.0.1/v1/a/c d",
            "http://127.0.0.1/v1/a\nX-Evil: 1/c",
            "http://127.0.0.1/v1/a/c\0",
            "",
        ] {
            assert!(resolve(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_proxy_on_the_way_has_a_host_and_no_path() {
        let read = |text: &str| text.parse::<HttpProxy>().map(|proxy| (proxy.host, proxy.port)).ok();
        assert_eq!(read("http://10.1.1.1:8888"), Some(("10.1.1.1".into(), 8888)));
        assert_eq!(read("http://proxy/"), Some(("proxy".into(), 80)));
        for wrong in [
            "",
            "10.1.1.1:8888",
            "https://proxy:1",
            "http://proxy/x",
            "http://user:pw@proxy",
            "http://",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    /// Given by OpenStack Swift 2.38.3.
    #[test]
    fn signatures_are_openstacks() {
        assert_eq!(
            signature("rk", "GET\n/v1/a/c\n0\nnonce\nuk"),
            "a0fd31aecabdda225371fcfb1ec9d80817f5ce0f"
        );
    }

    proptest! {
        #[test]
        fn any_target_is_read(to in "\\PC{0,40}") {
            let _ = peers().resolve(&to, "k");
            let _ = to.parse::<HttpProxy>();
        }
    }
}
