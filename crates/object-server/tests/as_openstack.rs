//! The same questions to OpenStack's object server and to ours, and every answer compared: status,
//! headers and body. Skipped, with the reason printed, where OpenStack Swift is not installed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::Times;
use support::container::Container;
use support::oracle::Oracle;
use support::ours::{FileDevices, MemoryDevices, Ours};
use support::wire::{Answer, Ask, ask};

/// OpenStack's server, and ours on either engine.
struct Both {
    oracle: Oracle,
    files: Ours,
    memory: Ours,
    devices: tempfile::TempDir,
    t: Times,
    wrong: Vec<String>,
}

impl Both {
    fn start() -> Option<Self> {
        let oracle = Oracle::start()?;
        let devices = tempfile::tempdir().unwrap();
        std::fs::create_dir(devices.path().join("sda")).unwrap();
        Some(Self {
            oracle,
            files: Ours::start(Arc::new(FileDevices(devices.path().into()))),
            memory: Ours::start(MemoryDevices::with(&["sda"])),
            devices,
            t: Times::new(),
            wrong: vec![],
        })
    }

    fn at(&self, seconds: f64) -> String {
        self.t.at(seconds)
    }

    /// Asks both; notes a difference, and goes on.
    fn same(&mut self, question: Ask) {
        let mut theirs = question.send(self.oracle.port).comparable();
        if question.method == "HEAD" {
            // For some refusals OpenStack sends a body where HTTP has none.
            theirs.body.clear();
        }
        for port in [self.files.port, self.memory.port] {
            let ours = question.send(port).comparable();
            if theirs != ours {
                self.note(&question, &theirs, &ours);
            }
        }
    }

    fn note(&mut self, question: &Ask, theirs: &Answer, ours: &Answer) {
        let show = |answer: &Answer| {
            let body = String::from_utf8_lossy(&answer.body)
                .chars()
                .take(300)
                .collect::<String>();
            format!("{} {:?}\n      {body:?}", answer.status, answer.headers)
        };
        let headers: Vec<String> = question
            .headers
            .iter()
            .map(|(n, v)| format!("{n}: {:.80}", v))
            .collect();
        self.wrong.push(format!(
            "{} {:.100} {headers:?}\n   OpenStack: {}\n   ours:      {}",
            question.method,
            question.path,
            show(theirs),
            show(ours)
        ));
    }

    fn put(&self, path: &str, seconds: f64) -> Ask {
        ask("PUT", path)
            .with("X-Timestamp", self.at(seconds))
            .with("Content-Type", "text/plain")
            .body(b"hello")
    }

    fn post(&self, path: &str, seconds: f64) -> Ask {
        ask("POST", path).with("X-Timestamp", self.at(seconds))
    }

    fn delete(&self, path: &str, seconds: f64) -> Ask {
        ask("DELETE", path).with("X-Timestamp", self.at(seconds))
    }

    fn read_both_ways(&mut self, path: &str) {
        self.same(ask("GET", path));
        self.same(ask("HEAD", path));
    }

