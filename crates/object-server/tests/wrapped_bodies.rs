//! PUTs wrapped in MIME, held as a conversation with OpenStack's object server and with ours: every
//! informational and every final answer is compared. Skipped where OpenStack Swift is not installed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use md5::{Digest, Md5};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use support::Times;
use support::oracle::Oracle;
use support::ours::{MemoryDevices, Ours};
use support::wire::{Answer, ask, connect};

const OBJECT: &str = "/sda/1/a/c/wrapped";

fn hex(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat()
}

/// The object's part and its footer.
fn document(body: &[u8], footer: &[u8], checksum: &str) -> Vec<u8> {
    [
        b"--bnd\r\nX-Document: object body\r\n\r\n".as_slice(),
        body,
        b"\r\n--bnd\r\nContent-MD5: ",
        checksum.as_bytes(),
        b"\r\nX-Document: object metadata\r\n\r\n",
        footer,
        b"\r\n--bnd--",
    ]
    .concat()
}

fn read_head(socket: &mut TcpStream) -> Vec<u8> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") && socket.read(&mut byte).is_ok_and(|count| count == 1) {
        bytes.push(byte[0]);
    }
    bytes
}

/// What the server says to the head, and at the end.
fn converse(port: u16, headers: &[(&str, String)], body: &[u8], hang_up: bool) -> (Answer, Answer) {
    let mut socket = connect(port);
    let mut head = format!("PUT {OBJECT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let first = Answer::parse(&read_head(&mut socket)).comparable();
    let mut bytes = Vec::new();
    if first.status == 100 {
        // Refused in the middle of it is an answer, too.
        let _ = socket.write_all(body);
        if hang_up {
            socket.shutdown(Shutdown::Write).unwrap();
        }
    }
    let _ = socket.read_to_end(&mut bytes);
    (first, Answer::parse(&bytes).comparable())
}

#[test]
fn footers() {
    let Some(oracle) = Oracle::start() else { return };
    let ours = Ours::start(MemoryDevices::with(&["sda"]));
    let t = Times::new();
    let body_md5 = hex(b"body");
    let footer = |text: &str| document(b"body", text.as_bytes(), &hex(text.as_bytes()));
    let full = format!(
        "{{\"X-Object-Sysmeta-Foot\": \"er\", \"Etag\": \"{body_md5}\", \"X-Object-Meta-Foo\": \"no\", \
         \"Content-Type\": \"new/ct\", \"X-Object-Transient-Sysmeta-Z\": \"q\", \"Content-Encoding\": \"gzip\"}}"
    );
    let no_checksum = String::from_utf8(footer("{}")).unwrap();
    let no_checksum = no_checksum.replace(&format!("Content-MD5: {}\r\n", hex(b"{}")), "");
    let bodies: [(&str, Vec<u8>); 12] = [
        ("a full footer", footer(&full)),
        ("an empty footer", footer("{}")),
        ("an empty body", document(b"", b"{}", &hex(b"{}"))),
        ("a wrong etag", footer("{\"Etag\": \"bad\"}")),
        ("a wrong footer checksum", document(b"body", b"{}", "bad")),
        ("no JSON", footer("not json")),
        (
            "no footer",
            b"--bnd\r\nX-Document: object body\r\n\r\nbody\r\n--bnd--".to_vec(),
        ),
        ("no footer checksum", no_checksum.into_bytes()),
        ("an empty line first", [&b"\r\n"[..], &footer("{}")].concat()),
        (
            "a newline in the body",
            document(b"\r\nbo\r\n--b\r\n", b"{}", &hex(b"{}")),
        ),
        ("a big body", document(&[b'x'; 300_000], b"{}", &hex(b"{}"))),
        (
            "an etag in the head, another in the footer",
            footer(&format!("{{\"Etag\": \"{body_md5}\"}}")),
        ),
    ];
    for (number, (what, body)) in bodies.iter().enumerate() {
        let headers = |more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            let mut headers = vec![
                ("X-Timestamp", t.at(number as f64)),
                ("Content-Type", "a/b".into()),
                ("Transfer-Encoding", "chunked".into()),
                ("X-Backend-Obj-Metadata-Footer", "yes".into()),
                ("X-Backend-Obj-Multipart-Mime-Boundary", "bnd".into()),
            ];
            headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
            headers
        };
        let more: &[(&str, &str)] = if what.starts_with("an etag") {
            &[("ETag", "zzz")]
        } else {
            &[]
        };
        let both = [oracle.port, ours.port].map(|port| converse(port, &headers(more), &chunk(body), false));
        assert_eq!(both[0], both[1], "{what}");
        let read = [oracle.port, ours.port].map(|port| ask("GET", OBJECT).send(port).comparable());
        assert_eq!(read[0], read[1], "{what}, read back");
    }
    for (what, more, hang_up) in [
        ("the promised length", ("X-Backend-Obj-Content-Length", "4"), false),
        ("another length", ("X-Backend-Obj-Content-Length", "7"), false),
        ("no number", ("X-Backend-Obj-Content-Length", "x"), false),
        ("an old timestamp", ("X-Timestamp", "0000000001.00000"), false),
    ] {
        let mut headers = vec![
            ("Content-Type", "a/b".to_owned()),
            ("Transfer-Encoding", "chunked".into()),
            ("X-Backend-Obj-Metadata-Footer", "yes".into()),
            ("X-Backend-Obj-Multipart-Mime-Boundary", "bnd".into()),
        ];
        if more.0 != "X-Timestamp" {
            headers.push(("X-Timestamp", t.at(100.0 + more.1.len() as f64 / 10.0)));
        }
        headers.push((more.0, more.1.to_owned()));
        let mut both = [oracle.port, ours.port].map(|port| converse(port, &headers, &chunk(&footer("{}")), hang_up));
        if what == "no number" {
            // Where the refusal comes at once, the rest of the answer is the body of the first.
            both.iter_mut().for_each(|(first, _)| first.body.clear());
        }
        assert_eq!(both[0], both[1], "{what}");
    }
    let no_boundary = [
        ("X-Timestamp", t.at(200.0)),
        ("Content-Type", "a/b".into()),
        ("Transfer-Encoding", "chunked".into()),
        ("X-Backend-Obj-Metadata-Footer", "yes".into()),
    ];
    let both = [oracle.port, ours.port].map(|port| converse(port, &no_boundary, b"", false));
    assert_eq!(both[0], both[1], "no boundary");
}

