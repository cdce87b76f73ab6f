//! Handshakes and servers of a cluster, with a clock that the test sets.

mod connections;

use super::*;
use crate::http_server::{Shutdown, serve};
use crate::refusals::{ServerRefusal, ServerRefusals};
use crate::{Address, Arrival, Body, Call, Peers, RawCall, Response, ServerOptions, Service, StorageDoor, Timeouts};
use http::{Method, StatusCode};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vocabulary::Timestamp;
use world::{BoxFuture, World};

/// 2025-06-15, in the middle of what [`Authority::issue`] makes.
const NOW: u64 = 1_750_000_000;
const YEAR: u64 = 365 * 24 * 3600;

/// Wall time as set; the rest is the machine's.
struct SetClock(world::clock::RealClock, AtomicU64);

impl SetClock {
    fn new() -> Arc<Self> {
        Arc::new(Self(world::clock::RealClock::new(), AtomicU64::new(NOW)))
    }

    fn set(&self, seconds: u64) {
        self.1.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(self.1.load(Ordering::SeqCst))
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

/// An authority of a cluster.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
struct Issued {
    certificate: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn issue(&self, roles: &[ClusterRole], address: &str) -> Issued {
        self.issue_with(address, |params| {
            for role in roles {
                let uri = role.uri().try_into().unwrap();
                params.subject_alt_names.push(SanType::URI(uri));
            }
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            if roles.iter().any(|role| role.is_server()) {
                params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
            }
        })
    }

    fn issue_with(&self, address: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(vec![address.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2025, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 1, 1);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Issued {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

fn tls(clock: &Arc<SetClock>, issued: &Issued, authorities: &str) -> Result<ClusterTls, TlsError> {
    ClusterTls::new(clock.clone(), files(issued, authorities))
}

fn files<'a>(issued: &'a Issued, authorities: &'a str) -> ClusterFiles<'a> {
    ClusterFiles {
        certificate: issued.certificate.as_bytes(),
        key: issued.key.as_bytes(),
        authorities: authorities.as_bytes(),
    }
}

/// One handshake over a pipe, and a byte each way; the roles that the server sees.
async fn shake(client: &ClusterTls, server: &ClusterTls, host: &str) -> io::Result<ClusterRoles> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let connecting = async {
        let mut stream = client.connect(Box::new(near), host, 6200).await?;
        stream.write_all(b"x").await?;
        // What the server thinks of the certificate comes with the first byte.
        stream.read_u8().await
    };
    let accepting = async {
        let (mut stream, roles) = server.accept(Box::new(far)).await?;
        stream.read_u8().await?;
        stream.write_all(b"y").await?;
        stream.flush().await?;
        Ok::<_, io::Error>(roles)
    };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    let roles = accepted?;
    connected?;
    Ok(roles)
}

/// Whether a further connection resumes a session.
async fn resumes(client: &ClusterTls, server: &ClusterTls) -> Option<HandshakeKind> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let connector = client.credentials.load().connector("127.0.0.1", 6200);
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let accepting = server.accept(Box::new(far));
    let (connected, _) = tokio::join!(connector.connect(name, near), accepting);
    connected.unwrap().get_ref().1.handshake_kind()
}

#[tokio::test]
async fn roles_come_with_the_certificate() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let server = tls(
        &clock,
        &authority.issue(&[ClusterRole::Object], "127.0.0.1"),
        &authority.pem(),
    )
    .unwrap();
    for roles in [
        &[ClusterRole::Proxy][..],
        &[ClusterRole::Container, ClusterRole::Upkeep],
    ] {
        let client = tls(&clock, &authority.issue(roles, "10.0.0.1"), &authority.pem()).unwrap();
        let seen = shake(&client, &server, "127.0.0.1").await.unwrap();
        assert_eq!(seen, roles.iter().copied().collect());
        assert_eq!(seen, client.roles());
    }
}

#[tokio::test]
async fn another_authority_is_believed_by_neither_side() {
    let (clock, ours, theirs) = (SetClock::new(), Authority::new("ca"), Authority::new("ca"));
    let object = [ClusterRole::Object];
    let server = tls(&clock, &ours.issue(&object, "127.0.0.1"), &ours.pem()).unwrap();
    let both = ours.pem() + &theirs.pem();
    let client_of_theirs = tls(&clock, &theirs.issue(&object, "127.0.0.1"), &both).unwrap();
    let error = shake(&client_of_theirs, &server, "127.0.0.1").await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    let only_theirs = tls(&clock, &theirs.issue(&object, "127.0.0.1"), &theirs.pem()).unwrap();
    assert!(shake(&only_theirs, &server, "127.0.0.1").await.is_err());
    let trusting = tls(&clock, &ours.issue(&object, "127.0.0.1"), &both).unwrap();
    assert!(shake(&client_of_theirs, &trusting, "127.0.0.1").await.is_ok());
}

#[tokio::test]
async fn a_server_is_what_its_certificate_says() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let client = tls(
        &clock,
        &authority.issue(&[ClusterRole::Proxy], "10.0.0.1"),
        &authority.pem(),
    )
    .unwrap();
    let elsewhere = tls(
        &clock,
        &authority.issue(&[ClusterRole::Object], "10.0.0.2"),
        &authority.pem(),
    )
    .unwrap();
    assert!(shake(&client, &elsewhere, "127.0.0.1").await.is_err());
    assert!(shake(&client, &elsewhere, "10.0.0.2").await.is_ok());
    // A certificate for clients alone is none of a server.
    let gateway = tls(
        &clock,
        &authority.issue(&[ClusterRole::Proxy], "127.0.0.1"),
        &authority.pem(),
    )
    .unwrap();
    assert!(shake(&client, &gateway, "127.0.0.1").await.is_err());
    let named = tls(
        &clock,
        &authority.issue(&[ClusterRole::Object], "node1.example"),
        &authority.pem(),
    )
    .unwrap();
    assert!(shake(&client, &named, "node1.example").await.is_ok());
}

#[tokio::test]
async fn a_certificate_that_has_ended_is_refused() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let server = tls(
        &clock,
        &authority.issue(&[ClusterRole::Object], "127.0.0.1"),
        &authority.pem(),
    )
    .unwrap();
    let old = authority.issue(&[ClusterRole::Proxy], "10.0.0.1");
    let client = tls(&clock, &old, &authority.pem()).unwrap();
    assert!(shake(&client, &server, "127.0.0.1").await.is_ok());
    assert!(!client.ends_within(Duration::from_secs(YEAR / 4)));
    assert!(client.ends_within(Duration::from_secs(YEAR)));
    clock.set(NOW + YEAR);
    // Though there are sessions to resume.
    assert!(shake(&client, &server, "127.0.0.1").await.is_err());
    let error = tls(&clock, &old, &authority.pem()).unwrap_err().to_string();
    assert!(error.contains("expired"), "{error}");
}

#[tokio::test]
async fn a_client_that_ended_since_resumes_nothing() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let lasting = |params: &mut CertificateParams| {
        let uri = ClusterRole::Object.uri().try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        params.not_after = rcgen::date_time_ymd(2035, 1, 1);
    };
    let server = tls(&clock, &authority.issue_with("127.0.0.1", lasting), &authority.pem()).unwrap();
    let client = tls(
        &clock,
        &authority.issue(&[ClusterRole::Proxy], "10.0.0.1"),
        &authority.pem(),
    )
    .unwrap();
    // Tickets of a moment before the end are still good after it.
    let end = 1_767_225_600; // 2026-01-01
    clock.set(end - 5);
    assert!(shake(&client, &server, "127.0.0.1").await.is_ok());
    assert_eq!(resumes(&client, &server).await, Some(HandshakeKind::Resumed));
    clock.set(end + 5);
    let error = shake(&client, &server, "127.0.0.1").await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
}

