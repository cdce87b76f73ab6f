//! Keys for encryption, derived from root secrets.
//!
//! A key is the HMAC-SHA256 of a container's or object's path under a root secret. [`Keymaster`] gives
//! requests their [`EncryptionKeys`]; `encryption` behind it uses them. Which secret and path made a key is said in
//! a [`KeyId`], which is stored with what is encrypted; three versions of it are in use:
//!
//! | `v` | path |
//! |---|---|
//! | 1 | an object's name that begins with a slash stands alone; UTF-8 bytes as code points |
//! | 2 | `/account/container/object`; UTF-8 bytes as code points |
//! | 3 | `/account/container/object` as it is |
//!
//! Always holds: neither a secret nor a key is printed, and both are overwritten in memory when dropped; what
//! was encrypted with a secret that is no longer active is decrypted with that secret.
//! Deliberately absent: keys from elsewhere (`kms_keymaster`, `kmip_keymaster`), and changing the keys
//! of what is stored.

use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use request_pipeline::{ClientRequest, Feature, Next, Response};
use serde_json::Value;
use settings::{KeymasterSettings, RootSecret};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use vocabulary::EntityPath;
use zeroize::Zeroizing;

/// A key for AES-256.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Zeroizing<[u8; 32]>);

impl Key {
    /// From its bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key itself.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// HMAC-SHA256 under this key.
    pub fn mac(&self, message: &[u8]) -> [u8; 32] {
        hmac(self.0.as_slice(), message)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(not shown)")
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    // HMAC takes keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// Which secret and path made a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyId {
    version: u8,
    path: String,
    secret: Option<String>,
}

impl KeyId {
    /// Its JSON, as OpenStack prints it.
    pub fn print(&self) -> String {
        let path = match self.version {
            3 => self.path.clone(),
            _ => self.path.bytes().map(char::from).collect(),
        };
        let mut text = String::from("{\"path\": ");
        pythonic::json_text(&mut text, &path);
        if let Some(secret) = &self.secret {
            text.push_str(", \"secret_id\": ");
            pythonic::json_text(&mut text, secret);
        }
        text.push_str(&format!(", \"v\": \"{}\"}}", self.version));
        text
    }
}

/// The keys of a container, and of an object in it.
pub struct EncryptionKeys {
    /// For what listings show.
    pub container: Key,
    /// For everything else; absent for requests about a container.
    pub object: Option<Key>,
    /// How to find them again.
    pub id: KeyId,
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No secret has that name here.
    #[error("no root secret {} is configured", .0.as_deref().map_or("without a name".into(), |id| format!("encryption_root_secret_{id}")))]
    UnknownSecret(Option<String>),
    /// It is not an id that this program knows.
    #[error("{0} is no key id")]
    NoId(String),
    /// No keymaster has seen the request.
    #[error("the pipeline has no keymaster in front of encryption")]
    NoKeymaster,
}

/// All root secrets, and which of them encrypts.
pub struct RootSecrets {
    version: u8,
    active: Option<String>,
    /// The active one first.
    secrets: Vec<(Option<String>, RootSecret)>,
}

impl fmt::Debug for RootSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.secrets.iter().map(|(id, _)| id.as_deref()).collect();
        write!(f, "RootSecrets({ids:?})")
    }
}

impl RootSecrets {
    /// As configured.
    pub fn new(settings: KeymasterSettings) -> Self {
        let KeymasterSettings {
            version,
            active,
            mut secrets,
        } = settings;
        secrets.sort_by_key(|(id, _)| *id != active);
        Self {
            version,
            active,
            secrets,
        }
    }

    /// The keys that encrypt new data of a container or object.
    pub fn current(&self, entity: &EntityPath) -> Result<EncryptionKeys, KeyError> {
        self.derive(entity, self.version, self.active.clone())
    }

