//! What is decrypted on its way out: an object's body, entity tag and user metadata.
//!
//! Always holds: of what encryption stores with an object, clients and features see nothing; a header that
//! cannot be decrypted is 500, but for the entity tag meant for the listing, which only features see: it is left out,
//! so that links can be followed and replaced whose secret is lost. A root secret that is not the one an object was
//! written with is found out by its entity tag, which then is no text. A body that a client's key has encrypted is
//! shown to who sends that key.

use super::cipher::{BodyKey, first_byte};
use super::meta::{BadMeta, CryptoMeta, EncryptedValue, Wrapping};
use super::parts::ByteRangeParts;
use super::sealed::SealedBody;
use super::{
    BODY_META, CIPHER, CRYPTO_ETAG, ENCRYPTED_USER_META, EncryptionError, LISTED_ETAG, USER_META, USER_META_KEY,
};
use crate::encryption::keymaster::{EncryptionKeys, Key, KeyError, RootSecrets};
use bytes::Bytes;
use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use peer::message::header_names::X_CRYPTO_CIPHER;
use peer::{Body, BodyError};
use request_pipeline::{ClientRequest, CustomerKey, CustomerKeyRefusal, KeepsSealed, Response, customer_key_proof};
use serde_json::{Map, Value};
use vocabulary::EntityPath;

const OWN: &str = "x-object-sysmeta-crypto-";

/// Whether an answer about an object has anything to decrypt.
pub(super) fn is_encrypted(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| is_own(name.as_str()) || *name == LISTED_ETAG)
}

fn is_own(name: &str) -> bool {
    name.starts_with(OWN) || name.starts_with(USER_META_KEY.as_str())
}

/// What of a request decides about what it is shown.
pub(super) struct ObjectReading {
    method: Method,
    /// The client's own key.
    customer: Option<CustomerKey>,
    /// Whether what only a client's key opens is sent as it is stored.
    keeps_sealed: bool,
}

impl ObjectReading {
    pub(super) fn of(request: &ClientRequest) -> Self {
        Self {
            method: request.method.clone(),
            customer: request.extensions.get().cloned(),
            keeps_sealed: request.extensions.get::<KeepsSealed>().is_some(),
        }
    }

    /// The key of the body that has these crypto-metadata, in an answer with these headers; nothing where it is to stay
    /// as it is stored.
    fn body_key(
        &self,
        meta: &CryptoMeta,
        keymasters: &Key,
        headers: &HeaderMap,
    ) -> Result<Option<BodyKey>, EncryptionError> {
        let (wrapping, iv) = meta.of_body().map_err(EncryptionError::Object)?;
        let key = match wrapping {
            _ if self.method != Method::GET => return Ok(None),
            Wrapping::Keymaster => meta.body_key(keymasters),
            Wrapping::Customer if self.keeps_sealed => return Ok(None),
            Wrapping::Customer => {
                let customer = self.customer.as_ref().ok_or(CustomerKeyRefusal::Missing)?;
                if customer_key_proof(headers).is_none() {
                    return Err(EncryptionError::Object(BadMeta(
                        "there is no proof of the client's key",
                    )));
                }
                if !customer.is_proven_by(headers) {
                    return Err(CustomerKeyRefusal::Wrong.into());
                }
                meta.body_key(&Key::new(*customer.wrapping(keymasters.bytes())))
            }
        };
        let key = key.map_err(EncryptionError::Object)?;
        Ok(Some(BodyKey { key, iv }))
    }
}

