//! What manifests may cost: memory, turns of the processor, requests.

use super::*;
use futures_util::StreamExt;
use parking_lot::Mutex;
use request_pipeline::{Authorizer, InfoSource, MemorySeat};
use vocabulary::Timestamp;
use world::BoxFuture;

/// Time passes only in sleep, which takes no time.
#[derive(Default)]
struct Leaping(Arc<Mutex<Duration>>);

impl Clock for Leaping {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(1)
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let time = self.0.clone();
        Box::pin(async move { *time.lock() += duration })
    }
}

fn leaping() -> (StaticLargeObjects, Arc<Mutex<Duration>>) {
    let clock = Leaping::default();
    let time = clock.0.clone();
    let world = World {
        clock: Arc::new(clock),
        ..World::real()
    };
    (slo_in(world), time)
}

fn slo_in(world: World) -> StaticLargeObjects {
    let hash = HashPrefix::new("pre", "suf").unwrap();
    StaticLargeObjects::new(SloSettings::default(), world, hash, ".".into(), Duration::from_secs(60))
}

/// Segments of one byte of a manifest of more than 1 MiB.
const MANY: usize = 70_000;
/// Bytes that it takes.
const WEIGHT: u64 = MANY as u64 * 17;

/// A manifest with so many bytes, each a segment of data.
fn put_data(store: &Store, name: &str, bytes: usize) {
    let json = format!("[{}]", vec![r#"{"data": "YQ=="}"#; bytes].join(", "));
    put_stored(store, name, &json, "x", bytes);
}

fn put_stored(store: &Store, name: &str, json: &str, etag: &str, size: usize) {
    let size = size.to_string();
    let headers = [
        ("x-static-large-object", "True"),
        ("x-object-sysmeta-slo-etag", etag),
        ("x-object-sysmeta-slo-size", &size),
    ];
    store.put_with(name, json, &headers);
}

/// Stores `/c/top` with so many entries, each a byte of one of the manifests in turn.
fn put_top(store: &Store, of: &[&str], bytes: usize, entries: usize) {
    let entry = |name: &&str| {
        format!(r#"{{"name": "/c/{name}", "bytes": {bytes}, "hash": "x", "range": "1-1", "sub_slo": true}}"#)
    };
    let listed: Vec<_> = of.iter().cycle().take(entries).map(entry).collect();
    put_stored(store, "c/top", &format!("[{}]", listed.join(", ")), "y", entries);
}

async fn get(store: &Store, slo: StaticLargeObjects, name: &str) -> SeenReply {
    let asked = request("GET", &format!("/v1/a/c/{name}"));
    tell(store.ask(slo, asked).await).await
}

#[tokio::test]
async fn large_manifests_are_fetched_again_at_a_pace() {
    let store = Store::default();
    put_data(&store, "c/large1", MANY);
    put_data(&store, "c/large2", MANY);
    put_top(&store, &["large1", "large2"], MANY, 20);
    let (slo, time) = leaping();
    let seen = get(&store, slo, "top").await;
    assert_eq!((seen.status, seen.body.len()), (200, 20));
    assert_eq!(store.take_asked().len(), 1 + 20);
    // Ten are free, the next goes at once, and each of the others waits a second.
    assert_eq!(*time.lock(), Duration::from_secs(9));

    put_data(&store, "c/small1", 100);
    put_data(&store, "c/small2", 100);
    put_top(&store, &["small1", "small2"], 100, 1000);
    let (slo, time) = leaping();
    let seen = get(&store, slo, "top").await;
    assert_eq!((seen.status, seen.body.len()), (200, 1000));
    assert_eq!(store.take_asked().len(), 1 + 2);
    assert_eq!(*time.lock(), Duration::ZERO);
}

#[tokio::test]
async fn manifests_that_bring_many_bytes_are_not_held_up() {
    let store = Store::default();
    store.put("c/o", &"o".repeat(2 << 20));
    let etag = store.objects.lock()["/v1/a/c/o"].headers["etag"].clone();
    let object = format!(r#"[{{"name": "/c/o", "bytes": {}, "hash": {etag:?}}}]"#, 2 << 20);
    let names: Vec<_> = (0..20).map(|number| format!("sub{number}")).collect();
    let mut top = Vec::new();
    for name in &names {
        put_stored(&store, &format!("c/{name}"), &object, "x", 2 << 20);
        top.push(format!(
            r#"{{"name": "/c/{name}", "bytes": {}, "hash": "x", "sub_slo": true}}"#,
            2 << 20
        ));
    }
    put_stored(&store, "c/top", &format!("[{}]", top.join(", ")), "y", 40 << 20);
    let (slo, time) = leaping();
    let seen = get(&store, slo, "top").await;
    assert_eq!((seen.status, seen.body.len()), (200, 40 << 20));
    assert_eq!(*time.lock(), Duration::ZERO);
}

#[tokio::test]
async fn a_download_holds_few_manifests() {
    let store = Store::default();
    let names: Vec<_> = (0..6).map(|number| format!("large{number}")).collect();
    for name in &names {
        put_data(&store, &format!("c/{name}"), MANY);
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    put_top(&store, &names, MANY, 12);
    let (slo, _) = leaping();
    let room = slo.0.manifests.clone();
    let response = store.ask(slo, request("GET", "/v1/a/c/top")).await;
    let mut body = response.into_body();
    let (mut most, mut bytes) = (0, 0);
    while let Some(chunk) = body.next().await {
        bytes += chunk.unwrap().len();
        most = most.max(room.taken());
    }
    drop(body);
    assert_eq!(bytes, 12);
    assert!(most > 0 && most <= 2 * WEIGHT, "{most}");
    assert_eq!(room.taken(), 0);
}

#[tokio::test]
async fn manifests_beyond_the_room_of_all_are_refused() {
    let store = Store::default();
    put_data(&store, "c/large", MANY);
    put_data(&store, "c/small", 1000);
    let (slo, _) = leaping();
    let room = slo.0.manifests.clone();
    let mut seats: Vec<MemorySeat> = Vec::new();
    loop {
        let mut seat = room.enter_from(request("GET", "/v1/a/c/large").from.ip());
        if seat.grow(1 << 10).is_err() {
            break;
        }
        seats.push(seat);
    }
    assert_eq!(room.taken(), MOST_OF_MANIFESTS / 2);
    let slo = slo.0;
    let seen = get(&store, StaticLargeObjects(slo.clone()), "large").await;
    assert_eq!((seen.status, seen.header("retry-after")), (503, "5"));
    let seen = get(&store, StaticLargeObjects(slo.clone()), "small").await;
    assert_eq!((seen.status, seen.body.len()), (200, 1000));
    drop(seats);
    let seen = get(&store, StaticLargeObjects(slo), "large").await;
    assert_eq!((seen.status, seen.body.len()), (200, MANY));
}

#[tokio::test]
async fn others_go_on_while_a_manifest_is_read() {
    let store = Store::default();
    put_data(&store, "c/large", MANY);
    let turns = Arc::new(Mutex::new(0));
    let counted = turns.clone();
    let others = tokio::spawn(async move {
        loop {
            *counted.lock() += 1;
            tokio::task::yield_now().await;
        }
    });
    let (slo, _) = leaping();
    let response = store.ask(slo, request("GET", "/v1/a/c/large")).await;
    others.abort();
    assert_eq!(response.status(), 200);
    let steps = MANY * r#"{"data": "YQ=="}, "#.len() / STEP;
    assert!(*turns.lock() >= steps, "{} of {steps}", turns.lock());
}

/// Refuses to write with this status.
struct Refuses(u16);

#[async_trait::async_trait]
impl Authorizer for Refuses {
    async fn authorize(&self, _: &mut ClientRequest, _: &dyn InfoSource) -> Result<(), Response> {
        Err(reply::status(self.0))
    }
}

fn upload(body: Body) -> ClientRequest {
    let target = "/v1/a/c/m?multipart-manifest=put";
    let mut asked = with_headers(request("PUT", target), &[("transfer-encoding", "chunked")]);
    asked.body = body;
    asked
}

#[tokio::test]
async fn lists_of_strangers_are_not_read() {
    let store = store();
    // A body that never comes.
    let mut asked = upload(Body::stream(futures_util::stream::pending(), None));
    asked.authorizer = Some(Arc::new(Refuses(401)));
    assert_eq!(tell(store.ask(leaping().0, asked).await).await.status, 401);
    assert!(store.take_asked().is_empty());
    // Those who are known hear of their segments, as by OpenStack.
    let mut asked = upload(Body::whole(r#"[{"path": "/c/none"}]"#));
    asked.authorizer = Some(Arc::new(Refuses(403)));
    assert_eq!(tell(store.ask(slo_in(World::real()), asked).await).await.status, 400);
}

#[tokio::test]
async fn lists_beyond_the_room_of_all_are_refused() {
    let store = store();
    let list = format!(r#"[{{"path": "/c/a"}}{}]"#, r#", {"data": "YQ=="}"#.repeat(1000));
    let room = MemoryRoom::of(400 << 10);
    let ask = async |body: Body| {
        let slo = slo_in(World::real()).reading_in(room.clone());
        tell(store.ask(slo, upload(body)).await).await
    };
    let mut seat = room.enter("a");
    seat.grow(190 << 10).unwrap();
    let seen = ask(Body::whole(list.clone())).await;
    assert_eq!((seen.status, seen.header("retry-after")), (503, "5"));
    assert_eq!(room.taken(), 190 << 10);
    // No room is taken for what has not come.
    let first = [Ok(bytes::Bytes::from_static(b"[{\"path\""))];
    let slow = Body::stream(
        futures_util::stream::iter(first).chain(futures_util::stream::pending()),
        None,
    );
    let mut waiting = Box::pin(ask(slow));
    for _ in 0..10 {
        assert!(futures_util::poll!(&mut waiting).is_pending());
    }
    assert!(room.taken() < 191 << 10);
    drop((seat, waiting));
    assert_eq!(ask(Body::whole(list)).await.status, 201);
    assert_eq!(room.taken(), 0);
}
