//! A server with too much to do: connections that do nothing, clients that are slow, more requests than it may have.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use http::StatusCode;
use peer::http_server::{Shutdown, plain, serve};
use peer::{AccountPlace, Arrival, Body, BodyError, HttpService, Response, ServerOptions, ServerRefusal, Tls};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use world::World;

/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(20);

/// Answers `/wait` when it is let go, `/large` with more than sockets hold, `/pieces` with the same in pieces, and
/// anything else with the length of what came. A request for `/v1/ACCOUNT/…` may be made, and counts for the account.
#[derive(Default)]
struct Pages {
    begun: AtomicUsize,
    go: Notify,
}

#[async_trait::async_trait]
impl HttpService for Pages {
    async fn serve(&self, request: http::Request<Body>, _from: SocketAddr) -> Response {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let place = request.extensions().get::<AccountPlace>();
        if let (Some(place), ["", "v1", account, ..]) = (place, &*request.uri().path().split('/').collect::<Vec<_>>())
            && let Err(refusal) = place.take(account)
        {
            return refusal;
        }
        match request.uri().path() {
            "/wait" => self.go.notified().await,
            "/498" => return plain(StatusCode::from_u16(498).unwrap(), "Slow down"),
            "/499" => return plain(StatusCode::from_u16(499).unwrap(), "gone"),
            "/large" => return Response::new(Body::whole(vec![b'x'; 32 << 20])),
            "/pieces" => {
                let piece = || Ok(vec![b'x'; 1 << 15].into());
                let pieces = futures_util::stream::iter((0..1024).map(move |_| piece()));
                return Response::new(Body::stream(pieces, Some(32 << 20)));
            }
            _ => {}
        }
        match request.into_body().collect(1 << 30).await {
            Ok(body) => plain(StatusCode::OK, &body.len().to_string()),
            Err(BodyError::TimedOut) => plain(StatusCode::REQUEST_TIMEOUT, "slow"),
            Err(_) => plain(StatusCode::BAD_REQUEST, "gone"),
        }
    }
}

struct Server {
    port: u16,
    pages: Arc<Pages>,
    options: ServerOptions,
    shutdown: Shutdown,
}

