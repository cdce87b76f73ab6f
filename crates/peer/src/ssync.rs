//! The words of SSYNC: what a sender offers, what a receiver wishes for, and the lines both come in.
//!
//! One request and one answer that stream both ways at the same time. The sender lists what it has of a
//! partition, the receiver says what of that it lacks, the sender sends that as small requests.
//!
//! ```text
//! → :MISSING_CHECK: START          → :UPDATES: START
//! → <hash> <timestamp> m:3a057     → PUT /a/c/o            (quoted)
//! → :MISSING_CHECK: END            → Content-Length: 3
//! ← :MISSING_CHECK: START          → …                     (metadata, an empty line, the body)
//! ← <hash> dm                      → :UPDATES: END
//! ← :MISSING_CHECK: END            ← :UPDATES: START
//!                                  ← :UPDATES: END
//! ```
//!
//! Lines end with CR LF. `m:` and `t:` are the ticks (in hexadecimal) from the body's timestamp to that of
//! the newest POST and of the content type, `__f` behind them an offset. `deleted:True` says that it is a
//! DELETE, which wins over a PUT of the same time: OpenStack's servers do not say it, and pass over it.
//! `:ERROR: <status> <text>` from the receiver ends it all. Source: observed between OpenStack Swift 2.38.3's servers.
//! Always holds: any line is read or refused; a line takes no more room than [`LONGEST_LINE`].

use crate::{Body, BodyError};
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use vocabulary::{PathHash, Timestamp};
use world::World;

/// Offers begin.
pub const MISSING_START: &str = ":MISSING_CHECK: START";
/// Offers, or wishes, are over.
pub const MISSING_END: &str = ":MISSING_CHECK: END";
/// Requests begin.
pub const UPDATES_START: &str = ":UPDATES: START";
/// Requests are over.
pub const UPDATES_END: &str = ":UPDATES: END";
/// What a receiver says instead when it cannot go on.
pub const ERROR: &str = ":ERROR:";
/// As much as a header may take.
pub const LONGEST_LINE: usize = 64 * 1024;

/// When the parts of an object were written, as its holder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Which object.
    pub hash: PathHash,
    /// The PUT, or the DELETE.
    pub data: Timestamp,
    /// It is known to be a DELETE.
    pub deleted: bool,
    /// The newest POST; that of the PUT without one.
    pub meta: Timestamp,
    /// When the content type was set.
    pub content_type: Timestamp,
    /// Whether the body is complete; of fragments that is not certain.
    pub durable: bool,
}

/// What a receiver lacks of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The PUT, or the DELETE.
    pub data: bool,
    /// The POST.
    pub meta: bool,
}

/// What was said is not what was to be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line of SSYNC: {0:?}")]
pub struct NotSsync(pub String);

fn refuse(line: &str) -> NotSsync {
    NotSsync(line.chars().take(120).collect())
}

impl Offer {
    /// The line, without its end.
    pub fn line(&self) -> String {
        let mut line = format!("{} {}", self.hash, self.data.internal());
        let mut separator = ' ';
        for (mark, time) in [('m', self.meta), ('t', self.content_type)] {
            if time != self.data {
                let (sign, delta) = match time.ticks() < self.data.ticks() {
                    true => ("-", self.data.ticks() - time.ticks()),
                    false => ("", time.ticks() - self.data.ticks()),
                };
                line.push_str(&format!("{separator}{mark}:{sign}{delta:x}"));
                if time.offset() != 0 {
                    line.push_str(&format!("__{:x}", time.offset()));
                }
                separator = ',';
            }
        }
        for (is_sent, item) in [(!self.durable, "durable:False"), (self.deleted, "deleted:True")] {
            if is_sent {
                line.push(separator);
                line.push_str(item);
                separator = ',';
            }
        }
        line
    }

    /// The inverse. What a later version may add is passed over.
    pub fn parse(line: &str) -> Result<Self, NotSsync> {
        let mut words = line.split_whitespace();
        let hash = words.next().and_then(PathHash::from_hex);
        let data = words.next().and_then(|word| word.parse::<Timestamp>().ok());
        let (Some(hash), Some(data)) = (hash, data) else {
            return Err(refuse(line));
        };
        let mut offer = Self {
            hash,
            data,
            deleted: false,
            meta: data,
            content_type: data,
            durable: true,
        };
        for item in words.next().unwrap_or_default().split(',') {
            match item.split_once(':') {
                Some(("m", delta)) => offer.meta = apart(data, delta).ok_or_else(|| refuse(line))?,
                Some(("t", delta)) => offer.content_type = apart(data, delta).ok_or_else(|| refuse(line))?,
                Some(("durable", word)) => offer.durable = is_true(word),
                Some(("deleted", word)) => offer.deleted = is_true(word),
                _ => {}
            }
        }
        Ok(offer)
    }

