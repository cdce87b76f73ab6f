use super::*;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response as HttpResponse};
use notification::{EVENT_MARK, ObjectEvent, QueuedEvent, WrittenFacts, entry_name};
use parking_lot::Mutex;
use peer::{Body, HttpService, Response, Url};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A gateway with objects in memory, as far as the notifier asks for any, and the paths that were read.
#[derive(Default)]
struct Store(Mutex<BTreeMap<String, (HeaderMap, Bytes)>>, Mutex<Vec<String>>);

impl Store {
    fn put(&self, path: &str, headers: &[(&'static str, &str)], body: Vec<u8>) {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        self.0.lock().insert(path.to_owned(), (headers.collect(), body.into()));
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    fn read(&self, path: String) -> Option<(HeaderMap, Bytes)> {
        let found = self.0.lock().get(&path).cloned();
        self.1.lock().push(path);
        found
    }

    fn list(&self, path: &str, marker: &str, limit: usize) -> Vec<u8> {
        let within = format!("{path}/");
        let mut rows: Vec<String> = self
            .0
            .lock()
            .keys()
            .filter_map(|name| Some(name.strip_prefix(&within)?.split('/').next()?.to_owned()))
            .filter(|name| name.as_str() > marker)
            .collect();
        rows.dedup();
        rows.truncate(limit);
        let rows: Vec<Value> = rows.into_iter().map(|name| json!({ "name": name })).collect();
        serde_json::to_vec(&rows).unwrap()
    }
}

#[async_trait::async_trait]
impl HttpService for Store {
    async fn serve(&self, request: Request<Body>, _from: SocketAddr) -> Response {
        let path = request.uri().path().strip_prefix("/v1").unwrap().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let reply = |status: u16, headers: HeaderMap, body: Bytes| {
            let mut response = HttpResponse::new(Body::whole(body));
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            *response.headers_mut() = headers;
            response
        };
        let is_listing = query.contains("format=json");
        match *request.method() {
            Method::GET if is_listing => {
                let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name));
                let limit = parameter("limit=").map_or(usize::MAX, |limit| limit.parse().unwrap());
                let listed = self.list(&path, parameter("marker=").unwrap_or_default(), limit);
                reply(200, HeaderMap::new(), listed.into())
            }
            Method::DELETE => match self.0.lock().remove(&path) {
                Some(_) => reply(204, HeaderMap::new(), Bytes::new()),
                None => reply(404, HeaderMap::new(), Bytes::new()),
            },
            // What a link is itself lies beside what it leads to.
            Method::HEAD if query == "symlink=get" => match self.read(format!("{path}?{query}")) {
                Some((headers, body)) => reply(200, headers, body),
                None => reply(404, HeaderMap::new(), Bytes::new()),
            },
            _ => match self.read(path) {
                Some((headers, body)) => reply(200, headers, body),
                None => reply(404, HeaderMap::new(), Bytes::new()),
            },
        }
    }
}

/// A webhook refuses events of keys with this.
const REFUSED: &str = "refused-";

/// A webhook that answers every request with `status`, and keeps the bodies.
async fn receiver(status: u16) -> (Url, Arc<Mutex<Vec<Value>>>) {
    receiver_saying(status, 0, 0).await
}

/// The same with an answer of so many bytes, of which `sent` are sent.
async fn receiver_saying(status: u16, length: usize, sent: usize) -> (Url, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/hook", listener.local_addr().unwrap())).unwrap();
    let got = Arc::<Mutex<Vec<Value>>>::default();
    let kept = got.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = Vec::new();
            let body: Value = loop {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).await.unwrap();
                text.extend_from_slice(&buffer[..count]);
                let whole = String::from_utf8_lossy(&text).into_owned();
                let Some((_, body)) = whole.split_once("\r\n\r\n") else {
                    continue;
                };
                if let Ok(body) = serde_json::from_str(body) {
                    break body;
                }
            };
            let text = body.to_string();
            kept.lock().push(body);
            let status = if text.contains(REFUSED) { 400 } else { status };
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            // The reader may hang up in the middle.
            drop(stream.write_all(&vec![b'x'; sent]).await);
        }
    });
    (url, got)
}

