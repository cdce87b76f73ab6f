//! How a store is opened: what a workload's authentication and storage say becomes a [`Store`].
//!
//! Always holds: a type that is not spoken is refused by name; passwords and tokens are in no message; nothing has been
//! made in the store when this fails.

use super::Store;
use super::digest::{DigestLogin, LoginScheme};
use super::http::{Outgoing, StoreConnection};
use super::http_store::{Dialect, HttpStore};
use super::mock::Mock;
use super::object_server::DirectObjectServer;
use super::s3::S3;
use super::swift::Swift;
use crate::figures::Failure;
use crate::workload::Endpoint;
use crate::workload::mistake::WorkloadMistake;
use crate::workload::parameters::Parameters;
use features::access::authtoken::connections::KeystoneConnections;
use features::access::authtoken::tls;
use operator_tools::account_access::{AccountAccess, AccountCredentials, trusting};
use peer::Url;
use settings::AuthTokenSettings;
use settings::declare::Scope;
use settings::kinds::Secret;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use vocabulary::Fault;
use world::World;

/// Bytes of an answer that are read at a time.
const ANSWER: usize = 16 << 10;

/// Which certificates are believed.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// All of them.
    pub insecure: bool,
    /// Those of these authorities.
    pub cafile: Option<PathBuf>,
}

/// Opens the store of a work.
pub async fn open(world: &World, auth: &Endpoint, storage: &Endpoint, trust: &Trust) -> Result<Store, Fault> {
    let named = |kind: &str| {
        if kind.is_empty() {
            "none".to_owned()
        } else {
            kind.to_ascii_lowercase()
        }
    };
    match (named(&storage.kind).as_str(), named(&auth.kind).as_str()) {
        ("none", _) => Ok(Store::None),
        ("mock", _) => {
            let mock = Mock::new(world, &storage.parameters);
            Ok(Store::Mock(Arc::new(
                mock.map_err(|mistake| within("storage", mistake))?,
            )))
        }
        ("swift", auth_kind) => open_swift(world, auth_kind, &auth.parameters, &storage.parameters, trust).await,
        ("s3", _) => open_s3(world, &storage.parameters, trust),
        (other, _) => Err(Fault::caller(format!(
            "<storage type=\"{other}\">: this program speaks swift, s3, mock or none"
        ))),
    }
}

async fn open_swift(
    world: &World,
    auth_kind: &str,
    auth: &Parameters,
    storage: &Parameters,
    trust: &Trust,
) -> Result<Store, Fault> {
    let known = [
        "timeout",
        "token",
        "storage_url",
        "endpoints",
        "policy",
        "logging",
        "region",
    ];
    storage.allow(&known).map_err(|mistake| within("storage", mistake))?;
    let given = storage.get("storage_url").zip(storage.get("token"));
    if auth_kind == "httpauth" {
        return open_with_password(world, auth, storage, trust).await;
    }
    let access = match (auth_kind, given) {
        (_, Some((storage, token))) => AccountAccess {
            storage: storage.to_owned(),
            token: token.to_owned(),
        },
        ("none", None) => match storage.get("storage_url") {
            Some(storage) => AccountAccess {
                storage: storage.to_owned(),
                token: String::new(),
            },
            None => {
                return Err(Fault::caller(
                    "<storage type=\"swift\">: expected an <auth>, or storage_url=… and token=… in its config",
                ));
            }
        },
        ("swauth" | "tempauth" | "keystone", None) => {
            let access = ask_access(world, auth_kind, auth, trust).await?;
            let storage = storage.get("storage_url").map(str::to_owned);
            AccountAccess {
                storage: storage.unwrap_or(access.storage),
                ..access
            }
        }
        (other, None) => {
            return Err(Fault::caller(format!(
                "<auth type=\"{other}\">: this program speaks swauth, tempauth, keystone, httpauth or none"
            )));
        }
    };
    let swift = Swift::new(&access.token, storage.get("policy"));
    let swift = swift.ok_or_else(|| Fault::caller("token=…, policy=…: expected text that a header can hold"))?;
    over_http(world, &access.storage, storage, Dialect::Swift(swift), trust)
}

