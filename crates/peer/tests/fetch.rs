//! Requests to servers that are no storage nodes: the connection that is kept, one that was closed meanwhile, answers
//! that are too long or too late. Reads of nodes, writes that may arrive twice, and uploads that have not begun,
//! survive a closed connection as well.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, HeaderValue, Method, Request};
use peer::message::{DeleteObject, Message, PutObject, RawRequest, ReadObject, RequestContext};
use peer::{Address, Body, Call, HttpClient, PeerError, RawCall, Target, Timeouts, Url};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vocabulary::{EntityPath, Partition, Timestamp};
use world::{Stream, World};

const PATIENCE: Duration = Duration::from_secs(30);
const MOST: u64 = 100;
/// Of each request that waits for the node's word.
const BODY: &str = "what is stored";

const TIMEOUTS: Timeouts = Timeouts {
    connect: PATIENCE,
    response: PATIENCE,
};

fn target() -> Target {
    Target {
        device: "sda".into(),
        partition: Partition(1),
        path: Arc::new(EntityPath::account("a")),
    }
}

/// A server that counts its connections and answers each request with its own number and the request's head.
struct Echo {
    connections: Arc<AtomicUsize>,
    url: Url,
    port: u16,
}

/// `requests` are answered on each connection; the one behind them is read, and the connection closed.
fn start(world: &World, requests: usize) -> Echo {
    start_varying(world, move |_| requests)
}

/// The same, where `requests` says how many for each connection by its number.
fn start_varying(world: &World, requests: impl Fn(usize) -> usize + Send + 'static) -> Echo {
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let port = listener.address().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let number = count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer(stream, requests(number)));
        }
    });
    let url = Url::parse(&format!("http://127.0.0.1:{port}/v3/")).unwrap();
    Echo { connections, url, port }
}

