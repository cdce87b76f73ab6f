//! A request that is signed with a secret key, as S3 clients sign theirs.
//!
//! The S3 feature reads the signature and says what was signed; an authenticator that knows the access key says
//! whether the secret fits, and which account the key belongs to.
//! Always holds: signatures are compared in constant time; neither secrets nor signatures appear in debug output.
//! Source: AWS, "Signature Version 4 signing process" and "Signing and authenticating REST requests" (version 2).

use crate::derived_keys;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The scope of a signature of version 4: for which day, region and service its key is derived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningScope {
    /// `YYYYMMDD`.
    pub date: String,
    /// `us-east-1`.
    pub region: String,
    /// `s3`.
    pub service: String,
}

impl SigningScope {
    /// `date/region/service/aws4_request`.
    pub fn text(&self) -> String {
        [
            self.date.as_str(),
            "/",
            &self.region,
            "/",
            &self.service,
            "/aws4_request",
        ]
        .concat()
    }

    /// The key that is derived of a secret for this scope.
    pub fn signing_key(&self, secret: &str) -> [u8; 32] {
        derived_keys::find_or([secret, &self.date, &self.region, &self.service], || {
            let date = sha256(format!("AWS4{secret}").as_bytes(), self.date.as_bytes());
            let region = sha256(&date, self.region.as_bytes());
            let service = sha256(&region, self.service.as_bytes());
            sha256(&service, b"aws4_request")
        })
    }
}

/// What a client has signed, and its signature.
#[derive(Clone)]
pub struct SignedRequest {
    /// Whose secret the signature is made with.
    pub access_key: String,
    /// As sent: hexadecimal digits (version 4) or base64 (version 2).
    pub signature: String,
    /// What was signed.
    pub string_to_sign: String,
    /// What some clients sign in its place; as good.
    pub alternative: Option<String>,
    /// The request in the form of which a hash was signed (version 4), which helps to find why a signature is wrong.
    pub canonical_request: Option<String>,
    /// Of version 4; absent in signatures of version 2.
    pub scope: Option<SigningScope>,
    /// What comes with a temporary key (`x-amz-security-token`).
    pub session_token: Option<String>,
}

impl SignedRequest {
    /// Whether the signature was made with this secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        self.check(secret).is_ok()
    }

    /// Refuses a signature that was not made with this secret. Returns the key that it was made with, of version 4.
    pub fn check(&self, secret: &str) -> Result<Option<[u8; 32]>, SignatureRefusal> {
        let signing_key = self.scope.as_ref().map(|scope| scope.signing_key(secret));
        let fits = |message: &String| -> bool {
            let expected = match &signing_key {
                Some(key) => vocabulary::hex::encode(sha256(key, message.as_bytes())),
                None => STANDARD.encode(mac::<Hmac<Sha1>>(secret.as_bytes(), message.as_bytes())),
            };
            expected.as_bytes().ct_eq(self.signature.as_bytes()).into()
        };
        match fits(&self.string_to_sign) || self.alternative.as_ref().is_some_and(fits) {
            true => Ok(signing_key),
            false => Err(SignatureRefusal::WrongSignature),
        }
    }
}

impl fmt::Debug for SignedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedRequest(of {})", self.access_key)
    }
}

/// An access key that was verified: left with the request for those that need more of it.
#[derive(Clone)]
pub struct VerifiedKey {
    /// The key that the chunks of a body are signed with; absent where the authenticator does not learn secrets.
    pub signing_key: Option<[u8; 32]>,
    /// `account:user`, or whatever the authenticator calls the user.
    pub user: String,
    /// The user in words that no other user has, for policies: as `user`, or by ids where names are not unique.
    pub principal: String,
}

/// Why a signed request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureRefusal {
    /// No such access key.
    UnknownKey,
    /// The signature was not made with its secret.
    WrongSignature,
    /// The signature is good, the key disabled, at its end, or its user gone.
    InactiveKey,
    /// A temporary key without its token, or a token that is not this key's.
    InvalidToken,
    /// A temporary key at its end.
    ExpiredToken,
}

/// What an authenticator says of a request whose signature is good.
pub struct SignedIdentity {
    /// The user who has sent it.
    pub identity: Arc<crate::Identity>,
    /// The account that the key belongs to.
    pub account: String,
    /// What is left with the request.
    pub key: VerifiedKey,
}

/// HMAC-SHA256.
pub fn sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    mac::<Hmac<Sha256>>(key, message).into()
}

fn mac<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> hmac::digest::Output<M> {
    // HMAC takes keys of any length (RFC 2104).
    #[allow(clippy::unwrap_used)]
    let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of AWS's page "Examples of how to derive a signing key" and of its GET Object.
    #[test]
    fn aws_own_example() {
        let scope = SigningScope {
            date: "20130524".into(),
            region: "us-east-1".into(),
            service: "s3".into(),
        };
        let signed = SignedRequest {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41".into(),
            string_to_sign: "AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n\
                             7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972"
                .into(),
            alternative: None,
            canonical_request: None,
            scope: Some(scope),
            session_token: None,
        };
        const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let key = signed.scope.as_ref().map(|scope| scope.signing_key(SECRET));
        assert_eq!(signed.check(SECRET), Ok(key));
        assert!(signed.is_signed_with(SECRET));
        assert!(!signed.is_signed_with("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEy"));
        assert_eq!(format!("{signed:?}"), "SignedRequest(of AKIAIOSFODNN7EXAMPLE)");
    }

    /// The example of AWS's page on signatures of version 2.
    #[test]
    fn aws_own_example_of_version_2() {
        let signed = SignedRequest {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            signature: "qgk2+6Sv9/oM7G3qLEjTH1a1l1g=".into(),
            string_to_sign: "GET\n\n\nTue, 27 Mar 2007 19:36:42 +0000\n/awsexamplebucket1/photos/puppy.jpg".into(),
            alternative: None,
            canonical_request: None,
            scope: None,
            session_token: None,
        };
        assert!(signed.is_signed_with("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"));
        assert!(!signed.is_signed_with(""));
    }
}
