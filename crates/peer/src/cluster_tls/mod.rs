//! TLS between the nodes of a cluster: both ends show a certificate of the cluster's own authority.
//!
//! A server takes TLS and plain connections at one port and tells them apart by the first byte ([`ClusterArrival`]);
//! what a peer may ask depends on the roles in its certificate (`permissions.rs`). A client ([`ClusterClient`])
//! speaks TLS to all nodes but those on its list. Sessions are resumed, so that a new connection costs no signature
//! of either side.
//! Always holds: who is not vouched for by the authorities in force gets no further than the handshake, and a server
//! is believed to be what the ring calls it only when that address is in its certificate; a certificate that has
//! ended, or whose authority has been dropped since, is refused for resumed sessions, too; a connection ends with the
//! certificate of its other end; new credentials are taken as a whole or not at all, and end the connections to whom
//! they do not vouch for, no others, while connections that go on serve the request that is under way and no further
//! one;
//! keys are never in a message or in debug output.
//! Deliberately absent: files (the binary reads them), making certificates (`martlet cluster-ca`).
//!
//! | question | file |
//! |---|---|
//! | who a certificate says it is | `roles.rs` |
//! | which role may ask what | `permissions.rs` |
//! | who is spoken to without TLS | `plain.rs` |
//! | which connections end when credentials change, or certificates end | `vouched.rs` |

mod permissions;
mod plain;
mod roles;
#[cfg(test)]
mod tests;
mod vouched;

pub(crate) use permissions::RoleGuard;
pub use plain::{PlainNodeError, PlainNodes};
pub use roles::{ClusterRole, ClusterRoles, UnknownRole};

use crate::message::ServerKind;
use crate::tls::{TlsError, chain, private_key};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{WebPkiClientVerifier, danger::ClientCertVerifier};
use tokio_rustls::rustls::time_provider::TimeProvider;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, HandshakeKind, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
pub(crate) use vouched::CredentialsAge;
use vouched::{Changes, ShownCertificate, VouchedStream};
use world::{Clock, Stream};

/// What is spoken inside.
const PROTOCOL: &[u8] = b"http/1.1";
/// Sessions with one node that can be resumed. Each connection that begins takes one and leaves two.
const SESSIONS_PER_NODE: usize = 8;

/// What a process shows others, and whom it believes, all in PEM.
#[derive(Clone, Copy)]
pub struct ClusterFiles<'a> {
    /// Its own certificate.
    pub certificate: &'a [u8],
    /// The key of it.
    pub key: &'a [u8],
    /// The authorities that vouch for the certificates of others: one, or several while they are exchanged; and their
    /// lists of certificates that they have revoked.
    pub authorities: &'a [u8],
}

/// The credentials of this process. Clones share them.
#[derive(Clone)]
pub struct ClusterTls {
    clock: Arc<dyn Clock>,
    credentials: Arc<ArcSwap<Credentials>>,
    /// Tells connections of new ones.
    replaced: watch::Sender<()>,
}

struct Credentials {
    certificate: CertificateDer<'static>,
    /// The authorities between it and those of the cluster's file.
    above: Vec<CertificateDer<'static>>,
    server: Arc<ServerConfig>,
    client: ClientConfig,
    clients: Arc<dyn ClientCertVerifier>,
    servers: Arc<WebPkiServerVerifier>,
    /// Each with its own sessions: servers of one node have one address.
    nodes: Mutex<HashMap<String, TlsConnector>>,
}

/// Nodes whose sessions are kept. Requests name nodes, so that there is no other bound.
const MAX_NODES: usize = 4096;

/// How servers take connections of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterArrival {
    /// What they show.
    pub tls: ClusterTls,
    /// Whether plain connections are closed.
    pub required: bool,
    /// What the server serves.
    pub server: ServerKind,
}

/// How other nodes are connected to.
#[derive(Clone, Debug)]
pub struct ClusterClient {
    /// What they are shown.
    pub tls: ClusterTls,
    /// Those that do not speak TLS.
    pub plain: PlainNodes,
}

