//! What becomes of connections, and of certificates, when credentials change.

use super::*;
use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};

impl Authority {
    fn issue_numbered(&self, serial: u64, roles: &[ClusterRole], address: &str) -> Issued {
        self.issue_with(address, |params| {
            params.serial_number = Some(SerialNumber::from(serial));
            for role in roles {
                let uri = role.uri().try_into().unwrap();
                params.subject_alt_names.push(SanType::URI(uri));
            }
        })
    }

    /// The list of what it has revoked, in PEM.
    fn revoked(&self, serials: &[u64]) -> String {
        let day = rcgen::date_time_ymd(2025, 6, 1);
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: day,
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: day,
            next_update: rcgen::date_time_ymd(2025, 6, 2),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

/// A connection to a server, outside of any pool.
struct Lasting(Box<dyn Stream>);

impl Lasting {
    async fn begin(server: &Served, tls: &ClusterTls) -> Self {
        let connected = server.world.network.connect("127.0.0.1".into(), server.port).await;
        Self(tls.connect(connected.unwrap(), "127.0.0.1", server.port).await.unwrap())
    }

    /// Whether it can be asked again.
    async fn ask(&mut self) -> bool {
        let request = b"GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n";
        self.0.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nOK") {
            assert_ne!(self.0.read_buf(&mut answer).await.unwrap(), 0);
        }
        !String::from_utf8_lossy(&answer).contains("Connection: close")
    }

    /// Waits until it has ended, without a request; far less than an idle connection is kept.
    async fn ends(mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(30), self.0.read_u8()).await;
        assert!(ended.expect("the connection goes on").is_err());
    }
}

fn client(server: &Served, issued: &Issued, authorities: &str) -> ClusterTls {
    ClusterTls::new(server.world.clock.clone(), files(issued, authorities)).unwrap()
}

#[tokio::test]
async fn connections_outlast_an_exchange_but_not_their_authority() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server = Served::start(&old, true);
    let both = old.pem() + &new.pem();
    let of_old = client(&server, &old.issue(&[ClusterRole::Proxy], "10.0.0.1"), &both);
    let of_new = client(&server, &new.issue(&[ClusterRole::Proxy], "10.0.0.1"), &both);
    let mut early = Lasting::begin(&server, &of_old).await;
    let mut asked = Lasting::begin(&server, &of_old).await;
    assert!(early.ask().await && asked.ask().await);
    let issued = new.issue(&[ClusterRole::Object], "127.0.0.1");
    server.tls.replace(files(&issued, &both)).unwrap();
    assert!(
        !asked.ask().await,
        "what is asked after the exchange goes on over a new connection"
    );
    let mut lasting = Lasting::begin(&server, &of_new).await;
    server.tls.replace(files(&issued, &new.pem())).unwrap();
    early.ends().await;
    assert!(!lasting.ask().await);
    let late = server.client(&old, &[ClusterRole::Proxy], "");
    assert!(server.ask(&late, Method::PUT).await.is_err());
    let after = server.client(&new, &[ClusterRole::Proxy], "");
    assert_eq!(server.ask(&after, Method::PUT).await, Ok(StatusCode::CREATED));
}

/// 2026-01-01, when what [`Authority::issue`] makes ends.
const END: u64 = 1_767_225_600;

#[tokio::test]
async fn a_connection_ends_with_the_certificate_of_either_end() {
    let authority = Authority::new("ca");
    let long = |role: ClusterRole| {
        move |params: &mut CertificateParams| {
            params
                .subject_alt_names
                .push(SanType::URI(role.uri().try_into().unwrap()));
            params.not_after = rcgen::date_time_ymd(2035, 1, 1);
        }
    };
    let short_server = Served::start(&authority, true);
    let long_server = Served::start(&authority, true);
    let object = authority.issue_with("127.0.0.1", long(ClusterRole::Object));
    long_server.tls.replace(files(&object, &authority.pem())).unwrap();
    let proxy = authority.issue_with("10.0.0.1", long(ClusterRole::Proxy));
    let mut ended = vec![];
    for (server, issued) in [
        (&short_server, &proxy),
        (&long_server, &authority.issue(&[ClusterRole::Proxy], "10.0.0.1")),
    ] {
        let mut connection = Lasting::begin(server, &client(server, issued, &authority.pem())).await;
        server.clock.set(END);
        connection.ask().await;
        ended.push(connection);
    }
    let mut lasting = Lasting::begin(&long_server, &client(&long_server, &proxy, &authority.pem())).await;
    for server in [&short_server, &long_server] {
        server.clock.set(END + 1);
    }
    for connection in ended {
        connection.ends().await;
    }
    lasting.ask().await;
}

