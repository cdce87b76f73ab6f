//! The same service answers the same, called directly and over HTTP: whole bodies, streamed bodies
//! behind `Expect: 100-continue`, refusals before the body, informational answers with headers, and
//! connections that the other side closed in the meantime.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use peer::http_server::{Shutdown, plain, serve};
use peer::{
    Body, BodyError, Call, PeerError, Peers, RawCall, Response, ServerOptions, Service, StorageDoor, Target, Timeouts,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vocabulary::{EntityPath, Partition};
use world::World;

/// Echoes bodies; refuses the account `full` before reading anything.
struct Echo;

#[async_trait::async_trait]
impl Service for Echo {
    async fn call(&self, call: Call) -> Response {
        let mut call = call.into_raw();
        let peer::Address::Entity(target) = &call.address else {
            return plain(StatusCode::BAD_REQUEST, "");
        };
        if target.path.account == "full" {
            return plain(StatusCode::INSUFFICIENT_STORAGE, "full");
        }
        if call.headers.contains_key("x-footers")
            && let Some(interim) = &call.interim
        {
            let mut headers = HeaderMap::new();
            headers.insert("x-obj-metadata-footer", HeaderValue::from_static("yes"));
            interim.send_continue(&headers, true);
            let first = call.body.next().await;
            interim.send_continue(&HeaderMap::new(), false);
            let second = call.body.next().await;
            return plain(StatusCode::CREATED, &format!("{first:?} {second:?}"));
        }
        if call.headers.contains_key("x-backend-obj-metadata-footer")
            && target.path.account == "reads-footers"
            && let Some(interim) = &call.interim
        {
            let mut headers = HeaderMap::new();
            headers.insert("x-obj-metadata-footer", HeaderValue::from_static("yes"));
            interim.send_continue(&headers, true);
        }
        match call.body.collect(1 << 20).await {
            Ok(bytes) => Response::new(Body::whole(bytes)),
            Err(error) => plain(StatusCode::from_u16(499).unwrap(), &error.to_string()),
        }
    }
}

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(30),
    response: Duration::from_secs(30),
};

struct Set {
    peers: Peers,
    port: u16,
    shutdown: Shutdown,
}

fn start() -> Set {
    let world = World::real();
    let service: Arc<dyn Service> = Arc::new(Echo);
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let port = listener.address().unwrap().port();
    let shutdown = Shutdown::default();
    let door = Arc::new(StorageDoor(service.clone()));
    tokio::spawn(serve(
        world.clone(),
        listener,
        door,
        ServerOptions::default(),
        shutdown.watch(),
    ));
    let mut peers = Peers::new(world);
    peers.register("near", 1, service);
    Set { peers, port, shutdown }
}

fn put(account: &str, body: Body) -> RawCall {
    let target = Target {
        device: "sda".into(),
        partition: Partition(1),
        path: Arc::new(EntityPath::account(account)),
    };
    RawCall::new(Method::PUT, target, HeaderMap::new()).with_body(body)
}