impl Server {
    fn start(options: ServerOptions) -> Self {
        let world = World::real();
        let listener = world.network.listen("127.0.0.1", 0, 128).unwrap();
        let (port, pages, shutdown) = (
            listener.address().unwrap().port(),
            Arc::<Pages>::default(),
            Shutdown::default(),
        );
        tokio::spawn(serve(world, listener, pages.clone(), options.clone(), shutdown.watch()));
        Self {
            port,
            pages,
            options,
            shutdown,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// A connection on which this has been sent.
    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// What the server says to a request of its own connection.
    async fn ask(&self, path: &str) -> String {
        let mut stream = self
            .send(&format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n"))
            .await;
        rest(&mut stream).await
    }

    async fn until_begun(&self, requests: usize) {
        until(|| self.pages.begun.load(Ordering::SeqCst) >= requests).await;
    }
}

/// All that comes until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A server that closes a connection on which more has come resets it.
    let _ = tokio::time::timeout(SOON, stream.read_to_end(&mut all)).await.unwrap();
    String::from_utf8(all).unwrap()
}

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.unwrap();
}

/// Whether the server has not closed it.
async fn is_open(stream: &mut TcpStream) -> bool {
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.is_ok() && stream.read_u8().await.is_ok()
}

fn few() -> ServerOptions {
    ServerOptions {
        max_clients: 2,
        ..ServerOptions::default()
    }
}

#[tokio::test]
async fn idle_connections_take_no_seat() {
    let server = Server::start(few());
    let mut idle = Vec::new();
    for number in 0..20 {
        idle.push(match number % 3 {
            0 => server.connect().await,
            1 => server.send("GET / HT").await,
            _ => {
                let mut used = server.send("GET / HTTP/1.1\r\n\r\n").await;
                used.read_u8().await.unwrap();
                used
            }
        });
    }
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_busy_server_refuses_in_time_and_answers_monitors() {
    let server = Server::start(ServerOptions {
        seat_timeout: Duration::from_millis(50),
        ..few()
    });
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(server.send("GET /wait HTTP/1.1\r\nConnection: close\r\n\r\n").await);
    }
    server.until_begun(2).await;
    let refused = server.ask("/").await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After: 5\r\n"),
        "{refused}"
    );
    assert!(server.ask("/healthcheck").await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.options.refusals.count(ServerRefusal::Requests), 1);
    server.pages.go.notify_waiters();
    for stream in &mut waiting {
        assert!(rest(stream).await.starts_with("HTTP/1.1 200"));
    }
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn statuses_of_swift_have_their_reason_phrases() {
    let server = Server::start(few());
    for line in ["498 Rate Limited", "499 Client Disconnect", "200 OK"] {
        let answer = server.ask(&format!("/{}", &line[..3])).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {line}\r\n")), "{answer}");
    }
}

#[tokio::test]
async fn a_request_waits_for_a_seat() {
    let server = Server::start(few());
    let _waiting = [
        server.send("GET /wait HTTP/1.1\r\n\r\n").await,
        server.send("GET /wait HTTP/1.1\r\n\r\n").await,
    ];
    server.until_begun(2).await;
    let mut third = server.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    let (answer, ()) = tokio::join!(rest(&mut third), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.pages.begun.load(Ordering::SeqCst), 2);
        server.pages.go.notify_one();
    });
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn slow_clients_give_up_their_seats() {
    let server = Server::start(few());
    let mut writer = server
        .send("PUT / HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\n1")
        .await;
    let mut reader = server.send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    server.until_begun(2).await;
    for _ in 0..3 {
        assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
    }
    writer.write_all(b"23").await.unwrap();
    assert!(rest(&mut writer).await.ends_with("\r\n\r\n3"));
    assert!(rest(&mut reader).await.len() > 32 << 20);
}

#[tokio::test]
async fn as_many_slow_requests_wait_for_their_clients_as_may() {
    let server = Server::start(ServerOptions {
        max_clients: 1,
        max_slow_requests: 8,
        ..ServerOptions::default()
    });
    let mut slow = Vec::new();
    for number in 1..=9 {
        slow.push(server.send("PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\n1").await);
        server.until_begun(number).await;
    }
    assert_eq!(server.options.refusals.count(ServerRefusal::Slow), 0);
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.options.refusals.count(ServerRefusal::Slow), 1, "eight, not nine");
    let mut ended = 0;
    for stream in &mut slow {
        // The one that was ended may be closed already.
        let _ = stream.write_all(b"2").await;
        let mut status = [0; 12];
        let answered = stream.read_exact(&mut status).await.is_ok() && status.ends_with(b"200");
        ended += usize::from(!answered);
    }
    assert_eq!(ended, 1);
}

#[tokio::test]
async fn long_answers_that_wait_for_their_clients_take_so_much_memory_together() {
    let server = Server::start(ServerOptions {
        max_held: 70 << 20,
        ..ServerOptions::default()
    });
    let ended = || server.options.refusals.count(ServerRefusal::Memory);
    let mut waiting = Vec::new();
    for number in 1..=4 {
        waiting.push(server.send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n").await);
        server.until_begun(number).await;
        // There is room for two of 32 MiB; the oldest ones end.
        until(|| ended() == number.saturating_sub(2) as u64).await;
    }
    let answers = waiting.iter_mut().skip(2).map(rest);
    for answer in futures_util::future::join_all(answers).await {
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.len(), 32 << 20);
    }
    for stream in &mut waiting[..2] {
        let mut begun = Vec::new();
        // The connection may end in either way.
        let _ = stream.read_to_end(&mut begun).await;
        assert!(begun.len() < 32 << 20);
    }
    assert!(server.ask("/large").await.len() > 32 << 20, "nothing waits any more");
    assert_eq!(ended(), 2);
}

