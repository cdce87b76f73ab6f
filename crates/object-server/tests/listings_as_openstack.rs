//! Expiry, and the rows that listings and the expirer's queue get of it: compared with OpenStack's object server.
//! Skipped, with the reason printed, where OpenStack Swift is not installed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use std::path::Path;
use std::time::Duration;
use support::container::Container;
use support::wire::{Ask, ask};

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
    b.read_and_head(o);
    b.same(
        b.put(o, 31.0)
            .with("X-Delete-After", "90000")
            .with("X-Delete-At", "abc"),
    );
    b.read_and_head(o);
    b.same(b.post(o, 32.0).with("X-Delete-After", "77"));
    b.read_and_head(o);
    b.same(b.delete("/sda/1/a/c/never", 1.0).with("X-If-Delete-At", "5"));
    b.same(b.delete("/sda/1/a/c/never", 1.0).with("X-If-Delete-At", "x"));
    b.same(ask("GET", "/sda/1/a/c/never"));
    b.finish();
}

/// What each server sent to its container servers, and what it kept for later.
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
        let sent: Vec<_> = servers.iter().map(|server| server.take()).collect();
        for port in [b.files.port, b.memory.port] {
            let ours = question.send(port).comparable();
            let we_sent: Vec<_> = servers.iter().map(|server| server.take()).collect();
            if theirs != ours {
                b.note(&question, &theirs, &ours);
            }
            if sent != we_sent {
                let asked = format!("{} {:?}", question.method, question.headers);
                b.wrong
                    .push(format!("{asked}\n  they sent {sent:?}\n  we sent   {we_sent:?}"));
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
