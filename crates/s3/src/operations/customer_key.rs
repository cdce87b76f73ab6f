//! Encryption with keys of clients (SSE-C): the key in a request's headers, and the objects that it opens.
//!
//! The key goes with the requests that read or write data ([`CustomerKey`]), and `encryption`, further in, encrypts
//! with it. What is stored is a salted HMAC, its proof, with the object, with its upload's marker and with each part,
//! so that a wrong key is refused before anything is sent.
//! Always holds: without the key of an object, or with another one, nothing of it is shown, headers included; a key is
//! taken from headers only, and only where nothing between here and the client could read it.
//! Source: AWS, "Using server-side encryption with customer-provided keys"; codes and words as AWS documents them.

use super::Operation;
use crate::error::{
    ACCESS_DENIED, INVALID_ARGUMENT, INVALID_ENCRYPTION_ALGORITHM, INVALID_REQUEST, NOT_IMPLEMENTED, S3Error,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use md5::{Digest, Md5};
use peer::message::header_names::X_CUSTOMER_KEY_PROOF;
use request_pipeline::{
    CUSTOMER_KEY_BYTES, ClientRequest, CopySourceKey, CustomerKey, CustomerKeyRefusal, Request, Response,
    customer_key_proof,
};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// What asks for encryption, and says that there is some.
pub(super) const ENCRYPTION: &str = "x-amz-server-side-encryption";
pub(super) const NO_ENCRYPTION: &str = "this gateway does not encrypt: put the filters keymaster and encryption into its \
                                        pipeline behind authentication, without disable_encryption.";
const AES256: &str = "AES256";
/// In answers, too.
const ALGORITHM: &str = "x-amz-server-side-encryption-customer-algorithm";
const KEY_MD5: &str = "x-amz-server-side-encryption-customer-key-md5";
/// What the headers of a key begin with: of the object itself, and of the source of a copy.
pub(super) const OF_OBJECT: &str = "x-amz-server-side-encryption-customer-";
const OF_SOURCE: &str = "x-amz-copy-source-server-side-encryption-customer-";
/// With it an object that `encryption` has encrypted comes here if nothing has decrypted it.
const STILL_ENCRYPTED: &str = "x-object-sysmeta-crypto-body-meta";

/// A key that the client has sent.
#[derive(Debug, Clone)]
pub(super) struct SentKey {
    key: CustomerKey,
    /// Its MD5 in base64, as it was sent.
    md5: HeaderValue,
}

impl SentKey {
    /// Gives the request the key of the object that it is about.
    pub(super) fn open(&self, request: &mut ClientRequest) {
        request.extensions.insert(self.key.clone());
    }

    /// Gives the request the key of the object that it copies.
    pub(super) fn open_source(&self, request: &mut ClientRequest) {
        request.extensions.insert(CopySourceKey(self.key.clone()));
    }

    /// Says in an answer that the object is encrypted with this key.
    pub(super) fn show(&self, answer: &mut HeaderMap) {
        answer.remove(ENCRYPTION);
        answer.insert(ALGORITHM, HeaderValue::from_static(AES256));
        answer.insert(KEY_MD5, self.md5.clone());
    }
}

/// Says so of the key that there is, if there is one.
pub(super) fn show(answer: &mut HeaderMap, key: Option<&SentKey>) {
    if let Some(key) = key {
        key.show(answer);
    }
}

/// The proof of no key, which takes away that of a copy's source.
pub(super) fn without_proof(headers: &mut HeaderMap) {
    headers.insert(X_CUSTOMER_KEY_PROOF, HeaderValue::from_static(""));
}

/// Carries the proof of an upload over to what is made of it.
pub(super) fn carry_proof(marker: &HeaderMap, stored: &mut HeaderMap) {
    if let Some(proof) = customer_key_proof(marker) {
        stored.insert(X_CUSTOMER_KEY_PROOF, proof.clone());
    }
}

/// Refuses to show the object with these headers to who does not have its key.
pub(super) fn check(found: &HeaderMap, key: Option<&SentKey>) -> Result<(), S3Error> {
    match (customer_key_proof(found), key) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(not_applicable()),
        (Some(_), None) => Err(missing()),
        (Some(_), Some(sent)) if !sent.key.is_proven_by(found) => Err(wrong()),
        (Some(_), Some(_)) if found.contains_key(STILL_ENCRYPTED) => Err(NOT_IMPLEMENTED.saying(format!(
            "The object is encrypted with a key of a client, and {NO_ENCRYPTION}"
        ))),
        (Some(_), Some(_)) => Ok(()),
    }
}

/// The same of an upload, whose marker has these headers, and of the request of a part.
pub(super) fn check_part(marker: &HeaderMap, key: Option<&SentKey>) -> Result<(), S3Error> {
    match (customer_key_proof(marker), key) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(not_applicable()),
        (Some(_), None) => Err(INVALID_REQUEST.saying(
            "The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate \
             encryption parameters.",
        )),
        (Some(_), Some(sent)) if !sent.key.is_proven_by(marker) => {
            Err(INVALID_REQUEST.saying("The provided encryption parameters did not match the ones used originally."))
        }
        (Some(_), Some(_)) => Ok(()),
    }
}

