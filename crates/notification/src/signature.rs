//! The signature of a delivery: HMAC-SHA256 with the target's secret, over the time and the body.
//!
//! ```text
//! X-Martlet-Timestamp: 1795197314
//! X-Martlet-Signature: sha256=<hex of HMAC-SHA256(secret, "1795197314." + body)>
//! ```
//! A receiver that refuses old times is safe from deliveries that are recorded and sent again.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use vocabulary::hex;

/// The header with the time.
pub const SIGNED_AT: &str = "x-martlet-timestamp";
/// The header with the signature.
pub const SIGNATURE: &str = "x-martlet-signature";

/// The signature of a body that is sent at `seconds` since 1970.
pub fn sign(secret: &str, seconds: u64, body: &[u8]) -> String {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(seconds.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `hmac` makes of the same.
    #[test]
    fn signatures_are_hmacs() {
        assert_eq!(
            sign("secret", 1_795_197_314, b"{}"),
            "sha256=663f45facf6fd353017432544167fb72429f348d3725fde99b26e571d608ec3d"
        );
        assert_ne!(sign("secret", 1, b"{}"), sign("other", 1, b"{}"));
    }
}