/// An answer about an object as clients see it.
pub(super) fn object(
    secrets: Option<&RootSecrets>,
    entity: &EntityPath,
    reading: &ObjectReading,
    response: Response,
) -> Result<Response, EncryptionError> {
    let (mut head, body) = response.into_parts();
    let decrypter = Decrypter { secrets, entity };
    let body_meta = text(&head.headers, &BODY_META)?.map(CryptoMeta::parse).transpose();
    let body_meta = body_meta.map_err(EncryptionError::Object)?;
    let mut content = None;
    if let Some(meta) = &body_meta {
        let keys = decrypter.keys(meta.key_id())?;
        if head.status.is_success() {
            content = reading.body_key(meta, object_key(&keys)?, &head.headers)?;
            head.headers.insert(X_CRYPTO_CIPHER, CIPHER);
        }
    }
    let stored_etag = head.headers.get(ETAG).cloned();
    decrypter.etag(&mut head.headers, body_meta.as_ref())?;
    let is_sealed = reading.keeps_sealed && reading.method == Method::GET && content.is_none();
    if is_sealed
        && head.status.is_success()
        && let (Some(body_meta), Some(etag)) = (head.headers.get(&BODY_META), head.headers.get(ETAG))
    {
        let (body_meta, etag) = (body_meta.clone(), etag.clone());
        head.extensions.insert(SealedBody {
            body_meta,
            etag,
            stored_etag,
        });
    }
    if let Err(error) = decrypter.listed_etag(&mut head.headers) {
        tracing::warn!("{}: the entity tag for its listing is left out: {error}", entity.path());
        head.headers.remove(LISTED_ETAG);
    }
    decrypter.user_metadata(&mut head.headers)?;
    let own: Vec<HeaderName> = head
        .headers
        .keys()
        .filter(|name| is_own(name.as_str()))
        .cloned()
        .collect();
    own.iter().for_each(|name| drop(head.headers.remove(name)));
    let body = match content {
        Some(content) => decrypt_body(content, body, head.status, &head.headers)?,
        None => body,
    };
    Ok(Response::from_parts(head, body))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, EncryptionError> {
    let value = headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
    let value = value.transpose();
    value.map_err(|_| EncryptionError::Header(name.clone(), BadMeta("it is not UTF-8")))
}

fn object_key(keys: &EncryptionKeys) -> Result<&Key, EncryptionError> {
    let none = || KeyError::NoId(keys.id.print()).into();
    keys.object.as_ref().ok_or_else(none)
}

struct Decrypter<'a> {
    secrets: Option<&'a RootSecrets>,
    entity: &'a EntityPath,
}

impl Decrypter<'_> {
    /// The keys that an id names; the current ones without an id.
    fn keys(&self, id: Option<&Value>) -> Result<EncryptionKeys, EncryptionError> {
        let secrets = self.secrets.ok_or(KeyError::NoKeymaster)?;
        let keys = match id {
            Some(id) => secrets.named(self.entity, id),
            None => secrets.named(self.entity, &Value::Object(Map::new())),
        };
        Ok(keys?)
    }

    fn etag(&self, headers: &mut HeaderMap, body_meta: Option<&CryptoMeta>) -> Result<(), EncryptionError> {
        let Some(hidden) = text(headers, &CRYPTO_ETAG)? else {
            return Ok(());
        };
        let wrong = |error| EncryptionError::Header(CRYPTO_ETAG, error);
        if body_meta.is_none() {
            return Err(wrong(BadMeta("the body it is of has no crypto-metadata")));
        }
        let hidden = EncryptedValue::parse(hidden).map_err(wrong)?;
        let hidden = hidden.ok_or_else(|| wrong(BadMeta("it has no crypto-metadata")))?;
        let keys = self.keys(hidden.meta.key_id().or_else(|| body_meta?.key_id()))?;
        let etag = hidden.decrypt(object_key(&keys)?).map_err(wrong)?;
        let is_text = !etag.is_empty() && etag.iter().all(u8::is_ascii_graphic);
        let etag = HeaderValue::from_bytes(&etag).ok().filter(|_| is_text);
        let etag = etag.ok_or_else(|| {
            tracing::error!(
                "the root secret that {} names is not the one it was written with",
                keys.id.print()
            );
            wrong(BadMeta("the decrypted entity tag is no text"))
        })?;
        headers.insert(ETAG, etag);
        Ok(())
    }

    fn listed_etag(&self, headers: &mut HeaderMap) -> Result<(), EncryptionError> {
        let Some(hidden) = text(headers, &LISTED_ETAG)? else {
            return Ok(());
        };
        let wrong = |error| EncryptionError::Header(LISTED_ETAG, error);
        let Some(hidden) = EncryptedValue::parse(hidden).map_err(wrong)? else {
            return Ok(());
        };
        let keys = self.keys(hidden.meta.key_id())?;
        let etag = hidden.decrypt(&keys.container).map_err(wrong)?;
        let etag = HeaderValue::from_bytes(&etag).map_err(|_| wrong(BadMeta("decrypted, it is no header")))?;
        headers.insert(LISTED_ETAG, etag);
        Ok(())
    }

    fn user_metadata(&self, headers: &mut HeaderMap) -> Result<(), EncryptionError> {
        let names: Vec<HeaderName> = headers
            .keys()
            .filter(|name| name.as_str().starts_with(ENCRYPTED_USER_META))
            .cloned()
            .collect();
        let common = text(headers, &USER_META_KEY)?.map(CryptoMeta::parse).transpose();
        let common = common.map_err(|error| EncryptionError::Header(USER_META_KEY, error))?;
        if names.is_empty() && common.is_none() {
            return Ok(());
        }
        let keys = self.keys(common.as_ref().and_then(CryptoMeta::key_id))?;
        let key = object_key(&keys)?;
        let mut exposed = Vec::new();
        for name in names {
            let wrong = |error| EncryptionError::Header(name.clone(), error);
            let Some(hidden) = text(headers, &name)? else { continue };
            let hidden = EncryptedValue::parse(hidden).map_err(wrong)?;
            let hidden = hidden.ok_or_else(|| wrong(BadMeta("it has no crypto-metadata")))?;
            let value = HeaderValue::from_bytes(&hidden.decrypt(key).map_err(wrong)?);
            let value = value.map_err(|_| wrong(BadMeta("decrypted, it is no header")))?;
            let shown = format!("{USER_META}{}", &name.as_str()[ENCRYPTED_USER_META.len()..]);
            if let Ok(shown) = HeaderName::try_from(shown) {
                exposed.push(shown.clone());
                headers.insert(shown, value);
            }
        }
        expose(headers, &exposed);
        Ok(())
    }
}

