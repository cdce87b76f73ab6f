//! What the filter asks a Keystone that answers as a test says, over real connections, by a clock that a test sets.

use super::*;
use crate::testing::HandClock;
use ::settings::Document;
use parking_lot::Mutex;
use request_pipeline::Request;
use serde_json::json;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What is done about a question.
enum Reply {
    /// The connection is closed.
    Close,
    /// Status and body.
    Say(u16, String),
    /// The status after a time, which is real.
    SayLater(Duration, u16),
    /// The status once there is a permit, which is used up.
    SayWhen(Arc<Semaphore>, u16),
    /// Nothing comes.
    Hang,
}

/// A server in place of Keystone, and the filter that asks it.
struct Bench {
    filter: AuthToken,
    clock: Arc<HandClock>,
    /// The token of each question, `login` for those that bring none.
    asked: Arc<Mutex<Vec<String>>>,
}

const NOW: u64 = 1_700_000_000;

fn described(expires: &str) -> String {
    let domain = json!({"id": "default", "name": "Default"});
    let user = json!({"id": "u", "name": "u", "domain": domain});
    json!({"token": {"user": user, "roles": [{"name": "admin"}], "expires_at": expires}}).to_string()
}

/// The token is good for years.
fn good() -> Reply {
    Reply::Say(200, described("2040-01-01T00:00:00Z"))
}

fn logged_in() -> Reply {
    Reply::Say(201, described("2040-01-01T00:00:00Z"))
}

