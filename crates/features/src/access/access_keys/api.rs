//! `/access-keys/ACCOUNT`: how an account's owner makes, lists, changes, rotates and deletes keys.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /access-keys/ACCOUNT` | lists the keys of the account |
//! | `POST /access-keys/ACCOUNT` | makes one; the answer alone tells its secret |
//! | `GET /access-keys/ACCOUNT/ID` | one key |
//! | `POST /access-keys/ACCOUNT/ID` | changes what the body names |
//! | `POST /access-keys/ACCOUNT/ID/rotate` | gives it a new secret, which the answer tells |
//! | `DELETE /access-keys/ACCOUNT/ID` | deletes it |
//!
//! Bodies and answers are JSON. Always holds: only who owns the account is answered, as its authenticator says; rights
//! that were lent to the one who asks make, change and rotate no key, which would outlast them; a body
//! with a field that is not known changes nothing; an answer with a secret may not be kept by caches.

use super::store::{KeyStore, StoreUnavailable};
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode};
use identity::access_key::{self, KeyHolder, KeyLimits, KeyRecord};
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use settings::S3ApiSettings;
use std::time::Duration;
use vocabulary::{EntityPath, calendar};
use world::World;

/// What the paths begin with.
const PREFIX: &str = "/access-keys/";
/// Bytes of a body.
const LARGEST_BODY: u64 = 64 * 1024;
/// Buckets or actions of one key, and bytes of all of them and of the description.
const MOST_LIMITS: usize = 100;
const LONGEST_TEXTS: usize = 16 * 1024;

/// The half behind the authenticators.
pub struct AccessKeysApi {
    store: KeyStore,
    most: usize,
    world: World,
}

/// What a new key is to be.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct NewKey {
    user: Option<String>,
    buckets: Vec<String>,
    actions: Vec<String>,
    expires: Option<String>,
    expires_in: Option<u64>,
    description: String,
}

/// What is to be changed of a key; the rest stays.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct KeyChange {
    enabled: Option<bool>,
    buckets: Option<Vec<String>>,
    actions: Option<Vec<String>>,
    /// `null`: no end.
    #[serde(deserialize_with = "present")]
    expires: Option<Option<String>>,
    expires_in: Option<u64>,
    description: Option<String>,
}

/// How a key gets a new secret.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Rotation {
    /// Seconds for which the secret that it has stays good.
    grace: u64,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// An answer that is not what was asked for.
struct Refusal(Box<Response>);

type Answer = Result<Response, Refusal>;

impl AccessKeysApi {
    /// `account` is the store's.
    pub fn new(settings: &S3ApiSettings, account: String, world: World) -> Self {
        Self {
            store: KeyStore::new(account, Duration::ZERO, world.clone()),
            most: settings.access_keys_per_account,
            world,
        }
    }

    async fn answer(&self, mut request: ClientRequest, next: &Next) -> Answer {
        let path = request.path.clone();
        let mut parts = path[PREFIX.len()..].split('/');
        let account = parts.next().unwrap_or_default().to_owned();
        let (id, verb, rest) = (parts.next(), parts.next(), parts.next());
        let is_key = |id: &str| access_key::is_key_id(id) && access_key::tag_of_id(id) == access_key::tag(&account);
        if account.is_empty() || rest.is_some() {
            return Err(refuse(404, "No such resource."));
        }
        authorise(&request, next, &account).await?;
        let authorizer = request.authorizer.as_ref();
        if request.method == Method::POST
            && let Some(why) = authorizer.and_then(|authorizer| authorizer.refuses_keys())
        {
            return Err(refuse(403, &why));
        }
        match (request.method.clone(), id, verb) {
            (Method::GET | Method::HEAD, None, None) => self.list(&request, next, &account).await,
            (Method::POST, None, None) => self.create(&mut request, next, &account).await,
            (_, None, None) => Err(not_allowed("GET, HEAD, POST")),
            (_, Some(id), _) if !is_key(id) => Err(no_such_key()),
            (Method::GET | Method::HEAD, Some(id), None) => {
                Ok(shown(200, &self.read(&request, next, &account, id).await?, None))
            }
            (Method::POST, Some(id), None) => self.change(&mut request, next, &account, id).await,
            (Method::DELETE, Some(id), None) => {
                match self.store.read(&request, next, id).await {
                    // That it is the account's is known by its id alone.
                    Err(error) if error.is_of_one_record() => tracing::warn!("a key of {account} is deleted: {error}"),
                    found => drop(
                        found?
                            .filter(|record| record.account == account)
                            .ok_or_else(no_such_key)?,
                    ),
                }
                match self.store.delete(&request, next, id).await? {
                    true => Ok(reply::status(204)),
                    false => Err(no_such_key()),
                }
            }
            (_, Some(_), None) => Err(not_allowed("GET, HEAD, POST, DELETE")),
            (Method::POST, Some(id), Some("rotate")) => self.rotate(&mut request, next, &account, id).await,
            (_, Some(_), Some("rotate")) => Err(not_allowed("POST")),
            _ => Err(refuse(404, "No such resource.")),
        }
    }