async fn answer(mut stream: Box<dyn Stream>, requests: usize) {
    for number in 0..=requests {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        if number == requests {
            return;
        }
        let mut body = String::from_utf8(head).unwrap().replace("\r\n", "|");
        if body.contains("100-continue") {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
            let mut sent = [0; BODY.len()];
            stream.read_exact(&mut sent).await.unwrap();
            body.push_str(std::str::from_utf8(&sent).unwrap());
        }
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn get() -> Request<Bytes> {
    let builder = Request::builder().method(Method::GET).header("x-a", "b");
    builder.body(Bytes::new()).unwrap()
}

#[tokio::test]
async fn a_connection_is_kept_and_replaced_when_the_server_has_closed_it() {
    let world = World::real();
    let server = start(&world, 2);
    let client = HttpClient::new(world);
    for (request, connections) in [(0, 1), (1, 1), (2, 2)] {
        let url = server.url.with("/auth?x=1");
        let response = client.fetch(&url, get(), MOST, PATIENCE).await.unwrap();
        let expected = format!("GET /v3/auth?x=1 HTTP/1.1|x-a: b|host: {}||", url.authority());
        assert_eq!(response.into_body(), expected, "{request}");
        assert_eq!(server.connections.load(Ordering::SeqCst), connections, "{request}");
    }
}

#[tokio::test]
async fn a_read_is_repeated_when_a_kept_connection_ends_below_it_and_a_write_is_not() {
    for (method, connections) in [(Method::GET, 2), (Method::HEAD, 2), (Method::POST, 1)] {
        let world = World::real();
        let server = start(&world, 1);
        let client = HttpClient::new(world);
        let send = |method: Method| {
            let call = RawCall::new(method, target(), HeaderMap::new());
            client.send("127.0.0.1", server.url.port(), call.into(), TIMEOUTS)
        };
        // Its connection is kept when this ends.
        client.fetch(&server.url, get(), MOST, PATIENCE).await.unwrap();
        let second = send(method.clone()).await;
        assert_eq!(second.is_ok(), connections == 2, "{method}");
        assert_eq!(server.connections.load(Ordering::SeqCst), connections, "{method}");
    }
}

#[tokio::test]
async fn a_body_that_waits_for_the_nodes_word_goes_over_another_connection() {
    let world = World::real();
    let server = start(&world, 1);
    let client = HttpClient::new(world);
    // Its connection is kept when this ends.
    client.fetch(&server.url, get(), MOST, PATIENCE).await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    headers.insert(CONTENT_LENGTH, BODY.len().into());
    let call: Call = RawCall::new(Method::PUT, target(), headers).into();
    let (mut feed, body) = Body::channel(1, Some(BODY.len() as u64));
    let sending = client.send("127.0.0.1", server.url.port(), call.with_body(body), TIMEOUTS);
    let feeding = async {
        assert!(feed.started().await);
        assert!(feed.send(Bytes::from_static(BODY.as_bytes())).await);
        feed.finish().await;
    };
    let (sent, ()) = tokio::join!(sending, feeding);
    let answer = sent.unwrap().into_body().collect(1000).await.unwrap();
    assert!(answer.ends_with(BODY.as_bytes()), "{answer:?}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

/// A server that closes its first connection over the second request, and answers each other one with `head`.
fn start_closing(world: &World, head: String) -> u16 {
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let port = listener.address().unwrap().port();
    tokio::spawn(async move {
        for number in 0..2 {
            let Ok((mut stream, _)) = listener.accept().await else {
                return;
            };
            for request in 0..2 {
                let mut read = Vec::new();
                while !read.ends_with(b"\r\n\r\n") {
                    read.push(stream.read_u8().await.unwrap());
                }
                if String::from_utf8_lossy(&read).starts_with("PUT") {
                    stream.read_exact(&mut [0; BODY.len()]).await.unwrap();
                }
                if (number, request) == (0, 1) {
                    break;
                }
                stream.write_all(head.as_bytes()).await.unwrap();
                if number == 1 {
                    return;
                }
            }
        }
    });
    port
}

#[tokio::test]
async fn a_write_of_an_object_is_repeated_and_what_it_finds_of_itself_is_no_refusal() {
    let time: Timestamp = "1700000000.00000".parse().unwrap();
    let put = PutObject {
        timestamp: time.into(),
        ..PutObject::new(target())
    };
    let conditional = PutObject {
        if_none_match: Some(HeaderValue::from_static("*")),
        ..put.clone()
    };
    let delete = DeleteObject {
        timestamp: time.into(),
        ..DeleteObject::new(target())
    };
    let expire = DeleteObject {
        if_delete_at: time.into(),
        ..delete.clone()
    };
    let own = "1700000000.00000";
    let of = |status: &str, stored: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nX-Backend-Timestamp: {stored}\r\n\r\n")
    };
    let cases: [(Message, String, Option<u16>); 7] = [
        (put.clone().into(), of("201 Created", own), Some(201)),
        (put.clone().into(), of("409 Conflict", own), Some(201)),
        (put.into(), of("409 Conflict", "1700000000.00001"), Some(409)),
        (conditional.into(), of("409 Conflict", own), None),
        (delete.clone().into(), of("409 Conflict", own), Some(204)),
        (delete.into(), of("404 Not Found", own), Some(404)),
        (expire.into(), of("409 Conflict", own), None),
    ];
    for (message, head, expected) in cases {
        let world = World::real();
        let port = start_closing(&world, head.clone());
        let client = HttpClient::new(world);
        let url = Url::parse(&format!("http://127.0.0.1:{port}/v3/")).unwrap();
        // Its connection is kept when this ends.
        client.fetch(&url, get(), MOST, PATIENCE).await.unwrap();
        let body = match message.method() {
            Method::PUT => Body::whole(BODY),
            _ => Body::empty(),
        };
        let method = message.method();
        let call = Call::new(RequestContext::default(), message).with_body(body);
        let sent = client.send("127.0.0.1", port, call, TIMEOUTS).await;
        let status = sent.ok().map(|response| response.status().as_u16());
        assert_eq!(status, expected, "{method} {head}");
    }
}

#[tokio::test]
async fn what_may_arrive_twice_is_sent_again_when_a_new_connection_ends_below_it() {
    let put = PutObject {
        timestamp: Timestamp::from_seconds(1).into(),
        ..PutObject::new(target())
    };
    let conditional = PutObject {
        if_none_match: Some(HeaderValue::from_static("*")),
        ..put.clone()
    };
    for (message, closed, connections, is_answered) in [
        (put.clone(), 0, 1, true),
        (put.clone(), 1, 2, true),
        (put, 2, 2, false),
        (conditional, 1, 1, false),
    ] {
        let world = World::real();
        let server = start_varying(&world, move |number| usize::from(number >= closed));
        let port = server.url.port();
        let call = Call::new(RequestContext::default(), Message::from(message)).with_body(Body::empty());
        let answer = HttpClient::new(world).send("127.0.0.1", port, call, TIMEOUTS).await;
        assert_eq!(answer.is_ok(), is_answered, "{closed}");
        assert_eq!(server.connections.load(Ordering::SeqCst), connections, "{closed}");
    }
}

/// A server that ends each connection late has no more time for that.
#[tokio::test]
async fn all_connections_together_have_the_time_of_one_answer() {
    let world = World::real();
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let port = listener.address().unwrap().port();
    let late = Timeouts {
        response: Duration::from_millis(600),
        ..TIMEOUTS
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(400)).await;
                drop(stream);
            });
        }
    });
    let get = Call::new(RequestContext::default(), Message::from(ReadObject::new(target())));
    let answer = HttpClient::new(world).send("127.0.0.1", port, get, late).await;
    assert_eq!(answer.err(), Some(PeerError::ResponseTimeout));
}

