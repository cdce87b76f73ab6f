//! Requests byte for byte, and answers as they come.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A request as it goes out.
#[derive(Clone)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

pub fn ask(method: &str, path: &str) -> Ask {
    Ask {
        method: method.into(),
        path: path.into(),
        headers: vec![],
        body: None,
    }
}

impl Ask {
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = Some(body.into());
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
            self.method, self.path
        );
        let says_length = |(name, _): &(String, String)| {
            name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
        };
        if let Some(body) = self.body.as_ref().filter(|_| !self.headers.iter().any(says_length)) {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    pub fn send(&self, port: u16) -> Answer {
        let mut socket = connect(port);
        socket.write_all(&self.bytes()).unwrap();
        let mut bytes = Vec::new();
        // A reset after the answer is as good as an end.
        let _ = socket.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }
}

pub fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// An answer: names in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or("0");
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Self {
            status: status.parse().unwrap_or(0),
            headers,
            body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Without what differs from run to run: dates, boundaries, who answers.
    pub fn comparable(&self) -> Self {
        let mut same = self.clone();
        for name in ["date", "connection", "server", "keep-alive"] {
            same.headers.remove(name);
        }
        if same.status == 304 {
            // Our HTTP layer leaves it out where it says nothing.
            same.headers.remove("content-length");
        }
        let boundary = same
            .header("content-type")
            .split_once("boundary=")
            .map(|(_, b)| b.to_owned());
        if let Some(boundary) = boundary {
            same.headers
                .insert("content-type".into(), "multipart/byteranges;boundary=B".into());
            let text = String::from_utf8_lossy(&same.body).replace(&boundary, "B");
            same.body = text.into_bytes();
        }
        same
    }
}