#[tokio::test]
async fn sessions_are_resumed_until_credentials_change() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let server = tls(
        &clock,
        &authority.issue(&[ClusterRole::Object], "127.0.0.1"),
        &authority.pem(),
    )
    .unwrap();
    let issued = authority.issue(&[ClusterRole::Proxy], "10.0.0.1");
    let client = tls(&clock, &issued, &authority.pem()).unwrap();
    assert!(shake(&client, &server, "127.0.0.1").await.is_ok());
    assert_eq!(resumes(&client, &server).await, Some(HandshakeKind::Resumed));
    assert_eq!(shake(&client, &server, "127.0.0.1").await.unwrap(), client.roles());
    client.replace(files(&issued, &authority.pem())).unwrap();
    assert_eq!(resumes(&client, &server).await, Some(HandshakeKind::Full));
}

#[tokio::test]
async fn an_authority_is_exchanged_step_by_step() {
    let (clock, old, new) = (SetClock::new(), Authority::new("old"), Authority::new("new"));
    let issue = |authority: &Authority| {
        let server = authority.issue(&[ClusterRole::Object], "127.0.0.1");
        (server, authority.issue(&[ClusterRole::Proxy], "10.0.0.1"))
    };
    let (old_server, old_client) = issue(&old);
    let (new_server, new_client) = issue(&new);
    let both = old.pem() + &new.pem();
    let server = tls(&clock, &old_server, &old.pem()).unwrap();
    let client = tls(&clock, &old_client, &old.pem()).unwrap();
    let works = async || shake(&client, &server, "127.0.0.1").await.is_ok();
    assert!(works().await);
    server.replace(files(&old_server, &both)).unwrap();
    assert!(works().await);
    client.replace(files(&old_client, &both)).unwrap();
    client.replace(files(&new_client, &both)).unwrap();
    assert!(works().await);
    server.replace(files(&new_server, &both)).unwrap();
    assert!(works().await);
    // One that was not exchanged in time is left behind, sessions or not.
    let late = tls(&clock, &old_client, &both).unwrap();
    assert!(shake(&late, &server, "127.0.0.1").await.is_ok());
    server.replace(files(&new_server, &new.pem())).unwrap();
    assert!(works().await);
    assert!(shake(&late, &server, "127.0.0.1").await.is_err());
}

