//! OpenStack's own account and container servers and ours are asked the same, and every answer compared.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is test code")]

#[path = "../../listing-engine/tests/support/openstack.rs"]
mod openstack;
mod support;

use openstack::{Dice, OraclePython};
use serde_json::{Value, json};
use support::{Asked, Both, ask};

struct OpenStack {
    python: OraclePython,
    _devices: tempfile::TempDir,
}

impl OpenStack {
    fn start() -> Option<Self> {
        let devices = tempfile::tempdir().unwrap();
        std::fs::create_dir(devices.path().join("sda1")).unwrap();
        let arguments = [devices.path().as_os_str()];
        Some(Self {
            python: OraclePython::start(env!("CARGO_MANIFEST_DIR"), "openstack_server.py", &arguments)?,
            _devices: devices,
        })
    }

    fn ask(&mut self, asked: &Asked) -> Value {
        let request = json!({
            "server": asked.server, "method": asked.method, "path": asked.path, "headers": asked.headers,
            "body": asked.body,
        });
        self.python.ask(&request)
    }
}

/// What may differ: when the replica was made, who answers, and how an empty body is framed.
const OWN: [&str; 4] = ["x-backend-timestamp", "x-timestamp", "server", "content-length"];

fn comparable(mut answer: Value) -> Value {
    let headers = answer["headers"].as_object_mut().unwrap();
    for own in OWN {
        headers.remove(own);
    }
    answer
}

/// OpenStack's XML with the characters replaced that XML cannot have, and carriage returns kept from parsers.
fn well_formed(mut answer: Value) -> Value {
    if let Some(body) = answer["body"].as_str().filter(|body| body.starts_with("<?xml")) {
        let is_char = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{FFFD}' | '\u{10000}'..);
        let body: String = body.chars().map(|c| if is_char(c) { c } else { '\u{FFFD}' }).collect();
        answer["body"] = body.replace('\r', "&#13;").into();
    }
    answer
}

async fn compare(ours: &Both, theirs: &mut OpenStack, asked: &Asked) -> Result<(), String> {
    let expected = well_formed(comparable(theirs.ask(asked)));
    let seen = comparable(ask(ours, asked).await);
    match seen == expected {
        true => Ok(()),
        false => Err(format!("{asked:?}\n  OpenStack: {expected}\n  Martlet:   {seen}")),
    }
}

fn t(n: i64) -> String {
    format!("{:010}.00000", 1_700_000_000 + n)
}

/// `METHOD path  name=value …`, where `@n` is `X-Timestamp`, n seconds after the beginning.
fn parse(server: &'static str, line: &str) -> Asked {
    let mut words = line.split("  ").map(str::trim).filter(|w| !w.is_empty());
    let (method, path) = words.next().unwrap().split_once(' ').unwrap();
    let mut asked = Asked::new(server, method, &path.replace('~', "/sda1/0/"));
    for word in words {
        if let Some(seconds) = word.strip_prefix('@') {
            asked.header("X-Timestamp", &t(seconds.parse().unwrap()));
        } else if let Some(body) = word.strip_prefix("body:") {
            asked.body = body.to_owned();
        } else {
            let (name, value) = word.split_once('=').unwrap();
            let value = match value.strip_prefix('@') {
                Some(seconds) => t(seconds.parse().unwrap()),
                None => value.to_owned(),
            };
            asked.header(name, &value);
        }
    }
    asked
}

