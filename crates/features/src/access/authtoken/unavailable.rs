//! What is known in place of an answer of Keystone. Holds no password and no token.

use identity::keystone::TokenError;
use peer::PeerError;

/// Why a token could not be judged.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::access) enum Unavailable {
    #[error("Keystone cannot be reached: {0}")]
    Unreachable(#[from] PeerError),
    #[error("Keystone refused the gateway's own user with {0}; look at username, password and project_name")]
    Login(u16),
    #[error("Keystone answered {0} when asked about a token")]
    Status(u16),
    #[error("Keystone answered {0} when asked about a signature; the gateway's user must be allowed to ask it")]
    Signature(u16),
    #[error("Keystone does not answer; it is asked again every second")]
    Away,
    #[error(transparent)]
    Shape(#[from] TokenError),
}
