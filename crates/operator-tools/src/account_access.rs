//! How a token is had for an account: of TempAuth, or of Keystone in its two versions.
//!
//! Always holds: tokens and passwords are in no message.

use features::access::authtoken::connections::{Ask, KeystoneConnections, KeystoneResponse, versioned};
use http::Method;
use peer::Url;
use serde_json::{Value, json};
use settings::declare::Scope;
use settings::kinds::Secret;
use settings::{AuthTokenSettings, SettingsError};
use std::path::PathBuf;
use vocabulary::Fault;
use world::World;

/// The user that asks for a token, and the server that is asked.
#[derive(Debug, Clone)]
pub struct AccountCredentials {
    /// TempAuth's address, or Keystone's.
    pub auth_url: String,
    /// 1.0 (TempAuth), 2.0 or 3 (Keystone).
    pub auth_version: String,
    /// `account:user` for TempAuth, `tenant:user` for Keystone 2.0, the user for Keystone 3.
    pub user: String,
    /// The password.
    pub key: Secret,
    /// Of Keystone 3.
    pub project_name: String,
    /// Of Keystone 3; the domain `default` where it is empty.
    pub project_domain_name: String,
    /// Of Keystone 3; the domain `default` where it is empty.
    pub user_domain_name: String,
    /// Of several of Keystone's; any where it is empty.
    pub region_name: String,
    /// `publicURL`, `internalURL` or `adminURL`.
    pub endpoint_type: String,
}

/// What opens an account.
pub struct AccountAccess {
    /// The address of the account.
    pub storage: String,
    /// Its `X-Auth-Token`.
    pub token: String,
}

/// Connections to servers whose certificates are verified: by the authorities of `cafile`, else by those of the
/// environment or of browsers; not at all where it is `insecure`.
pub fn trusting(world: &World, insecure: bool, cafile: Option<&PathBuf>) -> Result<KeystoneConnections, Fault> {
    let secure = AuthTokenSettings {
        insecure,
        cafile: cafile.cloned(),
        ..AuthTokenSettings::default()
    };
    KeystoneConnections::new(&secure, world, &Scope::empty()).map_err(|error| {
        Fault::caller(match (error, cafile) {
            (SettingsError::Value { expected, .. }, Some(file)) => {
                format!("cafile = {}: expected {expected}", file.display())
            }
            (error, _) => error.to_string(),
        })
    })
}

impl AccountCredentials {
    /// Asks for a token.
    pub async fn access(&self, connections: &KeystoneConnections) -> Result<AccountAccess, Fault> {
        let url = Url::parse(&self.auth_url).ok_or_else(|| {
            Fault::caller(format!(
                "auth_url = {}: expected an address like http://host:port/auth/v1.0",
                self.auth_url
            ))
        })?;
        match self.auth_version.trim().trim_end_matches(".0") {
            "1" => tempauth(connections, &url, self).await,
            "2" => keystone_2(connections, &url, self).await,
            "3" => keystone_3(connections, versioned(&url), self).await,
            other => Err(Fault::caller(format!("auth_version = {other}: expected 1.0, 2.0 or 3"))),
        }
    }
}

async fn tempauth(
    connections: &KeystoneConnections,
    url: &Url,
    credentials: &AccountCredentials,
) -> Result<AccountAccess, Fault> {
    let headers = [
        ("x-auth-user", credentials.user.as_str()),
        ("x-auth-key", credentials.key.0.as_str()),
    ];
    let answer = ask(connections, Method::GET, url, &headers, None, &credentials.auth_url).await?;
    match (answer.header("x-storage-url"), answer.header("x-auth-token")) {
        (Some(storage), Some(token)) => Ok(AccountAccess {
            storage: storage.to_owned(),
            token: token.to_owned(),
        }),
        _ => Err(Fault::peer(format!(
            "{}: the answer has no token",
            credentials.auth_url
        ))),
    }
}

async fn keystone_2(
    connections: &KeystoneConnections,
    url: &Url,
    credentials: &AccountCredentials,
) -> Result<AccountAccess, Fault> {
    let (tenant, user) = credentials
        .user
        .split_once(':')
        .ok_or_else(|| Fault::caller("auth_user: expected tenant:user with auth_version = 2.0"))?;
    let body = json!({"auth": {"tenantName": tenant,
        "passwordCredentials": {"username": user, "password": credentials.key.0}}});
    let url = url.with("/tokens");
    let answer = ask(connections, Method::POST, &url, &[], Some(&body), &credentials.auth_url).await?;
    let response = answer
        .json()
        .map_err(|error| Fault::peer(format!("{}: {error}", credentials.auth_url)))?;
    let access = &response["access"];
    let services = access["serviceCatalog"].as_array().into_iter().flatten();
    let stores = services.filter(|service| service["type"] == "object-store");
    let endpoints = stores.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
    let mut fitting = endpoints.filter(|endpoint| in_region(endpoint, credentials));
    let storage = fitting.find_map(|endpoint| endpoint[&credentials.endpoint_type].as_str());
    opened(storage, access["token"]["id"].as_str(), credentials)
}

async fn keystone_3(
    connections: &KeystoneConnections,
    url: Url,
    credentials: &AccountCredentials,
) -> Result<AccountAccess, Fault> {
    let domain = |name: &str| match name {
        "" => json!({"id": "default"}),
        name => json!({"name": name}),
    };
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": credentials.user, "password": credentials.key.0, "domain": domain(&credentials.user_domain_name)}}},
        "scope": {"project": {"name": credentials.project_name, "domain": domain(&credentials.project_domain_name)}}}});
    let url = url.with("/auth/tokens");
    let answer = ask(connections, Method::POST, &url, &[], Some(&body), &credentials.auth_url).await?;
    let response = answer
        .json()
        .map_err(|error| Fault::peer(format!("{}: {error}", credentials.auth_url)))?;
    let interface = credentials.endpoint_type.trim_end_matches("URL");
    let services = response["token"]["catalog"].as_array().into_iter().flatten();
    let stores = services.filter(|service| service["type"] == "object-store");
    let endpoints = stores.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
    let mut fitting =
        endpoints.filter(|endpoint| endpoint["interface"] == interface && in_region(endpoint, credentials));
    let storage = fitting.find_map(|endpoint| endpoint["url"].as_str());
    opened(storage, answer.header("x-subject-token"), credentials)
}

fn in_region(endpoint: &Value, credentials: &AccountCredentials) -> bool {
    credentials.region_name.is_empty() || endpoint["region"] == credentials.region_name.as_str()
}

fn opened(
    storage: Option<&str>,
    token: Option<&str>,
    credentials: &AccountCredentials,
) -> Result<AccountAccess, Fault> {
    let (kind, place) = (&credentials.endpoint_type, &credentials.auth_url);
    let storage =
        storage.ok_or_else(|| Fault::peer(format!("{place}: the catalogue has no {kind} of an object-store")))?;
    let token = token.ok_or_else(|| Fault::peer(format!("{place}: the answer has no token")))?;
    Ok(AccountAccess {
        storage: storage.to_owned(),
        token: token.to_owned(),
    })
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