async fn play(script: &str, server: &'static str) {
    let Some(mut theirs) = OpenStack::start() else { return };
    let ours = Both::new();
    let mut differences = Vec::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        if let Err(difference) = compare(&ours, &mut theirs, &parse(server, line)).await {
            differences.push(difference);
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn containers() {
    play(include_str!("golden/containers.txt"), "container").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts() {
    play(include_str!("golden/accounts.txt"), "account").await;
}

const QUERIES: [&str; 14] = [
    "",
    "?format=json",
    "?format=xml",
    "?limit=2&format=json",
    "?limit=10001",
    "?marker=b&format=json",
    "?delimiter=/",
    "?format=xml&delimiter=/",
    "?reverse=true",
    "?prefix=%C3%B6&format=json",
    "?path=d",
    "?end_marker=d&reverse=1",
    "?prefix=%ff",
    "?limit=0",
];

fn any_container_request(dice: &mut Dice) -> Asked {
    let account = dice.pick(&["a", "a", ".auto"]);
    let container = format!("/sda1/0/{account}/c{}", dice.below(2));
    let object = dice.pick(&["a", "b%20%22x", "d/1", "d/2/3", "%C3%B6", "%F0%9D%84%9E%26%3C", "%00r"]);
    let verb = dice.below(12);
    let (method, path) = match verb {
        0 => ("PUT", container),
        1 => ("DELETE", container),
        2 => ("POST", container),
        3 => ("HEAD", container),
        4..6 => ("GET", format!("{container}{}", dice.pick(&QUERIES))),
        6..10 => ("PUT", format!("{container}/{object}")),
        _ => ("DELETE", format!("{container}/{object}")),
    };
    let mut asked = Asked::new("container", method, &path);
    if dice.below(20) != 0 {
        let moment = t(dice.below(30) as i64);
        asked.header("X-Timestamp", &moment);
    }
    if dice.below(5) == 0 {
        asked.header("X-Backend-Storage-Policy-Index", dice.pick(&["0", "1", "1", "7", "x"]));
    }
    if dice.below(4) == 0 {
        asked.header("X-Container-Meta-A", dice.pick(&["", "v", "ö"]));
    }
    if dice.below(6) == 0 {
        asked.header("X-Container-Read", dice.pick(&["", ".r:*"]));
    }
    if (6..10).contains(&verb) {
        asked.header("X-Size", dice.pick(&["0", "5", "77"]));
        asked.header(
            "X-Content-Type",
            dice.pick(&["text/plain", "a/b; charset=u", "a;swift_bytes=9", "ö"]),
        );
        asked.header("X-Etag", "d41d8cd98f00b204e9800998ecf8427e");
        if dice.below(4) == 0 {
            let moment = t(dice.below(30) as i64);
            asked.header("X-Content-Type-Timestamp", &moment);
            asked.header("X-Meta-Timestamp", &moment);
        }
    }
    asked
}

fn any_account_request(dice: &mut Dice) -> Asked {
    let account = format!("/sda1/0/{}", dice.pick(&["a", "b", "c", "d", ".auto"]));
    let verb = dice.below(12);
    let (method, path) = match verb {
        0 | 1 => ("PUT", account),
        2 if dice.below(4) == 0 => ("DELETE", account),
        2 | 3 => ("POST", account),
        4 => ("HEAD", account),
        5..8 => ("GET", format!("{account}{}", dice.pick(&QUERIES))),
        _ => (
            "PUT",
            format!("{account}/{}", dice.pick(&["a", "b%20%22x", "d", "%C3%B6", "%26%3C'"])),
        ),
    };
    let mut asked = Asked::new("account", method, &path);
    asked.header("X-Timestamp", &t(dice.below(30) as i64));
    if dice.below(4) == 0 {
        asked.header("X-Account-Meta-A", dice.pick(&["", "v", "ö"]));
    }
    if verb >= 8 {
        let (put, delete) = (t(dice.below(30) as i64), t(dice.below(30) as i64));
        asked.header("X-Put-Timestamp", &put);
        asked.header("X-Delete-Timestamp", if dice.below(2) == 0 { "0" } else { &delete });
        asked.header("X-Object-Count", dice.pick(&["0", "0", "3"]));
        asked.header("X-Bytes-Used", dice.pick(&["0", "30"]));
        asked.header("X-Backend-Storage-Policy-Index", dice.pick(&["0", "1", "9"]));
        if dice.below(4) == 0 {
            asked.header("X-Account-Override-Deleted", "yes");
        }
    }
    asked
}

async fn play_random(any_request: fn(&mut Dice) -> Asked) {
    let Some(mut theirs) = OpenStack::start() else { return };
    let ours = Both::new();
    let mut dice = Dice::new();
    for turn in 0..1_500 {
        let asked = any_request(&mut dice);
        if let Err(difference) = compare(&ours, &mut theirs, &asked).await {
            panic!("turn {turn}: {difference}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_container_requests() {
    play_random(any_container_request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_account_requests() {
    play_random(any_account_request).await;
}
