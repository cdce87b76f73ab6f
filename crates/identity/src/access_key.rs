//! Access keys that a cluster keeps for its users, and temporary ones that are derived of them.
//!
//! Comes in: a record as stored, a signed request. Goes out: whose request it is and what the key may be used for, or
//! why it is refused. A temporary key is stored nowhere: its token names the key that it is derived of, its end, and
//! is authenticated by that key's secret, and so is its own secret derived. It ends with the key, and with its secret.
//! Always holds: secrets are compared in constant time and appear in no debug output; a key that is disabled or at its
//! end is refused as such only to those who know its secret.

use crate::signed_request::{SignatureRefusal, SignedRequest, sha256};
use crate::wildcard;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use subtle::ConstantTimeEq;

/// What the ids of stored keys begin with.
const KEY: &str = "MRTK";
/// What the ids of temporary keys begin with.
const SESSION: &str = "MRTS";
/// Characters of an id, as AWS has them.
const ID_LENGTH: usize = 20;
/// Characters of an id that say which account it is of.
const TAG_LENGTH: usize = 6;
/// Bytes of a secret before they are written down as 40 characters.
const SECRET_BYTES: usize = 30;
/// Characters of a session token that is looked at.
const LONGEST_TOKEN: usize = 1024;

/// A user for whom keys are made, as the authenticator knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHolder {
    /// `account:user` or `project:user`: what is shown.
    pub user: String,
    /// What Keystone said of the user when the key was made, as headers; absent for users of TempAuth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keystone: Option<BTreeMap<String, String>>,
}

impl KeyHolder {
    /// The user in words that no other user has: by ids where names are not unique.
    pub fn principal(&self) -> String {
        let Some(keystone) = &self.keystone else {
            return self.user.clone();
        };
        let id = |name: &str| keystone.get(name).map_or("", String::as_str);
        format!("{}:{}", id("x-project-id"), id("x-user-id"))
    }
}

/// What a key may be used for. Where nothing is named, everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyLimits {
    /// Names of buckets, with `*` and `?`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<String>,
    /// `read`, `write`, `list`, `delete`, or S3's names of actions (`s3:Get*`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
}

impl KeyLimits {
    /// Whether an action is within them: its name (`s3:GetObject`), and the word for all of its kind.
    pub fn allow_action(&self, name: &str, kind: Option<&str>) -> bool {
        let name = name.to_ascii_lowercase();
        self.actions.is_empty()
            || self
                .actions
                .iter()
                .any(|limit| kind == Some(limit.as_str()) || wildcard::fits(&limit.to_ascii_lowercase(), &name))
    }

    /// Whether a bucket is within them.
    pub fn allow_bucket(&self, bucket: &str) -> bool {
        self.buckets.is_empty() || self.buckets.iter().any(|limit| wildcard::fits(limit, bucket))
    }
}

/// A key as it is stored. Not shown in debug output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// What requests name.
    pub id: String,
    /// The account whose buckets are meant.
    pub account: String,
    /// The user for whom requests are done.
    pub holder: KeyHolder,
    /// What requests are signed with.
    pub secret: String,
    /// The secret before, and until when it is good as well: seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<FormerSecret>,
    /// Whether it may be used.
    pub enabled: bool,
    /// Seconds since 1970 from which it is good no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// What it may be used for.
    #[serde(default)]
    pub limits: KeyLimits,
    /// The owner's words about it.
    #[serde(default)]
    pub description: String,
    /// When it was made: seconds since 1970.
    pub created: u64,
    /// When it got the secret that it has.
    pub secret_since: u64,
}

/// A secret that was replaced.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSecret {
    /// The secret.
    pub secret: String,
    /// Seconds since 1970 from which it is good no longer.
    pub until: u64,
}

/// A temporary key, handed out once.
pub struct SessionKey {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// What its requests bring besides.
    pub token: String,
    /// Seconds since 1970 from which it is good no longer.
    pub expires: u64,
}

/// What a session token says.
#[derive(Serialize, Deserialize)]
struct SessionClaims {
    /// The stored key.
    key: String,
    /// The id of the temporary one.
    id: String,
    /// Its end.
    expires: u64,
}

/// A session token, read but not verified.
struct SessionToken {
    claims: SessionClaims,
    text: Vec<u8>,
    mac: Vec<u8>,
}

/// The id of a new key of an account.
pub fn new_id(account: &str, random: [u8; 16]) -> String {
    format!(
        "{KEY}{}{}",
        tag(account),
        &base32(&random)[..ID_LENGTH - KEY.len() - TAG_LENGTH]
    )
}

/// A new secret.
pub fn new_secret(random: [[u8; 16]; 2]) -> String {
    URL_SAFE_NO_PAD.encode(&random.concat()[..SECRET_BYTES])
}

/// Whether an id is one of a stored key.
pub fn is_key_id(id: &str) -> bool {
    is_id(id, KEY)
}

/// The part of an id that says which account it is of; ids of one account share it.
pub fn tag_of_id(id: &str) -> &str {
    id.get(KEY.len()..KEY.len() + TAG_LENGTH).unwrap_or_default()
}

/// What the ids of an account's keys have behind their first letters.
pub fn tag(account: &str) -> String {
    base32(&Sha256::digest(account.as_bytes()))[..TAG_LENGTH].to_owned()
}