#[tokio::test]
async fn clients_end_connections_to_servers_that_are_not_vouched_for() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server = Served::start(&old, true);
    let both = old.pem() + &new.pem();
    let issued = new.issue(&[ClusterRole::Proxy], "10.0.0.1");
    // The server takes whom it knows only.
    let object = old.issue(&[ClusterRole::Object], "127.0.0.1");
    server.tls.replace(files(&object, &both)).unwrap();
    let tls = client(&server, &issued, &both);
    let mut lasting = Lasting::begin(&server, &tls).await;
    lasting.ask().await;
    tls.replace(files(&issued, &both)).unwrap();
    lasting.ask().await;
    tls.replace(files(&issued, &new.pem())).unwrap();
    lasting.ends().await;
}

#[tokio::test]
async fn a_revoked_certificate_is_refused_and_its_connections_end() {
    let authority = Authority::new("ca");
    let server = Served::start(&authority, true);
    let [stolen, other] = [5, 6].map(|serial| {
        let issued = authority.issue_numbered(serial, &[ClusterRole::Proxy], "10.0.0.1");
        client(&server, &issued, &authority.pem())
    });
    let mut of_stolen = Lasting::begin(&server, &stolen).await;
    let mut of_other = Lasting::begin(&server, &other).await;
    of_stolen.ask().await;
    let object = authority.issue(&[ClusterRole::Object], "127.0.0.1");
    let with_list = authority.pem() + &authority.revoked(&[4, 5]);
    server.tls.replace(files(&object, &with_list)).unwrap();
    of_stolen.ends().await;
    of_other.ask().await;
    server.has_refused(ServerRefusal::Handshake, 0).await;
    let error = shake(&stolen, &server.tls, "127.0.0.1").await.unwrap_err();
    assert!(error.to_string().contains("Revoked"), "{error}");
    assert!(shake(&other, &server.tls, "127.0.0.1").await.is_ok());
}

#[tokio::test]
async fn a_revoked_server_is_not_believed() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let object = authority.issue_with("127.0.0.1", |params| {
        params.serial_number = Some(SerialNumber::from(7));
        let uri = ClusterRole::Object.uri().try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    });
    let server = tls(&clock, &object, &authority.pem()).unwrap();
    let issued = authority.issue(&[ClusterRole::Proxy], "10.0.0.1");
    let client = tls(&clock, &issued, &authority.pem()).unwrap();
    assert!(shake(&client, &server, "127.0.0.1").await.is_ok());
    let with_list = authority.pem() + &authority.revoked(&[7]);
    client.replace(files(&issued, &with_list)).unwrap();
    let error = shake(&client, &server, "127.0.0.1").await.unwrap_err();
    assert!(
        error.to_string().contains("peer certificate") || error.to_string().contains("alert"),
        "{error}"
    );
    // It does not show what others refuse.
    let error = server.replace(files(&object, &with_list)).unwrap_err().to_string();
    assert!(error.contains("Revoked"), "{error}");
}

#[tokio::test]
async fn lists_are_taken_from_their_own_authority_alone() {
    let (clock, authority) = (SetClock::new(), Authority::new("ca"));
    let issued = authority.issue_numbered(5, &[ClusterRole::Proxy], "10.0.0.1");
    // Of one name, with another key.
    let forged = authority.pem() + &Authority::new("ca").revoked(&[5]);
    assert!(matches!(tls(&clock, &issued, &forged), Err(TlsError::NotVouchedFor(_))));
    let strange = authority.pem() + &Authority::new("another").revoked(&[5]);
    assert!(tls(&clock, &issued, &strange).is_ok());
    let broken = authority.pem() + "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";
    assert!(matches!(tls(&clock, &issued, &broken), Err(TlsError::Authorities(_))));
}
