//! REPLICATE and SSYNC: the same exchanges with OpenStack's object server and with ours, and what is said
//! and kept compared. Skipped, with the reason printed, where OpenStack Swift is not installed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::Times;
use support::oracle::Oracle;
use support::ours::{FileDevices, Ours};
use support::wire::{Ask, ask};

/// What a body says once the chunks are joined.
fn joined(answer: &support::wire::Answer) -> Vec<u8> {
    if answer.header("transfer-encoding") != "chunked" {
        return answer.body.clone();
    }
    let (mut rest, mut joined) = (answer.body.as_slice(), vec![]);
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if length == 0 {
            break;
        }
        joined.extend_from_slice(&rest[..length.min(rest.len())]);
        rest = rest.get(length + 2..).unwrap_or_default();
    }
    joined
}

struct Both {
    oracle: Oracle,
    ours: Ours,
    devices: tempfile::TempDir,
    t: Times,
}

impl Both {
    fn start() -> Option<Self> {
        let oracle = Oracle::start()?;
        let devices = tempfile::tempdir().unwrap();
        std::fs::create_dir(devices.path().join("sda")).unwrap();
        Some(Self {
            oracle,
            ours: Ours::start(Arc::new(FileDevices(devices.path().into()))),
            devices,
            t: Times::new(),
        })
    }

    /// Asks both; the answers are compared up to what an error is about, and one is returned.
    fn same(&self, question: &Ask) -> String {
        let [theirs, ours] = [self.oracle.port, self.ours.port].map(|port| {
            let answer = question.send(port);
            let text = String::from_utf8_lossy(&joined(&answer)).into_owned();
            let comparable = match text.split_once(":ERROR: ") {
                Some((before, error)) => format!("{before}:ERROR: {}", error.split(' ').next().unwrap_or_default()),
                None => text,
            };
            (
                answer.status,
                answer.header("x-backend-accept-no-commit").to_owned(),
                comparable,
            )
        });
        assert_eq!(ours, theirs, "{} {}", question.method, question.path);
        ours.2
    }

    fn exchange(&self, lines: &str) -> String {
        let body = format!("{:x}\r\n{lines}\r\n0\r\n\r\n", lines.len());
        let question = ask("SSYNC", "/sda/7").with("Transfer-Encoding", "chunked");
        self.same(&question.body(body.as_bytes()))
    }

    fn update(&self, request: &str) -> String {
        self.exchange(&format!(
            ":MISSING_CHECK: START\r\n:MISSING_CHECK: END\r\n:UPDATES: START\r\n{request}:UPDATES: END\r\n"
        ))
    }

    /// The names of all files of objects, the same on both.
    fn same_files(&self) -> BTreeSet<String> {
        let [theirs, ours] = [self.oracle.devices(), self.devices.path().into()].map(|root: PathBuf| {
            let mut found = BTreeSet::new();
            files(&root.join("sda"), &root, &mut found);
            found
        });
        assert_eq!(ours, theirs);
        ours
    }
}

fn files(place: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if path.is_dir() {
            files(&path, root, found);
        } else if !name.contains(".lock") && !name.contains("hashes.") {
            found.insert(name);
        }
    }
}

#[test]
fn hashes_are_sent_as_openstack_sends_them() {
    let Some(both) = Both::start() else { return };
    for (name, time) in [("a", 1.0), ("b", 2.0), ("c", 3.5)] {
        let put = ask("PUT", &format!("/sda/7/a/c/{name}"))
            .with("X-Timestamp", both.t.at(time))
            .with("Content-Type", "text/plain")
            .body(b"hello");
        both.same(&put);
    }
    both.same(&ask("DELETE", "/sda/7/a/c/b").with("X-Timestamp", both.t.at(9.0)));
    both.same(&ask("REPLICATE", "/sda/8"));
    for path in ["/sda", "/sda/7/abc-def", "/sda/7/zzz", "/sda/7/abc/def", "/sda/8/abc"] {
        both.same(&ask("REPLICATE", path));
    }
    both.same(&ask("REPLICATE", "/sda/7").with("X-Backend-Storage-Policy-Index", "9"));
    // The order of suffixes means nothing.
    let hashes = [both.oracle.port, both.ours.port].map(|port| {
        let limits = pickle::PickleLimits::default();
        let value = pickle::loads(&ask("REPLICATE", "/sda/7").send(port).body, &limits).unwrap();
        let mut entries: Vec<String> = value
            .entries()
            .unwrap()
            .iter()
            .map(|entry| format!("{entry:?}"))
            .collect();
        entries.sort();
        entries
    });
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(hashes[0].len(), 3);
}

