//! How a connection between a controller and a driver begins: TLS, then a greeting of each end with its proof.
//!
//! ```text
//! controller -> driver    magic (8) | protocol (2) | version (32) | proof (32)
//! driver -> controller    magic (8) | protocol (2) | version (32) | verdict (1) | proof (32)
//! ```
//!
//! This layout stays as it is in all versions of the protocol, so that any two can say that they differ. The driver
//! makes its certificate when it starts; the proofs are bound to the session (`secret.rs`) and say what certificates
//! would.
//! Always holds: before its proof was checked a peer makes the driver hold one greeting and one session of TLS, and is
//! sent nothing but that it is wrong; a controller sends nothing but its greeting before the driver has proved itself.

use super::secret::{DriverSecret, ProvingEnd};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use vocabulary::Fault;
use world::Stream;

/// Of the messages behind the greetings (`message.rs`).
pub const PROTOCOL: u16 = 1;
/// What ends say first.
const MAGIC: &[u8; 8] = b"mbdriver";
/// Bytes of a version, filled up with zeros.
const VERSION: usize = 32;
/// Bytes that a proof vouches for, beside the session.
const STATEMENT: usize = 8 + 2 + VERSION;
/// Of RFC 5705.
const LABEL: &[u8] = b"EXPORTER-martlet-bench-driver";

/// A connection over TLS, both ends of which have proved themselves.
pub(super) type DriverStream = TlsStream<Box<dyn Stream>>;

/// What a driver thinks of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum GreetingVerdict {
    Welcome = 0,
    WrongProof = 1,
    OtherVersion = 2,
}

/// Why a greeting failed.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// The connection broke, or what came was no greeting.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other end has another secret.
    #[error("its secret is another one")]
    WrongSecret,
    /// The other end speaks otherwise.
    #[error(
        "it is version {theirs}, and this program is version {}: use the same everywhere",
        own_version()
    )]
    OtherVersion {
        /// Version and protocol of the other end.
        theirs: String,
    },
}

/// What this program says it is: its version and that of the protocol.
fn own_version() -> String {
    version_text(PROTOCOL, env!("CARGO_PKG_VERSION").as_bytes())
}

fn version_text(protocol: u16, version: &[u8]) -> String {
    let version = version.iter().take_while(|byte| byte.is_ascii_graphic()).copied();
    let version: String = version.map(char::from).collect();
    format!("{version} (protocol {protocol})")
}

fn statement() -> [u8; STATEMENT] {
    let mut statement = [0; STATEMENT];
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let length = version.len().min(VERSION);
    statement[..8].copy_from_slice(MAGIC);
    statement[8..10].copy_from_slice(&PROTOCOL.to_be_bytes());
    statement[10..10 + length].copy_from_slice(&version[..length]);
    statement
}

/// Protocol and version that a statement names.
fn named_version(statement: &[u8; STATEMENT]) -> String {
    version_text(u16::from_be_bytes([statement[8], statement[9]]), &statement[10..])
}

/// A driver's side of TLS, with a certificate that it makes now.
pub(super) fn acceptor() -> Result<TlsAcceptor, Fault> {
    let failed = |error: &dyn std::fmt::Display| Fault::caller(format!("no certificate could be made: {error}"));
    let key = rcgen::KeyPair::generate().map_err(|error| failed(&error))?;
    let params = rcgen::CertificateParams::new(vec!["martlet-bench-driver".to_owned()]);
    let made = params.and_then(|params| params.self_signed(&key));
    let certificate = made.map_err(|error| failed(&error))?.der().clone();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(vec![certificate], key.into())
        });
    let mut config = config.map_err(|error| failed(&error))?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A driver's side of the beginning of a connection. Give it a deadline.
pub(super) async fn receive(
    acceptor: &TlsAcceptor,
    secret: &DriverSecret,
    stream: Box<dyn Stream>,
) -> Result<DriverStream, GreetingError> {
    let mut stream = TlsStream::Server(acceptor.accept(stream).await?);
    let session = session(&stream)?;
    let (mut theirs, mut proof) = ([0; STATEMENT], [0; 32]);
    stream.read_exact(&mut theirs).await?;
    stream.read_exact(&mut proof).await?;
    let is_proven = secret.is_proven(ProvingEnd::Controller, &session, &theirs, &proof);
    let verdict = match (is_proven, theirs == statement()) {
        (false, _) => GreetingVerdict::WrongProof,
        (true, false) => GreetingVerdict::OtherVersion,
        (true, true) => GreetingVerdict::Welcome,
    };
    let mut answer = [0; STATEMENT + 1 + 32];
    answer[STATEMENT] = verdict as u8;
    if is_proven {
        answer[..STATEMENT].copy_from_slice(&statement());
        let proof = secret.proof(ProvingEnd::Driver, &session, &answer[..=STATEMENT]);
        answer[STATEMENT + 1..].copy_from_slice(&proof);
    }
    stream.write_all(&answer).await?;
    stream.flush().await?;
    match verdict {
        GreetingVerdict::Welcome => Ok(stream),
        GreetingVerdict::WrongProof => Err(GreetingError::WrongSecret),
        GreetingVerdict::OtherVersion => Err(GreetingError::OtherVersion {
            theirs: named_version(&theirs),
        }),
    }
}

