//! Crypto-metadata: which cipher, initialisation vector and key something was encrypted with.
//!
//! It is a JSON object, quoted for a URL, either alone in a header or behind a value:
//!
//! ```text
//! {"body_key": {"iv": <base64>, "key": <base64>}, "cipher": "AES_CTR_256", "iv": <base64>, "key_id": {…}}
//! <base64 of what is encrypted>; swift_meta=<quoted JSON>
//! ```
//!
//! A body whose key is wrapped with the key of a client as well has a cipher of another name, so that who does not know
//! of such keys refuses it.
//!
//! Always holds: fields are printed in order of their names, with Python's spaces, as OpenStack prints
//! them; reading refuses another cipher, and vectors and keys of another length.

use crate::encryption::cipher::{Iv, crypt, new_iv};
use crate::encryption::keymaster::{Key, KeyId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};
use world::Random;
use zeroize::Zeroizing;

const CIPHER: &str = "AES_CTR_256";
/// The same cipher; the body key is wrapped with the key of a client as well.
const CUSTOMER_CIPHER: &str = "AES_CTR_256_CUSTOMER_KEY";
const BEHIND: &str = "swift_meta=";
/// What Python's `quote_plus` leaves as it is, and the space, which becomes a plus.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'.')
    .remove(b'-')
    .remove(b'~')
    .remove(b' ');

/// Why something is not crypto-metadata, or not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadMeta(pub(crate) &'static str);

fn quote(text: &str) -> String {
    utf8_percent_encode(text, QUOTED).to_string().replace(' ', "+")
}

/// Whose keys wrap the key of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// The keymaster's.
    Keymaster,
    /// The keymaster's and a client's together.
    Customer,
}

/// Crypto-metadata that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CryptoMeta(Map<String, Value>);

impl CryptoMeta {
    /// Reads what stands in a header by itself, or behind `swift_meta=`.
    pub(crate) fn parse(text: &str) -> Result<Self, BadMeta> {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8();
        let decoded = decoded.map_err(|_| BadMeta("crypto-metadata is not UTF-8"))?;
        match serde_json::from_str(&decoded) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            _ => Err(BadMeta("crypto-metadata is no JSON object")),
        }
    }

    /// The id of the key; absent where another header says it.
    pub(crate) fn key_id(&self) -> Option<&Value> {
        self.0.get("key_id")
    }

    /// The vector, if the cipher is ours.
    pub(crate) fn iv(&self) -> Result<Iv, BadMeta> {
        match self.of_body()? {
            (Wrapping::Keymaster, iv) => Ok(iv),
            (Wrapping::Customer, _) => Err(BadMeta("the cipher is not AES_CTR_256")),
        }
    }

    /// The same of a body, and whose keys wrap its key.
    pub(crate) fn of_body(&self) -> Result<(Wrapping, Iv), BadMeta> {
        let wrapping = match self.0.get("cipher").and_then(Value::as_str) {
            Some(CIPHER) => Wrapping::Keymaster,
            Some(CUSTOMER_CIPHER) => Wrapping::Customer,
            _ => return Err(BadMeta("the cipher is not AES_CTR_256")),
        };
        let iv = read(self.0.get("iv"), "the initialisation vector is not 16 bytes in base64")?;
        Ok((wrapping, iv))
    }

    /// The key of a body, which is encrypted with `wrapping`.
    pub(crate) fn body_key(&self, wrapping: &Key) -> Result<Key, BadMeta> {
        let field = |name| self.0.get("body_key").and_then(|wrapped| wrapped.get(name));
        let iv: Iv = read(field("iv"), "the body key's vector is not 16 bytes in base64")?;
        let wrapped: [u8; 32] = read(field("key"), "the body key is not 32 bytes in base64")?;
        let key = Zeroizing::new(crypt(wrapping, &iv, &wrapped));
        let key = <[u8; 32]>::try_from(key.as_slice());
        key.map(Key::new)
            .map_err(|_| BadMeta("the body key is not 32 bytes in base64"))
    }
}

fn read<const N: usize>(field: Option<&Value>, wrong: &'static str) -> Result<[u8; N], BadMeta> {
    let bytes = field
        .and_then(Value::as_str)
        .and_then(|text| STANDARD.decode(text).ok());
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(BadMeta(wrong))
}

/// For a body, encrypted with `key` from `iv`, the key itself encrypted with `wrapping`, which `whose` says.
pub(crate) fn of_body(
    (key, iv): (&Key, &Iv),
    (whose, wrapping): (Wrapping, &Key),
    id: &KeyId,
    random: &dyn Random,
) -> String {
    let cipher = match whose {
        Wrapping::Keymaster => CIPHER,
        Wrapping::Customer => CUSTOMER_CIPHER,
    };
    let key_iv = new_iv(random);
    let wrapped = STANDARD.encode(crypt(wrapping, &key_iv, key.bytes()));
    quote(&format!(
        "{{\"body_key\": {{\"iv\": \"{}\", \"key\": \"{wrapped}\"}}, \"cipher\": \"{cipher}\", \"iv\": \"{}\", \"key_id\": {}}}",
        STANDARD.encode(key_iv),
        STANDARD.encode(iv),
        id.print(),
    ))
}

/// For all user metadata of an object: what the vectors behind the values have in common.
pub(crate) fn of_key(id: &KeyId) -> String {
    quote(&format!("{{\"cipher\": \"{CIPHER}\", \"key_id\": {}}}", id.print()))
}