async fn serve(mut stream: TcpStream, reply: impl Fn(&str) -> Reply, asked: Arc<Mutex<Vec<String>>>) {
    let mut read = Vec::new();
    loop {
        let Some(end) = read.windows(4).position(|part| part == b"\r\n\r\n") else {
            match stream.read_buf(&mut read).await {
                Ok(1..) => continue,
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let length: usize = header("content-length").map_or(0, |text| text.parse().unwrap());
        while read.len() < end + 4 + length {
            stream.read_buf(&mut read).await.unwrap();
        }
        read.drain(..end + 4 + length);
        let token = header("x-subject-token").unwrap_or("login").to_owned();
        asked.lock().push(token.clone());
        let (status, body) = match reply(&token) {
            Reply::Close => return,
            Reply::Say(status, body) => (status, body),
            Reply::SayLater(time, status) => {
                tokio::time::sleep(time).await;
                (status, String::new())
            }
            Reply::SayWhen(permits, status) => {
                permits.acquire().await.unwrap().forget();
                (status, String::new())
            }
            Reply::Hang => std::future::pending().await,
        };
        let head = format!("HTTP/1.1 {status} x\r\nx-subject-token: gateway\r\n");
        let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn bench(reply: impl Fn(&str) -> Reply + Clone + Send + Sync + 'static) -> Bench {
    let clock = Arc::new(HandClock::default());
    *clock.wall.lock() = NOW;
    let world = World {
        clock: clock.clone(),
        ..World::real()
    };
    Bench {
        clock,
        ..bench_in(world, reply).await
    }
}

/// Without a clock to set.
async fn bench_in(world: World, reply: impl Fn(&str) -> Reply + Clone + Send + Sync + 'static) -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, reply.clone(), log.clone()));
        }
    });
    let text = format!("[filter:a]\nauth_url = http://{address}\nusername = swift\ndelay_auth_decision = true\n");
    let document = Document::parse(Path::new("p.conf"), &text).unwrap();
    let scope = Scope::paste(&document, "filter:a").unwrap();
    let settings = AuthTokenSettings::of(&scope).unwrap();
    Bench {
        filter: AuthToken {
            challenge: INVALID,
            known: KnownToken::new(None, settings.token_cache_time),
            keystone: Keystone::new(&settings, &world, &scope).unwrap(),
            world,
            settings,
        },
        clock: Arc::default(),
        asked,
    }
}

impl Bench {
    async fn is_good(&self, secret: &str) -> bool {
        self.is_good_from("10.0.0.1", secret).await
    }

    async fn is_good_from(&self, address: &str, secret: &str) -> bool {
        let mut request = Request::new(Method::GET, "/v1/a".into(), "/v1/a".into());
        request.from = (address.parse::<IpAddr>().unwrap(), 1).into();
        let checked = self.filter.check(secret, Whose::User, false, &request).await;
        matches!(checked, Ok(Checked::Good(_)))
    }

    /// How often the server was asked about a token.
    fn asked(&self, token: &str) -> usize {
        self.asked.lock().iter().filter(|asked| *asked == token).count()
    }
}

/// As uWSGI does with a longer head than it has room for, and a balancer in front of it.
#[tokio::test]
async fn a_token_that_keystone_chokes_on_shuts_no_other_out() {
    let bench = bench(|token| match token {
        "login" => logged_in(),
        "gateway" => good(),
        _ if token.starts_with("502") => Reply::Say(502, String::new()),
        _ if token.len() > 4000 => Reply::Close,
        _ => good(),
    });
    let bench = bench.await;
    for number in 0..20 {
        assert!(!bench.is_good(&format!("{number}{}", "x".repeat(5000))).await);
        assert!(bench.is_good(&format!("good{number}")).await);
        assert!(!bench.is_good(&format!("502-{number}")).await);
        assert!(bench.is_good(&format!("good-{number}")).await);
    }
    assert_eq!(bench.asked("gateway"), 1, "once a second");
    // On a connection that is there, on one of its own, and once more.
    assert_eq!(bench.asked(&format!("7{}", "x".repeat(5000))), 3);
    bench.pass(Duration::from_secs(1));
    assert!(!bench.is_good("502").await);
    assert_eq!(bench.asked("gateway"), 2);
}

#[tokio::test]
async fn a_server_that_closes_every_connection_is_left_alone() {
    for failing in [|| Reply::Close, || Reply::Say(503, String::new())] {
        let bench = bench(move |token| match token {
            "login" => logged_in(),
            _ => failing(),
        });
        let bench = bench.await;
        assert!(!bench.is_good("a").await);
        let asked = bench.asked.lock().len();
        assert!(asked <= 6, "{asked}");
        for number in 0..50 {
            assert!(!bench.is_good(&format!("b{number}")).await);
        }
        assert_eq!(bench.asked.lock().len(), asked);
        bench.pass(Duration::from_secs(1));
        assert!(!bench.is_good("c").await && !bench.is_good("d").await);
        assert_eq!((bench.asked("c") > 0, bench.asked("d")), (true, 0));
    }
}

#[tokio::test]
async fn what_cannot_be_a_token_is_not_asked_about() {
    let bench = bench(|token| match token {
        "login" => logged_in(),
        _ => good(),
    });
    let bench = bench.await;
    for text in ["", "a b", "a,b", "a\tb", "ä", &"x".repeat((8 << 10) + 1)] {
        assert!(!bench.is_good(text).await, "{text}");
    }
    assert!(bench.asked.lock().is_empty());
    for token in ["gAAAAABl_-9=", "eyJhbGciOiJFUzI1NiJ9.e30.x-_", &"x".repeat(2000)] {
        assert!(bench.is_good(token).await, "{token}");
    }
}

impl Bench {
    fn pass(&self, time: Duration) {
        *self.clock.elapsed.lock() += time;
    }

    /// Asks about thirty tokens at once; how long it takes until all are refused.
    async fn crowd(&self) -> Duration {
        let began = std::time::Instant::now();
        let tokens: Vec<String> = (0..30).map(|number| format!("t{number}")).collect();
        let found = futures_util::future::join_all(tokens.iter().map(|token| self.is_good(token))).await;
        assert!(!found.contains(&true));
        began.elapsed()
    }
}

#[tokio::test]
async fn a_login_that_fails_has_failed_for_all_that_waited() {
    const LATE: Duration = Duration::from_millis(100);
    for (status, rest) in [(503, 1), (401, 10), (404, 10), (429, 1)] {
        let bench = bench(move |_| Reply::SayLater(LATE, status)).await;
        assert!(bench.crowd().await < LATE * 5, "{status}");
        assert_eq!(bench.asked("login"), 1, "{status}");
        bench.pass(Duration::from_secs(rest) - Duration::from_millis(1));
        assert!(bench.crowd().await < LATE, "{status}");
        assert_eq!(bench.asked("login"), 1, "{status}");
        bench.pass(Duration::from_millis(1));
        bench.crowd().await;
        assert_eq!((bench.asked("login"), bench.asked.lock().len()), (2, 2), "{status}");
    }
}

#[tokio::test]
async fn a_login_that_hangs_is_waited_for_a_while() {
    let bench = bench(|_| Reply::Hang).await;
    // Sixty seconds are three here, and five are a quarter.
    let (one, others) = tokio::join!(bench.crowd(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = std::time::Instant::now();
        assert!(!bench.is_good("later").await);
        began.elapsed()
    });
    assert!(
        one >= Duration::from_secs(3) && others < Duration::from_millis(200),
        "{one:?} {others:?}"
    );
    assert_eq!(bench.asked("login"), 1);
}

/// A Keystone that is slow, and more tokens from one address than it is asked about at a time.
#[tokio::test]
async fn a_flood_of_tokens_at_a_slow_keystone_shuts_no_other_address_out() {
    let answers = Arc::new(Semaphore::new(0));
    let some = answers.clone();
    let bench = bench_in(World::real(), move |token| match token {
        "login" => logged_in(),
        "good" => good(),
        _ => Reply::SayWhen(some.clone(), 404),
    });
    let bench = bench.await;
    let tokens: Vec<String> = (0..200).map(|number| format!("flood{number}")).collect();
    let flood = futures_util::future::join_all(tokens.iter().map(|token| bench.is_good(token)));
    let others = async {
        while bench.asked.lock().len() < 65 {
            tokio::task::yield_now().await;
        }
        let good = bench.is_good_from("10.0.0.2", "good");
        let answered = async {
            assert_eq!(bench.asked.lock().len(), 65, "all places are taken");
            answers.add_permits(2);
        };
        assert!(tokio::join!(good, answered).0, "it is its turn soon");
        assert!(bench.asked.lock().len() <= 68);
        answers.add_permits(tokens.len());
    };
    let (flood, ()) = tokio::join!(flood, others);
    assert!(!flood.contains(&true));
    assert_eq!(bench.asked.lock().len(), 202);
}

/// One token that Keystone takes too long about, while it answers others.
#[tokio::test]
async fn a_question_that_is_late_while_others_are_answered_is_no_outage() {
    let bench = bench(|token| match token {
        "login" => logged_in(),
        "slow" => Reply::Hang,
        _ => good(),
    });
    let bench = bench.await;
    let others = async {
        for number in 0..70 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            bench.pass(Duration::from_secs(1));
            assert!(bench.is_good(&format!("good{number}")).await, "{number}");
        }
    };
    let (slow, ()) = tokio::join!(bench.is_good("slow"), others);
    assert!(!slow);
    assert_eq!(bench.asked("gateway"), 1, "Keystone was asked whether it answers");
}