    async fn list(&self, request: &ClientRequest, next: &Next, account: &str) -> Answer {
        let found = self.store.list(request, next, account).await?;
        let keys: Vec<Value> = found.records.iter().map(|record| describe(record, None)).collect();
        let mut shown = json!({"keys": keys});
        if !found.unreadable.is_empty() {
            shown["unreadable"] = found.unreadable.into();
        }
        Ok(with_json(200, &shown))
    }

    async fn read(&self, request: &ClientRequest, next: &Next, account: &str, id: &str) -> Result<KeyRecord, Refusal> {
        let record = self.store.read(request, next, id).await?;
        record
            .filter(|record| record.account == account)
            .ok_or_else(no_such_key)
    }

    async fn create(&self, request: &mut ClientRequest, next: &Next, account: &str) -> Answer {
        let wanted: NewKey = body_of(request).await?;
        let now = self.world.clock.now().seconds();
        let limits = KeyLimits {
            buckets: wanted.buckets,
            actions: wanted.actions,
        };
        check(&limits, &wanted.description)?;
        let expires = end(wanted.expires.as_deref(), wanted.expires_in, now)?;
        let authorizer = request.authorizer.clone();
        let holder = authorizer.and_then(|authorizer| authorizer.key_holder(request, account, wanted.user.as_deref()));
        let holder: Option<KeyHolder> = holder.and_then(|holder| serde_json::from_value(holder).ok());
        let holder = holder.ok_or_else(|| {
            refuse(
                400,
                "user: expected a user of this account (account:user), with Keystone the one who asks.",
            )
        })?;
        let there = self.store.list(request, next, account).await?;
        if there.records.len() + there.unreadable.len() >= self.most {
            let most = self.most;
            return Err(refuse(
                409,
                &format!("The account has {most} keys already (access_keys_per_account)."),
            ));
        }
        let record = KeyRecord {
            id: access_key::new_id(account, self.random()),
            account: account.to_owned(),
            holder,
            secret: self.new_secret(),
            former: None,
            enabled: true,
            expires,
            limits,
            description: wanted.description,
            created: now,
            secret_since: now,
        };
        match self.store.write(request, next, &record, true).await? {
            true => Ok(shown(201, &record, Some(&record.secret))),
            false => Err(refuse(503, "The id that was drawn is taken; try again.")),
        }
    }

    async fn change(&self, request: &mut ClientRequest, next: &Next, account: &str, id: &str) -> Answer {
        let wanted: KeyChange = body_of(request).await?;
        let mut record = self.read(request, next, account, id).await?;
        let now = self.world.clock.now().seconds();
        if let Some(enabled) = wanted.enabled {
            record.enabled = enabled;
        }
        if let Some(buckets) = wanted.buckets {
            record.limits.buckets = buckets;
        }
        if let Some(actions) = wanted.actions {
            record.limits.actions = actions;
        }
        if let Some(description) = wanted.description {
            record.description = description;
        }
        match wanted.expires {
            Some(None) if wanted.expires_in.is_none() => record.expires = None,
            expires => {
                let expires = expires.flatten();
                record.expires = end(expires.as_deref(), wanted.expires_in, now)?.or(record.expires);
            }
        }
        check(&record.limits, &record.description)?;
        self.store.write(request, next, &record, false).await?;
        Ok(shown(200, &record, None))
    }

    async fn rotate(&self, request: &mut ClientRequest, next: &Next, account: &str, id: &str) -> Answer {
        let wanted: Rotation = body_of(request).await?;
        let mut record = self.read(request, next, account, id).await?;
        record.rotate(self.new_secret(), self.world.clock.now().seconds(), wanted.grace);
        self.store.write(request, next, &record, false).await?;
        Ok(shown(200, &record, Some(&record.secret)))
    }

    fn random(&self) -> [u8; 16] {
        let mut random = [0; 16];
        self.world.random.fill(&mut random);
        random
    }

    fn new_secret(&self) -> String {
        access_key::new_secret([self.random(), self.random()])
    }
}

#[async_trait::async_trait]
impl Feature for AccessKeysApi {
    fn name(&self) -> &'static str {
        "s3api-access-keys-api"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.path.starts_with(PREFIX)
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let is_head = request.method == Method::HEAD;
        let mut response = match Box::pin(self.answer(request, &next)).await {
            Ok(response) => response,
            Err(refusal) => *refusal.0,
        };
        if is_head {
            *response.body_mut() = peer::Body::empty();
        }
        response
    }
}