fn options() -> NotifierOptions {
    NotifierOptions {
        account: ".notifications".into(),
        concurrency: 2,
        request_timeout: Duration::from_secs(5),
        max_backoff: Duration::from_secs(1),
        max_age: Duration::ZERO,
        max_refusals: 0,
        patience: Duration::from_secs(60),
        grace: Duration::from_secs(3600),
        processes: 0,
        process: 0,
    }
}

/// An entry that was noted so many seconds ago.
fn entry(key: &str, age: u64) -> QueuedEvent {
    let now = World::real().clock.now().seconds();
    QueuedEvent {
        id: format!("id{key}"),
        account: "AUTH_a".into(),
        bucket: "b".into(),
        key: key.into(),
        event: ObjectEvent::Put,
        rule: "r".into(),
        noted: Timestamp::from_seconds(now - age).ticks(),
        written: None,
        version: None,
        region: "eu".into(),
        request: "tx".into(),
        user: "a:u".into(),
        from: "192.0.2.1".into(),
    }
}

fn done(mut entry: QueuedEvent) -> QueuedEvent {
    entry.written = Some(WrittenFacts::default());
    entry
}

fn queue(store: &Store, target: &str, entries: &[QueuedEvent]) {
    for entry in entries {
        let container = QueueContainer::of(target, &entry.account, &entry.bucket, &entry.key).name();
        let name = entry_name(entry.noted(), &entry.id, 0);
        store.put(&format!("/.notifications/{container}/{name}"), &[], entry.to_text());
    }
}

fn notifier(store: &Arc<Store>, hooks: &[(&str, Url)], options: NotifierOptions) -> ContainerNotifier {
    let world = World::real();
    let hooks: BTreeMap<String, Arc<Webhook>> = hooks
        .iter()
        .map(|(name, url)| {
            let accounts = if *name == "narrow" {
                vec!["AUTH_b".into()]
            } else {
                Vec::new()
            };
            let (url, secret) = (url.clone(), None);
            ((*name).to_owned(), Arc::new(Webhook { url, secret, accounts }))
        })
        .collect();
    let client = InternalClient::new(world.clone(), store.clone(), "test", 1);
    let http = HttpClient::new(world.clone());
    ContainerNotifier::new(world, client, http, Arc::new(move || hooks.clone()), options)
}

/// One pass; what it delivered, dropped or found unmade, and what failed.
async fn pass(notifier: &mut ContainerNotifier) -> (u64, u64) {
    let mut sum = (0, 0);
    while let UpkeepStep::Did { done, failed } = notifier.step().await {
        sum = (sum.0 + done, sum.1 + failed);
    }
    sum
}

fn keys(got: &Mutex<Vec<Value>>) -> Vec<String> {
    let key = |body: &Value| body["Records"][0]["s3"]["object"]["key"].as_str().unwrap().to_owned();
    let mut keys: Vec<String> = got.lock().iter().map(key).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn what_is_delivered_leaves_the_queue() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    queue(&store, "hook", &[done(entry("1", 5)), done(entry("2", 0))]);
    let mut notifier = notifier(&store, &[("hook", url)], options());
    assert_eq!(pass(&mut notifier).await, (2, 0));
    assert_eq!(keys(&got), ["1", "2"]);
    assert!(store.names().is_empty());
    assert_eq!(pass(&mut notifier).await, (0, 0));
}

