//! Keys that clients send with their requests (S3's SSE-C): the gateway encrypts with them, and keeps none.
//!
//! Comes in: a key, which a feature puts into the [`crate::Request::extensions`] of a request that reads or writes the
//! data of one object. Goes out: `encryption` wraps the keys of bodies with it; what is stored of it is a proof, which
//! no other key has.
//! Always holds: a key is found by its type, never among headers, and is neither printed nor stored; it is
//! overwritten in memory when its last request is over; proofs are compared in constant time.
//! Deliberately absent: how clients send their keys (crate `s3`), and ciphers (`encryption` of crate `features`).

use crate::reply;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue};
use peer::Response;
use peer::message::header_names::X_CUSTOMER_KEY_PROOF;
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use world::Random;
use zeroize::Zeroizing;

/// Bytes of a key, which is one of AES-256.
pub const CUSTOMER_KEY_BYTES: usize = 32;

/// What the two uses of a key begin with, so that neither says anything of the other.
const FOR_PROOFS: &[u8] = b"customer key: proof";
const FOR_BODIES: &[u8] = b"customer key: body keys";

/// The key of a client for the data of one object. Clones share it.
#[derive(Clone)]
pub struct CustomerKey(Arc<Zeroizing<[u8; CUSTOMER_KEY_BYTES]>>);

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey(not shown)")
    }
}

impl CustomerKey {
    /// From its bytes.
    pub fn new(bytes: Zeroizing<[u8; CUSTOMER_KEY_BYTES]>) -> Self {
        Self(Arc::new(bytes))
    }

    /// What is stored with an object to tell another key from this one: `SALT:HMAC`, in base64.
    pub fn proof(&self, random: &dyn Random) -> Option<HeaderValue> {
        let mut salt = [0; 16];
        random.fill(&mut salt);
        let mac = self.mac(FOR_PROOFS, &salt).finalize().into_bytes();
        let text = format!("{}:{}", STANDARD.encode(salt), STANDARD.encode(mac));
        HeaderValue::try_from(text).ok()
    }

    /// Whether this is the key of what has these headers.
    pub fn is_proven_by(&self, headers: &HeaderMap) -> bool {
        let proof = customer_key_proof(headers).and_then(|proof| proof.to_str().ok());
        let parts = proof.and_then(|proof| proof.split_once(':'));
        let decode = |text: &str| STANDARD.decode(text).ok();
        let parts = parts.and_then(|(salt, mac)| Some((decode(salt)?, decode(mac)?)));
        parts.is_some_and(|(salt, mac)| self.mac(FOR_PROOFS, &salt).verify_slice(&mac).is_ok())
    }

    /// The key that wraps the keys of bodies, made of this one and of the keymaster's: without either no body is read.
    pub fn wrapping(&self, keymasters: &[u8; 32]) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.mac(FOR_BODIES, keymasters).finalize().into_bytes().into())
    }

    fn mac(&self, purpose: &[u8], message: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0[..]).expect("HMAC takes keys of any length");
        mac.update(purpose);
        mac.update(message);
        mac
    }
}

/// The proof among the headers of an object that is encrypted with a client's key.
pub fn customer_key_proof(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(X_CUSTOMER_KEY_PROOF).filter(|proof| !proof.is_empty())
}

/// The key of the object that a request copies from.
#[derive(Debug, Clone)]
pub struct CopySourceKey(pub CustomerKey);

/// With a read: what is encrypted with a client's key is to be sent as it is stored, and what it takes to store it
/// elsewhere stands among the answer's extensions. With a copy: its source is to be read so.
#[derive(Debug, Clone, Copy)]
pub struct KeepsSealed;

/// Why an object is not shown that is encrypted with the key of a client: among the extensions of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CustomerKeyRefusal {
    /// The request has no key.
    #[error(
        "The object is encrypted with a key of its owner, which has to come with the request: read it through the S3 \
         API with x-amz-server-side-encryption-customer-key."
    )]
    Missing,
    /// The request has another key.
    #[error("The object is encrypted with another key than that of the request.")]
    Wrong,
}

impl CustomerKeyRefusal {
    /// The answer to a client of Swift's API.
    pub fn answer(self) -> Response {
        let status = match self {
            Self::Missing => 400,
            Self::Wrong => 403,
        };
        let mut response = reply::plain(status, self.to_string());
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use world::random::OsRandom;

    fn key(byte: u8) -> CustomerKey {
        CustomerKey::new(Zeroizing::new([byte; CUSTOMER_KEY_BYTES]))
    }

    fn with(proof: HeaderValue) -> HeaderMap {
        HeaderMap::from_iter([(X_CUSTOMER_KEY_PROOF, proof)])
    }

    #[test]
    fn a_proof_is_of_one_key() {
        let proof = key(1).proof(&OsRandom).unwrap();
        assert_ne!(key(1).proof(&OsRandom).unwrap(), proof);
        assert!(key(1).is_proven_by(&with(proof.clone())));
        assert!(!key(2).is_proven_by(&with(proof)));
        for bad in ["", ":", "AAAA", "AAAA:", "AAAA:AAAA", "!:!"] {
            assert!(!key(1).is_proven_by(&with(HeaderValue::from_static(bad))), "{bad}");
        }
        assert!(!key(1).is_proven_by(&HeaderMap::new()));
        assert_eq!(customer_key_proof(&with(HeaderValue::from_static(""))), None);
    }

    #[test]
    fn both_keys_make_the_wrapping_one() {
        let made = key(1).wrapping(&[3; 32]);
        assert_eq!(*made, *key(1).wrapping(&[3; 32]));
        assert_ne!(*made, *key(2).wrapping(&[3; 32]));
        assert_ne!(*made, *key(1).wrapping(&[4; 32]));
        assert_eq!(
            format!("{:?}", CopySourceKey(key(b'k'))),
            "CopySourceKey(CustomerKey(not shown))"
        );
    }
}