/// A controller's side of the beginning of a connection. Give it a deadline.
pub(super) async fn greet(secret: &DriverSecret, stream: Box<dyn Stream>) -> Result<DriverStream, GreetingError> {
    let name = ServerName::try_from("martlet-bench-driver").map_err(io::Error::other)?;
    let mut stream = TlsStream::Client(connector()?.connect(name, stream).await?);
    let session = session(&stream)?;
    let own = statement();
    stream.write_all(&own).await?;
    let proof = secret.proof(ProvingEnd::Controller, &session, &own);
    stream.write_all(&proof).await?;
    stream.flush().await?;
    let mut answer = [0; STATEMENT + 1 + 32];
    stream.read_exact(&mut answer).await?;
    let (verdict, proof) = answer.split_at(STATEMENT + 1);
    if !secret.is_proven(ProvingEnd::Driver, &session, verdict, proof) {
        return Err(GreetingError::WrongSecret);
    }
    let mut theirs = [0; STATEMENT];
    theirs.copy_from_slice(&verdict[..STATEMENT]);
    match (theirs == own, verdict[STATEMENT] == GreetingVerdict::Welcome as u8) {
        (true, true) => Ok(stream),
        _ => Err(GreetingError::OtherVersion {
            theirs: named_version(&theirs),
        }),
    }
}

fn connector() -> io::Result<TlsConnector> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13]);
    let mut config = builder
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ProvedBySecret(provider)))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// What only the two ends of one session of TLS know.
fn session(stream: &DriverStream) -> io::Result<[u8; 32]> {
    let known = match stream {
        TlsStream::Client(stream) => stream.get_ref().1.export_keying_material([0; 32], LABEL, None),
        TlsStream::Server(stream) => stream.get_ref().1.export_keying_material([0; 32], LABEL, None),
    };
    known.map_err(io::Error::other)
}

/// Takes any certificate whose key the driver has: the greeting behind it says whether it is the right one.
#[derive(Debug)]
struct ProvedBySecret(Arc<CryptoProvider>);

impl ServerCertVerifier for ProvedBySecret {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What both ends make of each other.
    async fn meet(
        one: &DriverSecret,
        other: &DriverSecret,
    ) -> (Result<DriverStream, GreetingError>, Result<DriverStream, GreetingError>) {
        let (near, far) = tokio::io::duplex(64 << 10);
        let acceptor = acceptor().unwrap();
        let driver = receive(&acceptor, one, Box::new(far));
        futures_util::join!(driver, greet(other, Box::new(near)))
    }

    #[tokio::test]
    async fn those_who_share_a_secret_speak_and_others_do_not() {
        let (one, other) = (
            DriverSecret::new(&[1; 32]).unwrap(),
            DriverSecret::new(&[2; 32]).unwrap(),
        );
        let (driver, controller) = meet(&one, &one).await;
        let (mut driver, mut controller) = (driver.unwrap(), controller.unwrap());
        controller.write_all(b"hello").await.unwrap();
        controller.flush().await.unwrap();
        let mut heard = [0; 5];
        driver.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
        let (driver, controller) = meet(&one, &other).await;
        assert!(matches!(driver, Err(GreetingError::WrongSecret)));
        assert!(matches!(controller, Err(GreetingError::WrongSecret)));
    }

    /// A peer between both that hands their proofs on is found out, as they are of other sessions.
    #[tokio::test]
    async fn proofs_cannot_be_handed_on() {
        let secret = DriverSecret::new(&[1; 32]).unwrap();
        let (near, middle_near) = tokio::io::duplex(64 << 10);
        let (middle_far, far) = tokio::io::duplex(64 << 10);
        let (real, fake) = (acceptor().unwrap(), acceptor().unwrap());
        let middle = async {
            let mut to_controller = fake.accept(Box::new(middle_near) as Box<dyn Stream>).await.unwrap();
            let name = ServerName::try_from("martlet-bench-driver").unwrap();
            let far: Box<dyn Stream> = Box::new(middle_far);
            let mut to_driver = connector().unwrap().connect(name, far).await.unwrap();
            let mut greeting = [0; STATEMENT + 32];
            to_controller.read_exact(&mut greeting).await.unwrap();
            to_driver.write_all(&greeting).await.unwrap();
            let mut answer = [0; STATEMENT + 1 + 32];
            to_driver.read_exact(&mut answer).await.unwrap();
            to_controller.write_all(&answer).await.unwrap();
            to_controller.flush().await.unwrap();
        };
        let driver = receive(&real, &secret, Box::new(far));
        let (driver, controller, ()) = futures_util::join!(driver, greet(&secret, Box::new(near)), middle);
        assert!(matches!(driver, Err(GreetingError::WrongSecret)));
        assert!(matches!(controller, Err(GreetingError::WrongSecret)));
    }

    #[tokio::test]
    async fn another_version_is_named_to_both_ends() {
        let secret = DriverSecret::new(&[1; 32]).unwrap();
        let (near, far) = tokio::io::duplex(64 << 10);
        let acceptor = acceptor().unwrap();
        let newer = async {
            let name = ServerName::try_from("martlet-bench-driver").unwrap();
            let near: Box<dyn Stream> = Box::new(near);
            let mut stream = TlsStream::Client(connector().unwrap().connect(name, near).await.unwrap());
            let mut own = statement();
            own[9] += 1;
            let session = session(&stream).unwrap();
            stream.write_all(&own).await.unwrap();
            let proof = secret.proof(ProvingEnd::Controller, &session, &own);
            stream.write_all(&proof).await.unwrap();
            let mut answer = [0; STATEMENT + 1 + 32];
            stream.read_exact(&mut answer).await.unwrap();
            answer
        };
        let (driver, answer) = futures_util::join!(receive(&acceptor, &secret, Box::new(far)), newer);
        let refused = driver.err().unwrap().to_string();
        let expected = format!("it is version {} (protocol 2), and this", env!("CARGO_PKG_VERSION"));
        assert!(refused.starts_with(&expected), "{refused}");
        assert_eq!(answer[STATEMENT], GreetingVerdict::OtherVersion as u8);
        assert_eq!(answer[..STATEMENT], statement());
    }
}
