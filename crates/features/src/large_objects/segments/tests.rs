use super::*;
use crate::testing::request;
use crate::testing_store::{Store, Through, etag, read_text};
use futures_util::FutureExt;
use world::World;

/// 64 KiB.
const LONG: &str = match std::str::from_utf8(&[b'x'; 64 << 10]) {
    Ok(text) => text,
    Err(_) => "",
};

struct Listed(VecDeque<Piece>);

#[async_trait::async_trait]
impl Pieces for Listed {
    async fn next(&mut self, _asking: &Asking) -> Result<Option<Piece>, SegmentFailure> {
        Ok(self.0.pop_front())
    }
}

fn object(name: &str, range: Option<(u64, u64)>, etag: Option<&str>, size: Option<u64>) -> Piece {
    Piece::Object(ObjectPiece {
        path: EntityPath::account("a").with_container("c").with_object(name),
        range: range.map(|(start, end)| ByteRange { start, end }),
        etag: etag.map(str::to_owned),
        size,
    })
}

fn data(text: &'static str) -> Piece {
    Piece::Data(Bytes::from_static(text.as_bytes()))
}

async fn joined(store: &Store, pieces: Vec<Piece>, length: Option<u64>) -> Result<String, String> {
    let pieces = std::sync::Mutex::new(Some(pieces));
    let through = Through(move |client: ClientRequest, next: Next| {
        let pieces = pieces.lock().unwrap().take().unwrap();
        async move {
            let asking = Asking::new(&client, next, "SLO", World::real().clock, Duration::from_secs(9));
            match Joined::start(asking, Box::new(Listed(pieces.into())), length).await {
                Ok(joined) => Response::new(joined.into_body()),
                Err(failure) => failure.response(&client.method),
            }
        }
        .boxed()
    });
    let response = store.ask(through, request("GET", "/v1/a/c/large")).await;
    match response.status() == 200 {
        true => read_text(response).await.map_err(|broken| broken.what),
        false => Err(response.status().as_u16().to_string()),
    }
}

fn store() -> Store {
    let store = Store::default();
    store.put("c/x", "xxxxx");
    store.put("c/y", "yyyyy");
    store
}

/// However much data comes first, the client gets its status.
#[tokio::test]
async fn little_is_gathered_before_the_first_segment() {
    for (count, text) in [(17, "x"), (2, LONG)] {
        let mut pieces = vec![data(text); count];
        pieces.push(object("missing", None, None, None));
        let broken = joined(&store(), pieces, None).await.unwrap_err();
        assert!(broken.starts_with(text), "{count}");
    }
    let pieces = vec![data("x"), object("missing", None, None, None)];
    assert_eq!(joined(&store(), pieces, None).await, Err("409".into()));
}

#[tokio::test]
async fn one_after_the_other() {
    let store = store();
    let x = etag(b"xxxxx");
    let pieces = vec![
        data("<"),
        object("x", None, Some(&x), Some(5)),
        data("-"),
        object("y", Some((1, 3)), None, Some(5)),
        data(">"),
    ];
    assert_eq!(joined(&store, pieces, Some(10)).await, Ok("<xxxxx-yy>".into()));
    assert_eq!(store.take_asked(), ["GET /v1/a/c/x", "GET /v1/a/c/y bytes=1-2"]);
    assert_eq!(joined(&store, vec![], Some(0)).await, Ok(String::new()));
}

#[tokio::test]
async fn the_first_segment_decides_the_status() {
    let store = store();
    store.instead.lock().insert("/v1/a/c/y".into(), 503);
    let x = |etag, size| object("x", None, etag, size);
    assert_eq!(
        joined(&store, vec![object("z", None, None, None)], None).await,
        Err("409".into())
    );
    assert_eq!(
        joined(&store, vec![object("y", None, None, None)], None).await,
        Err("503".into())
    );
    assert_eq!(
        joined(&store, vec![x(Some("other"), None)], None).await,
        Err("409".into())
    );
    assert_eq!(joined(&store, vec![x(None, Some(6))], None).await, Err("409".into()));
    let ranged = object("x", Some((0, 1)), None, Some(6));
    assert_eq!(
        joined(&store, vec![ranged], None).await,
        Err("409".into()),
        "its size is in Content-Range"
    );
}

#[tokio::test]
async fn a_later_one_breaks_the_body() {
    let store = store();
    let x = || object("x", None, None, None);
    for (second, length) in [
        (object("z", None, None, None), None),
        (object("y", None, Some("other"), None), None),
        (object("y", None, None, Some(4)), None),
        (object("y", None, None, None), Some(9)),
        (object("y", None, None, None), Some(11)),
        (object("y", Some((3, 9)), None, None), None),
    ] {
        let found = joined(&store, vec![x(), second.clone()], length).await;
        let broken = found.expect_err("it must not end well");
        assert!(broken.starts_with("xxxxx"), "{second:?}: {broken}");
    }
}

#[tokio::test]
async fn wrong_bytes_are_never_taken_for_right_ones() {
    let store = store();
    let lie = etag(b"other");
    store.put_with("c/x", "xxxxx", &[("etag", &lie)]);
    let broken = joined(&store, vec![object("x", None, Some(&lie), Some(5))], Some(5)).await;
    assert_eq!(broken, Err("xxxxx then Corrupt".into()));
}

#[tokio::test]
async fn paced_after_the_free_ones() {
    let clock = World::real().clock;
    let (mut pace, mut began);
    let mut tries = 0..50; // the machine may be busy with something else
    loop {
        (pace, began) = (Pace::new(2, 20.0), clock.elapsed());
        for _ in 0..3 {
            pace.wait(&*clock).await;
        }
        if clock.elapsed() - began < Duration::from_millis(40) {
            break;
        }
        assert!(tries.next().is_some(), "two are free, the third is the first");
    }
    for _ in 0..2 {
        pace.wait(&*clock).await;
    }
    assert!(clock.elapsed() - began >= Duration::from_millis(100));
    let mut unlimited = Pace::new(0, 0.0);
    unlimited.wait(&*clock).await;
}