#[tokio::test]
async fn an_answer_in_pieces_reaches_a_client_with_little_room_whole() {
    let server = Server::start(few());
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1 << 15).unwrap();
    let mut stream = socket.connect(([127, 0, 0, 1], server.port).into()).await.unwrap();
    let request = b"GET /pieces HTTP/1.1\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let answer = rest(&mut stream).await;
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.len(), 32 << 20);
}

#[tokio::test]
async fn the_connection_that_is_idle_longest_makes_room() {
    let server = Server::start(ServerOptions {
        max_connections: 3,
        ..few()
    });
    let mut open = Vec::new();
    for number in 0..3 {
        open.push(server.connect().await);
        until(|| server.options.open.count() == number + 1).await;
    }
    // Longer than the server takes between two looks.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(is_open(&mut open[0]).await && is_open(&mut open[1]).await);
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.options.refusals.count(ServerRefusal::Idle), 1);
    assert_eq!(rest(&mut open[2]).await, "");
    assert!(is_open(&mut open[0]).await && is_open(&mut open[1]).await);
}

#[tokio::test]
async fn a_connection_that_asked_for_something_outlives_those_that_did_not() {
    let server = Server::start(ServerOptions {
        max_connections: 3,
        ..few()
    });
    let mut used = server.connect().await;
    assert!(is_open(&mut used).await);
    let mut unused = [server.connect().await, server.connect().await];
    until(|| server.options.open.count() == 3).await;
    // Longer than a client takes to begin.
    tokio::time::sleep(Duration::from_millis(1600)).await;
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut unused[0]).await, "");
    assert!(is_open(&mut used).await && is_open(&mut unused[1]).await);
}