/// rsync makes the last directory of a path, no other; OpenStack leaves it to the first pass of its own replicator
/// there.
#[test]
fn a_device_that_was_compared_with_can_take_what_rsync_brings() {
    let Some(both) = Both::start() else { return };
    both.same(&ask("REPLICATE", "/sda/8"));
    assert!(both.devices.path().join("sda/objects").is_dir());
}

#[test]
fn offers_are_answered_with_the_same_wishes() {
    let Some(both) = Both::start() else { return };
    let put = ask("PUT", "/sda/7/a/c/o")
        .with("X-Timestamp", both.t.at(5.0))
        .with("Content-Type", "text/plain")
        .body(b"hello");
    both.same(&put);
    both.same(&ask("POST", "/sda/7/a/c/o").with("X-Timestamp", both.t.at(6.0)));
    let hash = both.same_files().first().unwrap().split('/').nth(4).unwrap().to_owned();
    let zero = "0".repeat(32);
    let check = |offers: &[String]| {
        let offers: String = offers.iter().map(|offer| format!("{offer}\r\n")).collect();
        both.exchange(&format!(
            ":MISSING_CHECK: START\r\n{offers}:MISSING_CHECK: END\r\n:UPDATES: START\r\n:UPDATES: END\r\n"
        ))
    };
    for seconds in [4.0, 5.0, 5.5, 7.0] {
        for rest in [
            "",
            " m:0",
            " m:186a0",
            " m:30d40,t:1",
            " m:30d40",
            " durable:True",
            " m:1__1",
        ] {
            check(&[
                format!("{hash} {}{rest}", both.t.at(seconds)),
                format!("{zero} 5.0{rest}"),
            ]);
        }
    }
    assert!(check(&[format!("{hash} {} m:186a0,t:186a0", both.t.at(5.0))]).contains(&format!("{hash} m")));
    for bad in [
        "",
        "rubbish",
        &zero,
        &format!("{zero} never"),
        &format!("{zero} 5.0 m:x"),
    ] {
        check(&[bad.to_owned()]);
    }
}