    /// The keys that an id names, for a request about `entity`; an empty id names the current ones.
    pub fn named(&self, entity: &EntityPath, id: &Value) -> Result<EncryptionKeys, KeyError> {
        let wrong = || KeyError::NoId(id.to_string());
        let fields = id.as_object().ok_or_else(wrong)?;
        if fields.is_empty() {
            return self.current(entity);
        }
        let version = match fields.get("v").and_then(Value::as_str) {
            Some("1") => 1,
            Some("2") => 2,
            Some("3") => 3,
            _ => return Err(wrong()),
        };
        let path = fields.get("path").and_then(Value::as_str).ok_or_else(wrong)?;
        let path = match version {
            3 => path.to_owned(),
            _ => from_code_points(path),
        };
        let secret = match fields.get("secret_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(wrong()),
        };
        let named = match version {
            1 => of_version_1(entity, &path),
            _ => split(&path),
        };
        let named = named.ok_or_else(wrong)?;
        if entity.object.is_some() && named.object.is_none() {
            return Err(wrong());
        }
        let object = named.object.filter(|_| entity.object.is_some());
        self.derive(&EntityPath { object, ..named }, version, secret)
    }

    /// The object's key under every secret, the active one's first, and in every version. (OpenStack takes that
    /// of the version it writes: conditions fail there for an object `/x` that was written in another.)
    pub fn object_keys<'a>(&'a self, entity: &'a EntityPath) -> impl Iterator<Item = Key> + 'a {
        let (first, now) = (key_path(entity, 1), key_path(entity, 2));
        let paths = match first == now {
            true => vec![now],
            false => vec![now, first],
        };
        self.secrets.iter().flat_map(move |(_, secret)| {
            let key = |path: &String| Key::new(hmac(secret.bytes(), path.as_bytes()));
            paths.iter().map(key).collect::<Vec<Key>>()
        })
    }

    fn derive(&self, entity: &EntityPath, version: u8, id: Option<String>) -> Result<EncryptionKeys, KeyError> {
        let found = self.secrets.iter().find(|(name, _)| *name == id);
        let Some((_, secret)) = found else {
            return Err(KeyError::UnknownSecret(id));
        };
        let key = |path: &str| Key::new(hmac(secret.bytes(), path.as_bytes()));
        let container = format!(
            "/{}/{}",
            entity.account,
            entity.container.as_deref().unwrap_or_default()
        );
        let path = key_path(entity, version);
        Ok(EncryptionKeys {
            container: key(&container),
            object: entity.object.is_some().then(|| key(&path)),
            id: KeyId {
                version,
                path,
                secret: id,
            },
        })
    }
}

/// What an object's key is derived from.
fn key_path(entity: &EntityPath, version: u8) -> String {
    match &entity.object {
        Some(object) if version == 1 && object.starts_with('/') => object.clone(),
        _ => entity.path(),
    }
}

/// Text whose code points are UTF-8 bytes; text that is not of that kind is meant as it is.
fn from_code_points(text: &str) -> String {
    let bytes: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
    let decoded = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_else(|| text.to_owned())
}

/// In version 1 only the object's part of the path counts.
fn of_version_1(entity: &EntityPath, path: &str) -> Option<EntityPath> {
    let container = entity.container.as_deref().unwrap_or_default();
    let own = format!("/{}/{container}", entity.account);
    let object = match path.strip_prefix(&own) {
        // The object is called as its container's path is. (OpenStack's fails there.)
        Some("") if entity.object.as_deref() == Some(path) => Some(path),
        Some("") => None,
        Some(rest) if rest.starts_with('/') => Some(&rest[1..]),
        _ => Some(path),
    };
    Some(EntityPath {
        object: object.map(str::to_owned),
        ..entity.clone()
    })
}

fn split(path: &str) -> Option<EntityPath> {
    let mut parts = path.strip_prefix('/')?.splitn(3, '/');
    let mut name = || parts.next().filter(|name| !name.is_empty());
    let (account, container) = (name()?.to_owned(), name()?.to_owned());
    Some(EntityPath {
        account,
        container: Some(container),
        object: parts.next().map(str::to_owned),
    })
}

/// `egg:swift#keymaster`.
pub struct Keymaster(Arc<RootSecrets>);

impl Keymaster {
    /// With these secrets.
    pub fn new(settings: KeymasterSettings) -> Self {
        Self(Arc::new(RootSecrets::new(settings)))
    }
}

#[async_trait::async_trait]
impl Feature for Keymaster {
    fn name(&self) -> &'static str {
        "keymaster"
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let verbs = [Method::GET, Method::HEAD, Method::PUT, Method::POST];
        if verbs.contains(&request.method) {
            request.extensions.insert(self.0.clone());
        }
        next.run(request).await
    }
}

#[cfg(test)]
pub(crate) mod tests;