#[tokio::test]
async fn a_target_that_is_away_keeps_its_events_and_stops_no_other() {
    let (url, got) = receiver(200).await;
    let away = Url::parse("http://127.0.0.1:1/").unwrap();
    let store = Arc::<Store>::default();
    queue(&store, "away", &[done(entry("1", 5))]);
    queue(&store, "hook", &[done(entry("2", 5))]);
    queue(&store, "unknown", &[done(entry("3", 5))]);
    let mut notifier = notifier(&store, &[("hook", url), ("away", away)], options());
    let (delivered, failed) = pass(&mut notifier).await;
    assert_eq!((delivered, failed), (1, 1));
    assert_eq!((keys(&got), store.names().len()), (vec!["2".to_owned()], 2));
    assert!(notifier.oldest().is_some());
    let sum = notifier.shared.figures.sum();
    assert_eq!((sum.delivered, sum.failed, sum.dropped, sum.pending), (1, 1, 0, 2));
}

#[tokio::test]
async fn events_of_no_target_are_not_even_read_until_they_are_too_old() {
    let store = Arc::<Store>::default();
    let entries: Vec<QueuedEvent> = (0..20).map(|number| done(entry(&number.to_string(), 5))).collect();
    queue(&store, "gone", &entries);
    queue(&store, "gone", &[done(entry("old", 5000))]);
    let limits = NotifierOptions {
        max_age: Duration::from_secs(1000),
        ..options()
    };
    // Without any target nothing is asked at all.
    let mut none = notifier(&store, &[], options());
    assert_eq!((pass(&mut none).await, store.names().len()), ((0, 0), 21));
    let other = Url::parse("http://127.0.0.1:1/").unwrap();
    let mut notifier = notifier(&store, &[("other", other)], limits);
    assert_eq!(pass(&mut notifier).await, (1, 0));
    assert_eq!(store.names().len(), 20);
    assert!(
        store.1.lock().iter().all(|path| path.contains("idold")),
        "{:?}",
        store.1.lock()
    );
    assert_eq!(notifier.shared.figures.sum().pending, 20);
    assert!(
        notifier.targets["gone"]
            .pauses
            .is_paused(notifier.shared.world.clock.elapsed())
    );
}

/// The operator may have said so after they were noted, or given the name of a former target to another.
#[tokio::test]
async fn a_target_gets_no_event_of_accounts_that_it_does_not_serve() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    let served = QueuedEvent {
        account: "AUTH_b".into(),
        ..done(entry("served", 5))
    };
    queue(&store, "narrow", &[served, done(entry("other", 5))]);
    let mut notifier = notifier(&store, &[("narrow", url)], options());
    assert_eq!(pass(&mut notifier).await, (1, 1));
    assert_eq!((keys(&got), store.names().len()), (vec!["served".to_owned()], 1));
}