#[test]
fn requests_are_carried_out_alike() {
    let Some(both) = Both::start() else { return };
    let at = |seconds| both.t.at(seconds);
    let put = |name: &str, seconds: f64, more: &str, body: &str| {
        format!(
            "PUT /a/c/{name}\r\nContent-Length: {}\r\nX-Timestamp: {}\r\nContent-Type: t/y\r\n{more}\r\n{body}",
            body.len(),
            at(seconds)
        )
    };
    let long = "x".repeat(300_000);
    both.update(&put(
        "o",
        1.0,
        "X-Object-Meta-A: b\r\nX-Delete-At: 12\r\nX-Odd: kept\r\n",
        "hello",
    ));
    both.update(&put("%C3%BC%20o", 1.0, "X-Object-Meta-\u{fc}: \u{fc}\r\n", ""));
    both.update(&(put("long", 1.0, "", &long) + &put("next", 1.0, "", "abc")));
    both.update(&format!("DELETE /a/c/never\r\nX-Timestamp: {}\r\n\r\n", at(2.0)));
    both.update(&format!("DELETE /a/c/next\r\nX-Timestamp: {}\r\n\r\n", at(2.0)));
    both.update(&format!("POST /a/c/absent\r\nX-Timestamp: {}\r\n\r\n", at(2.0)));
    let post = |seconds: f64, typed: f64, meta: &str| {
        format!(
            "POST /a/c/long\r\nX-Timestamp: {}\r\nContent-Type: t/{typed}\r\nContent-Type-Timestamp: {}\r\n\
             X-Object-Meta-A: {meta}\r\n\r\n",
            at(seconds),
            at(typed)
        )
    };
    for (seconds, typed, meta) in [(9.0, 4.0, "one"), (8.0, 6.0, "two"), (10.0, 2.0, "three")] {
        both.update(&post(seconds, typed, meta));
        both.same_files();
    }
    for path in ["/sda/7/a/c/long", "/sda/7/a/c/%C3%BC%20o"] {
        let [theirs, ours] =
            [both.oracle.port, both.ours.port].map(|port| ask("HEAD", path).send(port).comparable().headers);
        assert_eq!(ours, theirs);
    }
    for bad in [
        &put("bad", 3.0, "ETag: bad\r\n", "abc"),
        &format!("GET /a/c/o\r\nX-Timestamp: {}\r\n\r\n", at(2.0)),
        "PUT /a/c/x\r\nX-Timestamp: 1\r\n\r\n",
        "PUT /a/c/x\r\nContent-Length: x\r\n\r\n",
        "DELETE /a/c/x\r\nContent-Length: 3\r\n\r\nabc",
        "rubbish\r\n",
        "PUT /a/c/x\r\nnocolon\r\n\r\n",
    ] {
        both.update(bad);
    }
    both.exchange("rubbish\r\n");
    let kept = both.same_files();
    assert_eq!(kept.len(), 6, "{kept:?}");
    // Many at once, and several of them about one object.
    let many = (0..50).map(|number| {
        let name = format!("many{number}");
        let posted = format!(
            "POST /a/c/{name}\r\nX-Timestamp: {}\r\nX-Object-Meta-B: c\r\n\r\n",
            at(3.0)
        );
        let gone = format!("DELETE /a/c/{name}\r\nX-Timestamp: {}\r\n\r\n", at(4.0));
        let gone = if number % 3 == 0 { gone } else { String::new() };
        put(&name, 1.0, "", "first") + &put(&name, 2.0, "", &"y".repeat(number * 3000)) + &posted + &gone
    });
    both.update(&many.collect::<String>());
    let kept = both.same_files();
    assert_eq!(kept.len(), 6 + 17 + 2 * 33, "{kept:?}");
}

/// Small objects are written many together, and yet each as if it had come alone.
#[test]
fn a_small_object_replaces_nothing_that_a_put_may_not_replace() {
    let Some(both) = Both::start() else { return };
    let update = |name: &str, seconds: f64, more: &str| {
        let time = both.t.at(seconds);
        both.update(&format!(
            "PUT /a/c/{name}\r\nContent-Length: 3\r\nX-Timestamp: {time}\r\nContent-Type: t/y\r\n{more}\r\nabc"
        ))
    };
    let files_of = |name: &str, seconds: f64| {
        update(name, seconds, "");
        let of_time = format!("/{}.data", both.t.at(seconds));
        both.same_files()
            .into_iter()
            .find(|file| file.ends_with(&of_time))
            .unwrap()
    };
    let [odd, foreign, wanted] = [("odd", 2.0), ("foreign", 3.0), ("wanted", 4.0)].map(|(name, at)| files_of(name, at));
    for seconds in [1.0, 2.0, 5.0] {
        assert!(update("odd", seconds, "If-None-Match: *\r\n").contains(":ERROR: 500"));
    }
    // One object's file in the place of another's.
    for root in [both.oracle.devices(), both.devices.path().into()] {
        std::fs::rename(root.join(&foreign), root.join(&wanted)).unwrap();
    }
    assert!(update("wanted", 6.0, "").contains(":ERROR: 500"));
    assert_eq!(both.same_files(), BTreeSet::from([odd, wanted.clone()]));
    // A file in the place of an object's directory.
    for root in [both.oracle.devices(), both.devices.path().into()] {
        let place = root.join(&wanted).parent().unwrap().to_owned();
        std::fs::remove_dir_all(&place).unwrap();
        std::fs::write(&place, b"foreign").unwrap();
    }
    assert!(update("wanted", 7.0, "").ends_with(":UPDATES: END\r\n"));
    let kept = both.same_files();
    assert_eq!(kept.len(), 3, "{kept:?}");
}