/// OpenStack uses this for erasure coding only; the conversation is the one its documentation draws.
#[test]
fn commit_in_a_second_phase() {
    let ours = Ours::start(MemoryDevices::with(&["sda"]));
    let t = Times::new();
    let begin = |seconds: f64| {
        let mut socket = connect(ours.port);
        let head = format!(
            "PUT {OBJECT} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nX-Timestamp: {}\r\nContent-Type: a/b\r\n\
             Transfer-Encoding: chunked\r\nX-Backend-Obj-Metadata-Footer: yes\r\n\
             X-Backend-Obj-Multiphase-Commit: yes\r\nX-Backend-Obj-Multipart-Mime-Boundary: bnd\r\n\r\n",
            t.at(seconds)
        );
        socket.write_all(head.as_bytes()).unwrap();
        let first = Answer::parse(&read_head(&mut socket));
        assert_eq!((first.status, first.header("x-obj-multiphase-commit")), (100, "yes"));
        let text = String::from_utf8(document(b"body", b"{}", &hex(b"{}"))).unwrap();
        let text = text.trim_end_matches("--").to_owned() + "\r\n";
        write!(socket, "{:x}\r\n{text}\r\n", text.len()).unwrap();
        assert_eq!(
            Answer::parse(&read_head(&mut socket)).status,
            100,
            "asks for the commit"
        );
        socket
    };
    let mut silent = begin(1.0);
    silent.shutdown(Shutdown::Write).unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    assert_eq!(ask("GET", OBJECT).send(ours.port).status, 404, "not committed");

    let mut socket = begin(2.0);
    let commit = b"X-Document: put commit\r\n\r\ncommit_confirmation\r\n--bnd--";
    socket.write_all(&chunk(commit)).unwrap();
    assert_eq!(Answer::parse(&read_head(&mut socket)).status, 201);
    assert_eq!(ask("GET", OBJECT).send(ours.port).body, b"body");
}
