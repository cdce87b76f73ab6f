//! The account of the tools: requests with its token, which is had as `account_access.rs` says.
//!
//! Always holds: a request that failed is repeated as often as `retries` says, a little later each time, and counted;
//! tokens and passwords are in no message.

use crate::account_access::{AccountAccess, AccountCredentials, trusting};
use features::access::authtoken::connections::{Ask, KeystoneConnections, KeystoneResponse};
use http::Method;
use peer::Url;
use settings::dispersion::DispersionSettings;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vocabulary::Fault;
use vocabulary::names::{quote, unquote};
use world::World;

/// As long as a page of a listing may be.
const PAGE: usize = 10_000;

/// One account, and the way to it.
pub(super) struct Account {
    world: World,
    connections: KeystoneConnections,
    storage: Url,
    token: String,
    retries: u32,
    retried: AtomicU64,
    /// Its name, decoded.
    pub(super) name: String,
}

impl Account {
    /// Asks for a token.
    pub(super) async fn open(world: &World, settings: &DispersionSettings) -> Result<Self, Fault> {
        let credentials = AccountCredentials {
            auth_url: settings.auth_url.clone(),
            auth_version: settings.auth_version.clone(),
            user: settings.auth_user.clone(),
            key: settings.auth_key.clone(),
            project_name: settings.project_name.clone(),
            project_domain_name: settings.project_domain_name.clone(),
            user_domain_name: settings.user_domain_name.clone(),
            region_name: settings.region_name.clone(),
            endpoint_type: settings.endpoint_type.clone(),
        };
        let connections = trusting(world, settings.keystone_api_insecure, settings.cafile.as_ref())?;
        let AccountAccess { storage, token } = credentials.access(&connections).await?;
        let name = storage.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let name = unquote(name).map_err(|_| Fault::peer(format!("{storage} names no account")))?;
        Ok(Self {
            world: world.clone(),
            storage: Url::parse(&storage).ok_or_else(|| Fault::peer(format!("{storage} is no address")))?,
            connections,
            token,
            retries: settings.retries,
            retried: AtomicU64::new(0),
            name,
        })
    }

    /// Requests that had to be repeated until now.
    pub(super) fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    /// Makes a container of a policy, or what is one already its own.
    pub(super) async fn make_container(&self, container: &str, policy: &str) -> Result<(), Fault> {
        self.put(&format!("/{}", quote(container)), &[("x-storage-policy", policy)], None)
            .await
    }

    /// Makes an object that holds its name.
    pub(super) async fn make_object(&self, container: &str, name: &str) -> Result<(), Fault> {
        let path = format!("/{}/{}", quote(container), quote(name));
        self.put(&path, &[("x-object-meta-dispersion", name)], Some(name)).await
    }

    async fn put(&self, path: &str, headers: &[(&'static str, &str)], body: Option<&str>) -> Result<(), Fault> {
        let body = body.map(|text| text.as_bytes().to_vec());
        let answer = self.send(Method::PUT, path, headers, body).await?;
        match answer.status() {
            200..=299 => Ok(()),
            status => Err(Fault::peer(format!("PUT {path}: {status}"))),
        }
    }

    /// Names below `path` ("" or "/container") that begin with `prefix`; none where there is no such container.
    pub(super) async fn names(&self, path: &str, prefix: &str) -> Result<Vec<String>, Fault> {
        let (mut names, mut marker): (Vec<String>, String) = (vec![], String::new());
        loop {
            let (prefix, after) = (quote(prefix), quote(&marker));
            let target = format!("{path}?format=json&limit={PAGE}&prefix={prefix}&marker={after}");
            let answer = self.send(Method::GET, &target, &[], None).await?;
            let page = match answer.status() {
                200 => answer
                    .json()
                    .map_err(|error| Fault::peer(format!("GET {path}: {error}")))?,
                204 | 404 => return Ok(names),
                status => return Err(Fault::peer(format!("GET {path}: {status}"))),
            };
            let rows = page
                .as_array()
                .ok_or_else(|| Fault::peer(format!("GET {path}: the answer is no listing")))?;
            let found = rows
                .iter()
                .filter_map(|row| Some(row.get("name")?.as_str()?.to_owned()));
            let before = names.len();
            names.extend(found);
            match names.last() {
                // Listing the same page again would go on for ever.
                Some(last) if names.len() > before && *last == marker => {
                    return Err(Fault::peer(format!(
                        "GET {path}: a page ends where the one before it ended"
                    )));
                }
                Some(last) if names.len() > before => marker.clone_from(last),
                _ => return Ok(names),
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<KeystoneResponse, Fault> {
        let url = self.storage.with(path);
        let headers = [headers, &[("x-auth-token", self.token.as_str())]].concat();
        let mut attempt = 0;
        loop {
            let ask = Ask {
                method: method.clone(),
                url: &url,
                headers: &headers,
                body: body.clone(),
            };
            let failed = match self.connections.send(&ask).await {
                Ok(answer) if answer.status() < 500 => return Ok(answer),
                Ok(answer) => Ok(answer),
                Err(error) => Err(Fault::peer(error.to_string())),
            };
            if attempt >= self.retries {
                return failed.map_err(|error: Fault| error.within(format_args!("{method} {path}")));
            }
            self.retried.fetch_add(1, Ordering::Relaxed);
            pause(&self.world, attempt).await;
            attempt += 1;
        }
    }
}

/// Waits before a request is repeated: twice as long each time, up to half a minute.
pub(super) async fn pause(world: &World, attempt: u32) {
    world.clock.sleep(Duration::from_secs(1 << attempt.min(5))).await;
}
