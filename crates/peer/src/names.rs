//! Heads of messages on their way out: encoded names become again what they are, behind hyper's back.
//!
//! A caller that hands hyper a message with encoded names calls [`Names::announce`], which puts a mark before
//! them. [`Decoder`] looks for the mark in what hyper writes, drops it, and decodes names from there to
//! the end of the head. Messages that are not announced are not looked at. In the place of a mark that
//! [`Names::announce_empty`] put goes the `Content-Length: 0` of a 204, which OpenStack Swift sends and
//! hyper does not.
//! Always holds: the mark never leaves the process; it cannot be guessed, so that nothing else is taken
//! for one; hyper writes a head at once, so that a mark comes in one piece.

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::{memchr, memmem};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vocabulary::header_name::{decode, title};
use world::random::Random;

/// Clients of S3 show metadata under names as they came, and S3 sends small letters.
const S3_METADATA: &str = "x-amz-meta-";
/// Value of a mark in whose place nothing goes.
const DROPPED: &str = "0";
/// Value of a mark in whose place [`NO_CONTENT`] goes.
const EMPTY: &str = "1";
/// What OpenStack's answers without content say.
const NO_CONTENT: &[u8] = b"Content-Length: 0\r\n";

/// One mark for all connections of a server or a client. Digits, so that no spelling changes it.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    name: HeaderName,
    line: Arc<[u8]>,
}

impl Mark {
    pub(crate) fn new(random: &dyn Random) -> Self {
        let digits = format!("{:020}{:020}", random.next_u64(), random.next_u64());
        Self {
            line: format!("{digits}: ").into_bytes().into(),
            // Digits are a name.
            name: HeaderName::from_bytes(digits.as_bytes()).unwrap_or(http::header::CONNECTION),
        }
    }
}

/// Tells the [`Decoder`] of one connection what is to come.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    mark: Mark,
    announced: Arc<AtomicBool>,
}

impl Names {
    /// Puts the mark before `headers` if one of their names is encoded, or is of S3's metadata.
    pub(crate) fn announce(&self, headers: &mut HeaderMap) {
        let is_respelled = |name: &str| name.as_bytes().contains(&b'%') || name.starts_with(S3_METADATA);
        if headers.keys().any(|name| is_respelled(name.as_str())) {
            self.mark(headers, HeaderValue::from_static(DROPPED));
        }
    }

    /// [`Names::announce`] for an answer without content that is to say so.
    pub(crate) fn announce_empty(&self, headers: &mut HeaderMap) {
        self.mark(headers, HeaderValue::from_static(EMPTY));
    }

    fn mark(&self, headers: &mut HeaderMap, value: HeaderValue) {
        let mut marked = HeaderMap::with_capacity(headers.len() + 1);
        marked.insert(self.mark.name.clone(), value);
        // Several values of a name come behind its first, without the name.
        let mut last = None;
        for (name, value) in headers.drain() {
            last = name.or(last);
            if let Some(name) = &last {
                marked.append(name, value);
            }
        }
        *headers = marked;
        self.announced.store(true, Ordering::Release);
    }

    /// Undoes [`Names::announce`] for a message that was not sent.
    pub(crate) fn take_back(&self, headers: &mut HeaderMap) {
        headers.remove(&self.mark.name);
    }
}

/// What becomes of bytes that hyper writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// So many of them go out as they are.
    Plain(usize),
    /// So many of them are to be replaced by what has been added to the output.
    Replaced(usize),
}

/// Decodes what has been announced.
#[derive(Debug)]
pub(crate) struct Decoder {
    names: Names,
    decoding: bool,
}

impl Decoder {
    pub(crate) fn new(mark: Mark) -> (Self, Names) {
        let names = Names {
            mark,
            announced: Arc::default(),
        };
        let decoder = Self {
            names: names.clone(),
            decoding: false,
        };
        (decoder, names)
    }

    /// Whether anything is to be decoded; else all of what is written is [`Written::Plain`].
    pub(crate) fn is_awake(&self) -> bool {
        self.decoding || self.names.announced.load(Ordering::Acquire)
    }