#[test]
fn bad_credentials_replace_nothing_and_show_no_key() {
    let (clock, authority, other) = (SetClock::new(), Authority::new("ca"), Authority::new("other"));
    let good = authority.issue(&[ClusterRole::Object], "127.0.0.1");
    let another = authority.issue(&[ClusterRole::Object], "127.0.0.1");
    let pem = authority.pem();
    let tls = tls(&clock, &good, &pem).unwrap();
    let before = tls.credentials.load_full();
    let none = Issued {
        certificate: String::new(),
        key: good.key.clone(),
    };
    let mixed = Issued {
        certificate: good.certificate.clone(),
        key: another.key,
    };
    let no_key = Issued {
        certificate: good.certificate.clone(),
        key: "nonsense".into(),
    };
    let nobody = authority.issue_with("127.0.0.1", |_| {});
    for (issued, authorities, expected) in [
        (&none, &pem, "there is no certificate in it"),
        (&mixed, &pem, "certificate and key cannot be used"),
        (&no_key, &pem, "the private key cannot be read"),
        (&nobody, &pem, "the certificate has no role"),
        (&good, &other.pem(), "the authorities do not vouch for the certificate"),
        (&good, &String::new(), "the authorities cannot be used"),
    ] {
        let error = tls.replace(files(issued, authorities)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("PRIVATE"), "{error}");
    }
    assert!(Arc::ptr_eq(&before, &tls.credentials.load_full()));
    assert!(!format!("{tls:?}").contains("PRIVATE"));
}

/// Answers everything.
struct Willing;

#[async_trait::async_trait]
impl Service for Willing {
    async fn call(&self, _: Call) -> Response {
        crate::http_server::plain(StatusCode::CREATED, "stored")
    }
}

/// An object server of a cluster, and what it refuses.
struct Served {
    port: u16,
    refusals: ServerRefusals,
    tls: ClusterTls,
    clock: Arc<SetClock>,
    world: World,
    _shutdown: Shutdown,
}

impl Served {
    fn start(authority: &Authority, required: bool) -> Self {
        let clock = SetClock::new();
        let issued = authority.issue(&[ClusterRole::Object], "127.0.0.1");
        let tls = tls(&clock, &issued, &authority.pem()).unwrap();
        let world = World {
            clock: clock.clone(),
            ..World::real()
        };
        let (shutdown, refusals) = (Shutdown::default(), ServerRefusals::default());
        let cluster = ClusterArrival {
            tls: tls.clone(),
            required,
            server: ServerKind::Object,
        };
        let options = ServerOptions {
            refusals: refusals.clone(),
            arrival: Arrival {
                cluster: Some(cluster),
                ..Arrival::default()
            },
            ..ServerOptions::default()
        };
        let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
        let port = listener.address().unwrap().port();
        let door = Arc::new(StorageDoor(Arc::new(Willing)));
        world.spawn(serve(world.clone(), listener, door, options, shutdown.watch()));
        Self {
            port,
            refusals,
            tls,
            clock,
            world,
            _shutdown: shutdown,
        }
    }