/// A value, encrypted, with its crypto-metadata behind it; `id` where no other header says it.
pub(crate) fn encrypt_value(value: &[u8], key: &Key, id: Option<&KeyId>, random: &dyn Random) -> String {
    let iv = new_iv(random);
    let id = id.map_or_else(String::new, |id| format!(", \"key_id\": {}", id.print()));
    let meta = format!("{{\"cipher\": \"{CIPHER}\", \"iv\": \"{}\"{id}}}", STANDARD.encode(iv));
    let encrypted = STANDARD.encode(crypt(key, &iv, value));
    format!("{encrypted}; {BEHIND}{}", quote(&meta))
}

/// A value with crypto-metadata behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncryptedValue<'a> {
    value: &'a str,
    pub(crate) meta: CryptoMeta,
}

impl<'a> EncryptedValue<'a> {
    /// `None` when nothing says that it is encrypted.
    pub(crate) fn parse(text: &'a str) -> Result<Option<Self>, BadMeta> {
        let mut parts = text.split(';');
        let value = parts.next().unwrap_or_default();
        let Some(meta) = parts.find_map(|part| part.trim().strip_prefix(BEHIND)) else {
            return Ok(None);
        };
        let meta = CryptoMeta::parse(meta)?;
        Ok(Some(Self { value, meta }))
    }

    /// The value itself.
    pub(crate) fn decrypt(&self, key: &Key) -> Result<Vec<u8>, BadMeta> {
        let iv = self.meta.iv()?;
        let encrypted = STANDARD.decode(self.value.trim());
        let encrypted = encrypted.map_err(|_| BadMeta("an encrypted value is not base64"))?;
        Ok(crypt(key, &iv, &encrypted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use world::random::OsRandom;

    fn key() -> Key {
        Key::new([7; 32])
    }

    /// Written by OpenStack for `bar`, with 32 `r` as root secret.
    #[test]
    fn what_openstack_wrote_is_read() {
        let value = "G/XK; swift_meta=%7B%22cipher%22%3A+%22AES_CTR_256%22%2C+%22iv%22%3A+%22cnIoeJQdZKSZm8bvnDmcOg%3D%3D%22%7D";
        let key = Key::new([
            0x62, 0x6e, 0xaa, 0xcb, 0x40, 0x78, 0x5d, 0xdb, 0x2e, 0x27, 0x9a, 0xb7, 0x2a, 0x5d, 0x15, 0x58, 0x97, 0x5d,
            0xf7, 0xdf, 0xe2, 0x7b, 0xdd, 0xa7, 0xd8, 0x16, 0x36, 0xa1, 0xa7, 0x4d, 0x1b, 0xe9,
        ]);
        let read = EncryptedValue::parse(value).unwrap().unwrap();
        assert_eq!(read.decrypt(&key).unwrap(), b"bar");
        assert_eq!(read.meta.key_id(), None);
    }

    #[test]
    fn values_come_back() {
        for value in ["", "bar", "ü; swift_meta=x"] {
            let text = encrypt_value(value.as_bytes(), &key(), None, &OsRandom);
            let read = EncryptedValue::parse(&text).unwrap().unwrap();
            assert_eq!(read.decrypt(&key()).unwrap(), value.as_bytes());
            assert_ne!(read.decrypt(&Key::new([8; 32])), Ok(b"bar".to_vec()));
        }
        for plain in ["plain", "", "over; slo_etag=y", "x; swift_met=%7B%7D"] {
            assert_eq!(EncryptedValue::parse(plain), Ok(None));
        }
    }

    #[test]
    fn other_ciphers_and_lengths_are_refused() {
        let meta = |value: Value| CryptoMeta::parse(&quote(&value.to_string())).unwrap();
        let iv = "aWlpaWlpaWlpaWlpaWlpaQ==";
        assert_eq!(meta(json!({"cipher": CIPHER, "iv": iv})).iv(), Ok([b'i'; 16]));
        for value in [
            json!({}),
            json!({"iv": iv}),
            json!({"cipher": "X", "iv": iv}),
            json!({"cipher": CIPHER}),
            json!({"cipher": CIPHER, "iv": "aWk="}),
            json!({"cipher": CIPHER, "iv": "!!!"}),
            json!({"cipher": CIPHER, "iv": 5}),
        ] {
            assert!(meta(value.clone()).iv().is_err(), "{value}");
        }
        for wrapped in [
            json!(null),
            json!({"iv": iv}),
            json!({"iv": iv, "key": iv}),
            json!({"key": iv}),
            json!([1]),
        ] {
            assert!(
                meta(json!({"body_key": wrapped})).body_key(&key()).is_err(),
                "{wrapped}"
            );
        }
        let customers = meta(json!({"cipher": CUSTOMER_CIPHER, "iv": iv}));
        assert_eq!(customers.of_body(), Ok((Wrapping::Customer, [b'i'; 16])));
        assert!(customers.iv().is_err());
        for bad in ["garbage", "%7B", "[]", "", "%ff"] {
            assert!(CryptoMeta::parse(bad).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}", json in r#"\{("(iv|key_id|cipher|body_key)":("[a-zA-Z0-9+/=]{0,24}"|\{\}|5),?){0,4}\}"#) {
            for text in [text.clone(), quote(&json), format!("{text}; swift_meta={}", quote(&json))] {
                if let Ok(meta) = CryptoMeta::parse(&text) {
                    let _ = (meta.iv(), meta.body_key(&key()), meta.key_id());
                }
                if let Ok(Some(value)) = EncryptedValue::parse(&text) {
                    let _ = value.decrypt(&key());
                }
            }
        }
    }
}