#[tokio::test]
async fn a_run_begins_behind_the_shard_where_the_last_one_ended() {
    let (url, _) = receiver(503).await;
    let store = Arc::<Store>::default();
    let entries: Vec<QueuedEvent> = (0..100).map(|number| done(entry(&number.to_string(), 5))).collect();
    queue(&store, "hook", &entries);
    let limits = NotifierOptions {
        max_backoff: Duration::from_millis(1),
        concurrency: 1,
        ..options()
    };
    let mut notifier = notifier(&store, &[("hook", url)], limits);
    let mut shards = BTreeSet::new();
    for _ in 0..3 {
        store.1.lock().clear();
        pass(&mut notifier).await;
        let read = store.1.lock().first().cloned().unwrap();
        shards.insert(read.split('/').nth(2).unwrap().to_owned());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(shards.len(), 3, "{shards:?}");
}

/// Of what is refused only so much has a pause: the rest is posted in each run.
#[tokio::test]
async fn events_that_are_refused_hold_up_no_others() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    let shard = |entry: &QueuedEvent| QueueContainer::of("hook", &entry.account, &entry.bucket, &entry.key).shard;
    let of_shard = |name: &str, age: u64, is_wanted: fn(u8) -> bool| {
        let mut all = (0..).map(|number| done(entry(&format!("{name}{number}"), age)));
        all.find(|entry| is_wanted(shard(entry))).unwrap()
    };
    let refused = (0_u64..).map(|number| done(entry(&format!("{REFUSED}{number}"), 5000)));
    let refused: Vec<_> = refused.filter(|entry| shard(entry) == 7).take(2500).collect();
    queue(&store, "hook", &refused);
    queue(
        &store,
        "hook",
        &[
            of_shard("same", 5, |shard| shard == 7),
            of_shard("other", 5, |shard| shard > 7),
        ],
    );
    let mut notifier = notifier(&store, &[("hook", url)], options());
    // Others have all the pauses, however long this takes.
    let pauses = Arc::new(TargetPauses::default());
    let now = notifier.shared.world.clock.elapsed() + Duration::from_secs(3600);
    for number in 0..20_000 {
        pauses.event_failed(&number.to_string(), true, now, Duration::from_secs(60));
    }
    let target = NotifiedTarget {
        pauses,
        is_running: false,
        oldest: None,
        ended_in: None,
        positions: BTreeMap::new(),
    };
    notifier.targets.insert("hook".into(), target);
    for (failed, delivered) in [(1000, "other"), (1000, ""), (500, "same"), (1000, "")] {
        got.lock().clear();
        let sum = pass(&mut notifier).await;
        assert_eq!(sum, (u64::from(!delivered.is_empty()), failed));
        let keys: Vec<_> = keys(&got).into_iter().filter(|key| !key.starts_with(REFUSED)).collect();
        assert!(keys.concat().starts_with(delivered) && keys.len() <= 1, "{keys:?}");
        assert_eq!(notifier.oldest(), Some(refused[0].noted()));
    }
}

#[tokio::test]
async fn a_target_that_does_not_answer_ends_its_run() {
    let away = Url::parse("http://127.0.0.1:1/").unwrap();
    let store = Arc::<Store>::default();
    let entries: Vec<QueuedEvent> = (0..200).map(|number| done(entry(&number.to_string(), 5))).collect();
    queue(&store, "away", &entries);
    let mut notifier = notifier(&store, &[("away", away)], options());
    let (delivered, failed) = pass(&mut notifier).await;
    assert!(
        delivered == 0 && (1..=2).contains(&failed),
        "{failed} deliveries were tried"
    );
    assert!(
        notifier.shared.figures.sum().pending < 100,
        "further shards were listed"
    );
    assert_eq!(store.names().len(), 200);
}

#[tokio::test]
async fn what_is_too_old_or_refused_too_often_is_dropped() {
    let (url, _) = receiver(302).await;
    let store = Arc::<Store>::default();
    queue(&store, "hook", &[done(entry("1", 5)), done(entry("2", 5000))]);
    let limits = NotifierOptions {
        max_age: Duration::from_secs(1000),
        ..options()
    };
    let mut aged = notifier(&store, &[("hook", url.clone())], limits);
    assert_eq!(pass(&mut aged).await, (1, 1));
    assert_eq!(store.names().len(), 1);
    let limits = NotifierOptions {
        max_refusals: 1,
        ..options()
    };
    let mut refused = notifier(&store, &[("hook", url)], limits);
    assert_eq!(pass(&mut refused).await, (1, 0));
    assert!(store.names().is_empty());
}

