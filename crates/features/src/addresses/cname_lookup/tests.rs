//! `cname_lookup` with a table of aliases in place of DNS, and with a DNS server of its own.

use super::*;
use crate::testing::{Answer, ask, request, with_headers};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use vocabulary::Timestamp;
use world::clock::RealClock;

/// `alias` of `name`, for some seconds; an empty alias is none, `!` a failure.
struct Table {
    rows: Vec<(&'static str, &'static str, u64)>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Resolver for Table {
    async fn alias(&self, name: &str) -> Result<Option<Alias>, LookupFailure> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.rows.iter().find(|row| row.0 == name) {
            None | Some((_, "", _)) => Ok(None),
            Some((_, "!", _)) => Err(LookupFailure::TooLate),
            Some((_, to, seconds)) => Ok(Some(Alias {
                to: (*to).to_owned(),
                ttl: Duration::from_secs(*seconds),
            })),
        }
    }
}

#[derive(Default)]
struct Hand(Mutex<Duration>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(0)
    }
    fn elapsed(&self) -> Duration {
        *self.0.lock()
    }
    fn sleep(&self, _: Duration) -> world::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[derive(Default)]
struct Shared(Mutex<HashMap<String, (Value, Duration)>>);

#[async_trait::async_trait]
impl SharedCache for Shared {
    async fn get(&self, key: &str) -> Option<Value> {
        self.0.lock().get(key).map(|(value, _)| value.clone())
    }
    async fn set(&self, key: &str, value: &Value, keep: Duration) {
        self.0.lock().insert(key.into(), (value.clone(), keep));
    }
    async fn delete(&self, key: &str) {
        self.0.lock().remove(key);
    }
    async fn increment(&self, _: &str, _: i64, _: Duration) -> Option<u64> {
        None
    }
}

const ROWS: [(&str, &str, u64); 8] = [
    ("photos.org", "c.AUTH_a.example.com", 300),
    ("one.org", "photos.org", 300),
    ("two.org", "one.org", 7),
    ("self.org", "self.org", 300),
    ("none.org", "", 0),
    ("failing.org", "!", 0),
    ("brief.org", "a.example.com", 0),
    ("odd.org", "a\n.example.com", 300),
];

struct Set {
    table: Arc<Table>,
    shared: Arc<Shared>,
    clock: Arc<Hand>,
    feature: CnameLookup,
}

fn set(options: &[(&str, &str)]) -> Set {
    let mut settings = CnameLookupSettings::read(&Scope::empty()).unwrap();
    for (name, value) in options {
        match *name {
            "lookup_depth" => settings.lookup_depth.0 = value.parse().unwrap(),
            _ => settings.storage_domain = value.split(',').map(Into::into).collect(),
        }
    }
    let table = Arc::new(Table {
        rows: ROWS.to_vec(),
        asked: AtomicUsize::new(0),
    });
    let (shared, clock) = (Arc::<Shared>::default(), Arc::<Hand>::default());
    let feature = CnameLookup::new(&settings, table.clone(), Some(shared.clone()), clock.clone());
    Set {
        table,
        shared,
        clock,
        feature,
    }
}

/// The host that arrives behind the feature, or the refusal.
async fn arrives(feature: CnameLookup, host: &str) -> String {
    let core = Answer::new(|request| {
        let host = request.headers[HOST].to_str().unwrap().to_owned();
        let mut response = reply::plain(301, host.clone());
        let location = HeaderValue::from_str(&format!("http://{host}/x/")).unwrap();
        response.headers_mut().insert(LOCATION, location);
        response
    });
    let answer = ask(feature, with_headers(request("GET", "/x"), &[("host", host)]), core).await;
    let body = String::from_utf8(answer.body().as_whole().unwrap().to_vec()).unwrap();
    match answer.headers().get(LOCATION) {
        None => format!("{} {body}", answer.status().as_u16()),
        Some(location) => {
            assert_eq!(location, &*format!("http://{host}/x/"));
            body
        }
    }
}

const NO: &str = "400 CNAME lookup failed to resolve to a valid domain";

#[tokio::test]
async fn hosts_are_what_they_stand_for() {
    for (host, expected) in [
        ("photos.org", "c.AUTH_a.example.com"),
        ("photos.org:8080", "c.AUTH_a.example.com:8080"),
        ("one.org", "400 CNAME lookup failed after 1 tries"),
        ("self.org", NO),
        ("none.org", NO),
        ("unknown.org:80", NO),
        ("failing.org", NO),
        ("odd.org", NO),
        ("brief.org", "a.example.com"),
        ("example.com", "example.com"),
        ("a.b.example.com:80", "a.b.example.com:80"),
        ("notexample.com", NO),
        ("a.EXAMPLE.com", NO),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:80", "[::1]:80"),
        ("[::1]", "[::1]"),
        ("127.0.0.1.org", NO),
        ("", NO),
    ] {
        assert_eq!(arrives(set(&[]).feature, host).await, expected, "{host}");
    }
    let deep = [("lookup_depth", "2")];
    assert_eq!(arrives(set(&deep).feature, "one.org").await, "c.AUTH_a.example.com");
    let tries = "400 CNAME lookup failed after 2 tries";
    assert_eq!(arrives(set(&deep).feature, "two.org").await, tries);
    let more = [("storage_domain", ".x.net,org")];
    assert_eq!(arrives(set(&more).feature, "photos.org").await, "photos.org");
    assert_eq!(arrives(set(&more).feature, "a.x.net").await, "a.x.net");
}

