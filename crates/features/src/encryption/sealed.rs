//! Moving an object that only its client's key opens: the body goes from place to place as it is stored.
//!
//! A feature that moves objects for itself (older versions, a new list of S3's) has no key of a client. It reads with
//! [`read_sealed`] and gives what came to its PUT with [`carry`]: the body stays encrypted with its key, which stays
//! wrapped as it was; entity tag and user metadata are the keymaster's, and are encrypted anew for the new place.
//! Always holds: an object that is not encrypted with a client's key is read and written as any other; the key of the
//! client's own request is not that of an object that is moved because of it.

use http::{Extensions, HeaderValue};
use request_pipeline::{ClientRequest, CustomerKey, KeepsSealed};

/// What it takes to store a body that is encrypted already.
#[derive(Debug, Clone)]
pub(crate) struct SealedBody {
    /// Its crypto-metadata, as they are stored. They name the path that the keymaster's key is made of.
    pub(super) body_meta: HeaderValue,
    /// The MD5 of what the client sent.
    pub(super) etag: HeaderValue,
    /// The MD5 of what is stored.
    pub(super) stored_etag: Option<HeaderValue>,
}

/// Makes `get` one that shows what only a client's key opens as it is stored.
pub(crate) fn read_sealed(get: &mut ClientRequest) {
    forget(get);
    get.extensions.insert(KeepsSealed);
}

/// Gives `put` what it takes to store the body of the answer that these extensions are of.
pub(crate) fn carry(found: &Extensions, put: &mut ClientRequest) {
    forget(put);
    if let Some(sealed) = found.get::<SealedBody>() {
        put.extensions.insert(sealed.clone());
    }
}

/// What a request has inherited of the client's.
fn forget(request: &mut ClientRequest) {
    request.extensions.remove::<CustomerKey>();
    request.extensions.remove::<SealedBody>();
    request.extensions.remove::<KeepsSealed>();
}
