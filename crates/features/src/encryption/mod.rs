//! `encryption`: what lies on disks is encrypted, what clients see is not.
//!
//! On the way in the body, its entity tag and user metadata of objects are encrypted; on the way out they
//! and the entity tags of listings are decrypted. Keys come from a keymaster in front
//! ([`keymaster`]). What was stored in the clear stays readable.
//!
//! | question | file |
//! |---|---|
//! | a PUT, a POST, conditions | `encrypter.rs` |
//! | a GET, a HEAD | `decrypter.rs`; several ranges: `parts.rs` |
//! | a listing | `listing.rs` |
//! | keys | `keymaster.rs` |
//! | names and bytes of what is stored | `meta.rs`, `cipher.rs` |
//! | moving what only a client's key opens | `sealed.rs` |
//!
//! A client may have sent a key of its own (S3's SSE-C, [`request_pipeline::CustomerKey`]): a body is then encrypted
//! with a key that is wrapped with both keys, and sent to no client without that key. All else stays with the
//! keymaster, so that HEAD, listings, conditions and upkeep do without it.
//! Upkeep that moves an object within its path asks for it as it is stored ([`X_CRYPTO_AS_STORED`]).
//! Always holds: nothing of what can be encrypted is stored in the clear for want of a key; what cannot be
//! decrypted is answered 500 and said in the log, and never passed on as it lies there.
//! Deliberately absent: encrypting again what was stored before, and detecting changes that
//! was made on a disk.
//!
//! Tests: beside the code; with OpenStack's proxy on the same objects in `tests/interop`.

mod cipher;
mod decrypter;
mod encrypter;
pub mod keymaster;
mod listing;
mod meta;
mod parts;
mod sealed;

use crate::encryption::keymaster::{KeyError, RootSecrets};
use encrypter::Encrypter;
use http::{HeaderName, HeaderValue, Method};
use meta::BadMeta;
use peer::Body;
use peer::message::header_names::X_CRYPTO_AS_STORED;
use request_pipeline::{ClientRequest, CustomerKeyRefusal, Feature, Next, Response, reply};
use sealed::SealedBody;
pub(crate) use sealed::{carry, read_sealed};
use serde_json::{Value, json};
use settings::EncryptionSettings;
use std::sync::Arc;
use vocabulary::{EntityPath, Limits};
use world::Random;

const BODY_META: HeaderName = HeaderName::from_static("x-object-sysmeta-crypto-body-meta");
const CRYPTO_ETAG: HeaderName = HeaderName::from_static("x-object-sysmeta-crypto-etag");
const ETAG_MAC: HeaderName = HeaderName::from_static("x-object-sysmeta-crypto-etag-mac");
const LISTED_ETAG: HeaderName = HeaderName::from_static("x-object-sysmeta-container-update-override-etag");
const USER_META_KEY: HeaderName = HeaderName::from_static("x-object-transient-sysmeta-crypto-meta");
const ENCRYPTED_USER_META: &str = "x-object-transient-sysmeta-crypto-meta-";
const USER_META: &str = "x-object-meta-";
/// What [`peer::message::header_names::X_CRYPTO_CIPHER`] says of what was or is encrypted.
const CIPHER: HeaderValue = HeaderValue::from_static("AES_CTR_256");
/// The MD5 of nothing.
const EMPTY: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// `egg:swift#encryption`.
pub struct Encryption {
    enabled: bool,
    encrypter: Encrypter,
}

impl Encryption {
    /// `limits` are those of user metadata, which no server can see any more once it is encrypted.
    pub fn new(settings: &EncryptionSettings, limits: Limits, random: Arc<dyn Random>) -> Self {
        Self {
            enabled: !settings.disable_encryption,
            encrypter: Encrypter::new(limits, random),
        }
    }

    async fn put(&self, mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        match self.encrypter.put(&mut request, entity) {
            Ok(plain) => encrypter::in_the_clear(next.run(request).await, &plain),
            Err(refusal) => refusal,
        }
    }

    async fn post(&self, mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        match self.encrypter.post(&mut request, entity) {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal,
        }
    }

