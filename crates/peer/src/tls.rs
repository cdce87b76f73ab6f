//! TLS for those who connect to us, with a certificate that can be replaced while connections last.
//!
//! Always holds: a certificate is taken only together with the key that belongs to it; replacing it
//! touches no connection that exists; with a bad one the one before stays in force.
//! Deliberately absent: files (the binary reads them), certificates of clients; TLS between nodes is `cluster_tls/`.

use arc_swap::ArcSwap;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use world::Stream;

/// What the other side may choose to speak inside.
const PROTOCOLS: [&[u8]; 1] = [b"http/1.1"];

/// A certificate in force. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<ServerConfig>>);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM.
    #[error("the certificate cannot be read: {0}")]
    Certificate(pem::Error),
    /// PEM of something else.
    #[error("there is no certificate in it; expected PEM, the server's own first, then those that vouch for it")]
    NoCertificate,
    /// Not PEM, or no key in it.
    #[error("the private key cannot be read: {0}; expected PEM without a passphrase")]
    Key(pem::Error),
    /// The two do not go together, or are of a kind that is not supported.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(rustls::Error),
    /// The authorities of a cluster cannot be read.
    #[error("the authorities cannot be used: {0}")]
    Authorities(String),
    /// The authorities of the cluster do not vouch for the process's own certificate.
    #[error("the authorities do not vouch for the certificate: {0}")]
    NotVouchedFor(rustls::Error),
    /// A certificate without a role may do nothing in a cluster.
    #[error("the certificate has no role; make it with `martlet cluster-ca issue`")]
    NoRole,
}

impl Tls {
    /// With a chain of certificates and its key, both PEM.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let config = config(certificate, key)?;
        Ok(Self(Arc::new(ArcSwap::from_pointee(config))))
    }

    /// New connections get these from now on.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        self.0.store(Arc::new(config(certificate, key)?));
        Ok(())
    }

    /// Shakes hands. Give it a deadline.
    pub(crate) async fn accept(&self, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let acceptor = TlsAcceptor::from(self.0.load_full());
        Ok(Box::new(acceptor.accept(stream).await?))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn config(certificate: &[u8], key: &[u8]) -> Result<ServerConfig, TlsError> {
    let (chain, key) = (chain(certificate)?, private_key(key)?);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    config.ticketer = ring::Ticketer::new().map_err(TlsError::Unusable)?;
    Ok(config)
}

/// The certificates of a file, at least one.
pub(crate) fn chain(certificates: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .map(|found| found.map(CertificateDer::into_owned))
        .collect::<Result<_, _>>()
        .map_err(TlsError::Certificate)?;
    match chain.is_empty() {
        true => Err(TlsError::NoCertificate),
        false => Ok(chain),
    }
}

/// The key of a file.
pub(crate) fn private_key(key: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_certificate_is_named() {
        let message = |certificate: &str, key: &str| {
            Tls::new(certificate.as_bytes(), key.as_bytes())
                .unwrap_err()
                .to_string()
        };
        assert!(message("", "").starts_with("there is no certificate in it"));
        let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(message(certificate, "nonsense").starts_with("the private key cannot be read"));
        assert!(message("-----BEGIN CERTIFICATE-----\nAAAA", "").starts_with("the certificate cannot be read"));
    }

    proptest! {
        #[test]
        fn any_text_is_refused(certificate in "\\PC*", key in "\\PC*") {
            prop_assert!(Tls::new(certificate.as_bytes(), key.as_bytes()).is_err());
        }
    }
}
