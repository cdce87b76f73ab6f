//! Against a real memcached (Debian's package `memcached`), servers of rubbish, and OpenStack's client
//! (Python with Swift in `MARTLET_ORACLE_PYTHON`, by default ../../.venv/bin/python).

#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

use memcache::{Memcache, MemcacheOptions};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use world::World;

struct Memcached {
    process: Child,
    port: u16,
}

impl Memcached {
    fn start() -> Self {
        Self::start_on(free_port())
    }

    fn start_on(port: u16) -> Self {
        let process = Command::new("memcached")
            .args(["-l", "127.0.0.1", "-U", "0", "-u", "root", "-p"])
            .arg(port.to_string())
            .spawn()
            .expect("memcached must be installed: apt-get install memcached");
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "memcached does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { process, port }
    }

    fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One that a busy machine is no dead one to.
fn client(servers: &[String]) -> Memcache {
    waiting_for(servers, Duration::from_secs(60))
}

fn waiting_for(servers: &[String], io_timeout: Duration) -> Memcache {
    let options = MemcacheOptions {
        servers: servers.to_vec(),
        io_timeout,
        connect_timeout: Duration::from_secs(60),
        pool_timeout: Duration::from_secs(60),
        ..MemcacheOptions::default()
    };
    Memcache::new(World::real(), options).unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn stores_reads_counts_and_deletes() {
    let servers = [Memcached::start(), Memcached::start()];
    let cache = client(&servers.each_ref().map(Memcached::name));
    let value = json!({"a": [1, 2.5, null, true], "ü": "\u{1F426}"});
    assert_eq!(cache.get_json("k").await, None);
    assert!(cache.set_json("k", &value, MINUTE).await);
    assert_eq!(cache.get_json("k").await, Some(value));
    assert!(cache.delete("k").await);
    assert_eq!(cache.get_json("k").await, None);
    assert_eq!(cache.incr("n", 5, MINUTE).await, Some(5));
    assert_eq!(cache.incr("n", 2, MINUTE).await, Some(7));
    assert_eq!(cache.incr("n", -10, MINUTE).await, Some(0));
    assert_eq!(cache.get_json("n").await, None, "counters are no JSON");
    let (one, two) = (json!(1), json!("x"));
    assert!(cache.set_multi(&[("a", &one), ("b", &two)], "together", MINUTE).await);
    assert_eq!(
        cache.get_multi(&["b", "missing", "a"], "together").await,
        [Some(two), None, Some(one)]
    );
}

#[tokio::test]
async fn lives_end() {
    let server = Memcached::start();
    let cache = client(&[server.name()]);
    assert!(cache.set_json("short", &json!(1), Duration::from_millis(10)).await);
    assert!(
        cache
            .set_json("long", &json!(2), Duration::from_secs(40 * 24 * 3600))
            .await
    );
    assert!(cache.set_json("forever", &json!(3), Duration::ZERO).await);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(cache.get_json("short").await, None);
    assert_eq!(cache.get_json("long").await, Some(json!(2)));
    assert_eq!(cache.get_json("forever").await, Some(json!(3)));
}

#[tokio::test]
async fn many_tasks_share_few_connections() {
    let server = Memcached::start();
    let cache = Arc::new(client(&[server.name()]));
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let cache = cache.clone();
            tokio::spawn(async move {
                let key = format!("key{n}");
                assert!(cache.set_json(&key, &json!(n), MINUTE).await);
                assert_eq!(cache.get_json(&key).await, Some(json!(n)));
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn values_too_large_are_not_taken_and_harm_nothing() {
    let server = Memcached::start();
    let cache = client(&[server.name()]);
    let large = Value::String("x".repeat(2 << 20));
    assert!(!cache.set_json("large", &large, MINUTE).await);
    assert!(cache.set_json("small", &json!(1), MINUTE).await);
    assert_eq!(cache.get_json("small").await, Some(json!(1)));
}

#[tokio::test]
async fn a_server_that_dies_and_returns_is_a_miss_in_between() {
    let server = Memcached::start();
    let port = server.port;
    let cache = client(&[server.name()]);
    assert!(cache.set_json("k", &json!(1), MINUTE).await);
    assert_eq!(cache.failures().collect::<Vec<_>>(), [(server.name().as_str(), 0)]);
    let name = server.name();
    drop(server);
    assert_eq!(cache.get_json("k").await, None);
    assert!(!cache.set_json("k", &json!(1), MINUTE).await);
    let failures: Vec<_> = cache.failures().collect();
    assert!(
        matches!(failures[..], [(server, 2..)] if server == name),
        "{failures:?}"
    );
    let _server = Memcached::start_on(port);
    assert!(cache.set_json("k", &json!(2), MINUTE).await);
    assert_eq!(cache.get_json("k").await, Some(json!(2)));
}

#[tokio::test]
async fn another_server_takes_over_and_dead_ones_cost_nothing_after_a_while() {
    let alive = Memcached::start();
    let dead: Vec<String> = (0..2).map(|_| format!("127.0.0.1:{}", free_port())).collect();
    let cache = client(&[dead[0].clone(), alive.name(), dead[1].clone()]);
    for n in 0..100 {
        let key = format!("key{n}");
        assert!(cache.set_json(&key, &json!(n), MINUTE).await, "{key}");
        assert_eq!(cache.get_json(&key).await, Some(json!(n)), "{key}");
    }
}

/// Answers every connection with the same bytes once something was asked.
fn rubbish(reply: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|n| n > 0) {
                    if reply.is_empty() || stream.write_all(reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    name
}

#[tokio::test]
async fn rubbish_is_a_miss() {
    let replies: [&'static [u8]; 9] = [
        b"",
        b"\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"ERROR\r\n",
        b"VALUE 8ce4b16b22b58894aa86c421e8759df3 2 99999999999\r\n",
        b"VALUE 8ce4b16b22b58894aa86c421e8759df3 2 10\r\nabc",
        b"VALUE 00000000000000000000000000000000 2 1\r\n5\r\nEND\r\n",
        b"VALUE 8ce4b16b22b58894aa86c421e8759df3 2 3\r\n{\"\xff\r\nEND\r\n",
        b"VALUE 8ce4b16b22b58894aa86c421e8759df3 1 2\r\n}N\r\nEND\r\n",
    ];
    for reply in replies {
        let cache = waiting_for(&[rubbish(reply)], Duration::from_millis(500));
        for _ in 0..2 {
            assert_eq!(cache.get_json("k").await, None, "{}", reply.escape_ascii());
            assert!(!cache.set_json("k", &json!(1), MINUTE).await);
            assert_eq!(cache.incr("k", 1, MINUTE).await, None);
            cache.delete("k").await;
        }
    }
}

#[tokio::test]
async fn a_hung_server_is_given_up_and_then_left_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = MemcacheOptions {
        servers: vec![listener.local_addr().unwrap().to_string()],
        io_timeout: Duration::from_millis(20),
        ..MemcacheOptions::default()
    };
    let cache = Memcache::new(World::real(), options).unwrap();
    let started = Instant::now();
    for _ in 0..500 {
        assert_eq!(cache.get_json("k").await, None);
    }
    // Each of them waiting would be ten seconds.
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_slow_each_time_is_left_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = [0; 1000];
        while matches!(stream.read(&mut question), Ok(1..)) {
            count.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(60));
            stream.write_all(b"END\r\n").unwrap();
        }
    });
    // It answers in time.
    let options = MemcacheOptions {
        servers: vec![name],
        io_timeout: Duration::from_millis(110),
        max_connections: 1,
        ..MemcacheOptions::default()
    };
    let cache = Memcache::new(World::real(), options).unwrap();
    for _ in 0..100 {
        assert_eq!(cache.get_json("k").await, None);
    }
    assert!(asked.load(Relaxed) <= 11, "{}", asked.load(Relaxed));
}

/// Many exchanges at a time, all of which one pause makes slow, are no reason to do without the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_counts_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let (mut stream, mut question) = (stream.unwrap(), [0; 1000]);
                let mut pause = Duration::from_millis(1100);
                while matches!(stream.read(&mut question), Ok(1..)) {
                    std::thread::sleep(std::mem::take(&mut pause));
                    stream.write_all(b"END\r\n").unwrap();
                }
            });
        }
    });
    let options = MemcacheOptions {
        servers: vec![name.clone()],
        io_timeout: Duration::from_secs(2),
        max_connections: 25,
        ..MemcacheOptions::default()
    };
    let cache = Arc::new(Memcache::new(World::real(), options).unwrap());
    let asks = (0..25).map(|_| cache.clone());
    let asks: Vec<_> = asks
        .map(|cache| tokio::spawn(async move { cache.get_json("k").await }))
        .collect();
    for ask in asks {
        assert_eq!(ask.await.unwrap(), None);
    }
    assert_eq!(cache.failures().collect::<Vec<_>>(), [(&*name, 1)]);
}