    fn client(&self, authority: &Authority, roles: &[ClusterRole], plain: &str) -> Peers {
        let issued = authority.issue(roles, "10.0.0.1");
        let tls = ClusterTls::new(self.world.clock.clone(), files(&issued, &authority.pem())).unwrap();
        let plain = PlainNodes::parse(plain.split_whitespace()).unwrap();
        Peers::secured(self.world.clone(), Some(ClusterClient { tls, plain }))
    }

    /// Waits until so many have been refused: the client may hear of it first.
    async fn has_refused(&self, refusal: ServerRefusal, count: u64) {
        let refused = async {
            while self.refusals.count(refusal) < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), refused).await;
        assert!(waited.is_ok(), "{refusal:?}: {}", self.refusals.count(refusal));
        assert_eq!(self.refusals.count(refusal), count);
    }

    async fn ask(&self, peers: &Peers, method: Method) -> Result<StatusCode, String> {
        let timeouts = Timeouts {
            connect: Duration::from_secs(20),
            response: Duration::from_secs(20),
        };
        let call = RawCall {
            address: Address::parse(&method, "/d/1/a/c/o").unwrap(),
            method,
            query: String::new(),
            headers: http::HeaderMap::new(),
            body: Body::empty(),
            interim: None,
        };
        let answer = peers.send("127.0.0.1", self.port, call, timeouts).await;
        answer.map(|answer| answer.status()).map_err(|error| error.to_string())
    }
}

#[tokio::test]
async fn a_server_that_requires_it_answers_nobody_else() {
    let (authority, stranger) = (Authority::new("ca"), Authority::new("ca"));
    let server = Served::start(&authority, true);
    let plain = server.client(&authority, &[ClusterRole::Proxy], "127.0.0.1");
    let mut raw = server
        .world
        .network
        .connect("127.0.0.1".into(), server.port)
        .await
        .unwrap();
    raw.write_all(b"GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    // Closed, perhaps with what was sent unread.
    let _ = raw.read_to_end(&mut answer).await;
    assert!(answer.is_empty(), "{answer:?}");
    assert!(server.ask(&plain, Method::PUT).await.is_err());
    server.has_refused(ServerRefusal::Plain, 2).await;
    let unknown = server.client(&stranger, &[ClusterRole::Proxy], "");
    assert!(server.ask(&unknown, Method::GET).await.is_err());
    server.has_refused(ServerRefusal::Handshake, 1).await;
    let known = server.client(&authority, &[ClusterRole::Proxy], "10.0.0.0/8 127.0.0.1:1");
    assert_eq!(server.ask(&known, Method::PUT).await, Ok(StatusCode::CREATED));
}

#[tokio::test]
async fn a_server_that_allows_it_takes_both() {
    let authority = Authority::new("ca");
    let server = Served::start(&authority, false);
    for plain in ["127.0.0.0/8", ""] {
        let client = server.client(&authority, &[ClusterRole::Proxy], plain);
        assert_eq!(server.ask(&client, Method::PUT).await, Ok(StatusCode::CREATED));
    }
    assert_eq!(server.refusals.count(ServerRefusal::Plain), 0);
}

#[tokio::test]
async fn a_role_may_not_what_is_another_ones() {
    let authority = Authority::new("ca");
    let server = Served::start(&authority, true);
    let container = server.client(&authority, &[ClusterRole::Container], "");
    assert_eq!(server.ask(&container, Method::PUT).await, Ok(StatusCode::FORBIDDEN));
    assert_eq!(server.ask(&container, Method::GET).await, Ok(StatusCode::CREATED));
    assert_eq!(server.refusals.count(ServerRefusal::Forbidden), 1);
    let both = server.client(&authority, &[ClusterRole::Container, ClusterRole::Upkeep], "");
    assert_eq!(server.ask(&both, Method::PUT).await, Ok(StatusCode::CREATED));
}
