//! A storage server's line about a request, in OpenStack's default `log_format`.
//!
//! ```text
//! remote_addr - - [20/Nov/2026:12:23:19 +0000] "PUT /sda1/7/a/c/o" 201 - "referer" "txn" "agent" 0.01 "info" pid
//! policy
//! ```

use crate::fields::{Count, LogMoment, PlainField, PolicyField};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// A request that is over. [`Display`] is its line.
#[derive(Clone, Copy)]
pub struct StorageLine<'a> {
    /// Address of the other end of the connection, without port; empty when unknown.
    pub remote: &'a str,
    /// The verb.
    pub method: &'a str,
    /// The path as sent (percent-encoded), without query.
    pub path: &'a str,
    /// What was answered.
    pub status: u16,
    /// `Content-Length` of the answer.
    pub length: u64,
    /// `Referer` of the request; empty without one, as the next two.
    pub referer: &'a [u8],
    /// `X-Trans-Id` of the request.
    pub trans_id: &'a [u8],
    /// `User-Agent` of the request.
    pub user_agent: &'a [u8],
    /// Remarks.
    pub info: &'a str,
    /// How long it took.
    pub took: Duration,
    /// When it ended, in seconds since 1970.
    pub ended: u64,
    /// The storage policy it touched.
    pub policy: Option<u32>,
    /// Of this process.
    pub pid: u32,
}

impl Display for StorageLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ended = LogMoment {
            seconds: self.ended,
            separators: (':', ':'),
        };
        write!(
            f,
            "{} - - [{ended} +0000] \"{} {}\" {} {} \"{}\" \"{}\" \"{}\" {:.4} \"{}\" {} {}",
            PlainField(self.remote.as_bytes()),
            self.method,
            PlainField(self.path.as_bytes()),
            self.status,
            Count(self.length),
            PlainField(self.referer),
            PlainField(self.trans_id),
            PlainField(self.user_agent),
            self.took.as_secs_f64(),
            PlainField(self.info.as_bytes()),
            self.pid,
            PolicyField(self.policy),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_line() {
        let line = StorageLine {
            remote: "1.2.3.4",
            method: "GET",
            path: "/sda1/1/a/c/o%20x",
            status: 200,
            length: 3,
            referer: b"GET http://x/y z",
            trans_id: b"tx1",
            user_agent: b"",
            info: "",
            took: Duration::from_micros(123_456),
            ended: 1_795_177_399,
            policy: Some(1),
            pid: 31037,
        };
        assert_eq!(
            line.to_string(),
            "1.2.3.4 - - [20/Nov/2026:12:23:19 +0000] \"GET /sda1/1/a/c/o%20x\" 200 3 \"GET http://x/y z\" \
             \"tx1\" \"-\" 0.1235 \"-\" 31037 1"
        );
    }
}