/// Each request carries user and password, or proof that its sender has them: as the store asks for it.
async fn open_with_password(
    world: &World,
    auth: &Parameters,
    storage: &Parameters,
    trust: &Trust,
) -> Result<Store, Fault> {
    let need = |name: &str| auth.need(name).map_err(|mistake| within("auth", mistake));
    let address = match storage.get("storage_url") {
        Some(address) => address,
        None => need("auth_url")?,
    };
    let (user, password, policy) = (need("username")?, need("password")?, storage.get("policy"));
    let url = parsed_address(address)?;
    let tls = url.is_over_tls().then(|| connector(world, trust)).transpose()?;
    let swift = match asked_scheme(world, &url, tls.as_ref(), patience(storage)?).await? {
        LoginScheme::Basic => Swift::with_password(user, password, policy),
        LoginScheme::Digest => {
            let login = DigestLogin::new(user, password);
            let login = login.ok_or_else(|| Fault::caller("username=…: expected printable ASCII without a colon"))?;
            Swift::with_digest(login, policy)
        }
        LoginScheme::Others(names) => {
            return Err(Fault::caller(format!(
                "{address} asks for {names}: this program speaks Basic, and Digest with MD5 or SHA-256 and qop=auth"
            )));
        }
    };
    let swift = swift.ok_or_else(|| Fault::caller("policy=…: expected text that a header can hold"))?;
    over_http(world, address, storage, Dialect::Swift(swift), trust)
}

/// How a store wants users to log in, by its answer to a request of no one.
async fn asked_scheme(
    world: &World,
    url: &Url,
    tls: Option<&TlsConnector>,
    patience: Duration,
) -> Result<LoginScheme, Fault> {
    let failed = |why: &dyn std::fmt::Display| Fault::peer(format!("{}: {why}", url.authority()));
    let head = format!("HEAD {} HTTP/1.1\r\nHost: {}\r\n\r\n", url.path(), url.authority());
    let outgoing = Outgoing {
        is_head: true,
        head: head.as_bytes(),
        body: None,
        expects: None,
    };
    let asking = async {
        let mut connection = StoreConnection::open(world, url, tls, ANSWER).await?;
        connection.exchange(world, &outgoing).await?;
        Ok::<_, Failure>(connection.take_refusal())
    };
    let asked = world.timeout(patience, asking).await.map_err(|late| failed(&late))?;
    Ok(LoginScheme::asked_in(&asked.map_err(|failure| failed(&failure))?))
}

fn open_s3(world: &World, storage: &Parameters, trust: &Trust) -> Result<Store, Fault> {
    let known = [
        "accesskey",
        "secretkey",
        "endpoint",
        "endpoints",
        "timeout",
        "region",
        "path_style_access",
        "proxyhost",
        "proxyport",
        "logging",
        "policy",
    ];
    storage.allow(&known).map_err(|mistake| within("storage", mistake))?;
    let need = |name: &str| storage.need(name).map_err(|mistake| within("storage", mistake));
    if storage.get("proxyhost").is_some_and(|host| !host.is_empty()) {
        return Err(Fault::caller(
            "<storage type=\"s3\">: proxyhost: connections go to the endpoint itself",
        ));
    }
    let region = storage.get("region").unwrap_or("us-east-1");
    let s3 = S3::new(need("accesskey")?, need("secretkey")?, region);
    let s3 = s3.ok_or_else(|| Fault::caller("accesskey=…, region=…: expected words that a header can hold"))?;
    over_http(world, need("endpoint")?, storage, Dialect::S3(s3), trust)
}

/// How long one request may take.
fn patience(storage: &Parameters) -> Result<Duration, Fault> {
    let millis = storage
        .number("timeout")
        .map_err(|mistake| within("storage", mistake))?;
    Ok(Duration::from_millis(millis.unwrap_or(30_000).max(1)))
}