fn is_id(id: &str, kind: &str) -> bool {
    id.len() == ID_LENGTH
        && id.starts_with(kind)
        && id
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte))
}

/// RFC 4648's letters for each five bits.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in bytes {
        bits = (bits << 8 | u32::from(*byte)) & 0xffff;
        count += 8;
        while count >= 5 {
            count -= 5;
            out.push(char::from(LETTERS[(bits >> count & 31) as usize]));
        }
    }
    out
}

/// The stored key that a signed request rests on: its own, or the one that a temporary key is derived of. Nothing when
/// the key has another form than ours.
pub fn stored_key_of(signed: &SignedRequest) -> Option<Result<String, SignatureRefusal>> {
    if is_id(&signed.access_key, KEY) {
        return Some(Ok(signed.access_key.clone()));
    }
    is_id(&signed.access_key, SESSION).then(|| {
        let token = SessionToken::read(signed).ok_or(SignatureRefusal::InvalidToken)?;
        Ok(token.claims.key)
    })
}

impl KeyRecord {
    /// The secret that a request is signed with, if the key may be used at this time (seconds since 1970).
    pub fn verify(&self, signed: &SignedRequest, now: u64) -> Result<String, SignatureRefusal> {
        let secret = match (is_id(&signed.access_key, SESSION), &signed.session_token) {
            (true, _) => self.secret_of_session(signed, now)?,
            (false, Some(_)) => return Err(SignatureRefusal::InvalidToken),
            (false, None) => self
                .secrets(now)
                .find(|secret| signed.is_signed_with(secret))
                .map(str::to_owned),
        };
        let secret = secret.ok_or(SignatureRefusal::WrongSignature)?;
        match self.is_usable(now) {
            true => Ok(secret),
            false => Err(SignatureRefusal::InactiveKey),
        }
    }

    /// Whether it is enabled and not at its end.
    pub fn is_usable(&self, now: u64) -> bool {
        self.enabled && self.expires.is_none_or(|expires| now < expires)
    }

    /// The secrets that are good now.
    fn secrets(&self, now: u64) -> impl Iterator<Item = &str> {
        let former = self.former.iter().filter(move |former| now < former.until);
        std::iter::once(&self.secret)
            .chain(former.map(|former| &former.secret))
            .map(String::as_str)
    }

    /// The derived secret, where the token is ours and the signature made with it.
    fn secret_of_session(&self, signed: &SignedRequest, now: u64) -> Result<Option<String>, SignatureRefusal> {
        let token = SessionToken::read(signed).ok_or(SignatureRefusal::InvalidToken)?;
        let is_ours = |secret: &&str| bool::from(authenticator_of(secret, &token.text).ct_eq(&token.mac));
        let secret = self.secrets(now).find(is_ours).ok_or(SignatureRefusal::InvalidToken)?;
        if token.claims.key != self.id {
            return Err(SignatureRefusal::InvalidToken);
        }
        let derived = session_secret(secret, &token.text);
        if !signed.is_signed_with(&derived) {
            return Ok(None);
        }
        match now < token.claims.expires {
            true => Ok(Some(derived)),
            false => Err(SignatureRefusal::ExpiredToken),
        }
    }

    /// A temporary key of this one.
    pub fn session(&self, expires: u64, random: [u8; 16]) -> SessionKey {
        let expires = self.expires.map_or(expires, |end| end.min(expires));
        let claims = SessionClaims {
            key: self.id.clone(),
            id: format!("{SESSION}{}", &base32(&random)[..ID_LENGTH - SESSION.len()]),
            expires,
        };
        // A struct of texts and a number is always JSON.
        let text = serde_json::to_vec(&claims).unwrap_or_default();
        let mac = authenticator_of(&self.secret, &text);
        SessionKey {
            id: claims.id,
            secret: session_secret(&self.secret, &text),
            token: format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(mac)),
            expires,
        }
    }

    /// Gives the key a new secret; the one it had stays good for so many seconds.
    pub fn rotate(&mut self, secret: String, now: u64, grace: u64) {
        let former = std::mem::replace(&mut self.secret, secret);
        self.former = (grace > 0).then(|| FormerSecret {
            secret: former,
            until: now.saturating_add(grace),
        });
        self.secret_since = now;
    }
}

impl SessionToken {
    fn read(signed: &SignedRequest) -> Option<Self> {
        let token = signed
            .session_token
            .as_ref()
            .filter(|token| token.len() <= LONGEST_TOKEN)?;
        let (text, mac) = token.split_once('.')?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let claims: SessionClaims = serde_json::from_slice(&text).ok()?;
        let is_whole = claims.id == signed.access_key && is_key_id(&claims.key);
        is_whole.then_some(())?;
        Some(Self {
            claims,
            text,
            mac: URL_SAFE_NO_PAD.decode(mac).ok()?,
        })
    }
}

fn authenticator_of(secret: &str, text: &[u8]) -> [u8; 32] {
    sha256(secret.as_bytes(), &[b"martlet session token\n", text].concat())
}

fn session_secret(secret: &str, text: &[u8]) -> String {
    let derived = sha256(secret.as_bytes(), &[b"martlet session secret\n", text].concat());
    URL_SAFE_NO_PAD.encode(&derived[..SECRET_BYTES])
}

#[cfg(test)]
mod tests;
