//! A container server that gives one answer and remembers what it was asked.

use super::wire::Answer;
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// A request it got: the request line and headers, names in lower case, sorted.
pub type Got = (String, Vec<(String, String)>);

pub struct Container {
    pub port: u16,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Container {
    /// Answers `status` (with its reason) and `headers` after `delay`.
    pub fn start(status: &'static str, headers: String, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let log = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, headers) = (log.clone(), headers.clone());
                std::thread::spawn(move || {
                    let mut stream = stream;
                    let mut bytes = Vec::new();
                    let mut buffer = [0; 4096];
                    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
                        match stream.read(&mut buffer) {
                            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
                            _ => return,
                        }
                    }
                    let line = String::from_utf8_lossy(&bytes)
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    let sorted = Answer::parse(&bytes).headers.into_iter().collect();
                    log.lock().push((line, sorted));
                    std::thread::sleep(delay);
                    // The asker may have lost patience.
                    let _ = write!(
                        stream,
                        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n"
                    );
                });
            }
        });
        Self { port, got }
    }

    /// What it got since last asked, without what differs from run to run.
    pub fn take(&self) -> Vec<Got> {
        let own = [
            "host",
            "accept-encoding",
            "user-agent",
            "content-length",
            "connection",
            "referer",
        ];
        let mut got = std::mem::take(&mut *self.got.lock());
        for (_, headers) in &mut got {
            headers.retain(|(name, _)| !own.contains(&name.as_str()));
        }
        got.sort();
        got
    }
}
