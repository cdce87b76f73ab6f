//! What is encrypted on its way in.
//!
//! | of the client | stored |
//! |---|---|
//! | the body | encrypted with a random key, which `X-Object-Sysmeta-Crypto-Body-Meta` holds, encrypted |
//! | its MD5 | `X-Object-Sysmeta-Crypto-Etag`, encrypted; for conditions its HMAC in `…-Crypto-Etag-Mac` |
//! | what the listing shows | `X-Object-Sysmeta-Container-Update-Override-Etag`, encrypted with the container's key |
//! | `X-Object-Meta-<name>` | `X-Object-Transient-Sysmeta-Crypto-Meta-<name>`, encrypted with the object's key |
//!
//! With a client's own key, which the request has with it and whose proof stands among its headers, the body's key is
//! encrypted with both keys. The first three are known at the end of the body only: they are footers. An empty body
//! is stored as it is, so is metadata without a value.
//! Always holds: a client's entity tag is compared with what the client sent, never with what is stored.

use super::cipher::{Cipher, new_iv, new_key};
use super::meta::{self, Wrapping, encrypt_value};
use super::sealed::SealedBody;
use super::{
    BODY_META, CIPHER, CRYPTO_ETAG, EMPTY, ENCRYPTED_USER_META, ETAG_MAC, EncryptionError, LISTED_ETAG, USER_META,
    USER_META_KEY, secrets_of,
};
use crate::encryption::keymaster::{EncryptionKeys, Key, KeyError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use md5::{Digest, Md5};
use parking_lot::Mutex;
use peer::Body;
use peer::message::header_names::{X_CRYPTO_CIPHER, X_ETAG_IS_AT};
use request_pipeline::{
    ClientRequest, CustomerKey, CustomerKeyRefusal, Footers, Response,
    constraints::{check_metadata, joined},
    customer_key_proof, reply,
};
use std::collections::HashSet;
use std::sync::Arc;
use vocabulary::metadata::Entity;
use vocabulary::{EntityPath, Limits};
use world::Random;

/// What is known of a body in the clear.
#[derive(Default)]
pub(super) struct Plain {
    md5: Md5,
    bytes: u64,
    /// Its entity tag, once it has ended and is stored encrypted.
    etag: Option<String>,
}

/// Encrypts what is to be stored.
pub(super) struct Encrypter {
    limits: Limits,
    random: Arc<dyn Random>,
}

impl Encrypter {
    pub(super) fn new(limits: Limits, random: Arc<dyn Random>) -> Self {
        Self { limits, random }
    }

    /// Makes `request` one that stores an encrypted object.
    pub(super) fn put(&self, request: &mut ClientRequest, entity: &EntityPath) -> Result<Arc<Mutex<Plain>>, Response> {
        let keys = self.prepare(request, entity)?;
        // What a request inherits is not meant for objects that it writes besides, which have no proof.
        let has_proof = customer_key_proof(&request.headers).is_some();
        if let Some(sealed) = request.extensions.remove::<SealedBody>().filter(|_| has_proof) {
            return self.put_sealed(request, sealed, &keys);
        }
        let customer = request.extensions.get::<CustomerKey>().filter(|_| has_proof);
        if customer.is_some_and(|customer| !customer.is_proven_by(&request.headers)) {
            return Err(CustomerKeyRefusal::Wrong.answer());
        }
        let customer = customer.cloned();
        let (body_key, body_iv) = (new_key(&*self.random), new_iv(&*self.random));
        let plain = Arc::new(Mutex::new(Plain::default()));
        let body = std::mem::replace(&mut request.body, Body::empty());
        request.body = encrypted(body, Cipher::new(&body_key, &body_iv), plain.clone());
        let ending = Ending {
            random: self.random.clone(),
            plain: plain.clone(),
            promised: request.headers.remove(ETAG),
            listed: request.headers.get(LISTED_ETAG).cloned(),
            inner: request.footers.take(),
            body_key,
            body_iv,
            keys,
            customer,
        };
        request.footers = Some(Box::new(move || ending.footers()));
        Ok(plain)
    }

    /// Makes `request` one that stores a body which is encrypted already, and stays as it is.
    fn put_sealed(
        &self,
        request: &mut ClientRequest,
        sealed: SealedBody,
        (keys, object): &(EncryptionKeys, Key),
    ) -> Result<Arc<Mutex<Plain>>, Response> {
        let SealedBody {
            body_meta,
            etag,
            stored_etag,
        } = sealed;
        let etag = String::from_utf8_lossy(etag.as_bytes()).trim_matches('"').to_owned();
        let (headers, random) = (&mut request.headers, &*self.random);
        headers.remove(ETAG);
        headers.extend(stored_etag.map(|stored| (ETAG, stored)));
        headers.insert(BODY_META, body_meta);
        // The body's metadata name the keys of another path.
        let hidden = encrypt_value(etag.as_bytes(), object, Some(&keys.id), random);
        insert(headers, CRYPTO_ETAG, &hidden);
        insert(headers, ETAG_MAC, &STANDARD.encode(object.mac(etag.as_bytes())));
        let listed = headers.get(LISTED_ETAG).filter(|listed| !listed.is_empty());
        let listed = listed.map_or(etag.as_bytes(), HeaderValue::as_bytes);
        let hidden = encrypt_value(listed, &keys.container, Some(&keys.id), random);
        insert(headers, LISTED_ETAG, &hidden);
        let plain = Plain {
            etag: Some(etag),
            ..Plain::default()
        };
        Ok(Arc::new(Mutex::new(plain)))
    }

    /// Makes `request` one that stores encrypted metadata.
    pub(super) fn post(&self, request: &mut ClientRequest, entity: &EntityPath) -> Result<(), Response> {
        self.prepare(request, entity).map(|_| ())
    }

    /// The keys to encrypt with; metadata is encrypted already.
    fn prepare(&self, request: &mut ClientRequest, entity: &EntityPath) -> Result<(EncryptionKeys, Key), Response> {
        check_metadata(request, Entity::Object, &self.limits)?;
        let keys = secrets_of(request).and_then(|secrets| secrets.current(entity));
        let with_object = keys.and_then(|mut keys| {
            let object = keys.object.take().ok_or(KeyError::NoId(entity.path()))?;
            Ok((keys, object))
        });
        let (keys, object) =
            with_object.map_err(|error| EncryptionError::from(error).answer(&request.method, &request.path))?;
        self.encrypt_user_metadata(&mut request.headers, &keys, &object);
        Ok((keys, object))
    }

    fn encrypt_user_metadata(&self, headers: &mut HeaderMap, keys: &EncryptionKeys, object: &Key) {
        let has_value = |name: &&HeaderName| {
            name.as_str().starts_with(USER_META) && joined(headers, name).is_some_and(|value| !value.is_empty())
        };
        let names: Vec<HeaderName> = headers.keys().filter(has_value).cloned().collect();
        if names.is_empty() {
            return;
        }
        for name in names {
            let short = &name.as_str()[USER_META.len()..];
            let new = HeaderName::try_from(format!("{ENCRYPTED_USER_META}{short}"));
            let value = joined(headers, &name);
            headers.remove(&name);
            if let (Ok(new), Some(value)) = (new, value) {
                insert(
                    headers,
                    new,
                    &encrypt_value(value.as_bytes(), object, None, &*self.random),
                );
            }
        }
        insert(headers, USER_META_KEY, &meta::of_key(&keys.id));
    }
}

/// Sets a header of this module's own making, which is ASCII.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn encrypted(body: Body, mut cipher: Cipher, plain: Arc<Mutex<Plain>>) -> Body {
    let mut pass = move |bytes: Bytes| {
        let mut plain = plain.lock();
        plain.md5.update(&bytes);
        plain.bytes += bytes.len() as u64;
        cipher.pass(bytes)
    };
    if let Some(bytes) = body.as_whole() {
        drop(body);
        return Body::whole(pass(bytes));
    }
    let length = body.length();
    let chunks = futures_util::stream::unfold((body, pass), |(mut body, mut pass)| async move {
        let chunk = body.next().await?.map(&mut pass);
        Some((chunk, (body, pass)))
    });
    Body::stream(chunks, length)
}

