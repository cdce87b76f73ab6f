//! The secret that a driver and its controllers share, and how each proves that it has it.
//!
//! Both ends compute HMAC-SHA256 over the session of TLS that they are in (RFC 5705, RFC 9266) with the secret as its
//! key. A peer between them has two sessions, and the proof of one is none in the other: so certificates need not be
//! exchanged before.
//! Always holds: the secret itself goes over no wire, and stands in no message and no debug output; proofs are compared
//! in constant time; the proof of one end is none of the other.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::path::Path;
use vocabulary::Fault;
use world::World;

/// Fewer bytes could be guessed: a peer may try words at leisure once it has seen one proof.
pub const LEAST_SECRET: usize = 16;
/// Files that are longer are no secret.
const MOST_SECRET: u64 = 4096;

/// A secret.
#[derive(Clone, PartialEq, Eq)]
pub struct DriverSecret(Vec<u8>);

impl fmt::Debug for DriverSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DriverSecret")
    }
}

/// Which end proves something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProvingEnd {
    Controller,
    Driver,
}

impl DriverSecret {
    /// What a file holds, without space at its end.
    pub fn read(world: &World, path: &Path) -> Result<Self, Fault> {
        let wrong = |why: &dyn fmt::Display| Fault::caller(format!("{}: {why}", path.display()));
        let bytes = world.files.read(path, MOST_SECRET).map_err(|error| wrong(&error))?;
        Self::new(bytes.trim_ascii()).ok_or_else(|| {
            wrong(&format_args!(
                "expected {LEAST_SECRET} bytes or more; `openssl rand -hex 32` makes a good secret"
            ))
        })
    }

    /// One of these bytes, unless they are too few.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= LEAST_SECRET).then(|| Self(bytes.to_vec()))
    }

    /// Proves to the other end of `session` that this end has the secret and says `statement`.
    pub(super) fn proof(&self, end: ProvingEnd, session: &[u8], statement: &[u8]) -> [u8; 32] {
        self.mac(end, session, statement).finalize().into_bytes().into()
    }

    /// Whether a proof is one.
    pub(super) fn is_proven(&self, end: ProvingEnd, session: &[u8], statement: &[u8], proof: &[u8]) -> bool {
        self.mac(end, session, statement).verify_slice(proof).is_ok()
    }

    fn mac(&self, end: ProvingEnd, session: &[u8], statement: &[u8]) -> Hmac<Sha256> {
        // HMAC takes keys of any length (RFC 2104).
        #[allow(clippy::unwrap_used)]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap();
        mac.update(match end {
            ProvingEnd::Controller => b"controller",
            ProvingEnd::Driver => b"driver",
        });
        // Lengths are fixed in all versions of the protocol, so that no two statements have the same bytes.
        mac.update(session);
        mac.update(statement);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::{DriverSecret, ProvingEnd};

    #[test]
    fn a_proof_is_of_one_end_one_session_and_one_statement() {
        let secret = DriverSecret::new(b"0123456789abcdef").unwrap();
        let other = DriverSecret::new(b"0123456789abcdeF").unwrap();
        let proof = secret.proof(ProvingEnd::Driver, b"session", b"statement");
        assert!(secret.is_proven(ProvingEnd::Driver, b"session", b"statement", &proof));
        assert!(!secret.is_proven(ProvingEnd::Controller, b"session", b"statement", &proof));
        assert!(!secret.is_proven(ProvingEnd::Driver, b"sessioN", b"statement", &proof));
        assert!(!secret.is_proven(ProvingEnd::Driver, b"session", b"statemenT", &proof));
        assert!(!secret.is_proven(ProvingEnd::Driver, b"session", b"statement", &proof[..31]));
        assert!(!other.is_proven(ProvingEnd::Driver, b"session", b"statement", &proof));
        assert_eq!(DriverSecret::new(b"short"), None);
        assert_eq!(format!("{secret:?}"), "DriverSecret");
    }
}