#[tokio::test]
async fn a_session_that_keystone_refuses_is_renewed() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let count = Arc::new(count);
    let count_again = count.clone();
    let bench = bench(move |token| match token {
        "login" => logged_in(),
        _ if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => Reply::Say(401, String::new()),
        _ => good(),
    });
    let bench = bench.await;
    assert!(!bench.is_good("new").await, "a token of this moment is not the reason");
    count_again.store(0, std::sync::atomic::Ordering::SeqCst);
    bench.pass(Duration::from_secs(1));
    assert!(bench.is_good("a").await);
    assert_eq!((bench.asked("login"), bench.asked("a")), (2, 2));
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_no_token_alive() {
    let is_revoked = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let revoked = is_revoked.clone();
    let bench = bench(move |token| match token {
        "login" => logged_in(),
        _ if revoked.load(std::sync::atomic::Ordering::SeqCst) => Reply::Say(404, String::new()),
        _ => good(),
    });
    let bench = bench.await;
    *bench.clock.wall.lock() += 86_400;
    assert!(bench.is_good("a").await);
    is_revoked.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(!bench.is_good("b").await);
    *bench.clock.wall.lock() -= 86_400;
    bench.pass(Duration::from_secs(299));
    assert!(bench.is_good("a").await, "token_cache_time is not over");
    bench.pass(Duration::from_secs(2));
    assert!(!bench.is_good("a").await);
    is_revoked.store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(bench.is_good("b").await, "the refusal is long over");
}

/// A cache in which the other gateways have left a token.
struct Left(String);

#[async_trait::async_trait]
impl SharedCache for Left {
    async fn get(&self, _: &str) -> Option<serde_json::Value> {
        Some(self.0.clone().into())
    }

    async fn set(&self, _: &str, _: &serde_json::Value, _: Duration) {}

    async fn delete(&self, _: &str) {}

    async fn increment(&self, _: &str, _: i64, _: Duration) -> Option<u64> {
        None
    }
}

#[tokio::test]
async fn a_token_with_access_rules_is_refused_wherever_it_comes_from() {
    let mut described: serde_json::Value = serde_json::from_str(&described("2040-01-01T00:00:00Z")).unwrap();
    described["token"]["application_credential"] = json!({"id": "c", "access_rules": [{"method": "GET"}]});
    let text = described.to_string();
    let bench = bench({
        let text = text.clone();
        move |token| match token {
            "login" => logged_in(),
            "confirmed" => Reply::Say(200, text.clone()),
            _ => Reply::Say(404, String::new()),
        }
    });
    let mut bench = bench.await;
    assert!(!bench.is_good("confirmed").await && !bench.is_good("confirmed").await);
    assert_eq!(bench.asked("confirmed"), 1);
    bench.filter.known = KnownToken::new(Some(Arc::new(Left(text))), 300);
    assert!(!bench.is_good("left").await);
    assert_eq!(bench.asked("left"), 1);
}

#[test]
fn an_unsigned_entry_is_not_believed_where_entries_are_to_be_signed() {
    let settings = |strategy: &str, cache: &str| AuthTokenSettings {
        memcache_security_strategy: strategy.into(),
        cache: cache.into(),
        ..AuthTokenSettings::default()
    };
    for (strategy, cache, expected) in [
        ("None", "swift.cache", true),
        ("None", "", false),
        ("MAC", "swift.cache", false),
        ("encrypt", "swift.cache", false),
    ] {
        let left: Arc<dyn SharedCache> = Arc::new(Left(String::new()));
        let found = shared(&settings(strategy, cache), Some(left)).is_some();
        assert_eq!(found, expected, "{strategy} {cache}");
    }
}