/// What is to be done once the body has ended.
struct Ending {
    random: Arc<dyn Random>,
    plain: Arc<Mutex<Plain>>,
    /// The client's entity tag.
    promised: Option<HeaderValue>,
    /// What a feature wants the listing to show.
    listed: Option<HeaderValue>,
    /// What features in front have to say at the end.
    inner: Option<Footers>,
    body_key: Key,
    body_iv: [u8; 16],
    keys: (EncryptionKeys, Key),
    /// The client's own key.
    customer: Option<CustomerKey>,
}

impl Ending {
    fn footers(mut self) -> Result<HeaderMap, Response> {
        let inner = self.inner.take().map(|inner| inner());
        let mut footers = inner.transpose()?.unwrap_or_default();
        let promised = footers.remove(ETAG).or(self.promised.take());
        let mut plain = self.plain.lock();
        if plain.bytes == 0 {
            footers.extend(promised.map(|etag| (ETAG, etag)));
            self.hide_listed_etag(&mut footers, None);
            return Ok(footers);
        }
        let md5 = std::mem::take(&mut plain.md5).finalize();
        let etag = vocabulary::hex::encode(md5);
        if promised.is_some_and(|promised| promised != etag.as_str()) {
            return Err(reply::status(422));
        }
        let ((keys, object), random) = (&self.keys, &*self.random);
        let with_customers = self
            .customer
            .as_ref()
            .map(|key| Key::new(*key.wrapping(object.bytes())));
        let wrapping = match &with_customers {
            Some(both) => (Wrapping::Customer, both),
            None => (Wrapping::Keymaster, object),
        };
        let body = meta::of_body((&self.body_key, &self.body_iv), wrapping, &keys.id, random);
        insert(&mut footers, BODY_META, &body);
        let hidden = encrypt_value(etag.as_bytes(), object, None, random);
        insert(&mut footers, CRYPTO_ETAG, &hidden);
        insert(&mut footers, ETAG_MAC, &STANDARD.encode(object.mac(etag.as_bytes())));
        self.hide_listed_etag(&mut footers, Some(&etag));
        plain.etag = Some(etag);
        Ok(footers)
    }

