//! The account of the tools: how its token is had, and requests with it.
//!
//! Always holds: a request that failed is repeated as often as `retries` says, a little later each time, and counted;
//! tokens and passwords are in no message.

use features::access::authtoken::connections::{Ask, KeystoneConnections, KeystoneResponse, versioned};
use http::Method;
use peer::Url;
use serde_json::{Value, json};
use settings::declare::Scope;
use settings::dispersion::DispersionSettings;
use settings::{AuthTokenSettings, SettingsError};
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
        let secure = AuthTokenSettings {
            insecure: settings.keystone_api_insecure,
            cafile: settings.cafile.clone(),
            ..AuthTokenSettings::default()
        };
        let connections = KeystoneConnections::new(&secure, world, &Scope::empty()).map_err(|error| {
            Fault::caller(match (error, &settings.cafile) {
                (SettingsError::Value { expected, .. }, Some(file)) => {
                    format!("cafile = {}: expected {expected}", file.display())
                }
                (error, _) => error.to_string(),
            })
        })?;
        let url = Url::parse(&settings.auth_url).ok_or_else(|| {
            Fault::caller(format!(
                "auth_url = {}: expected an address like http://host:port/auth/v1.0",
                settings.auth_url
            ))
        })?;
        let (storage, token) = match settings.auth_version.trim().trim_end_matches(".0") {
            "1" => tempauth(&connections, &url, settings).await?,
            "2" => keystone_2(&connections, &url, settings).await?,
            "3" => keystone_3(&connections, versioned(&url), settings).await?,
            other => return Err(Fault::caller(format!("auth_version = {other}: expected 1.0, 2.0 or 3"))),
        };
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

/// Storage URL and token, or why there is none.
type AccountAccess = Result<(String, String), Fault>;

async fn tempauth(connections: &KeystoneConnections, url: &Url, settings: &DispersionSettings) -> AccountAccess {
    let headers = [
        ("x-auth-user", settings.auth_user.as_str()),
        ("x-auth-key", settings.auth_key.0.as_str()),
    ];
    let answer = ask(connections, Method::GET, url, &headers, None, &settings.auth_url).await?;
    match (answer.header("x-storage-url"), answer.header("x-auth-token")) {
        (Some(storage), Some(token)) => Ok((storage.to_owned(), token.to_owned())),
        _ => Err(Fault::peer(format!("{}: the answer has no token", settings.auth_url))),
    }
}

async fn keystone_2(connections: &KeystoneConnections, url: &Url, settings: &DispersionSettings) -> AccountAccess {
    let (tenant, user) = settings
        .auth_user
        .split_once(':')
        .ok_or_else(|| Fault::caller("auth_user: expected tenant:user with auth_version = 2.0"))?;
    let body = json!({"auth": {"tenantName": tenant,
        "passwordCredentials": {"username": user, "password": settings.auth_key.0}}});
    let url = url.with("/tokens");
    let answer = ask(connections, Method::POST, &url, &[], Some(&body), &settings.auth_url).await?;
    let response = answer
        .json()
        .map_err(|error| Fault::peer(format!("{}: {error}", settings.auth_url)))?;
    let access = &response["access"];
    let services = access["serviceCatalog"].as_array().into_iter().flatten();
    let stores = services.filter(|service| service["type"] == "object-store");
    let endpoints = stores.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
    let mut fitting = endpoints.filter(|endpoint| in_region(endpoint, settings));
    let storage = fitting.find_map(|endpoint| endpoint[&settings.endpoint_type].as_str());
    opened(storage, access["token"]["id"].as_str(), settings)
}

async fn keystone_3(connections: &KeystoneConnections, url: Url, settings: &DispersionSettings) -> AccountAccess {
    let domain = |name: &str| match name {
        "" => json!({"id": "default"}),
        name => json!({"name": name}),
    };
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": settings.auth_user, "password": settings.auth_key.0, "domain": domain(&settings.user_domain_name)}}},
        "scope": {"project": {"name": settings.project_name, "domain": domain(&settings.project_domain_name)}}}});
    let url = url.with("/auth/tokens");
    let answer = ask(connections, Method::POST, &url, &[], Some(&body), &settings.auth_url).await?;
    let response = answer
        .json()
        .map_err(|error| Fault::peer(format!("{}: {error}", settings.auth_url)))?;
    let interface = settings.endpoint_type.trim_end_matches("URL");
    let services = response["token"]["catalog"].as_array().into_iter().flatten();
    let stores = services.filter(|service| service["type"] == "object-store");
    let endpoints = stores.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
    let mut fitting = endpoints.filter(|endpoint| endpoint["interface"] == interface && in_region(endpoint, settings));
    let storage = fitting.find_map(|endpoint| endpoint["url"].as_str());
    opened(storage, answer.header("x-subject-token"), settings)
}

fn in_region(endpoint: &Value, settings: &DispersionSettings) -> bool {
    settings.region_name.is_empty() || endpoint["region"] == settings.region_name.as_str()
}

fn opened(storage: Option<&str>, token: Option<&str>, settings: &DispersionSettings) -> AccountAccess {
    let (kind, place) = (&settings.endpoint_type, &settings.auth_url);
    let storage =
        storage.ok_or_else(|| Fault::peer(format!("{place}: the catalogue has no {kind} of an object-store")))?;
    let token = token.ok_or_else(|| Fault::peer(format!("{place}: the answer has no token")))?;
    Ok((storage.to_owned(), token.to_owned()))
}

async fn ask(
    connections: &KeystoneConnections,
    method: Method,
    url: &Url,
    headers: &[(&'static str, &str)],
    body: Option<&Value>,
    place: &str,
) -> Result<KeystoneResponse, Fault> {
    let body = body.map(|body| body.to_string().into_bytes());
    let ask = Ask {
        method,
        url,
        headers,
        body,
    };
    let answer = connections
        .send(&ask)
        .await
        .map_err(|error| Fault::peer(format!("{place}: {error}")))?;
    match answer.status() {
        200..=299 => Ok(answer),
        401 | 403 => Err(Fault::peer(format!(
            "{place}: no token for auth_user and auth_key ({})",
            answer.status()
        ))),
        status => Err(Fault::peer(format!("{place}: {status}"))),
    }
}