/// What `encryption` has refused for want of the object's key.
pub(super) fn check_answer(response: &Response) -> Result<(), S3Error> {
    match response.extensions().get::<CustomerKeyRefusal>() {
        None => Ok(()),
        Some(CustomerKeyRefusal::Missing) => Err(missing()),
        Some(CustomerKeyRefusal::Wrong) => Err(wrong()),
    }
}

fn missing() -> S3Error {
    INVALID_REQUEST.saying(
        "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to \
         retrieve the object.",
    )
}

fn not_applicable() -> S3Error {
    INVALID_REQUEST.saying("The encryption parameters are not applicable to this object.")
}

fn wrong() -> S3Error {
    ACCESS_DENIED.saying("The provided encryption key is not the one that the object was stored with.")
}

impl Operation<'_> {
    /// The key of the object that the request is about.
    pub(super) fn customer_key(&self) -> Result<Option<SentKey>, S3Error> {
        self.sent_key(OF_OBJECT)
    }

    /// The key of the object that the request copies.
    pub(super) fn source_key(&self) -> Result<Option<SentKey>, S3Error> {
        self.sent_key(OF_SOURCE)
    }

    fn sent_key(&self, prefix: &'static str) -> Result<Option<SentKey>, S3Error> {
        let is_one = |name: &str| {
            name.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if self.call.parameters.iter().any(|(name, _)| is_one(name)) {
            return Err(INVALID_REQUEST.saying(
                "An encryption key and what belongs to it have to be sent in headers: URLs are written to logs.",
            ));
        }
        if !self.request.headers.keys().any(|name| is_one(name.as_str())) {
            return Ok(None);
        }
        if self.service.settings.customer_keys_require_tls && !is_private(&self.request) {
            return Err(INVALID_REQUEST.saying(
                "Requests specifying Server Side Encryption with Customer provided keys must be made over a secure \
                 connection.",
            ));
        }
        read(&self.request.headers, prefix).map(Some)
    }

    /// The headers with which something is stored that is encrypted with this key.
    pub(super) fn prove(&self, key: Option<&SentKey>, stored: &mut HeaderMap) {
        if let Some(proof) = key.and_then(|sent| sent.key.proof(&*self.service.world.random)) {
            stored.insert(X_CUSTOMER_KEY_PROOF, proof);
        }
    }
}

/// Whether nothing between the client and here can read the request: it came by TLS, or to a proxy in front by TLS, or
/// from this machine and through no proxy. A client that lies about its proxy exposes only a key of its own.
fn is_private(request: &Request) -> bool {
    match request.header("x-forwarded-proto") {
        _ if request.scheme == "https" => true,
        Some(protocols) => protocols.split(',').all(|hop| hop.trim().eq_ignore_ascii_case("https")),
        None => request.from.ip().to_canonical().is_loopback() && !request.headers.contains_key("x-forwarded-for"),
    }
}

