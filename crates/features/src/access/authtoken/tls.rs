//! TLS towards Keystone.
//!
//! Always holds: certificates are verified unless `insecure` says otherwise: by the authorities of `cafile`, else by
//! those of the variables `SSL_CERT_FILE` and `SSL_CERT_DIR`, as OpenSSL has them, else by those that browsers trust.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use settings::declare::Scope;
use settings::{AuthTokenSettings, SettingsError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use world::files::FileSystem;

const LONGEST_FILE: u64 = 4 << 20;
/// Variables that OpenSSL and what is built on it look at.
const FILE: &str = "SSL_CERT_FILE";
const DIRECTORY: &str = "SSL_CERT_DIR";

/// What connects over TLS, as configured.
pub fn connector(
    settings: &AuthTokenSettings,
    files: &dyn FileSystem,
    options: &Scope,
) -> Result<TlsConnector, SettingsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = versions.map_err(|_| options.wrong("auth_url", "TLS versions that exist"))?;
    let verified = match settings.insecure {
        true => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything(provider))),
        false => builder.with_root_certificates(roots(settings, files, options)?),
    };
    let config = match &settings.certfile {
        None => verified.with_no_client_auth(),
        Some(certificate) => {
            let wrong = || {
                options.wrong(
                    "certfile",
                    "a PEM file with a certificate, and keyfile one with its key",
                )
            };
            let chain = certificates(files, certificate).ok_or_else(wrong)?;
            let key = settings.keyfile.as_ref().unwrap_or(certificate);
            let key = read(files, key).and_then(|pem| PrivateKeyDer::from_pem_slice(&pem).ok());
            verified
                .with_client_auth_cert(chain, key.ok_or_else(wrong)?)
                .map_err(|_| wrong())?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(
    settings: &AuthTokenSettings,
    files: &dyn FileSystem,
    options: &Scope,
) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    match &settings.cafile {
        None => match from_environment(files)? {
            Some(found) => drop(roots.add_parsable_certificates(found)),
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        },
        Some(path) => {
            let wrong = || options.wrong("cafile", "a PEM file with at least one certificate");
            let (added, _) = roots.add_parsable_certificates(certificates(files, path).ok_or_else(wrong)?);
            if added == 0 {
                return Err(wrong());
            }
        }
    }
    Ok(roots)
}

/// The authorities that the environment names; `None` where it names none.
fn from_environment(files: &dyn FileSystem) -> Result<Option<Vec<CertificateDer<'static>>>, SettingsError> {
    let named = |variable: &str| {
        std::env::var_os(variable)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let (file, directory) = (named(FILE), named(DIRECTORY));
    if file.is_none() && directory.is_none() {
        return Ok(None);
    }
    let mut found = vec![];
    if let Some(path) = &file {
        let without = || unusable(path, "there is no PEM file with a certificate (SSL_CERT_FILE)");
        found.extend(certificates(files, path).ok_or_else(without)?);
    }
    if let Some(path) = &directory {
        let listed = files.open_directory(path).and_then(|directory| {
            let mut names = vec![];
            directory.list(&mut |name| names.push(path.join(name)))?;
            Ok(names)
        });
        let names = listed.map_err(|error| unusable(path, &format!("{error} (SSL_CERT_DIR)")))?;
        // Others than certificates may be there; each stands there by two names as a rule.
        found.extend(names.iter().filter_map(|name| certificates(files, name)).flatten());
    }
    match (found.is_empty(), file.or(directory)) {
        (true, Some(path)) => Err(unusable(&path, "no certificate is in it (SSL_CERT_FILE, SSL_CERT_DIR)")),
        _ => Ok(Some(found)),
    }
}

fn unusable(path: &Path, reason: &str) -> SettingsError {
    SettingsError::Unreadable {
        file: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn certificates(files: &dyn FileSystem, path: &Path) -> Option<Vec<CertificateDer<'static>>> {
    let pem = read(files, path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().ok()?;
    (!found.is_empty()).then_some(found)
}

fn read(files: &dyn FileSystem, path: &Path) -> Option<Vec<u8>> {
    files.read(path, LONGEST_FILE).ok()
}

/// `insecure = true`: any certificate will do.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