#[test]
fn addresses_are_checked_at_once() {
    let options = MemcacheOptions {
        servers: vec!["::1".into()],
        ..MemcacheOptions::default()
    };
    let message = Memcache::new(World::real(), options).err().unwrap().to_string();
    assert!(message.contains("\"::1\" is not an address"), "{message}");
}

fn oracle() -> Option<PathBuf> {
    let python = std::env::var_os("MARTLET_ORACLE_PYTHON").map_or("../../.venv/bin/python".into(), PathBuf::from);
    if !python.exists() {
        eprintln!("skipped: no Python with OpenStack Swift at {}", python.display());
        return None;
    }
    Some(python)
}

const THEIRS: &str = r#"
import sys
from swift.common.memcached import MemcacheRing
from swift.common.utils import get_logger
ring = MemcacheRing(sys.argv[2].split(','), logger=get_logger({}, 'interop'))
value = {'name': 'ü\U0001F426', 'list': [1, 2.5, None, True], 'deep': {'a': {}}}
if sys.argv[1] == 'write':
    for n in range(50):
        ring.set('theirs/%d' % n, dict(value, n=n), time=60)
    ring.set_multi({'x': 1, 'y': 'two'}, 'together', time=60)
    print(ring.incr('counter', 3, time=60))
else:
    for n in range(50):
        got = ring.get('ours/%d' % n)
        assert got == dict(value, n=n), (n, got)
    assert ring.get_multi(['p', 'q'], 'together') == [1, 'two']
    print(ring.incr('counter', 1, time=60))
"#;

#[tokio::test]
async fn one_cache_with_openstacks_client() {
    let Some(python) = oracle() else { return };
    let servers = [Memcached::start(), Memcached::start(), Memcached::start()];
    let names = servers.each_ref().map(Memcached::name);
    let theirs = |what: &str| {
        let output = Command::new(&python)
            .args(["-c", THEIRS, what, &names.join(",")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let value = |n: u32| json!({"name": "ü\u{1F426}", "list": [1, 2.5, null, true], "deep": {"a": {}}, "n": n});
    let cache = client(&names);
    assert_eq!(theirs("write"), "3");
    for n in 0..50 {
        assert_eq!(cache.get_json(&format!("theirs/{n}")).await, Some(value(n)));
        assert!(cache.set_json(&format!("ours/{n}"), &value(n), MINUTE).await);
    }
    assert_eq!(
        cache.get_multi(&["x", "y"], "together").await,
        [Some(json!(1)), Some(json!("two"))]
    );
    let (one, two) = (json!(1), json!("two"));
    assert!(cache.set_multi(&[("p", &one), ("q", &two)], "together", MINUTE).await);
    assert_eq!(cache.incr("counter", 1, MINUTE).await, Some(4));
    assert_eq!(theirs("read"), "5");
}