#[tokio::test]
async fn answers_are_remembered_as_long_as_they_hold() {
    let set = set(&[("lookup_depth", "3")]);
    let asked = || set.table.asked.swap(0, Ordering::Relaxed);
    for (later, expected) in [(0, 3), (6, 0), (1, 1), (300, 3)] {
        *set.clock.0.lock() += Duration::from_secs(later);
        set.shared.0.lock().clear();
        assert_eq!(set.feature.resolve("two.org").await.unwrap(), "c.AUTH_a.example.com");
        assert_eq!(asked(), expected, "{later} s later");
    }
    for (name, expected) in [("none.org", [1, 0]), ("failing.org", [1, 1]), ("brief.org", [1, 1])] {
        let _ = set.feature.resolve(name).await;
        let first = asked();
        let _ = set.feature.resolve(name).await;
        assert_eq!([first, asked()], expected, "{name}");
    }
}

#[tokio::test]
async fn the_shared_cache_holds_what_openstack_puts_there() {
    let set = set(&[]);
    let keep = |seconds| Duration::from_secs(seconds);
    let _ = set.feature.resolve("photos.org").await;
    let _ = set.feature.resolve("none.org").await;
    let _ = set.feature.resolve("failing.org").await;
    {
        let mut shared = set.shared.0.lock();
        assert_eq!(shared["cname-photos.org"], (json!("c.AUTH_a.example.com"), keep(300)));
        assert_eq!(shared["cname-none.org"], (json!(false), keep(60)));
        assert_eq!(shared.len(), 2);
        shared.insert("cname-told.org".into(), (json!("told.example.com"), keep(1)));
        shared.insert("cname-rubbish.org".into(), (json!([1]), keep(1)));
    }
    set.table.asked.store(0, Ordering::Relaxed);
    assert_eq!(set.feature.resolve("told.org").await.unwrap(), "told.example.com");
    assert_eq!(set.table.asked.load(Ordering::Relaxed), 0);
    assert_eq!(set.feature.resolve("rubbish.org").await, Err(Refused::NoDomain));
    assert_eq!(set.table.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn only_redirects_to_what_was_found_lead_back() {
    for (location, expected) in [
        ("https://a.example.com:80/x?y", "https://b.org:80/x?y"),
        ("http://a.example.com:80", "http://b.org:80"),
        ("http://a.example.com:8080/x", "http://a.example.com:8080/x"),
        ("http://else.org/a.example.com:80/", "http://else.org/a.example.com:80/"),
        ("/x", "/x"),
    ] {
        let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
        lead_back(&mut headers, "a.example.com:80", "b.org:80");
        assert_eq!(headers[LOCATION], expected);
    }
}

/// Answers `count` questions, made of their own bytes: an alias of `a.example.com` for 9 s if `code` is 0.
async fn serve(socket: tokio::net::UdpSocket, count: usize, code: u8) {
    for _ in 0..count {
        let mut bytes = [0; 512];
        let (length, from) = socket.recv_from(&mut bytes).await.unwrap();
        let name_end = 12 + bytes[12..length].iter().position(|byte| *byte == 0).unwrap();
        let mut answer = bytes[..name_end + 5].to_vec();
        answer[2..12].copy_from_slice(&[0x84, code, 0, 1, 0, u8::from(code == 0), 0, 0, 0, 0]);
        if code == 0 {
            answer.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x09\0\x0f\x01a\x07example\x03com\0");
        }
        socket.send_to(&answer, from).await.unwrap();
    }
}

#[tokio::test]
async fn dns_is_asked() {
    let alias = Alias {
        to: "a.example.com".into(),
        ttl: Duration::from_secs(9),
    };
    for (code, expected) in [(0, Some(Some(alias))), (3, Some(None)), (2, None)] {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let server = tokio::spawn(serve(socket, 9, code));
        let dns = Dns::new(&[address], Arc::new(RealClock::new())).unwrap();
        assert_eq!(dns.alias("photos.org").await.ok(), expected, "{code}");
        server.abort();
    }
    let dns = Dns::new(&[([127, 0, 0, 1], 1).into()], Arc::new(RealClock::new())).unwrap();
    assert!(matches!(dns.alias("a..b").await, Err(LookupFailure::NoName)));
    assert!(dns.alias("photos.org").await.is_err());
}

proptest! {
    #[test]
    fn any_host_is_survived(host in "\\PC{0,30}", found in "\\PC{0,30}") {
        let set = set(&[]);
        set.feature.passes(&host);
        set.feature.is_ours(&host);
        let mut headers = HeaderMap::new();
        if let Ok(location) = HeaderValue::from_str(&format!("http://{found}{host}")) {
            headers.insert(LOCATION, location);
            lead_back(&mut headers, &found, &host);
        }
    }
}
