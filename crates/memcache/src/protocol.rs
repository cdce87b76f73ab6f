//! The text protocol of memcached, as far as it is needed, over one connection.
//!
//! Always holds: a reply that is not exactly what the protocol allows is a [`ProtocolError`], after which the
//! connection must not be used again; no reply makes us keep more than [`LONGEST_VALUE`] per key.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use world::Stream;

/// An MD5 in hexadecimal: what keys look like to memcached.
pub(crate) type KeyHash = [u8; 32];

/// Flag of values that are JSON.
pub(crate) const JSON_FLAG: u32 = 2;
const COUNTER_FLAG: u32 = 0;
/// memcached keeps items of 1 MiB by default. Operators with many shard ranges raise it, which are not asked for here.
const LONGEST_VALUE: usize = 1 << 20;
/// `VALUE <key> <flags> <bytes> <cas>` needs under a hundred bytes; error messages may be longer.
const LONGEST_LINE: u64 = 1024;

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// The system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A reply out of turn or out of bounds.
    #[error("answered rubbish: {0}")]
    Rubbish(&'static str),
    /// No reply in time.
    #[error("no answer in time")]
    Timeout,
    /// A reply that came in time, but so late that requests are quicker without it.
    #[error("answers slowly")]
    Slow,
}

/// A stored value.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) flags: u32,
    pub(crate) data: Vec<u8>,
}

/// What became of a value sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreReply {
    Yes,
    No,
}

/// One connection, between two replies.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

impl Connection {
    pub(crate) fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// The items of these keys, in their order.
    pub(crate) async fn get(&mut self, keys: &[KeyHash]) -> Result<Vec<Option<Item>>, ProtocolError> {
        let mut request = b"get".to_vec();
        for key in keys {
            request.push(b' ');
            request.extend_from_slice(key);
        }
        request.extend_from_slice(b"\r\n");
        self.send(&request).await?;
        let mut items: Vec<Option<Item>> = keys.iter().map(|_| None).collect();
        loop {
            let line = self.line().await?;
            if line == b"END" {
                return Ok(items);
            }
            let header = value_header(&line).ok_or(ProtocolError::Rubbish("no VALUE line where one belongs"))?;
            let index = keys.iter().position(|k| k == header.key);
            let index = index.ok_or(ProtocolError::Rubbish("a key that was not asked for"))?;
            if items[index].is_some() {
                return Err(ProtocolError::Rubbish("a key twice"));
            }
            items[index] = Some(self.item(header.flags, header.bytes).await?);
        }
    }

    /// Stores JSON values; whether all were taken.
    pub(crate) async fn set_all(&mut self, items: &[(KeyHash, Vec<u8>)], exptime: u64) -> Result<bool, ProtocolError> {
        let mut all = true;
        for (key, data) in items {
            all &= self.store("set", key, JSON_FLAG, exptime, data).await? == StoreReply::Yes;
        }
        Ok(all)
    }

    /// Makes a counter unless there is one.
    pub(crate) async fn add(&mut self, key: &KeyHash, count: u64, exptime: u64) -> Result<StoreReply, ProtocolError> {
        self.store("add", key, COUNTER_FLAG, exptime, count.to_string().as_bytes())
            .await
    }

    async fn store(
        &mut self,
        verb: &str,
        key: &KeyHash,
        flags: u32,
        exptime: u64,
        data: &[u8],
    ) -> Result<StoreReply, ProtocolError> {
        let mut request = format!("{verb} ").into_bytes();
        request.extend_from_slice(key);
        request.extend_from_slice(format!(" {flags} {exptime} {}\r\n", data.len()).as_bytes());
        request.extend_from_slice(data);
        request.extend_from_slice(b"\r\n");
        self.send(&request).await?;
        let line = self.line().await?;
        match line.as_slice() {
            b"STORED" => Ok(StoreReply::Yes),
            b"NOT_STORED" => Ok(StoreReply::No),
            // Too large, or out of memory: the connection stays in step.
            line if line.starts_with(b"SERVER_ERROR") => Ok(StoreReply::No),
            _ => Err(ProtocolError::Rubbish("no STORED line where one belongs")),
        }
    }

    /// Adds to a counter, if it is there.
    pub(crate) async fn count(&mut self, key: &KeyHash, delta: i64) -> Result<Option<u64>, ProtocolError> {
        let verb = if delta < 0 { "decr " } else { "incr " };
        let mut request = verb.as_bytes().to_vec();
        request.extend_from_slice(key);
        request.extend_from_slice(format!(" {}\r\n", delta.unsigned_abs()).as_bytes());
        self.send(&request).await?;
        let line = self.line().await?;
        if line == b"NOT_FOUND" {
            return Ok(None);
        }
        let number = std::str::from_utf8(&line).ok().and_then(|l| l.trim().parse().ok());
        number
            .map(Some)
            .ok_or(ProtocolError::Rubbish("no number where one belongs"))
    }