/// Where ours is kinder: what is superseded here has been taken care of.
#[test]
fn a_sender_that_stops_or_is_late_leaves_nothing_behind() {
    let devices = tempfile::tempdir().unwrap();
    std::fs::create_dir(devices.path().join("sda")).unwrap();
    let ours = Ours::start(Arc::new(FileDevices(devices.path().into())));
    let head = ":MISSING_CHECK: START\r\n:MISSING_CHECK: END\r\n:UPDATES: START\r\n";
    for (name, body) in [("cut", "abc"), ("long", &*"x".repeat(200_000))] {
        let lines = format!(
            "{head}PUT /a/c/{name}\r\nContent-Length: 500000\r\nX-Timestamp: 1\r\nContent-Type: t/y\r\n\r\n{body}"
        );
        let whole = format!("{:x}\r\n{lines}\r\n0\r\n\r\n", lines.len());
        let question = ask("SSYNC", "/sda/7").with("Transfer-Encoding", "chunked");
        let answer = question.body(whole.as_bytes()).send(ours.port);
        assert_eq!(answer.status, 200);
        assert!(!String::from_utf8_lossy(&joined(&answer)).contains(":UPDATES: END"));
        // One that stalls.
        let stalled = format!("{:x}\r\n{lines}", lines.len() + 10);
        let question = ask("SSYNC", "/sda/7").with("Transfer-Encoding", "chunked");
        let answer = question.body(stalled.as_bytes()).send(ours.port);
        assert!(String::from_utf8_lossy(&answer.body).contains(":ERROR: 408"));
    }
    let mut found = BTreeSet::new();
    files(&devices.path().join("sda"), devices.path(), &mut found);
    assert!(found.is_empty(), "{found:?}");
    let stale = |time: u32| {
        let lines = format!("{head}DELETE /a/c/o\r\nX-Timestamp: {time}\r\n\r\n:UPDATES: END\r\n");
        let whole = format!("{:x}\r\n{lines}\r\n0\r\n\r\n", lines.len());
        let question = ask("SSYNC", "/sda/7").with("Transfer-Encoding", "chunked");
        String::from_utf8_lossy(&joined(&question.body(whole.as_bytes()).send(ours.port))).into_owned()
    };
    let now = Times::new().0 as u32;
    for time in [now, now - 5] {
        assert!(stale(time).ends_with(":UPDATES: START\r\n:UPDATES: END\r\n"));
    }
}

/// Lines are counted: names that come again and again would take room without end.
#[test]
fn headers_without_end_are_refused() {
    let devices = tempfile::tempdir().unwrap();
    std::fs::create_dir(devices.path().join("sda")).unwrap();
    let ours = Ours::start(Arc::new(FileDevices(devices.path().into())));
    let answer_to = |headers: usize| {
        let lines = format!(
            ":MISSING_CHECK: START\r\n:MISSING_CHECK: END\r\n:UPDATES: START\r\n\
             DELETE /a/c/o\r\nX-Timestamp: {}\r\n{}\r\n:UPDATES: END\r\n",
            Times::new().at(1.0),
            "X-Object-Meta-A: b\r\n".repeat(headers),
        );
        let body = format!("{:x}\r\n{lines}\r\n0\r\n\r\n", lines.len());
        let question = ask("SSYNC", "/sda/7").with("Transfer-Encoding", "chunked");
        let answer = question.body(body.as_bytes()).send(ours.port);
        String::from_utf8_lossy(&joined(&answer)).into_owned()
    };
    assert!(answer_to(200).ends_with(":UPDATES: END\r\n"));
    assert!(answer_to(300).contains(":ERROR: 0 \"too many headers\""));
}