/// More headers, and longer ones, than are read: the node is not at fault.
#[tokio::test]
async fn a_head_that_is_too_long_is_no_broken_connection() {
    let many: String = (0..2000).map(|n| format!("X-Meta-{n}: v\r\n")).collect();
    let long = format!("X-Meta: {}\r\n", "v".repeat(1_000_000));
    for headers in [many, long] {
        let world = World::real();
        let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
        let port = listener.address().unwrap().port();
        let answer = format!("HTTP/1.1 204 No Content\r\n{headers}\r\n");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            // It may hang up before it has all.
            let _ = stream.write_all(answer.as_bytes()).await;
            std::future::pending::<()>().await;
        });
        let get = Call::new(RequestContext::default(), Message::from(ReadObject::new(target())));
        let answer = HttpClient::new(world).send("127.0.0.1", port, get, TIMEOUTS).await;
        assert_eq!(answer.err(), Some(PeerError::TooLong));
    }
}

/// Informational answers without an end would keep the thread that reads them from all else.
#[tokio::test]
async fn a_server_that_only_informs_is_hung_up_on() {
    let world = World::real();
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let port = listener.address().unwrap().port();
    tokio::spawn(async move {
        for informed in [2].into_iter().chain(std::iter::repeat(usize::MAX)) {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            for _ in 0..informed {
                if stream.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").await.is_err() {
                    break;
                }
            }
            // It is not read any more where it informed without an end.
            let last = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(last).await;
        }
    });
    let client = HttpClient::new(world);
    let ask = || Call::new(RequestContext::default(), Message::from(ReadObject::new(target())));
    let answer = client.send("127.0.0.1", port, ask(), TIMEOUTS).await;
    assert_eq!(answer.unwrap().status(), 204);
    let endless = client.send("127.0.0.1", port, ask(), TIMEOUTS).await;
    assert!(matches!(endless, Err(PeerError::Broken(_))), "{endless:?}");
}

/// A storage server would hang up in the middle of it, which looks as if it were at fault.
#[tokio::test]
async fn a_request_whose_head_is_too_long_is_not_sent() {
    let world = World::real();
    let server = start(&world, 9);
    let client = HttpClient::new(world);
    for (length, expected) in [(60_000, None), (70_000, Some(PeerError::LongRequest))] {
        let mut headers = HeaderMap::new();
        headers.insert("x-long", "v".repeat(length).parse().unwrap());
        let message = Message::Raw(RawRequest {
            method: Method::GET,
            address: Address::Plain("/".into()),
            query: String::new(),
            headers,
        });
        let call = Call::new(RequestContext::default(), message);
        let answer = client.send("127.0.0.1", server.port, call, TIMEOUTS).await;
        assert_eq!(answer.err(), expected);
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused() {
    let world = World::real();
    let server = start(&world, 1);
    let client = HttpClient::new(world);
    let fetched = client.fetch(&server.url, get(), 10, PATIENCE).await;
    assert!(matches!(fetched, Err(PeerError::Broken(_))), "{fetched:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for() {
    let world = World::real();
    let listener = world.network.listen("127.0.0.1", 0, 16).unwrap();
    let port = listener.address().unwrap().port();
    let client = HttpClient::new(world);
    let url = Url::parse(&format!("http://127.0.0.1:{port}/v3/")).unwrap();
    let fetched = client
        .fetch(&url.with("/"), get(), MOST, Duration::from_millis(50))
        .await;
    assert_eq!(fetched.err(), Some(PeerError::ResponseTimeout));
    drop(listener);
    let fetched = client.fetch(&url.with("/"), get(), MOST, PATIENCE).await;
    let Err(PeerError::Connect(why)) = fetched else {
        panic!("{fetched:?}")
    };
    assert!(why.starts_with(&url.authority()), "{why}");
}