    /// Takes some of `bytes`. Call it only while awake, and again with the rest.
    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut impl Extend<u8>) -> Written {
        let mut start = 0;
        if !self.decoding {
            let mark = &self.names.mark.line;
            match memmem::find(bytes, mark) {
                Some(0) => {
                    let end = memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
                    if bytes
                        .get(mark.len()..)
                        .is_some_and(|value| value.starts_with(EMPTY.as_bytes()))
                    {
                        out.extend(NO_CONTENT.iter().copied());
                    }
                    start = end;
                }
                Some(before) => return Written::Plain(before),
                None => return Written::Plain(bytes.len()),
            }
            self.names.announced.store(false, Ordering::Release);
            self.decoding = true;
        }
        // hyper's heads are whole and end in an empty line; only whole lines are taken all the same.
        while let Some(line) = memchr(b'\n', bytes.get(start..).unwrap_or_default()) {
            let line = bytes.get(start..=start + line).unwrap_or_default();
            start += line.len();
            write_line(line, out);
            if line == b"\r\n" {
                self.decoding = false;
                return Written::Replaced(start);
            }
        }
        if start == 0 {
            // A piece of a line, which hyper does not write.
            self.decoding = false;
            return Written::Plain(bytes.len());
        }
        Written::Replaced(start)
    }
}

/// Names are spelled as OpenStack spells them; hyper's spelling knows nothing of what is encoded. Names of S3's
/// metadata are small.
fn write_line(line: &[u8], out: &mut impl Extend<u8>) {
    let (name, value) = line.split_at(memchr(b':', line).unwrap_or(line.len()));
    let is_of_s3 = name.get(..S3_METADATA.len());
    if is_of_s3.is_some_and(|start| start.eq_ignore_ascii_case(S3_METADATA.as_bytes())) {
        let small = std::str::from_utf8(name)
            .map(str::to_ascii_lowercase)
            .unwrap_or_default();
        out.extend(decode(&small).iter().copied());
        out.extend(value.iter().copied());
        return;
    }
    let titled = std::str::from_utf8(name).map(title).unwrap_or_default();
    out.extend(decode(&titled).iter().copied());
    out.extend(value.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use world::random::OsRandom;

    #[test]
    fn what_is_announced_is_decoded_once() {
        let (mut decoder, names) = Decoder::new(Mark::new(&OsRandom));
        let mut headers = HeaderMap::new();
        headers.insert("x-plain", HeaderValue::from_static("1"));
        names.announce(&mut headers);
        assert!(!decoder.is_awake() && headers.len() == 1);
        headers.append("x-%c3%bc", HeaderValue::from_static("%c3"));
        headers.append("x-%c3%bc", HeaderValue::from_static("2"));
        names.announce(&mut headers);
        assert!(decoder.is_awake());
        let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
        let line = head.len();
        for (name, value) in &headers {
            head.extend(format!("{name}: {}\r\n", value.to_str().unwrap()).bytes());
        }
        head.extend(b"\r\nx-%c3%bc: body");
        let mut out = Vec::new();
        assert_eq!(decoder.take(b"before", &mut out), Written::Plain(6));
        assert_eq!(decoder.take(&head, &mut out), Written::Plain(line));
        let taken = decoder.take(&head[line..], &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "X-Plain: 1\r\nX-ü: %c3\r\nX-ü: 2\r\n\r\n"
        );
        assert_eq!(taken, Written::Replaced(head.len() - line - "x-%c3%bc: body".len()));
        assert!(!decoder.is_awake());
    }

    #[test]
    fn names_of_s3_are_small_and_decoded() {
        let mut out = Vec::new();
        write_line(b"X-Amz-Meta-A%28%25: %28\r\n", &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "x-amz-meta-a(%: %28\r\n");
    }

    #[test]
    fn an_empty_answer_says_its_length() {
        let (mut decoder, names) = Decoder::new(Mark::new(&OsRandom));
        let mut headers = HeaderMap::new();
        headers.insert("vary", HeaderValue::from_static("Accept"));
        names.announce_empty(&mut headers);
        let mut head = Vec::new();
        for (name, value) in &headers {
            head.extend(format!("{name}: {}\r\n", value.to_str().unwrap()).bytes());
        }
        head.extend(b"\r\n");
        let mut out = Vec::new();
        assert_eq!(decoder.take(&head, &mut out), Written::Replaced(head.len()));
        assert_eq!(
            String::from_utf8_lossy(&out),
            "Content-Length: 0\r\nVary: Accept\r\n\r\n"
        );
    }
}