#[tokio::test]
async fn a_connection_without_room_gets_an_answer() {
    let server = Server::start(ServerOptions {
        max_connections: 2,
        ..few()
    });
    let mut working = Vec::new();
    for _ in 0..2 {
        working.push(server.send("GET /wait HTTP/1.1\r\nConnection: close\r\n\r\n").await);
    }
    server.until_begun(2).await;
    let refused = server.ask("/").await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After: 5\r\n"),
        "{refused}"
    );
    assert_eq!(server.options.refusals.count(ServerRefusal::Connections), 1);
    server.pages.go.notify_waiters();
    for stream in &mut working {
        assert!(rest(stream).await.starts_with("HTTP/1.1 200"));
    }
    until(|| server.options.open.count() == 0).await;
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_has_less_time_than_an_idle_connection() {
    let server = Server::start(ServerOptions {
        head_timeout: Duration::from_millis(100),
        ..few()
    });
    let mut idle = server.connect().await;
    let mut used = server.send("GET / HTTP/1.1\r\n\r\n").await;
    let mut late = server.send("GET / HTTP/1.1\r\nHo").await;
    assert_eq!(rest(&mut late).await, "");
    assert_eq!(server.options.refusals.count(ServerRefusal::Head), 1);
    assert!(is_open(&mut idle).await && is_open(&mut used).await);
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_the_end() {
    let server = Server::start(ServerOptions {
        idle_timeout: Duration::from_millis(100),
        ..few()
    });
    let mut idle = server.connect().await;
    let mut used = server.send("GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(rest(&mut idle).await, "");
    assert!(rest(&mut used).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_ended() {
    let server = Server::start(ServerOptions {
        min_transfer_rate: 1000,
        write_timeout: Duration::from_millis(300),
        ..few()
    });
    let mut writer = server.send("PUT / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n").await;
    let dripping = async {
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut head = [0; 12];
            if writer.try_read(&mut head).is_ok() {
                return String::from_utf8(head.to_vec()).unwrap();
            }
        }
        String::new()
    };
    let answer = tokio::time::timeout(SOON, dripping).await.unwrap();
    assert_eq!(answer, "HTTP/1.1 408");
    assert_eq!(server.options.refusals.count(ServerRefusal::Slow), 1);
    // A service that takes its time is not the client's fault.
    let mut waiting = server
        .send("PUT /wait HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    server.pages.go.notify_one();
    assert!(rest(&mut waiting).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_address_has_its_share() {
    let server = Server::start(ServerOptions {
        max_connections_per_address: 2,
        ..few()
    });
    let mut open = [server.connect().await, server.connect().await];
    for stream in &mut open {
        assert!(is_open(stream).await);
    }
    assert!(server.ask("/").await.starts_with("HTTP/1.1 503"));
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(([127, 0, 0, 1], server.port).into()).await.unwrap();
    assert!(is_open(&mut other).await);
    drop(open);
    until(|| server.options.open.count() == 1).await;
    assert!(server.ask("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_handshake_counts_for_its_address() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls::new(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
    let server = Server::start(ServerOptions {
        arrival: Arrival {
            tls: Some(tls),
            ..Arrival::default()
        },
        max_connections_per_address: 1,
        ..few()
    });
    let (mut one, mut other) = (server.connect().await, server.connect().await);
    let closed = async {
        let (mut byte, mut another) = ([0], [0]);
        tokio::select! {
            read = one.read(&mut byte) => read,
            read = other.read(&mut another) => read,
        }
    };
    // Far less than the time that a handshake has.
    let read = tokio::time::timeout(Duration::from_secs(5), closed).await;
    assert_eq!(read.expect("both connections stay open").unwrap(), 0);
}

#[tokio::test]
async fn a_spared_address_may_have_more_than_its_share() {
    let server = Server::start(ServerOptions {
        max_connections_per_address: 1,
        max_connections_spared: "127.0.0.2/31 ::1".parse().unwrap(),
        ..few()
    });
    let mut open = vec![];
    for (address, status) in [
        ("127.0.0.3:0", "200"),
        ("127.0.0.3:0", "200"),
        ("127.0.0.1:0", "200"),
        ("127.0.0.1:0", "503"),
        ("127.0.0.3:0", "200"),
    ] {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(address.parse().unwrap()).unwrap();
        let mut stream = socket.connect(([127, 0, 0, 1], server.port).into()).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut line = [0; 12];
        stream.read_exact(&mut line).await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&line),
            format!("HTTP/1.1 {status}"),
            "{address}"
        );
        open.push(stream);
    }
}

#[tokio::test]
async fn an_account_has_its_share() {
    let server = Server::start(ServerOptions {
        max_requests_per_account: 1,
        ..few()
    });
    let mut upload = server
        .send("PUT /v1/a/c/o HTTP/1.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\n")
        .await;
    let _stranger = server.send("PUT /stranger HTTP/1.1\r\nContent-Length: 1\r\n\r\n").await;
    server.until_begun(2).await;
    assert!(server.ask("/v1/a").await.starts_with("HTTP/1.1 503"));
    assert!(server.ask("/v1/b").await.starts_with("HTTP/1.1 200"));
    upload.write_all(b"x").await.unwrap();
    assert!(rest(&mut upload).await.starts_with("HTTP/1.1 200"));
    until(|| server.options.open.count() == 1).await;
    assert!(server.ask("/v1/a").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_shutdown_finishes_what_runs_and_nothing_else() {
    let server = Server::start(few());
    let mut idle = server.connect().await;
    let mut running = server.send("GET /wait HTTP/1.1\r\n\r\n").await;
    server.until_begun(1).await;
    server.shutdown.begin();
    assert_eq!(rest(&mut idle).await, "");
    server.pages.go.notify_one();
    assert!(rest(&mut running).await.starts_with("HTTP/1.1 200"));
    tokio::time::timeout(SOON, server.shutdown.finished()).await.unwrap();
}