    fn finish(self) {
        assert!(
            self.wrong.is_empty(),
            "{} differences:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
    }
}

macro_rules! both_or_return {
    () => {
        match Both::start() {
            Some(both) => both,
            None => return,
        }
    };
}

#[test]
fn newest_wins() {
    let mut b = both_or_return!();
    let o = "/sda/1/a/c/o";
    b.read_both_ways(o);
    b.same(b.delete(o, 100.0));
    b.read_both_ways(o);
    b.same(b.put(o, 99.0));
    b.same(b.put(o, 100.0));
    b.same(b.put(o, 101.0).with("If-None-Match", "*"));
    b.same(b.put(o, 101.0).with("If-None-Match", "*"));
    b.same(b.put(o, 101.0));
    b.same(
        b.put(o, 102.0)
            .with("If-None-Match", "5d41402abc4b2a76b9719d911017c592"),
    );
    b.same(b.put(o, 102.0).with("If-None-Match", "*, \"a\""));
    b.same(b.put(o, 101.5).with("If-Match", "zz"));
    b.same(
        b.post(o, 103.0)
            .with("X-Object-Meta-New", "v")
            .with("Content-Type", "a/b"),
    );
    b.read_both_ways(o);
    b.same(b.put(o, 102.0));
    b.read_both_ways(o);
    b.same(b.delete(o, 101.0));
    b.same(b.delete(o, 102.0));
    b.same(b.delete(o, 102.5));
    b.read_both_ways(o);
    b.same(b.delete(o, 102.5));
    b.same(b.delete(o, 101.0));
    b.same(b.delete(o, 106.0));
    b.same(b.put(o, 105.0));
    b.same(b.post(o, 107.0));
    b.same(b.post(o, 100.0));
    let offset = |seconds: f64, offset: &str| format!("{}_{offset}", b.t.at(seconds));
    let (first, second, third) = (
        offset(110.0, "000000000000000f"),
        offset(110.0, "000000000000001f"),
        offset(110.0, "00000000000000ff"),
    );
    b.same(
        ask("PUT", o)
            .with("X-Timestamp", first)
            .with("Content-Type", "a/b")
            .body(b"z"),
    );
    b.read_both_ways(o);
    b.same(b.put(o, 110.0));
    b.same(ask("POST", o).with("X-Timestamp", second));
    b.read_both_ways(o);
    b.same(ask("DELETE", o).with("X-Timestamp", third));
    b.read_both_ways(o);
    b.finish();
}

#[test]
fn metadata_stay_as_they_should() {
    let mut b = both_or_return!();
    let o = "/sda/1/a/c/meta";
    let many = |ask: Ask| {
        ask.with("X-Object-Meta-a1b-c", "1")
            .with("X-Object-Meta-Empty", "")
            .with("X-Object-Meta-Sp", "  a  b ")
            .with("X-Object-Sysmeta-A", "b")
            .with("X-Object-Transient-Sysmeta-C", "d")
            .with("Cache-Control", "q")
            .with("Content-Language", "w")
            .with("Content-Encoding", "gzip")
            .with("Content-Disposition", "x")
            .with("Expires", "e")
            .with("X-Robots-Tag", "r")
            .with("X-Object-Manifest", "c/p")
            .with("X-Static-Large-Object", "true")
            .with("X-Foo", "x")
    };
    b.same(many(b.put(o, 1.0)));
    b.read_both_ways(o);
    b.same(b.post(o, 2.0).with("X-Object-Meta-B", "c"));
    b.read_both_ways(o);
    b.same(many(b.post(o, 3.0)).with("Content-Type", "a/b; charset=x"));
    b.read_both_ways(o);
    b.same(b.post(o, 4.0).with("Content-Type", ""));
    b.read_both_ways(o);
    b.same(
        b.put(o, 5.0)
            .with("X-Backend-Replication-Headers", "X-Foo content-language etag")
            .with("X-Foo", "1"),
    );
    b.read_both_ways(o);
    b.same(
        b.put(o, 6.0)
            .with("X-Object-Meta-U", "ö € 𝄞")
            .with("Content-Type", "text/plain; x=ö"),
    );
    b.read_both_ways(o);
    for (name, value) in [
        ("X-Object-Meta-", "x".to_owned()),
        ("X-Object-Meta-A", "x".repeat(257)),
        (&format!("X-Object-Meta-{}", "a".repeat(129)), "x".to_owned()),
        ("X-Object-Sysmeta-A", "x".repeat(3000)),
    ] {
        b.same(b.put(o, 7.0).with(name, value.clone()));
        b.same(b.post(o, 8.0).with(name, value));
    }
    let numbered = |ask: Ask, count: usize, value: &str| {
        (0..count).fold(ask, |ask, i| ask.with(&format!("X-Object-Meta-A{i}"), value))
    };
    b.same(numbered(b.put(o, 9.0), 91, "x"));
    b.same(numbered(b.put(o, 9.0), 90, "x"));
    b.same(numbered(b.put(o, 10.0), 20, &"x".repeat(256)));
    b.read_both_ways(o);
    b.finish();
}

#[test]
fn conditions_and_ranges() {
    let mut b = both_or_return!();
    let o = "/sda/1/a/c/ranges";
    let etag = "5d41402abc4b2a76b9719d911017c592";
    b.same(
        b.put(o, 1.0)
            .with("X-Object-Sysmeta-Alt-Etag", "altetag")
            .with("X-Static-Large-Object", "True"),
    );
    let old = "Fri, 20 Nov 2020 11:43:53 GMT";
    let future = "Wed, 20 Nov 2069 11:43:53 GMT";
    let table: &[&[(&str, &str)]] = &[
        &[("If-Match", etag)],
        &[("If-Match", "x, y , \"5d41402abc4b2a76b9719d911017c592\"")],
        &[("If-Match", "zz")],
        &[("If-Match", "*")],
        &[("If-None-Match", etag)],
        &[("If-None-Match", "\"5d41402abc4b2a76b9719d911017c592\"")],
        &[("If-None-Match", "*")],
        &[("If-None-Match", "zz")],
        &[("If-Modified-Since", old)],
        &[("If-Modified-Since", future)],
        &[("If-Unmodified-Since", old)],
        &[("If-Unmodified-Since", future)],
        &[("If-Modified-Since", "junk")],
        &[("If-Match", "x"), ("If-None-Match", "*")],
        &[("If-Modified-Since", future), ("If-None-Match", "zz")],
        &[("If-Match", "x"), ("Range", "bytes=99-")],
        &[("If-None-Match", "*"), ("Range", "bytes=0-1")],
        &[
            ("X-Backend-Etag-Is-At", "X-Object-Sysmeta-Alt-Etag"),
            ("If-Match", "altetag"),
        ],
        &[
            ("X-Backend-Etag-Is-At", "X-Object-Sysmeta-Alt-Etag"),
            ("If-Match", etag),
        ],
        &[
            ("X-Backend-Etag-Is-At", "X-No, X-Object-Sysmeta-Alt-Etag"),
            ("If-None-Match", "altetag"),
        ],
        &[("X-Backend-Etag-Is-At", "X-No"), ("If-None-Match", etag)],
        &[
            ("Range", "bytes=1-2"),
            (
                "X-Backend-Ignore-Range-If-Metadata-Present",
                "X-Foo, X-Static-Large-Object",
            ),
        ],
        &[
            ("Range", "bytes=1-2"),
            ("X-Backend-Ignore-Range-If-Metadata-Present", "X-Foo"),
        ],
        &[("Range", "bytes=1-2"), ("If-Range", "zzz")],
    ];
    for headers in table {
        for method in ["GET", "HEAD"] {
            b.same(
                headers
                    .iter()
                    .fold(ask(method, o), |ask, (name, value)| ask.with(name, *value)),
            );
        }
    }
    for missing in ["x", "*", "\"*\""] {
        b.same(ask("GET", "/sda/1/a/c/missing").with("If-Match", missing));
        b.same(ask("HEAD", "/sda/1/a/c/missing").with("If-Match", missing));
        b.same(ask("GET", "/sda/1/a/c/missing").with("If-None-Match", missing));
    }
    let big: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    b.same(b.put("/sda/1/a/c/big", 1.0).body(&big));
    b.same(b.put("/sda/1/a/c/hundred", 1.0).body(&big[..100]));
    b.same(b.put("/sda/1/a/c/none", 1.0).body(b""));
    b.same(ask("GET", "/sda/1/a/c/big"));
    for range in [
        "bytes=0-0,1-1,2-2",
        "bytes=5-6,0-1",
        "bytes=0-50,10-60",
        "bytes=0-50,10-60,20-70,30-80",
        "bytes=90-200,0-0",
        "bytes=-5,-3",
        "bytes=1-2",
        "BYTES=1-2",
        "bytes=1-2;",
        "bytes=1-2,x",
        "bytes=3-1,4-5",
        "bytes=-",
        "bytes=-0",
        "bytes=0-1, 100-,200-",
        "bytes=0-99",
        "bytes=0-100000",
        "bytes=--5",
        "bytes=0-",
        "bytes=99-",
        "bytes=100-",
        "bytes=199999-",
        "bytes=65535-65536",
        "bytes=65536-199999",
        "bytes=10-20,70000-70010,199990-",
        "bytes=-1",
        "junk",
        "bytes=10-,100-",
    ] {
        for object in ["hundred", "big", "none"] {
            b.same(ask("GET", &format!("/sda/1/a/c/{object}")).with("Range", range));
        }
    }
    b.finish();
}

#[test]
fn bad_requests() {
    let mut b = both_or_return!();
    let o = "/sda/1/a/c/bad";
    b.same(ask("PUT", o).body(b"x"));
    b.same(ask("POST", o));
    b.same(ask("DELETE", o));
    for method in ["PUT", "POST", "DELETE", "GET", "HEAD"] {
        b.same(
            ask(method, o)
                .with("X-Timestamp", "abc")
                .with("Content-Type", "t")
                .body(b"x"),
        );
        for path in ["/sda/1/a/c", "/sda/1/a", "/sda/1", "/", "/nodev/1/a/c/o"] {
            b.same(
                ask(method, path)
                    .with("X-Timestamp", b.at(1.0))
                    .with("Content-Type", "t")
                    .body(b"x"),
            );
        }
        for path in [
            "a/c/o%00x",
            "a/%00c/o",
            "a/c/%00o",
            "a%00/c/o",
            "a/c%00/o",
            "%00a/c/%00o",
        ] {
            b.same(
                ask(method, &format!("/sda/1/{path}"))
                    .with("X-Timestamp", b.at(1.0))
                    .body(b""),
            );
        }
        for index in ["7", "x", "-1"] {
            b.same(ask(method, o).with("X-Backend-Storage-Policy-Index", index).body(b""));
        }
    }
    for path in ["%00a/%00c/%00o", "%00a/c/o", "a/%00c/%00", "%00a/%00c%00/%00o"] {
        b.same(b.put(&format!("/sda/1/{path}"), 1.0));
        b.read_both_ways(&format!("/sda/1/{path}"));
    }
    for verb in ["FOO", "PATCH", "TRACE"] {
        b.same(ask(verb, o));
    }
    b.same(ask("OPTIONS", o));
    let put = |seconds: f64| ask("PUT", o).with("X-Timestamp", b.t.at(seconds));
    let (no_type, empty_type) = (put(10.0).body(b"x"), put(10.0).with("Content-Type", "").body(b"x"));
    let questions = [
        no_type,
        empty_type,
        put(10.0).with("Content-Type", "t"),
        put(10.0),
        put(10.0).with("Content-Type", "t").with("Content-Length", "6000000000"),
        put(10.0)
            .with("Content-Type", "t")
            .with("ETag", "d41d8cd98f00b204e9800998ecf8427e")
            .body(b"12345"),
        put(11.0)
            .with("Content-Type", "t")
            .with("ETag", "\"827ccb0eea8a706c4c34a16891f84e7b\"")
            .body(b"12345"),
        put(12.0)
            .with("Content-Type", "t")
            .with("ETag", "827CCB0EEA8A706C4C34A16891F84E7B")
            .body(b"12345"),
        put(13.0)
            .with("Content-Type", "t")
            .with("ETag", "827ccb0eea8a706c4c34a16891f84e7b")
            .body(b"12345"),
        put(14.0)
            .with("Content-Type", "t")
            .with("Transfer-Encoding", "chunked")
            .body(b"5\r\nhello\r\n0\r\n\r\n"),
    ];
    for question in questions {
        b.same(question);
    }
    b.same(b.put(&format!("/sda/1/a/c/{}", "o".repeat(1025)), 1.0));
    b.same(b.put(&format!("/sda/1/a/c/{}", "o".repeat(1024)), 1.0));
    b.read_both_ways(o);
    // A body that stops: time-out.
    b.same(b.put(o, 20.0).with("Content-Length", "10"));
    b.same(
        b.put(o, 20.0)
            .with("Transfer-Encoding", "chunked")
            .body(b"5\r\nhello\r\n"),
    );
    b.read_both_ways(o);
    b.finish();
}

#[test]
fn expiry() {
    let mut b = both_or_return!();
    let o = "/sda/1/a/c/expiring";
    let d = |seconds: i64| b.t.whole(seconds);
    let (d5, d6, d7, d10, d12, d15, d18, d25, later) = (d(5), d(6), d(7), d(10), d(12), d(15), d(18), d(25), d(90_000));
    b.same(b.put(o, 1.0).with("X-Delete-At", &d5));
    for timestamp in [
        None,
        Some(b.at(2.0)),
        Some(b.at(4.99999)),
        Some(b.at(5.0)),
        Some("abc".into()),
    ] {
        for method in ["GET", "HEAD"] {
            let question = ask(method, o);
            b.same(match &timestamp {
                Some(timestamp) => question.with("X-Timestamp", timestamp.clone()),
                None => question,
            });
        }
    }
    b.same(ask("GET", o).with("X-Backend-Open-Expired", "true"));
    b.same(ask("GET", o).with("X-Backend-Replication", "true"));
    b.same(ask("GET", o).with("If-Match", "*"));
    b.same(b.post(o, 2.0).with("X-Delete-At", &d6));
    b.same(b.post(o, 7.0));
    b.same(b.post(o, 7.0).with("X-Backend-Open-Expired", "true"));
    b.same(b.put(o, 8.0).with("X-Delete-At", &d7));
    b.same(
        b.put(o, 7.5)
            .with("X-Delete-At", &d7)
            .with("X-Backend-Replication", "true"),
    );
    b.same(b.put(o, 9.0).with("X-Delete-At", &d10));
    b.same(b.post(o, 9.5).with("X-Delete-At", &d12));
    b.same(ask("GET", o));
    b.same(b.delete(o, 13.0));
    b.same(ask("GET", o));
    b.same(b.put(o, 14.0).with("X-Delete-At", &d15));
    b.same(b.delete(o, 16.0).with("X-If-Delete-At", &d10));
    b.same(b.delete(o, 16.0).with("X-If-Delete-At", "abc"));
    b.same(b.delete(o, 16.0).with("X-If-Delete-At", &d15));
    b.same(b.delete(o, 16.5).with("X-If-Delete-At", &d15));
    b.same(b.put(o, 17.0).with("X-Delete-At", &d18));
    b.same(b.put(o, 19.0).with("If-None-Match", "*"));
    for (name, value) in [
        ("X-Delete-At", "abc"),
        ("X-Delete-At", "1.5"),
        ("X-Delete-At", "-5"),
        ("X-Delete-At", "1"),
        ("X-Delete-At", &d25),
        ("X-Delete-After", "-5"),
        ("X-Delete-After", "0"),
        ("X-Delete-After", "x"),
    ] {
        b.same(b.put(o, 25.0).with(name, value));
        if name == "X-Delete-At" {
            b.same(b.post(o, 25.0).with(name, value));
        }
    }
    b.same(b.post(o, 26.5).with("X-Delete-At", b.t.whole(26)));
    b.same(b.put(o, 30.0).with("X-Delete-At", format!("000{later}")));
    b.read_both_ways(o);
    b.same(
        b.put(o, 31.0)
            .with("X-Delete-After", "90000")
            .with("X-Delete-At", "abc"),
    );
    b.read_both_ways(o);
    b.same(b.post(o, 32.0).with("X-Delete-After", "77"));
    b.read_both_ways(o);
    b.same(b.delete("/sda/1/a/c/never", 1.0).with("X-If-Delete-At", "5"));
    b.same(b.delete("/sda/1/a/c/never", 1.0).with("X-If-Delete-At", "x"));
    b.same(ask("GET", "/sda/1/a/c/never"));
    b.finish();
}

/// Both servers on one device: what one writes, the other serves, changes and deletes.
#[test]
fn one_device_two_servers() {
    let Some(oracle) = Oracle::start() else { return };
    let ours = Ours::start(Arc::new(FileDevices(oracle.devices())));
    let t = Times::new();
    for (number, (one, other)) in [(oracle.port, ours.port), (ours.port, oracle.port)]
        .into_iter()
        .enumerate()
    {
        let o = format!("/sda/1/a/c/sh%C3%A4red{number}");
        let at = |seconds: f64| t.at(100.0 * number as f64 + seconds);
        let read_the_same = |status: u16| {
            let [theirs, ours] = [one, other].map(|port| ask("GET", &o).send(port).comparable());
            assert_eq!(theirs, ours);
            assert_eq!(theirs.status, status);
        };
        let put = |seconds: f64, body: &[u8]| {
            ask("PUT", &o)
                .with("X-Timestamp", at(seconds))
                .with("Content-Type", "text/plain; x=ü")
                .with("X-Object-Meta-A", "ü € \u{1d11e}")
                .with("X-Object-Sysmeta-Long", "x".repeat(3000))
                .body(body)
        };
        assert_eq!(put(1.0, &[b'x'; 200_000]).send(one).status, 201);
        read_the_same(200);
        let post = ask("POST", &o)
            .with("X-Timestamp", at(2.0))
            .with("X-Object-Meta-B", "ö");
        assert_eq!(post.with("Content-Type", "a/b").send(other).status, 202);
        read_the_same(200);
        assert_eq!(ask("POST", &o).with("X-Timestamp", at(3.0)).send(one).status, 202);
        read_the_same(200);
        assert_eq!(put(2.5, b"").send(other).status, 201);
        read_the_same(200);
        assert_eq!(ask("DELETE", &o).with("X-Timestamp", at(4.0)).send(one).status, 204);
        read_the_same(404);
        assert_eq!(put(3.5, b"").send(other).status, 409);
        assert_eq!(put(5.0, b"again").send(other).status, 201);
        read_the_same(200);
    }
}

/// What each server told its container servers, and what it kept for later.
#[test]
fn listing_updates() {
    let mut b = both_or_return!();
    let none = Duration::ZERO;
    let good = Container::start("201 Created", String::new(), none);
    let other = Container::start("201 Created", String::new(), none);
    let bad = Container::start("503 No", String::new(), none);
    let redirect = |to: &str, seconds: f64| {
        let timestamp = b.t.at(seconds);
        format!("Location: {to}\r\nX-Backend-Redirect-Timestamp: {timestamp}\r\n")
    };
    let moved = Container::start("301 Moved", redirect("/.shards_a/old", 1.0), none);
    let o = "/sda/1/a/c/lüsted o".replace('ü', "%C3%BC").replace(' ', "%20");
    let o = o.as_str();
    let to = |question: Ask, servers: &[&Container]| {
        let list = |item: &dyn Fn(usize, &Container) -> String| {
            let items: Vec<String> = servers.iter().enumerate().map(|(i, server)| item(i, server)).collect();
            items.join(",")
        };
        question
            .with(
                "X-Container-Host",
                list(&|_, server| format!("127.0.0.1:{}", server.port)),
            )
            .with("X-Container-Device", list(&|i, _| format!("sd{i}")))
            .with("X-Container-Partition", "9")
            .with("X-Trans-Id", "tx1")
            .with("X-Backend-Storage-Policy-Index", "1")
    };
    let soon = b.t.whole(90_000);
    let queue = |question: Ask, server: &Container| {
        question
            .with("X-Delete-At-Host", format!("127.0.0.1:{}", server.port))
            .with("X-Delete-At-Device", "sde")
            .with("X-Delete-At-Partition", "55")
    };
    let backend = "X-Backend-Container-Update-Override-";
    let system = "X-Object-Sysmeta-Container-Update-Override-";
    let questions = [
        to(b.put(o, 1.0).with("X-Object-Meta-A", "b"), &[&good]),
        to(b.put(o, 2.0), &[&good, &other]).with("X-Backend-Container-Path", ".shards_a/x"),
        to(b.put(o, 3.0), &[&good]).with("X-Backend-Quoted-Container-Path", ".shards_a/x%20y"),
        to(b.put(o, 4.0), &[&good])
            .with(&format!("{backend}Etag"), "back")
            .with(&format!("{system}Etag"), "sys")
            .with(&format!("{backend}Size"), "9")
            .with(&format!("{backend}Foo"), "zz")
            .with(&format!("{system}Content-Type"), "ct"),
        to(b.post(o, 4.5), &[&good]),
        to(b.post(o, 4.6), &[&good])
            .with("Content-Type", "p/q")
            .with(&format!("{backend}Etag"), "ignored"),
        to(b.put(o, 5.0), &[&good, &bad]),
        to(b.put(o, 5.1), &[&bad])
            .with("X-Container-Root-Db-State", "sharded")
            .with("X-Backend-Quoted-Container-Path", "s/y"),
        to(b.put(o, 6.0), &[&moved]),
        b.put(o, 7.0)
            .with("X-Container-Partition", "9")
            .with("X-Container-Host", "127.0.0.1:1")
            .with("X-Container-Device", "x"),
        b.put(o, 7.1).with("X-Container-Partition", "9"),
        b.put(o, 7.2)
            .with("X-Container-Partition", "9")
            .with("X-Container-Host", "h:1,h:2")
            .with("X-Container-Device", "x"),
        b.put(o, 7.3),
        to(b.put(o, 7.4), &[&good]),
        to(b.post(o, 8.0), &[&good]),
        to(b.post(o, 8.1), &[&good]).with("Content-Type", "x/y"),
        to(b.post(o, 8.05), &[&good]),
        to(b.post(o, 8.2), &[&bad]),
        to(b.delete(o, 9.0), &[&good]),
        to(b.delete(o, 9.1), &[&bad]),
        to(b.delete(o, 8.9), &[&good]),
        queue(b.put(o, 10.0), &good).with("X-Delete-At", &soon),
        queue(b.put(o, 11.0), &good)
            .with("X-Delete-At", b.t.whole(91_000))
            .with("X-Delete-At-Container", "1795000000"),
        queue(b.post(o, 12.0), &bad)
            .with("X-Delete-At", &soon)
            .with("X-Backend-Clean-Expiring-Object-Queue", "false"),
        b.put(o, 13.0).with("X-Delete-At", b.t.whole(92_000)),
        b.put(o, 14.0),
        b.put(o, 15.0).with("X-Delete-At", "99999999999"),
        b.put(o, 16.0).with("X-Delete-At", &soon),
        b.delete(o, 16.5).with("X-Backend-Clean-Expiring-Object-Queue", "no"),
        b.put(o, 17.0).with("X-Delete-At", &soon),
        to(b.delete(o, 18.0), &[&good]),
    ];
    for question in questions {
        let servers = [&good, &other, &bad, &moved];
        let theirs = question.send(b.oracle.port).comparable();
        let told: Vec<_> = servers.iter().map(|server| server.take()).collect();
        for port in [b.files.port, b.memory.port] {
            let ours = question.send(port).comparable();
            let we_told: Vec<_> = servers.iter().map(|server| server.take()).collect();
            if theirs != ours {
                b.note(&question, &theirs, &ours);
            }
            if told != we_told {
                let asked = format!("{} {:?}", question.method, question.headers);
                b.wrong
                    .push(format!("{asked}\n  they told {told:?}\n  we told   {we_told:?}"));
            }
        }
    }
    let kept = |devices: &Path| -> Vec<_> {
        let records = b.oracle.take_pending(devices).into_iter();
        records.map(comparable_pending).collect()
    };
    let (kept, we_kept) = (kept(&b.oracle.devices()), kept(b.devices.path()));
    assert!(kept.len() > 10, "{kept:?}");
    for (theirs, ours) in kept.iter().zip(&we_kept).filter(|(theirs, ours)| theirs != ours) {
        b.wrong.push(format!("they kept {theirs:?}\n  we kept   {ours:?}"));
    }
    assert_eq!(kept.len(), we_kept.len());
    b.finish();
}

fn comparable_pending(mut record: serde_json::Value) -> serde_json::Value {
    record["headers"].as_object_mut().unwrap().remove("User-Agent");
    record
}
