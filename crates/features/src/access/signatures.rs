//! Signatures of addresses and forms: HMACs of what is allowed, made with a key that the owner of an account or
//! a container has set.
//!
//! Always holds: a signature is compared with those of all keys, in constant time; no key or signature
//! that would have been right is shown or logged. A key of a container signs for that container alone; where an
//! account has the same key the signature is the account's, so that no container key narrows it.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use http::header::WWW_AUTHENTICATE;
use identity::www_authenticate;
use request_pipeline::{Authorizer, ClientRequest, InfoSource, Response, reply};
use settings::kinds::{DigestKind, Digests};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use std::collections::BTreeMap;
use subtle::{Choice, ConstantTimeEq};
use vocabulary::EntityPath;

/// Base64 as anybody writes it in an address.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A signature as a client sent it.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature {
    digest: DigestKind,
    bytes: Vec<u8>,
}

impl Signature {
    /// Reads 40, 64 or 128 hexadecimal digits, or `sha256:` and the like before base64.
    pub fn parse(text: &str) -> Option<Self> {
        let (digest, bytes) = match text.split_once(':') {
            Some((name, encoded)) => {
                let digest = DigestKind::ALL.into_iter().find(|digest| digest.name() == name)?;
                let encoded = encoded.replace('+', "-").replace('/', "_");
                (digest, LENIENT.decode(encoded).ok()?)
            }
            None => {
                let bytes = vocabulary::hex::decode_lower(text)?;
                let digest = DigestKind::ALL
                    .into_iter()
                    .find(|digest| digest.length() == bytes.len())?;
                (digest, bytes)
            }
        };
        (bytes.len() == digest.length()).then_some(Self { digest, bytes })
    }

    /// What it was made with: `sha256` and the like.
    pub fn digest(&self) -> &'static str {
        self.digest.name()
    }

    /// Whether signatures of this kind are accepted.
    pub fn is_allowed(&self, allowed: &Digests) -> bool {
        allowed.0.contains(&self.digest)
    }

    /// The scope of the keys that made this signature of one of `texts`; `None` when none did.
    pub fn scope(&self, keys: &SigningKeys, texts: &[Vec<u8>]) -> Option<KeyScope> {
        let made_by = |keys: &[String]| {
            let mut found = Choice::from(0);
            for key in keys {
                for text in texts {
                    found |= self.is_of(key.as_bytes(), text);
                }
            }
            found
        };
        // Both are always computed: how long it takes says nothing about which key was tried.
        let (account, container) = (made_by(&keys.account), made_by(&keys.container));
        match (bool::from(account), bool::from(container)) {
            (true, _) => Some(KeyScope::Account),
            (false, true) => Some(KeyScope::Container),
            (false, false) => None,
        }
    }

    fn is_of(&self, key: &[u8], text: &[u8]) -> Choice {
        let expected = match self.digest {
            DigestKind::Sha1 => mac::<Hmac<Sha1>>(key, text),
            DigestKind::Sha256 => mac::<Hmac<Sha256>>(key, text),
            DigestKind::Sha512 => mac::<Hmac<Sha512>>(key, text),
        };
        expected.ct_eq(&self.bytes)
    }
}

fn mac<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length; an empty answer equals no signature.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// The keys that may sign for a path. Shown nowhere.
pub struct SigningKeys {
    account: Vec<String>,
    container: Vec<String>,
}

/// What a key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScope {
    /// All of its account.
    Account,
    /// Its container.
    Container,
}

impl SigningKeys {
    /// Those of an account and a container of it.
    pub async fn of(info: &dyn InfoSource, account: &str, container: &str) -> Self {
        Self {
            account: keys_in(&info.account(account).await.meta),
            container: keys_in(&info.container(account, container).await.meta),
        }
    }

    /// No key is set.
    pub fn is_empty(&self) -> bool {
        self.account.is_empty() && self.container.is_empty()
    }
}

fn keys_in(meta: &BTreeMap<String, String>) -> Vec<String> {
    let named = ["temp-url-key", "temp-url-key-2"]
        .into_iter()
        .filter_map(|name| meta.get(name));
    named.filter(|key| !key.is_empty()).cloned().collect()
}

/// Allows what stays within an account, or within one container of it.
pub struct Within {
    account: String,
    container: Option<String>,
}

impl Within {
    /// What a key of this scope allows around `entity`.
    pub fn scope(scope: KeyScope, entity: &EntityPath) -> Self {
        Self {
            account: entity.account.clone(),
            container: entity.container.clone().filter(|_| scope == KeyScope::Container),
        }
    }

    fn allows(&self, entity: &EntityPath) -> bool {
        let container_fits = self.container.is_none() || self.container == entity.container;
        self.account == entity.account && container_fits
    }
}

#[async_trait::async_trait]
impl Authorizer for Within {
    async fn authorize(&self, request: &mut ClientRequest, _info: &dyn InfoSource) -> Result<(), Response> {
        if request.entity.as_deref().is_some_and(|entity| self.allows(entity)) {
            return Ok(());
        }
        let mut refusal = reply::status_for(&request.method, 401);
        let realm = www_authenticate(&request.path);
        refusal.headers_mut().insert(WWW_AUTHENTICATE, realm);
        Err(refusal)
    }
}

