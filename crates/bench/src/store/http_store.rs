//! A store over HTTP: where it is, how long it may take, and which API it speaks.

use super::StoreRequest;
use super::digest::DigestLogin;
use super::object_server::DirectObjectServer;
use super::s3::S3;
use super::swift::Swift;
use crate::figures::Failure;
use peer::Url;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use vocabulary::Timestamp;

/// A store.
pub struct HttpStore {
    /// Its address: of the account for Swift, of all buckets for S3.
    pub url: Url,
    /// For addresses that begin with `https`.
    pub tls: Option<TlsConnector>,
    /// For one request, all of it.
    pub patience: Duration,
    /// What it speaks.
    pub dialect: Dialect,
}

/// An API.
#[derive(Clone)]
pub enum Dialect {
    /// OpenStack Swift's.
    Swift(Swift),
    /// S3.
    S3(S3),
    /// What proxies speak with an object server.
    DirectObjectServer(DirectObjectServer),
}

impl HttpStore {
    /// Request line and headers.
    pub fn head(&self, request: &StoreRequest<'_>, now: Timestamp, head: &mut Vec<u8>) {
        let (base, host) = (self.url.path(), self.url.authority());
        match &self.dialect {
            Dialect::Swift(swift) => swift.head(request, base, &host, now, head),
            Dialect::S3(s3) => s3.head(request, base, &host, now, head),
            Dialect::DirectObjectServer(server) => server.head(request, &host, now, head),
        }
    }

    /// The user whose requests carry proof, where the store asks for Digest.
    pub(super) fn digest_login(&self) -> Option<&DigestLogin> {
        match &self.dialect {
            Dialect::Swift(swift) => swift.digest_login(),
            _ => None,
        }
    }

    /// Why a status is no success.
    pub fn judge(&self, request: &StoreRequest<'_>, status: u16) -> Option<Failure> {
        match &self.dialect {
            Dialect::Swift(swift) => swift.judge(request, status),
            Dialect::S3(s3) => s3.judge(request, status),
            Dialect::DirectObjectServer(server) => server.judge(status),
        }
    }
}