/// Pages from elsewhere may see user metadata: the gateway has exposed what it saw, which was not it.
fn expose(headers: &mut HeaderMap, names: &[HeaderName]) {
    let Some(before) = headers.get(ACCESS_CONTROL_EXPOSE_HEADERS) else {
        return;
    };
    let mut all = before.as_bytes().to_vec();
    for name in names {
        all.extend_from_slice(b", ");
        all.extend_from_slice(name.as_str().as_bytes());
    }
    if let Ok(all) = HeaderValue::from_bytes(&all) {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, all);
    }
}

/// `body` in the clear.
fn decrypt_body(
    content: BodyKey,
    body: Body,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Body, EncryptionError> {
    let range = text(headers, &CONTENT_RANGE)?;
    if status == StatusCode::PARTIAL_CONTENT && range.is_none() {
        let mut parts = ByteRangeParts::new(content);
        return Ok(changed(body, move |bytes| parts.decrypt(&bytes)));
    }
    let wrong = || EncryptionError::Header(CONTENT_RANGE, BadMeta("it has no first byte"));
    let offset = range.map(|range| first_byte(range).ok_or_else(wrong)).transpose()?;
    let mut cipher = content.cipher_from(offset.unwrap_or(0));
    Ok(changed(body, move |bytes| Ok(cipher.pass(bytes))))
}

/// `body` with every chunk changed into as many bytes.
fn changed(body: Body, mut change: impl FnMut(Bytes) -> Result<Bytes, BodyError> + Send + 'static) -> Body {
    if let Some(bytes) = body.as_whole() {
        drop(body);
        if let Ok(changed) = change(bytes) {
            return Body::whole(changed);
        }
        let failed = futures_util::stream::iter([Err(BodyError::Corrupt)]);
        return Body::stream(failed, None);
    }
    let length = body.length();
    let chunks = futures_util::stream::unfold((body, change), |(mut body, mut change)| async move {
        let chunk = body.next().await?.and_then(&mut change);
        Some((chunk, (body, change)))
    });
    Body::stream(chunks, length)
}