/// The key in these headers, each of which is needed.
fn read(headers: &HeaderMap, prefix: &'static str) -> Result<SentKey, S3Error> {
    let found = |name: &str| {
        HeaderName::try_from(format!("{prefix}{name}"))
            .ok()
            .and_then(|name| headers.get(name))
    };
    let refuse = |name: &str, words: &str| {
        INVALID_ARGUMENT
            .saying(words)
            .with("ArgumentName", format!("{prefix}{name}"))
    };
    const WITH: &str = "Requests specifying Server Side Encryption with Customer provided keys must provide";
    let algorithm =
        found("algorithm").ok_or_else(|| refuse("algorithm", &format!("{WITH} a valid encryption algorithm.")))?;
    if algorithm != AES256 {
        return Err(INVALID_ENCRYPTION_ALGORITHM
            .about("ArgumentName", format!("{prefix}algorithm"))
            .with("ArgumentValue", String::from_utf8_lossy(algorithm.as_bytes())));
    }
    let text = found("key").ok_or_else(|| refuse("key", &format!("{WITH} an appropriate secret key.")))?;
    let md5 = found("key-md5").ok_or_else(|| {
        refuse(
            "key-md5",
            &format!("{WITH} the client calculated MD5 of the secret key."),
        )
    })?;
    let bytes = Zeroizing::new(STANDARD.decode(text.as_bytes()).unwrap_or_default());
    let mut key = Zeroizing::new([0; CUSTOMER_KEY_BYTES]);
    if bytes.len() != key.len() {
        return Err(refuse("key", "The secret key was invalid for the specified algorithm."));
    }
    key.copy_from_slice(&bytes);
    let computed = Md5::digest(&key[..]);
    let claimed = STANDARD.decode(md5.as_bytes()).unwrap_or_default();
    if !bool::from(computed[..].ct_eq(&claimed)) {
        return Err(refuse(
            "key-md5",
            "The calculated MD5 hash of the key did not match the hash that was provided.",
        ));
    }
    Ok(SentKey {
        key: CustomerKey::new(key),
        md5: md5.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use world::random::OsRandom;

    const KEY: &str = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = HeaderName::try_from(format!("{OF_OBJECT}{name}")).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        });
        pairs.collect()
    }

    fn md5_of(key: &str) -> String {
        STANDARD.encode(Md5::digest(STANDARD.decode(key).unwrap()))
    }

    fn sent(byte: u8) -> SentKey {
        let key = STANDARD.encode([byte; 32]);
        read(
            &headers(&[("algorithm", AES256), ("key", &key), ("key-md5", &md5_of(&key))]),
            OF_OBJECT,
        )
        .unwrap()
    }

    #[test]
    fn all_three_headers_are_needed_and_right() {
        let (md5, short) = (md5_of(KEY), STANDARD.encode([b'k'; 16]));
        let of = |pairs: &[(&str, &str)]| read(&headers(pairs), OF_OBJECT).map_err(|error| error.code.name);
        assert!(of(&[("algorithm", AES256), ("key", KEY), ("key-md5", &md5)]).is_ok());
        for (pairs, code) in [
            (&[("key", KEY), ("key-md5", &*md5)][..], "InvalidArgument"),
            (&[("algorithm", AES256), ("key-md5", &md5)], "InvalidArgument"),
            (&[("algorithm", AES256), ("key", KEY)], "InvalidArgument"),
            (
                &[("algorithm", "AES128"), ("key", KEY), ("key-md5", &md5)],
                "InvalidEncryptionAlgorithmError",
            ),
            (
                &[("algorithm", AES256), ("key", &short), ("key-md5", &md5_of(&short))],
                "InvalidArgument",
            ),
            (
                &[("algorithm", AES256), ("key", "!!"), ("key-md5", &md5)],
                "InvalidArgument",
            ),
            (
                &[("algorithm", AES256), ("key", KEY), ("key-md5", &md5_of(&short))],
                "InvalidArgument",
            ),
            (
                &[("algorithm", AES256), ("key", KEY), ("key-md5", "")],
                "InvalidArgument",
            ),
        ] {
            assert_eq!(of(pairs).unwrap_err(), code, "{pairs:?}");
        }
        let error = read(
            &headers(&[("algorithm", AES256), ("key", KEY), ("key-md5", "x")]),
            OF_OBJECT,
        )
        .unwrap_err();
        assert!(!format!("{error:?}").contains(KEY));
    }

    #[test]
    fn the_objects_own_key_opens_it() {
        let of = |found: &HeaderMap, key: Option<&SentKey>| {
            (
                check(found, key).map_err(|error| error.code.status),
                check_part(found, key).map_err(|error| error.code.status),
            )
        };
        let (own, other) = (sent(1), sent(2));
        let mut found = HeaderMap::new();
        assert_eq!(of(&found, None), (Ok(()), Ok(())));
        assert_eq!(of(&found, Some(&own)), (Err(400), Err(400)));
        found.insert(X_CUSTOMER_KEY_PROOF, own.key.proof(&OsRandom).unwrap());
        assert_eq!(of(&found, Some(&own)), (Ok(()), Ok(())));
        assert_eq!(of(&found, Some(&other)), (Err(403), Err(400)));
        assert_eq!(of(&found, None), (Err(400), Err(400)));
        found.insert(STILL_ENCRYPTED, HeaderValue::from_static("x"));
        assert_eq!(check(&found, Some(&own)).unwrap_err().code, NOT_IMPLEMENTED);
        without_proof(&mut found);
        assert_eq!(of(&found, None), (Ok(()), Ok(())));
    }

    #[test]
    fn keys_come_where_nothing_else_reads_them() {
        let asked = |scheme: &'static str, from: &str, headers: &[(&'static str, &str)]| {
            let mut request = Request::new(Method::GET, "/".into(), "/".into());
            (request.scheme, request.from) = (scheme, format!("{from}:1").parse().unwrap());
            for (name, value) in headers {
                request.set_header(name, value);
            }
            is_private(&request)
        };
        const PROTO: &str = "x-forwarded-proto";
        for (scheme, from, headers, is_taken) in [
            ("https", "192.0.2.1", &[][..], true),
            ("https", "192.0.2.1", &[(PROTO, "http")], true),
            ("http", "192.0.2.1", &[], false),
            ("http", "192.0.2.1", &[(PROTO, "https")], true),
            ("http", "192.0.2.1", &[(PROTO, "https, http")], false),
            ("http", "127.0.0.1", &[], true),
            ("http", "[::1]", &[], true),
            ("http", "[::ffff:127.0.0.1]", &[], true),
            ("http", "127.0.0.1", &[(PROTO, "http")], false),
            ("http", "127.0.0.1", &[("x-forwarded-for", "192.0.2.1")], false),
        ] {
            assert_eq!(asked(scheme, from, headers), is_taken, "{scheme} {from} {headers:?}");
        }
    }
}