    /// Removes a value if it is there.
    pub(crate) async fn delete(&mut self, key: &KeyHash) -> Result<(), ProtocolError> {
        let mut request = b"delete ".to_vec();
        request.extend_from_slice(key);
        request.extend_from_slice(b"\r\n");
        self.send(&request).await?;
        match self.line().await?.as_slice() {
            b"DELETED" | b"NOT_FOUND" => Ok(()),
            _ => Err(ProtocolError::Rubbish("no DELETED line where one belongs")),
        }
    }

    async fn send(&mut self, request: &[u8]) -> Result<(), ProtocolError> {
        if !self.stream.buffer().is_empty() {
            return Err(ProtocolError::Rubbish("a reply to nothing"));
        }
        self.stream.write_all(request).await?;
        Ok(self.stream.flush().await?)
    }

    /// One line without its end.
    async fn line(&mut self) -> Result<Vec<u8>, ProtocolError> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(LONGEST_LINE);
        bounded.read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if !line.ends_with(b"\r\n") {
            return Err(ProtocolError::Rubbish("a line without end"));
        }
        line.truncate(line.len() - 2);
        Ok(line)
    }

    async fn item(&mut self, flags: u32, bytes: usize) -> Result<Item, ProtocolError> {
        // Grows as bytes arrive, so that a promise alone costs nothing.
        let mut data = Vec::new();
        let mut bounded = (&mut self.stream).take(bytes as u64 + 2);
        bounded.read_to_end(&mut data).await?;
        if data.len() != bytes + 2 || !data.ends_with(b"\r\n") {
            return Err(ProtocolError::Rubbish("a value that ends elsewhere than it says"));
        }
        data.truncate(bytes);
        Ok(Item { flags, data })
    }
}

struct ValueHeader<'a> {
    key: &'a [u8],
    flags: u32,
    bytes: usize,
}

/// `VALUE <key> <flags> <bytes> [<cas>]`.
fn value_header(line: &[u8]) -> Option<ValueHeader<'_>> {
    let mut words = line.split(|b| *b == b' ');
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u64>().ok();
    if words.next()? != b"VALUE" {
        return None;
    }
    let key = words.next()?;
    let flags = u32::try_from(number(words.next()?)?).ok()?;
    let bytes = usize::try_from(number(words.next()?)?).ok()?;
    let header = ValueHeader { key, flags, bytes };
    let rest = words.next().is_none_or(|cas| number(cas).is_some()) && words.next().is_none();
    (rest && bytes <= LONGEST_VALUE).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Asks for two keys and answers with `reply`, then closes.
    fn get(reply: &[u8]) -> Result<Vec<Option<Item>>, ProtocolError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 20);
            theirs.write_all(reply).await.unwrap();
            let (mut read, mut write) = tokio::io::split(theirs);
            write.shutdown().await.unwrap();
            let mut connection = Connection::new(Box::new(ours));
            let answer = connection.get(&[[b'a'; 32], [b'b'; 32]]).await;
            drop(connection);
            let mut request = Vec::new();
            read.read_to_end(&mut request).await.unwrap();
            answer
        })
    }

    #[test]
    fn items_come_in_the_order_asked_for() {
        assert!(matches!(get(b""), Err(ProtocolError::Io(_))));
        let text = format!(
            "{} {} 2 2\r\n{{}}\r\n{} {} 0 3 77\r\n\r\n1\r\nEND\r\n",
            "VALUE",
            "b".repeat(32),
            "VALUE",
            "a".repeat(32)
        );
        let items = get(text.as_bytes()).unwrap();
        let shown: Vec<_> = items
            .iter()
            .map(|i| i.as_ref().map(|i| (i.flags, i.data.as_slice())))
            .collect();
        assert_eq!(shown, [Some((0, &b"\r\n1"[..])), Some((2, &b"{}"[..]))]);
    }

    #[test]
    fn rubbish_is_a_fault() {
        let value = |rest: &str| format!("VALUE {} {rest}", "a".repeat(32));
        let again = value("2 2\r\n{}\r\n");
        for text in [
            "\r\n".to_owned(),
            "ERROR\r\n".into(),
            "END".into(),
            value("2 99999999999\r\n"),
            value("2 -1\r\n"),
            value("2 3\r\n{}\r\nEND\r\n"),
            value("2 1\r\n{}\r\nEND\r\n"),
            value("2 2\r\n{"),
            format!("{again}{again}END\r\n"),
            format!("VALUE {} 2 2\r\n{{}}\r\nEND\r\n", "c".repeat(32)),
            "x".repeat(5000),
        ] {
            assert!(get(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "(VALUE|END|a{32}|[ 0-9\\r\\n])*") {
            let _ = get(&bytes);
            let _ = get(text.as_bytes());
            let _ = value_header(&bytes);
        }
    }
}