    /// What who has `local` lacks of this; `None` for nothing.
    pub fn wish(&self, local: Option<&Offer>) -> Option<Wish> {
        let wish = match local {
            None => Wish { data: true, meta: true },
            Some(local) => Wish {
                data: (self.data, self.deleted) > (local.data, local.deleted),
                // A content type that was set with the body comes with it.
                meta: self.meta > local.meta || self.content_type > local.content_type.max(self.data),
            },
        };
        (wish.data || wish.meta).then_some(wish)
    }
}

fn apart(base: Timestamp, text: &str) -> Option<Timestamp> {
    let (delta, offset) = text.split_once("__").unwrap_or((text, "0"));
    // OpenStack's says, and understands, times before the base too.
    let ticks = base.ticks().checked_add_signed(i64::from_str_radix(delta, 16).ok()?)?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    Some(Timestamp::from_ticks(ticks).ok()?.with_offset(offset))
}

fn is_true(word: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"]
        .iter()
        .any(|yes| word.eq_ignore_ascii_case(yes))
}

impl Wish {
    /// The line, without its end.
    pub fn line(&self, hash: PathHash) -> String {
        let (data, meta) = (if self.data { "d" } else { "" }, if self.meta { "m" } else { "" });
        format!("{hash} {data}{meta}")
    }

    /// The inverse. A wish that says nothing we know is one for the body, as it was before POSTs could be
    /// wished for.
    pub fn parse(line: &str) -> Result<(PathHash, Self), NotSsync> {
        let mut words = line.split_whitespace();
        let hash = words.next().and_then(PathHash::from_hex).ok_or_else(|| refuse(line))?;
        let word = words.next().unwrap_or_default();
        let (data, meta) = (word.contains('d'), word.contains('m'));
        let data = data || !meta;
        Ok((hash, Self { data, meta }))
    }
}

/// Why there is no further line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is longer than any can be.
    #[error("a line is longer than {LONGEST_LINE} bytes")]
    TooLong,
    /// It did not come whole in time.
    #[error("nothing whole came for {0:?}")]
    Late(Duration),
    /// The other side went away in the middle.
    #[error("{0}")]
    Broken(#[from] BodyError),
    /// The other side ended in the middle of a line or of a body.
    #[error("it ends too early")]
    Early,
}

/// A body, line by line.
pub struct Lines {
    world: World,
    body: Body,
    buffer: BytesMut,
    patience: Duration,
}

impl Lines {
    /// Waits up to `patience` for each line, however many pieces it comes in, and for each piece of what is none.
    pub fn new(world: &World, body: Body, patience: Duration) -> Self {
        Self {
            world: world.clone(),
            body,
            buffer: BytesMut::new(),
            patience,
        }
    }