fn parsed_address(address: &str) -> Result<Url, Fault> {
    Url::parse(address)
        .ok_or_else(|| Fault::caller(format!("{address}: expected an address like http://host:port/path")))
}

fn over_http(
    world: &World,
    address: &str,
    storage: &Parameters,
    dialect: Dialect,
    trust: &Trust,
) -> Result<Store, Fault> {
    let patience = patience(storage)?;
    let url = parsed_address(address)?;
    let store = |url: Url| -> Result<Arc<HttpStore>, Fault> {
        Ok(Arc::new(HttpStore {
            tls: url.is_over_tls().then(|| connector(world, trust)).transpose()?,
            url,
            patience,
            dialect: dialect.clone(),
        }))
    };
    let Some(endpoints) = storage.get("endpoints") else {
        return Ok(Store::Http(store(url)?));
    };
    let all = endpoints.split(',').map(|endpoint| {
        let wrong = || {
            Fault::caller(format!(
                "endpoints={endpoint}: expected addresses like http://host:port"
            ))
        };
        let there = Url::parse(endpoint.trim()).ok_or_else(wrong)?;
        store(there.with_path(url.path().to_owned()))
    });
    Ok(Store::Spread(all.collect::<Result<_, _>>()?))
}

/// Opens an object server, to be asked as a proxy asks it.
pub fn open_object_server(world: &World, address: &str, server: DirectObjectServer) -> Result<Store, Fault> {
    let dialect = Dialect::DirectObjectServer(server);
    over_http(world, address, &Parameters::default(), dialect, &Trust::default())
}

async fn ask_access(world: &World, kind: &str, auth: &Parameters, trust: &Trust) -> Result<AccountAccess, Fault> {
    let text = |name: &str, otherwise: &str| auth.get(name).unwrap_or(otherwise).to_owned();
    let need = |name: &str| {
        auth.need(name)
            .map(str::to_owned)
            .map_err(|mistake| within("auth", mistake))
    };
    // COSBench's own samples say `auth_url`, its guide `url`.
    let auth_url = match auth.get("auth_url").or_else(|| auth.get("url")) {
        Some(url) => url.to_owned(),
        None => need("auth_url")?,
    };
    let (auth_version, user, project) = match kind {
        "keystone" => (
            auth.get("auth_version").unwrap_or("3"),
            need("username")?,
            text("tenant_name", &text("project_name", "")),
        ),
        _ => ("1.0", need("username")?, String::new()),
    };
    let credentials = AccountCredentials {
        auth_url,
        auth_version: auth_version.to_owned(),
        user,
        key: Secret(need("password")?),
        project_name: project,
        project_domain_name: text("project_domain_name", ""),
        user_domain_name: text("user_domain_name", ""),
        region_name: text("region", ""),
        endpoint_type: text("endpoint_type", "publicURL"),
    };
    let retries = auth
        .number("retry")
        .map_err(|mistake| within("auth", mistake))?
        .unwrap_or(0);
    let connections: KeystoneConnections = trusting(world, trust.insecure, trust.cafile.as_ref())?;
    let mut attempt = 0;
    loop {
        match credentials.access(&connections).await {
            Err(_) if attempt < retries => {
                attempt += 1;
                world.clock.sleep(Duration::from_secs(1)).await;
            }
            done => return done,
        }
    }
}

fn connector(world: &World, trust: &Trust) -> Result<TlsConnector, Fault> {
    let settings = AuthTokenSettings {
        insecure: trust.insecure,
        cafile: trust.cafile.clone(),
        ..AuthTokenSettings::default()
    };
    tls::connector(&settings, &*world.files, &Scope::empty()).map_err(|error| Fault::caller(error.to_string()))
}

fn within(element: &str, mistake: WorkloadMistake) -> Fault {
    Fault::caller(mistake.within(format_args!("<{element}>")).to_string())
}