/// The gateway was killed, or could not confirm what it wrote.
#[tokio::test]
async fn intents_are_delivered_where_their_write_was_made() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    let entries = [
        entry("made", 100),
        entry("not-made", 100),
        entry("young", 5),
        entry("never-made", 4000),
        entry("overtaken", 4000),
    ];
    queue(&store, "hook", &entries);
    store.put(
        "/AUTH_a/b/made",
        &[(EVENT_MARK, "idmade"), ("content-length", "7")],
        vec![],
    );
    store.put("/AUTH_a/b/young", &[(EVENT_MARK, "idyoung")], vec![]);
    store.put("/AUTH_a/b/never-made", &[("x-timestamp", "1000.00000")], vec![]);
    store.put("/AUTH_a/b/overtaken", &[("x-timestamp", "9000000000.00000")], vec![]);
    let mut notifier = notifier(&store, &[("hook", url)], options());
    // Two are delivered, and one is found never to have been made.
    assert_eq!(pass(&mut notifier).await, (3, 0));
    assert_eq!(keys(&got), ["made", "overtaken"]);
    let sizes: Vec<Value> = got
        .lock()
        .iter()
        .map(|body| body["Records"][0]["s3"]["object"]["size"].clone())
        .collect();
    assert!(sizes.contains(&json!(7)));
    let left = store.names();
    let left: Vec<_> = left.iter().filter(|name| name.starts_with("/.notifications")).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().any(|name| name.contains("idyoung")) && left.iter().any(|name| name.contains("idnot-made")));
}

#[tokio::test]
async fn processes_divide_the_queue() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    let entries: Vec<QueuedEvent> = (0..30).map(|number| done(entry(&format!("{number:02}"), 5))).collect();
    queue(&store, "hook", &entries);
    let mut delivered = Vec::new();
    for process in 0..2 {
        let share = NotifierOptions {
            processes: 2,
            process,
            ..options()
        };
        let mut notifier = notifier(&store, &[("hook", url.clone())], share);
        delivered.push(pass(&mut notifier).await.0);
    }
    assert_eq!(delivered.iter().sum::<u64>(), 30);
    assert!(delivered.iter().all(|count| *count > 0), "{delivered:?}");
    assert_eq!(keys(&got).len(), 30);
}

#[tokio::test]
async fn an_answer_counts_whatever_its_body_is() {
    let large = 3 << 20;
    for (length, sent) in [(large, large), (large, 10)] {
        let (url, got) = receiver_saying(200, length, sent).await;
        let store = Arc::<Store>::default();
        queue(&store, "hook", &[done(entry("1", 5))]);
        let mut notifier = notifier(&store, &[("hook", url)], options());
        assert_eq!(pass(&mut notifier).await, (1, 0), "{sent} of {length}");
        assert_eq!((keys(&got), store.names().len()), (vec!["1".to_owned()], 0));
    }
}

/// The operator has forgotten to have the daemon's gateway decrypt.
#[tokio::test]
async fn an_entry_that_is_encrypted_waits_however_often_it_is_read() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    let container = QueueContainer::of("hook", "AUTH_a", "b", "k").name();
    let noted = Timestamp::from_seconds(World::real().clock.now().seconds() - 5000);
    let path = format!("/.notifications/{container}/{}", entry_name(noted, "id", 0));
    store.put(
        &path,
        &[("x-object-sysmeta-crypto-body-meta", "{}")],
        b"\xff\xfe".to_vec(),
    );
    let limits = NotifierOptions {
        max_refusals: 1,
        max_age: Duration::from_secs(1),
        max_backoff: Duration::ZERO,
        ..options()
    };
    let mut notifier = notifier(&store, &[("hook", url)], limits);
    for _ in 0..3 {
        assert_eq!(pass(&mut notifier).await, (0, 1));
    }
    assert_eq!((keys(&got).len(), store.names().len()), (0, 1));
}

#[tokio::test]
async fn the_mark_of_a_link_is_in_the_link() {
    let (url, got) = receiver(204).await;
    let store = Arc::<Store>::default();
    let intent = entry("link", 120);
    queue(&store, "hook", std::slice::from_ref(&intent));
    // What it leads to has been there before.
    store.put("/AUTH_a/b/link", &[("x-timestamp", "0000000001.00000")], vec![]);
    store.put("/AUTH_a/b/link?symlink=get", &[(EVENT_MARK, "idlink")], vec![]);
    let mut notifier = notifier(&store, &[("hook", url)], options());
    assert_eq!(pass(&mut notifier).await, (1, 0));
    assert_eq!(keys(&got), ["link"]);
}