    /// The next line without its end; `None` at the end of the body.
    pub async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        let mut deadline = None;
        loop {
            if let Some(line) = self.at_hand()? {
                return Ok(Some(line));
            }
            let now = self.world.clock.elapsed();
            let deadline = *deadline.get_or_insert(now.saturating_add(self.patience));
            if !self.fill(deadline.saturating_sub(now)).await? {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(LineError::Early),
                };
            }
        }
    }

    /// The next line, when it has come already.
    pub fn at_hand(&mut self) -> Result<Option<Bytes>, LineError> {
        let Some(end) = memchr::memchr(b'\n', &self.buffer) else {
            return match self.buffer.len() > LONGEST_LINE {
                true => Err(LineError::TooLong),
                false => Ok(None),
            };
        };
        let mut line = self.buffer.split_to(end + 1).freeze();
        line.truncate(end);
        if line.last() == Some(&b'\r') {
            line.truncate(end - 1);
        }
        Ok(Some(line))
    }

    /// Up to `most` bytes that are not lines; never none.
    pub async fn bytes(&mut self, most: usize) -> Result<Bytes, LineError> {
        if self.buffer.is_empty() && !self.fill(self.patience).await? {
            return Err(LineError::Early);
        }
        let count = self.buffer.len().min(most);
        Ok(self.buffer.split_to(count).freeze())
    }

    async fn fill(&mut self, patience: Duration) -> Result<bool, LineError> {
        let next = self.world.timeout(patience, self.body.next()).await;
        match next.map_err(|_| LineError::Late(self.patience))? {
            None => Ok(false),
            Some(chunk) => {
                self.buffer.extend_from_slice(&chunk?);
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn offer(meta: &str, content_type: &str) -> Offer {
        Offer {
            hash: PathHash([0; 16]),
            data: at("1700000000.12345"),
            deleted: false,
            meta: at(meta),
            content_type: at(content_type),
            durable: true,
        }
    }

    /// Recorded from OpenStack's sender and receiver.
    #[test]
    fn offers_are_spelled_as_openstack_spells_them() {
        let zero = "00000000000000000000000000000000 1700000000.12345";
        let (data, meta, typed) = ("1700000000.12345", "1700000002.5", "1700000001.5");
        for (offer, text) in [
            (offer(data, data), ""),
            (offer(meta, data), " m:3a057"),
            (offer(meta, typed), " m:3a057,t:219b7"),
            (offer(meta, meta), " m:3a057,t:3a057"),
            (offer("1700000000.12345_0000000000000003", data), " m:0__3"),
            (offer("1699999999.12345", data), " m:-186a0"),
            (
                Offer {
                    durable: false,
                    ..offer(data, data)
                },
                " durable:False",
            ),
        ] {
            let line = format!("{zero}{text}");
            assert_eq!(offer.line(), line);
            assert_eq!(Offer::parse(&line), Ok(offer));
        }
        let gone = Offer {
            deleted: true,
            ..offer(data, data)
        };
        assert_eq!(gone.line(), format!("{zero} deleted:True"));
        assert_eq!(Offer::parse(&gone.line()), Ok(gone));
        let later = Offer::parse(&format!("{zero} new:thing,m:3a057")).unwrap();
        assert_eq!(later, offer(meta, data));
        for bad in ["", "rubbish", "00 5.0", &zero[..30], &format!("{zero} m:zz")] {
            assert!(Offer::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wish_is_for_what_is_newer() {
        let mine = offer("1700000000.12360", "1700000000.12350");
        let same = mine;
        let wish = |local: Option<&Offer>| mine.wish(local).map(|wish| wish.line(mine.hash).split_off(33));
        assert_eq!(wish(None).as_deref(), Some("dm"));
        assert_eq!(wish(Some(&same)), None);
        let data = at("1690000000");
        let old = Offer {
            data,
            meta: data,
            content_type: data,
            ..mine
        };
        assert_eq!(wish(Some(&old)).as_deref(), Some("dm"));
        let posted = Offer {
            meta: at("1800000000"),
            content_type: at("1800000000"),
            ..old
        };
        assert_eq!(wish(Some(&posted)).as_deref(), Some("d"));
        let bare = offer("1700000000.12345", "1700000000.12345");
        assert_eq!(wish(Some(&bare)).as_deref(), Some("m"));
        let newer = Offer {
            data: at("1800000000"),
            ..posted
        };
        assert_eq!(wish(Some(&newer)), None);
        let gone = Offer { deleted: true, ..bare };
        let deletion = Wish {
            data: true,
            meta: false,
        };
        assert_eq!(gone.wish(Some(&bare)), Some(deletion));
        assert_eq!(bare.wish(Some(&gone)), None);
        assert_eq!(gone.wish(Some(&gone)), None);
        for (line, data, meta) in [
            ("dm", true, true),
            ("d", true, false),
            ("m", false, true),
            ("", true, false),
        ] {
            let line = format!("{} {line}", mine.hash);
            assert_eq!(Wish::parse(&line), Ok((mine.hash, Wish { data, meta })));
        }
    }

    #[tokio::test]
    async fn lines_and_bytes_come_in_any_pieces() {
        let pieces = ["on", "e\r\ntw", "o\nabc", "de\r", "\nrest"].map(|piece| Ok(Bytes::from(piece)));
        let body = Body::stream(futures_util::stream::iter(pieces), None);
        let mut lines = Lines::new(&World::real(), body, Duration::from_secs(5));
        assert_eq!(lines.next().await, Ok(Some(Bytes::from("one"))));
        assert_eq!(lines.next().await, Ok(Some(Bytes::from("two"))));
        assert_eq!(lines.bytes(2).await, Ok(Bytes::from("ab")));
        assert_eq!(lines.next().await, Ok(Some(Bytes::from("cde"))));
        assert_eq!(lines.next().await, Err(LineError::Early));
        let endless = Body::whole(vec![b'x'; LONGEST_LINE + 1]);
        let mut lines = Lines::new(&World::real(), endless, Duration::from_secs(5));
        assert_eq!(lines.next().await, Err(LineError::TooLong));
        let (_feed, silent) = Body::channel(1, None);
        let mut lines = Lines::new(&World::real(), silent, Duration::ZERO);
        assert_eq!(lines.next().await, Err(LineError::Late(Duration::ZERO)));
    }

    #[tokio::test]
    async fn a_line_that_comes_byte_by_byte_gets_no_more_time_than_others() {
        let byte = |()| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok(Bytes::from_static(b"x")), ()))
        };
        let body = Body::stream(Box::pin(futures_util::stream::unfold((), byte)), None);
        let patience = Duration::from_millis(100);
        let mut lines = Lines::new(&World::real(), body, patience);
        let line = tokio::time::timeout(Duration::from_secs(10), lines.next()).await;
        assert_eq!(line, Ok(Err(LineError::Late(patience))));
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in "\\PC*", tail in "[ mtd:,_0-9a-f.]{0,40}") {
            for line in [line, format!("{} {tail}", PathHash([7; 16]))] {
                if let Ok(offer) = Offer::parse(&line) {
                    prop_assert_eq!(Offer::parse(&offer.line()), Ok(offer));
                }
                let _ = Wish::parse(&line);
            }
        }
    }
}