    /// `etag` is what listings show when no feature says otherwise; absent for an empty body, whose entity tag
    /// is no secret.
    fn hide_listed_etag(&self, footers: &mut HeaderMap, etag: Option<&str>) {
        let (keys, _) = &self.keys;
        let wanted = footers.get(LISTED_ETAG).or(self.listed.as_ref());
        let shown = wanted.map(HeaderValue::as_bytes).or(etag.map(str::as_bytes));
        let is_secret = |shown: &&[u8]| !shown.is_empty() && (etag.is_some() || *shown != EMPTY.as_bytes());
        if let Some(shown) = shown.filter(is_secret) {
            let hidden = encrypt_value(shown, &keys.container, Some(&keys.id), &*self.random);
            insert(footers, LISTED_ETAG, &hidden);
        }
    }
}

/// The answer to a PUT with the entity tag that the client knows; for features in front it says that the body is
/// encrypted, unless there was none.
pub(super) fn in_the_clear(mut response: Response, plain: &Mutex<Plain>) -> Response {
    let etag = plain.lock().etag.take();
    let Some(etag) = etag.filter(|_| response.status().is_success()) else {
        return response;
    };
    let headers = response.headers_mut();
    headers.insert(X_CRYPTO_CIPHER, CIPHER);
    if headers.contains_key(ETAG) {
        insert(headers, ETAG, &etag);
    }
    response
}

/// Adds to conditions on entity tags what storage servers can compare: the HMAC of each under the object's
/// key, for every root secret.
pub(super) fn hide_conditions(request: &mut ClientRequest, entity: &EntityPath) -> Result<(), EncryptionError> {
    if !request.headers.contains_key(IF_MATCH) && !request.headers.contains_key(IF_NONE_MATCH) {
        return Ok(());
    }
    let keys: Vec<Key> = secrets_of(request)?.object_keys(entity).collect();
    let (mut changed, mut room) = (false, LONGEST_CONDITIONS);
    for name in [IF_MATCH, IF_NONE_MATCH] {
        let Some(tags) = joined(&request.headers, &name) else {
            continue;
        };
        if let Some(hidden) = with_macs(tags.as_bytes(), &keys, &mut room)? {
            request.headers.insert(name, hidden);
            changed = true;
        }
    }
    if changed {
        let before = request.header(X_ETAG_IS_AT.as_str());
        let places = before.map_or_else(String::new, |before| format!("{before},"));
        insert(
            &mut request.headers,
            X_ETAG_IS_AT,
            &format!("{places}X-Object-Sysmeta-Crypto-Etag-Mac"),
        );
    }
    Ok(())
}