/// Lets owners of the account pass.
async fn authorise(request: &ClientRequest, next: &Next, account: &str) -> Result<(), Refusal> {
    let Some(authorizer) = request.authorizer.clone() else {
        return Err(refuse(401, "No authenticator has looked at the request."));
    };
    let mut probe = request.subrequest(Method::POST, EntityPath::account(account), super::SOURCE);
    if let Err(refusal) = authorizer.authorize(&mut probe, next.info()).await {
        return Err(Refusal(Box::new(refusal)));
    }
    match probe.is_owner {
        true => Ok(()),
        false => Err(refuse(403, "Keys are for the account's owner to see and to change.")),
    }
}

async fn body_of<T: DeserializeOwned + Default>(request: &mut ClientRequest) -> Result<T, Refusal> {
    let body = std::mem::replace(&mut request.body, peer::Body::empty());
    let body = body.collect(LARGEST_BODY).await;
    let body = body.map_err(|_| refuse(400, "The body broke off or is too large."))?;
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(&body).map_err(|error| refuse(400, &format!("The body: {error}.")))
}

fn check(limits: &KeyLimits, description: &str) -> Result<(), Refusal> {
    let KeyLimits { buckets, actions } = limits;
    let length: usize = buckets.iter().chain(actions).map(String::len).sum();
    if buckets.len() > MOST_LIMITS || actions.len() > MOST_LIMITS || length + description.len() > LONGEST_TEXTS {
        return Err(refuse(400, "The limits or the description are too long."));
    }
    if buckets.iter().any(String::is_empty) {
        return Err(refuse(400, "buckets: expected names, which may have * and ?."));
    }
    let is_action = |word: &String| {
        ["read", "write", "list", "delete"].contains(&word.as_str())
            || word.to_ascii_lowercase().starts_with("s3:") && s3::authority::actions::is_known(word)
    };
    match actions.iter().find(|word| !is_action(word)) {
        None => Ok(()),
        Some(word) => Err(refuse(
            400,
            &format!("actions: {word}: expected read, write, list, delete or the name of an action (s3:GetObject)."),
        )),
    }
}

/// The end of a key, in seconds since 1970.
fn end(text: Option<&str>, seconds: Option<u64>, now: u64) -> Result<Option<u64>, Refusal> {
    let refusal = |why: &str| Err(refuse(400, why));
    let end = match (text, seconds) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return refusal("Either expires or expires_in can be given."),
        (None, Some(seconds)) => now.checked_add(seconds),
        (Some(text), None) => text
            .strip_suffix('Z')
            .and_then(|text| calendar::parse_iso(text, 59))
            .filter(|(_, rest)| rest.is_empty())
            .map(|(end, _)| end),
    };
    match end.filter(|end| *end < 253_402_300_800) {
        Some(end) if end > now => Ok(Some(end)),
        Some(_) => refusal("expires: the time is over."),
        None => refusal("expires: expected a time such as 2030-01-31T12:00:00Z."),
    }
}

/// What is shown of a key.
fn describe(record: &KeyRecord, secret: Option<&str>) -> Value {
    let time = |seconds: u64| format!("{}Z", calendar::iso(seconds, 'T'));
    let mut shown = json!({
        "access_key_id": record.id,
        "user": record.holder.user,
        "enabled": record.enabled,
        "buckets": record.limits.buckets,
        "actions": record.limits.actions,
        "expires": record.expires.map(time),
        "description": record.description,
        "created": time(record.created),
        "secret_since": time(record.secret_since),
        "former_secret_until": record.former.as_ref().map(|former| time(former.until)),
    });
    if let Some(secret) = secret {
        shown["secret_access_key"] = secret.into();
    }
    shown
}

fn shown(status: u16, record: &KeyRecord, secret: Option<&str>) -> Response {
    with_json(status, &describe(record, secret))
}

fn with_json(status: u16, value: &Value) -> Response {
    let kind = HeaderValue::from_static("application/json; charset=UTF-8");
    let mut response = reply::with_body(status, kind, format!("{value}\n"));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn refuse(status: u16, why: &str) -> Refusal {
    Refusal(Box::new(with_json(status, &json!({"error": why}))))
}

fn no_such_key() -> Refusal {
    refuse(404, "The account has no such key.")
}

fn not_allowed(allowed: &'static str) -> Refusal {
    let mut refusal = refuse(405, "The method is not served here.");
    let headers = refusal.0.headers_mut();
    headers.insert(http::header::ALLOW, HeaderValue::from_static(allowed));
    refusal
}

impl From<StoreUnavailable> for Refusal {
    fn from(unavailable: StoreUnavailable) -> Self {
        tracing::warn!("the store of access keys: {unavailable}");
        let why = match unavailable.is_of_one_record() {
            true => "The key cannot be read; the log of the gateway says why.",
            false => "The store of keys cannot be reached; try again.",
        };
        let mut refusal = refuse(503, why);
        *refusal.0.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        refusal
    }
}