/// The clock of the world, for certificates that begin and end.
#[derive(Clone)]
struct WorldTime(Arc<dyn Clock>);

impl fmt::Debug for WorldTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorldTime")
    }
}

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(time(&*self.0))
    }
}

fn time(clock: &dyn Clock) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(clock.now().seconds()))
}

impl fmt::Debug for ClusterTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterTls")
    }
}

impl ClusterTls {
    /// With what the files hold.
    pub fn new(clock: Arc<dyn Clock>, files: ClusterFiles<'_>) -> Result<Self, TlsError> {
        let credentials = Credentials::new(&clock, files)?;
        Ok(Self {
            clock,
            credentials: Arc::new(ArcSwap::from_pointee(credentials)),
            replaced: watch::Sender::new(()),
        })
    }

    /// New connections use these from now on, and no session of before; those whose other end they do not vouch for
    /// end.
    pub fn replace(&self, files: ClusterFiles<'_>) -> Result<(), TlsError> {
        self.credentials.store(Arc::new(Credentials::new(&self.clock, files)?));
        self.replaced.send_replace(());
        Ok(())
    }

    /// Of a connection that is about to be made.
    fn age(&self) -> CredentialsAge {
        CredentialsAge(self.replaced.subscribe())
    }

    fn changes(&self) -> Changes {
        Changes {
            seen: self.replaced.subscribe(),
            credentials: self.credentials.clone(),
            clock: self.clock.clone(),
        }
    }

    /// The roles that others see in its certificate.
    pub fn roles(&self) -> ClusterRoles {
        ClusterRoles::of_certificate(&self.credentials.load().certificate)
    }

    /// Whether the certificate, or the authority behind it, ends within this time.
    pub fn ends_within(&self, time: Duration) -> bool {
        let now = Duration::from_secs(self.clock.now().seconds());
        let credentials = self.credentials.load();
        let later = UnixTime::since_unix_epoch(now.saturating_add(time));
        let verified = credentials
            .clients
            .verify_client_cert(&credentials.certificate, &credentials.above, later);
        verified.is_err()
    }

    /// Shakes hands with who connects; the roles in the certificate shown. Give it a deadline.
    async fn accept(&self, stream: Box<dyn Stream>) -> io::Result<(Box<dyn Stream>, ClusterRoles)> {
        let changes = self.changes();
        let credentials = self.credentials.load_full();
        let stream = TlsAcceptor::from(credentials.server.clone()).accept(stream).await?;
        let session = stream.get_ref().1;
        let shown = ShownCertificate::new(session.peer_certificates(), None)?;
        if session.handshake_kind() == Some(HandshakeKind::Resumed) {
            shown.verify(&credentials, &*self.clock)?;
        }
        let roles = ClusterRoles::of_certificate(shown.certificate());
        Ok((Box::new(VouchedStream::new(stream, shown, changes)), roles))
    }