fn expecting(mut call: RawCall) -> RawCall {
    call.headers.insert("expect", HeaderValue::from_static("100-continue"));
    call
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_the_nodes_fault() {
    let set = start();
    for expects in [false, true] {
        let (mut feed, body) = Body::channel(1, Some(5));
        let call = put("a", body);
        let call = if expects { expecting(call) } else { call };
        let sending = set.peers.send("127.0.0.1", set.port, call, TIMEOUTS);
        let feeding = async {
            assert!(feed.started().await);
            assert!(feed.send(Bytes::from_static(b"x")).await);
            drop(feed);
        };
        let (answer, ()) = tokio::join!(sending, feeding);
        assert_eq!(answer.map(|response| response.status()), Err(PeerError::Abandoned));
    }
    set.shutdown.begin();
}

#[tokio::test]
async fn local_and_remote_calls_are_answered_the_same() {
    let set = start();
    for (ip, port) in [("near", 1), ("127.0.0.1", set.port)] {
        for round in 0..3 {
            let response = set
                .peers
                .send(ip, port, put("a", Body::whole("hello")), TIMEOUTS)
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{ip} {round}");
            assert_eq!(response.into_body().collect(9).await, Ok(Bytes::from_static(b"hello")));
        }

        let (mut feed, body) = Body::channel(1, None);
        let sending = set.peers.send(ip, port, expecting(put("a", body)), TIMEOUTS);
        let feeding = async {
            assert!(feed.started().await);
            for _ in 0..100 {
                assert!(feed.send(Bytes::from_static(b"x")).await);
            }
            assert!(feed.finish().await);
        };
        let (response, ()) = tokio::join!(sending, feeding);
        assert_eq!(response.unwrap().into_body().collect(999).await.unwrap().len(), 100);

        let (mut feed, body) = Body::channel(1, Some(5));
        let (response, started) = tokio::join!(
            async {
                set.peers
                    .send(ip, port, expecting(put("full", body)), TIMEOUTS)
                    .await
                    .unwrap()
                    .status()
            },
            feed.started()
        );
        assert_eq!((response, started), (StatusCode::INSUFFICIENT_STORAGE, false));
    }
}

#[tokio::test]
async fn a_body_cut_short_reaches_the_service_as_an_error() {
    let set = start();
    let (mut feed, body) = Body::channel(1, Some(10));
    let sending = set.peers.send("near", 1, put("a", body), TIMEOUTS);
    let cutting = async {
        feed.started().await;
        feed.fail(BodyError::TimedOut).await;
    };
    let (response, ()) = tokio::join!(sending, cutting);
    assert_eq!(response.unwrap().status().as_u16(), 499);
}

#[tokio::test]
async fn informational_answers_carry_headers() {
    let set = start();
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", set.port)).await.unwrap();
    let head = "PUT /sda/1/a HTTP/1.1\r\nHost: x\r\nX-Footers: 1\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut read = async |wanted: &str, send: &[u8]| {
        let mut got = String::new();
        while !got.ends_with(wanted) {
            let mut buffer = [0; 512];
            let count = socket.read(&mut buffer).await.unwrap();
            assert!(count > 0, "closed after {got:?}");
            got.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        socket.write_all(send).await.unwrap();
        got
    };
    let first = read("\r\n\r\n", b"abc").await;
    assert_eq!(first, "HTTP/1.1 100 Continue\r\nx-obj-metadata-footer: yes\r\n\r\n");
    assert_eq!(read("\r\n\r\n", b"def").await, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(
        read("Some(Ok(b\"def\"))", b"")
            .await
            .starts_with("HTTP/1.1 201 Created\r\n")
    );
}

/// hyper sends no `100 Continue` for a body without bytes; botocore cannot read a second answer from a connection then.
#[tokio::test]
async fn a_connection_ends_behind_an_empty_body_that_was_announced() {
    let set = start();
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", set.port)).await.unwrap();
    let head = "PUT /sda/1/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut got = String::new();
    socket.read_to_string(&mut got).await.unwrap();
    assert!(
        got.starts_with("HTTP/1.1 200 OK\r\n") && got.to_lowercase().contains("\r\nconnection: close\r\n"),
        "{got}"
    );
}

/// A body with headers at its end goes as MIME to a node that says it reads those, and to no other.
#[tokio::test]
async fn footers_go_only_to_who_reads_them() {
    let set = start();
    for (account, reads) in [("reads-footers", true), ("a", false)] {
        let footer = peer::Footer::default();
        let (mut feed, body) = Body::channel(1, Some(5));
        let call = put(account, body.with_footer(footer.clone()));
        let sending = set.peers.send("127.0.0.1", set.port, call, TIMEOUTS);
        let feeding = async {
            if !feed.started().await {
                return false;
            }
            assert!(feed.send(Bytes::from_static(b"hello")).await);
            footer.set(
                [(http::header::ETAG, HeaderValue::from_static("x"))]
                    .into_iter()
                    .collect(),
            );
            feed.finish().await
        };
        let (response, fed) = tokio::join!(sending, feeding);
        assert_eq!(fed, reads);
        if reads {
            let text = response.unwrap().into_body().collect(9999).await.unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(text.contains("\r\n\r\nhello\r\n--"), "{text}");
            assert!(
                text.contains("X-Document: object metadata") && text.contains(r#"{"etag":"x"}"#),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_is_an_error_at_once() {
    let set = start();
    let port = set.port;
    let warm = set
        .peers
        .send("127.0.0.1", port, put("a", Body::empty()), TIMEOUTS)
        .await
        .unwrap();
    drop(warm.into_body().collect(1).await);
    set.shutdown.begin();
    tokio::time::timeout(Duration::from_secs(60), set.shutdown.finished())
        .await
        .expect("idle connections end");
    let error = set
        .peers
        .send("127.0.0.1", port, put("a", Body::empty()), TIMEOUTS)
        .await
        .unwrap_err();
    assert!(matches!(error, PeerError::Connect(_) | PeerError::Broken(_)), "{error}");
}

/// A refusal that comes before the body costs a small body its bytes, a large one the connection, and
/// the answer says which.
#[tokio::test]
async fn a_connection_goes_on_after_a_refusal_or_says_that_it_ends() {
    let set = start();
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", set.port)).await.unwrap();
    let mut ask = async |head: &str, body: &[u8]| {
        socket.write_all(head.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        socket.write_all(body).await.unwrap();
        let mut got = String::new();
        while !got.ends_with("full") && !got.ends_with("hello") {
            let mut buffer = [0; 512];
            let count = socket.read(&mut buffer).await.unwrap();
            assert!(count > 0, "closed after {got:?}");
            got.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        got
    };
    let refused = ask(
        "PUT /sda/1/full HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",
        b"hello",
    )
    .await;
    assert!(
        refused.starts_with("HTTP/1.1 507 ") && !refused.contains("Connection: close"),
        "{refused}"
    );
    let next = ask(
        "PUT /sda/1/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",
        b"hello",
    )
    .await;
    assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
    let large = ask(
        "PUT /sda/1/full HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n",
        b"",
    )
    .await;
    assert!(large.contains("Connection: close"), "{large}");
}

#[tokio::test]
async fn an_answer_comes_in_pieces_that_may_be_held_for_a_slow_client() {
    let set = start();
    let sent = Bytes::from(vec![b'x'; 1 << 20]);
    let call = put("a", Body::whole(sent.clone()));
    let answer = set.peers.send("127.0.0.1", set.port, call, TIMEOUTS).await.unwrap();
    let (mut body, mut received) = (answer.into_body(), 0);
    while let Some(piece) = body.next().await {
        let length = piece.unwrap().len();
        assert!(length <= 128 * 1024, "{length}");
        received += length;
    }
    assert_eq!(received, sent.len());
    set.shutdown.begin();
}