/// Bytes that conditions may have with what is added to them: a tag of two bytes gets 48 more for each root secret, and
/// storage servers read heads of 64 KiB.
const LONGEST_CONDITIONS: usize = 56 * 1024;

/// Each tag once, with its HMACs; `None` when there is no tag to add anything to. What is made is taken from `room`.
fn with_macs(tags: &[u8], keys: &[Key], room: &mut usize) -> Result<Option<HeaderValue>, EncryptionError> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut add = |tag: Vec<u8>| -> Result<(), EncryptionError> {
        *room = room
            .checked_sub(tag.len() + 2)
            .ok_or(EncryptionError::TooManyConditions)?;
        all.push(tag);
        Ok(())
    };
    let mut seen = HashSet::new();
    for tag in tags.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if tag == b"*" {
            add(tag.to_vec())?;
            continue;
        }
        let bare = tag
            .strip_prefix(b"\"")
            .and_then(|tag| tag.strip_suffix(b"\""))
            .unwrap_or(tag);
        if tag.is_empty() || !seen.insert(bare) {
            continue;
        }
        let quoted = |tag: &[u8]| [b"\"", tag, b"\""].concat();
        add(quoted(bare))?;
        for key in keys {
            add(quoted(STANDARD.encode(key.mac(bare)).as_bytes()))?;
        }
    }
    let all = HeaderValue::from_bytes(&all.join(&b", "[..])).ok();
    Ok(all.filter(|_| !seen.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    /// What OpenStack sent to the object server, with 32 `r` as root secret.
    #[test]
    fn tags_get_their_macs() {
        let secrets = crate::encryption::keymaster::tests::secrets(2, "");
        let entity = EntityPath::split("a/c/o").unwrap();
        let keys: Vec<Key> = secrets.object_keys(&entity).collect();
        let hidden = |tags: &str| {
            let hidden = with_macs(tags.as_bytes(), &keys, &mut { LONGEST_CONDITIONS });
            hidden.unwrap().map(|value| value.to_str().unwrap().to_owned())
        };
        const ABC: &str = r#""abc", "mLPjl5XSMaVATQOwfY5PV3pJf4eE5dVFcKdUdfp3s2E=""#;
        const DEF: &str = r#""def", "0cbBtVZ/RwP7J1aubjZQqQpnxJy63T/uB3Mg3A9Z1V0=""#;
        for (tags, expected) in [
            ("abc", Some(ABC.to_owned())),
            ("\"abc\"", Some(ABC.to_owned())),
            ("abc, \"def\"", Some(format!("{ABC}, {DEF}"))),
            ("abc, \"def\",abc,, def", Some(format!("{ABC}, {DEF}"))),
            ("\"abc\", *", Some(format!("{ABC}, *"))),
            (
                "W/\"abc\"",
                Some(r#""W/"abc"", "W+MtURy9qEx/av8lggGzHrBfMudanny7Qm61CeGUR/Q=""#.to_owned()),
            ),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(hidden(tags), expected, "{tags}");
        }
    }

    #[test]
    fn conditions_that_would_fill_a_head_are_refused() {
        let secrets = crate::encryption::keymaster::tests::secrets(2, "");
        let keys: Vec<Key> = secrets.object_keys(&EntityPath::split("a/c/o").unwrap()).collect();
        let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>().join(",");
        let mut room = LONGEST_CONDITIONS;
        let hidden = with_macs(tags(1000).as_bytes(), &keys, &mut room).unwrap().unwrap();
        assert!(hidden.len() <= LONGEST_CONDITIONS && room < 4_000, "{room}");
        let refused = with_macs(tags(1000).as_bytes(), &keys, &mut room);
        assert_eq!(refused, Err(EncryptionError::TooManyConditions));
        assert_eq!(refused.unwrap_err().answer(&Method::GET, "/v1/a/c/o").status(), 431);
        // The same tag is one condition, however often it comes.
        let same = with_macs("a,".repeat(30_000).as_bytes(), &keys, &mut { LONGEST_CONDITIONS });
        assert!(same.unwrap().unwrap().len() < 100);
    }
}