/// What `/info` says about digests.
pub fn info_of(digests: &Digests) -> serde_json::Map<String, serde_json::Value> {
    let names: Vec<&str> = digests.0.iter().map(|digest| digest.name()).collect();
    let mut info = serde_json::Map::new();
    info.insert("allowed_digests".into(), names.clone().into());
    if names.contains(&"sha1") {
        info.insert("deprecated_digests".into(), vec!["sha1"].into());
    }
    info
}

/// Hexadecimal, for tests of what is signed.
#[cfg(test)]
pub(crate) fn sign(digest: DigestKind, key: &str, text: &str) -> String {
    let bytes = match digest {
        DigestKind::Sha1 => mac::<Hmac<Sha1>>(key.as_bytes(), text.as_bytes()),
        DigestKind::Sha256 => mac::<Hmac<Sha256>>(key.as_bytes(), text.as_bytes()),
        DigestKind::Sha512 => mac::<Hmac<Sha512>>(key.as_bytes(), text.as_bytes()),
    };
    vocabulary::hex::encode(bytes)
}

/// [`sign`], in base64 behind the digest's name.
#[cfg(test)]
pub(crate) fn sign_base64(digest: DigestKind, key: &str, text: &str) -> String {
    let bytes = vocabulary::hex::decode_lower(sign(digest, key, text)).unwrap();
    format!(
        "{}:{}",
        digest.name(),
        base64::engine::general_purpose::STANDARD.encode(bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use proptest::prelude::*;

    fn keys(account: &[&str], container: &[&str]) -> SigningKeys {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        SigningKeys {
            account: owned(account),
            container: owned(container),
        }
    }

    /// Made with Python.
    #[test]
    fn as_python_signs() {
        let text = "GET\n1\n/v1/a/c/o";
        assert_eq!(
            sign(DigestKind::Sha1, "abc", text),
            "026d7f7cc25256450423c7ad03fc9f5ffc1dab6d"
        );
        assert!(sign(DigestKind::Sha512, "abc", text).starts_with("240866478d94bbe683ab1d25fba52c7d0df21a60951"));
    }

    #[test]
    fn every_form_of_every_digest() {
        let keys = keys(&["other", "abc"], &[]);
        let texts = [b"x".to_vec(), b"GET\n1\n/v1/a/c/o".to_vec()];
        for digest in DigestKind::ALL {
            let hex = sign(digest, "abc", "GET\n1\n/v1/a/c/o");
            let base64 = sign_base64(digest, "abc", "GET\n1\n/v1/a/c/o");
            let url_safe = base64.replace('+', "-").replace('/', "_");
            for text in [&hex, &base64, &url_safe, base64.trim_end_matches('=')] {
                let signature = Signature::parse(text).unwrap();
                assert_eq!(signature.scope(&keys, &texts), Some(KeyScope::Account), "{text}");
                assert!(signature.is_allowed(&Digests(vec![digest])));
                assert!(!signature.is_allowed(&Digests(vec![])));
            }
            assert!(Signature::parse(&hex.to_uppercase()).is_none());
            assert!(Signature::parse(&format!("{}:{hex}", digest.name())).is_none());
        }
        for text in [
            "",
            ":",
            "sha256:",
            "sha256:!!!",
            "SHA1:aaaa",
            &"a".repeat(32),
            "md5:aaaa",
        ] {
            assert!(Signature::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_widest_key_decides() {
        let text = [b"t".to_vec()];
        let signature = Signature::parse(&sign(DigestKind::Sha256, "k", "t")).unwrap();
        for (account, container, scope) in [
            (&["k"][..], &[][..], Some(KeyScope::Account)),
            (&["x"], &["y", "k"], Some(KeyScope::Container)),
            (&["k"], &["k"], Some(KeyScope::Account)),
            (&["x"], &["y"], None),
            (&[], &[], None),
        ] {
            assert_eq!(signature.scope(&keys(account, container), &text), scope);
        }
    }

    #[test]
    fn scopes_have_an_end() {
        let entity = |path: &str| EntityPath::split(path).unwrap();
        let account = Within::scope(KeyScope::Account, &entity("a/c/o"));
        assert!(account.allows(&entity("a/d/o")) && account.allows(&entity("a")));
        assert!(!account.allows(&entity("b/c/o")));
        let container = Within::scope(KeyScope::Container, &entity("a/c/o"));
        assert!(container.allows(&entity("a/c/x")) && container.allows(&entity("a/c")));
        assert!(!container.allows(&entity("a/d/o")) && !container.allows(&entity("a")));
    }

    #[tokio::test]
    async fn a_refusal_names_the_realm() {
        let within = Within::scope(KeyScope::Account, &EntityPath::account("a"));
        let info = crate::testing::Answer::new(|_| reply::status(200));
        let mut asked = request("GET", "/v1/b/c/o");
        let refusal = within.authorize(&mut asked, &info).await.unwrap_err();
        assert_eq!(refusal.status(), 401);
        assert_eq!(refusal.headers()[WWW_AUTHENTICATE], "Swift realm=\"b\"");
        let mut asked = request("GET", "/v1/a/c/o");
        assert!(within.authorize(&mut asked, &info).await.is_ok());
        assert!(!asked.is_owner);
    }

    proptest! {
        #[test]
        fn any_text_is_a_signature_or_not(text in "\\PC{0,90}", word in "(sha1|sha256|sha512|md5)?:?[A-Za-z0-9+/=_-]{0,130}") {
            let _ = Signature::parse(&text);
            if let Some(signature) = Signature::parse(&word) {
                prop_assert_eq!(signature.bytes.len(), signature.digest.length());
            }
        }
    }
}