    /// Shakes hands with a server. Give it a deadline.
    async fn connect(&self, stream: Box<dyn Stream>, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
        let changes = self.changes();
        let credentials = self.credentials.load_full();
        let name = ServerName::try_from(host.to_owned()).map_err(refused)?;
        let stream = credentials.connector(host, port).connect(name.clone(), stream).await?;
        let session = stream.get_ref().1;
        let shown = ShownCertificate::new(session.peer_certificates(), Some(name))?;
        if session.handshake_kind() == Some(HandshakeKind::Resumed) {
            shown.verify(&credentials, &*self.clock)?;
        }
        Ok(Box::new(VouchedStream::new(stream, shown, changes)))
    }
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl ClusterArrival {
    /// Shakes hands; what the other end may ask, and for how long.
    pub(crate) async fn accept(
        &self,
        stream: Box<dyn Stream>,
    ) -> io::Result<(Box<dyn Stream>, RoleGuard, CredentialsAge)> {
        let age = self.tls.age();
        let (stream, roles) = self.tls.accept(stream).await?;
        let server = self.server;
        Ok((stream, RoleGuard { roles, server }, age))
    }
}

impl ClusterClient {
    /// The stream to talk to `host:port` over, and for how long. Give it a deadline.
    pub(crate) async fn secure(
        &self,
        stream: Box<dyn Stream>,
        host: &str,
        port: u16,
    ) -> io::Result<(Box<dyn Stream>, Option<CredentialsAge>)> {
        if self.plain.has(host, port) {
            return Ok((stream, None));
        }
        let age = self.tls.age();
        Ok((self.tls.connect(stream, host, port).await?, Some(age)))
    }
}

impl Credentials {
    fn new(clock: &Arc<dyn Clock>, files: ClusterFiles<'_>) -> Result<Self, TlsError> {
        let shown = chain(files.certificate)?;
        let key = private_key(files.key)?;
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(authorities(files.authorities)?);
        // An authority without a list has revoked nothing; one whose list is not its own is found below.
        let revoked = revoked(files.authorities)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .with_crls(revoked.clone())
            .allow_unknown_revocation_status()
            .build()
            .map_err(|error| TlsError::Authorities(error.to_string()))?;
        let servers = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
            .with_crls(revoked)
            .allow_unknown_revocation_status()
            .build()
            .map_err(|error| TlsError::Authorities(error.to_string()))?;
        let (certificate, above) = shown.split_first().ok_or(TlsError::NoCertificate)?;
        // Others would refuse it; better not to show it.
        let vouched = clients.verify_client_cert(certificate, above, time(&**clock));
        vouched.map_err(TlsError::NotVouchedFor)?;
        if ClusterRoles::of_certificate(certificate).is_empty() {
            return Err(TlsError::NoRole);
        }
        let (certificate, above) = (certificate.clone(), above.to_vec());
        let time = Arc::new(WorldTime(clock.clone()));
        let key_of_client = key.clone_key();
        let server = server_config(&provider, &time, clients.clone(), shown.clone(), key)?;
        let mut client = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Unusable)?
            .with_webpki_verifier(servers.clone())
            .with_client_auth_cert(shown, key_of_client)
            .map_err(TlsError::Unusable)?;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self {
            certificate,
            above,
            server: Arc::new(server),
            client,
            clients,
            servers,
            nodes: Mutex::default(),
        })
    }

    fn connector(&self, host: &str, port: u16) -> TlsConnector {
        let mut nodes = self.nodes.lock();
        let name = format!("{host}:{port}");
        if nodes.len() >= MAX_NODES && !nodes.contains_key(&name) {
            nodes.clear(); // costs each node one whole handshake
        }
        let node = nodes.entry(name).or_insert_with(|| {
            let mut own = self.client.clone();
            own.resumption = Resumption::in_memory_sessions(SESSIONS_PER_NODE);
            TlsConnector::from(Arc::new(own))
        });
        node.clone()
    }
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    time: &Arc<WorldTime>,
    clients: Arc<dyn ClientCertVerifier>,
    shown: Vec<CertificateDer<'static>>,
    key: rustls::pki_types::PrivateKeyDer<'static>,
) -> Result<ServerConfig, TlsError> {
    let mut config = ServerConfig::builder_with_details(provider.clone(), time.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(TlsError::Unusable)?
        .with_client_cert_verifier(clients)
        .with_single_cert(shown, key)
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(TlsError::Unusable)?;
    Ok(config)
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = chain(pem).map_err(|error| TlsError::Authorities(error.to_string()))?;
    for authority in found {
        roots
            .add(authority)
            .map_err(|error| TlsError::Authorities(error.to_string()))?;
    }
    Ok(roots)
}

/// The lists of revoked certificates among the authorities.
fn revoked(pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let lists = CertificateRevocationListDer::pem_slice_iter(pem);
    lists
        .map(|list| list.map_err(|error| TlsError::Authorities(format!("a list of revoked certificates: {error}"))))
        .collect()
}
