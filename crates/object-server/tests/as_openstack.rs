//! The same questions to OpenStack's object server and to ours, and every answer compared: status,
//! headers and body. Skipped, with the reason printed, where OpenStack Swift is not installed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use std::sync::Arc;
use support::Times;
use support::oracle::Oracle;
use support::ours::{FileDevices, Ours};
use support::wire::{Ask, ask};

#[test]
fn newest_wins() {
    let mut b = both_or_return!();
    let o = "/sda/1/a/c/o";
    b.read_and_head(o);
    b.same(b.delete(o, 100.0));
    b.read_and_head(o);
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
    b.read_and_head(o);
    b.same(b.put(o, 102.0));
    b.read_and_head(o);
    b.same(b.delete(o, 101.0));
    b.same(b.delete(o, 102.0));
    b.same(b.delete(o, 102.5));
    b.read_and_head(o);
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
    b.read_and_head(o);
    b.same(b.put(o, 110.0));
    b.same(ask("POST", o).with("X-Timestamp", second));
    b.read_and_head(o);
    b.same(ask("DELETE", o).with("X-Timestamp", third));
    b.read_and_head(o);
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
    b.read_and_head(o);
    b.same(b.post(o, 2.0).with("X-Object-Meta-B", "c"));
    b.read_and_head(o);
    b.same(many(b.post(o, 3.0)).with("Content-Type", "a/b; charset=x"));
    b.read_and_head(o);
    b.same(b.post(o, 4.0).with("Content-Type", ""));
    b.read_and_head(o);
    b.same(
        b.put(o, 5.0)
            .with("X-Backend-Replication-Headers", "X-Foo content-language etag")
            .with("X-Foo", "1"),
    );
    b.read_and_head(o);
    b.same(
        b.put(o, 6.0)
            .with("X-Object-Meta-U", "ö € 𝄞")
            .with("Content-Type", "text/plain; x=ö"),
    );
    b.read_and_head(o);
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
    b.read_and_head(o);
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
        b.read_and_head(&format!("/sda/1/{path}"));
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
    b.read_and_head(o);
    // A body that stops: time-out.
    b.same(b.put(o, 20.0).with("Content-Length", "10"));
    b.same(
        b.put(o, 20.0)
            .with("Transfer-Encoding", "chunked")
            .body(b"5\r\nhello\r\n"),
    );
    b.read_and_head(o);
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