    async fn read(&self, mut request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        if let Err(error) = encrypter::hide_conditions(&mut request, entity) {
            return error.answer(&request.method, &request.path);
        }
        let (method, secrets) = (request.method.clone(), secrets_in(&request).cloned());
        let reading = decrypter::ObjectReading::of(&request);
        let response = next.run(request).await;
        if !decrypter::is_encrypted(response.headers()) {
            return response;
        }
        let decrypted = decrypter::object(secrets.as_deref(), entity, &reading, response);
        decrypted.unwrap_or_else(|error| error.answer(&method, &entity.path()))
    }

    async fn list(&self, request: ClientRequest, entity: &EntityPath, next: Next) -> Response {
        let secrets = secrets_in(&request).cloned();
        let (head, body) = next.run(request).await.into_parts();
        if !head.status.is_success() || !listing::is_json(&head.headers) {
            return Response::from_parts(head, body);
        }
        let rows = match body.collect(listing::MOST).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::error!("the listing of {} cannot be decrypted: {error}", entity.path());
                return reply::status(503);
            }
        };
        match listing::decrypt(secrets.as_deref(), entity, &rows) {
            Ok(None) => Response::from_parts(head, Body::whole(rows)),
            Ok(Some(rows)) => {
                let mut response = Response::from_parts(head, Body::empty());
                let length = HeaderValue::from(rows.len());
                response.headers_mut().insert("content-length", length);
                response.map(|_| Body::whole(rows))
            }
            Err(error) => error.answer(&Method::GET, &entity.path()),
        }
    }
}

#[async_trait::async_trait]
impl Feature for Encryption {
    fn name(&self) -> &'static str {
        "encryption"
    }

    async fn handle(&self, request: ClientRequest, next: Next) -> Response {
        let entity = request.entity.clone().filter(|entity| entity.container.is_some());
        let Some(entity) = entity.filter(|_| !request.is_true(X_CRYPTO_AS_STORED.as_str())) else {
            return next.run(request).await;
        };
        match (request.method.as_str(), entity.object.is_some()) {
            ("PUT", true) if self.enabled || request.extensions.get::<SealedBody>().is_some() => {
                self.put(request, &entity, next).await
            }
            ("POST", true) if self.enabled => self.post(request, &entity, next).await,
            ("GET" | "HEAD", true) => self.read(request, &entity, next).await,
            ("GET", false) => self.list(request, &entity, next).await,
            _ => next.run(request).await,
        }
    }

    fn info_for_administrators(&self) -> Vec<(&'static str, Value)> {
        vec![("encryption", json!({"enabled": self.enabled}))]
    }
}

/// Why something can be neither encrypted nor decrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum EncryptionError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Customer(#[from] CustomerKeyRefusal),
    #[error("its body or keys: {0}")]
    Object(BadMeta),
    #[error("header {0}: {1}")]
    Header(HeaderName, BadMeta),
    #[error("the conditions on entity tags are too long")]
    TooManyConditions,
}

impl EncryptionError {
    /// 500, and the log says why; what is the client's fault stands in the answer.
    fn answer(&self, method: &Method, path: &str) -> Response {
        if !matches!(self, Self::Customer(_) | Self::TooManyConditions) {
            tracing::error!("{method} {path}: cannot encrypt or decrypt: {self}");
        }
        let mut response = match self {
            Self::Customer(refusal) => refusal.answer(),
            Self::TooManyConditions => reply::status(431),
            Self::Key(KeyError::UnknownSecret(_)) | Self::Object(_) => reply::plain(500, "Error decrypting object"),
            Self::Header(..) => reply::plain(500, "Error decrypting header"),
            Self::Key(_) => reply::html(500, "Unable to retrieve encryption keys.".into()),
        };
        if method == Method::HEAD {
            response = response.map(|_| Body::empty());
        }
        response
    }
}

/// The secrets that a keymaster has left for encryption behind it.
fn secrets_in(request: &ClientRequest) -> Option<&Arc<RootSecrets>> {
    request.extensions.get()
}

/// [`secrets_in`] what has to be encrypted.
fn secrets_of(request: &ClientRequest) -> Result<&RootSecrets, KeyError> {
    secrets_in(request)
        .map(|secrets| &**secrets)
        .ok_or(KeyError::NoKeymaster)
}

#[cfg(test)]
mod tests;
