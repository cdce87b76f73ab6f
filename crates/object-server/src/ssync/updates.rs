//! The requests that follow the wishes: PUT, POST and DELETE, each with its headers and body.
//!
//! The next is read while those before are carried out; small objects are written many together (`put_batch.rs`).
//! Always holds: a body that does not come whole leaves nothing behind; a request that is refused because
//! something newer is here counts as done; too many that fail end the exchange.

use super::put_batch::{PutBatch, is_done};
use super::running::{ExchangeTally, RunningRequests};
use super::{Exchange, ExchangeEnd};
use crate::put::SMALL;
use crate::verbs::on_object;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use peer::message::{DeleteObject, Message, PostObject, PutObject, RequestContext};
use peer::ssync::{UPDATES_END, UPDATES_START};
use peer::{Body, Call, Feed, Target};
use std::sync::Arc;
use storage_shell::Lane;
use vocabulary::header_name;
use vocabulary::{EntityPath, names::unquote};

/// As many as the door lets a request have.
const MOST_HEADERS: usize = 256;
/// Bytes of them: more than any object's metadata may take.
const LONGEST_HEAD: usize = 1 << 20;
/// Bytes of a long body on their way to the disk, in pieces of at most [`PIECE`].
const PIECES_AHEAD: usize = 16;
const PIECE: usize = 64 * 1024;

/// A request's head.
struct SubrequestHead {
    method: Method,
    path: EntityPath,
    headers: HeaderMap,
    /// Names of the headers, all of which are kept with the object.
    kept: Option<HeaderValue>,
    /// Bytes of the headers.
    size: usize,
    length: Option<u64>,
}

impl Exchange {
    pub(super) async fn updates(&mut self) -> Result<(), ExchangeEnd> {
        self.expect(UPDATES_START).await?;
        let mut running = RunningRequests::new(&self.state.world);
        let mut batch = PutBatch::default();
        let taken = self.take(&mut running, &mut batch).await;
        self.begin_batch(&mut batch, &mut running).await;
        // Whatever comes next, this exchange's place is not given to another before its work is done.
        running.finish().await;
        taken?;
        self.check(running.tally())?;
        let ExchangeTally { done, failed } = running.tally();
        if failed > 0 {
            let why = format!("ERROR: With :UPDATES: {failed} failures to {done} successes");
            return Err(ExchangeEnd::Say(500, why));
        }
        if self.passed_over > 0 {
            let why = format!(
                "{} more objects were offered than fit into one exchange",
                self.passed_over
            );
            return Err(ExchangeEnd::Say(503, why));
        }
        self.say(format!("{UPDATES_START}\r\n{UPDATES_END}\r\n")).await
    }

    /// Takes requests until there are no more.
    async fn take(&mut self, running: &mut RunningRequests, batch: &mut PutBatch) -> Result<(), ExchangeEnd> {
        loop {
            self.check_time()?;
            let line = self.lines.next().await?;
            let Some(line) = line.filter(|line| line != UPDATES_END) else {
                return Ok(());
            };
            let head = self.head(&line).await?;
            if batch.is_full() || batch.has(&head.path) {
                self.begin_batch(batch, running).await;
            }
            running.room_for(&head.path).await;
            self.check(running.tally())?;
            self.carry_out(head, running, batch).await?;
        }
    }

    fn check(&self, tally: ExchangeTally) -> Result<(), ExchangeEnd> {
        let options = &self.state.options.replication;
        let ExchangeTally { done, failed } = tally;
        let too_many = failed >= options.failure_threshold;
        if too_many && (done == 0 || failed as f64 / done as f64 > options.failure_ratio) {
            return Err(ExchangeEnd::Say(
                500,
                format!("Too many {failed} failures to {done} successes"),
            ));
        }
        Ok(())
    }

    async fn head(&mut self, line: &Bytes) -> Result<SubrequestHead, ExchangeEnd> {
        let line = String::from_utf8_lossy(line);
        let (method, path) = line
            .split_once(' ')
            .ok_or_else(|| ExchangeEnd::nonsense(format!("{line:?} is no request")))?;
        let method = match method {
            "PUT" => Method::PUT,
            "POST" => Method::POST,
            "DELETE" => Method::DELETE,
            other => return Err(ExchangeEnd::nonsense(format!("Invalid subrequest method {other}"))),
        };
        let decoded = unquote(path).ok();
        let split = decoded.and_then(|path| EntityPath::split(path.strip_prefix('/')?).ok());
        let path = split
            .filter(|path| path.object.is_some())
            .ok_or_else(|| ExchangeEnd::nonsense(format!("Invalid path: {path}")))?;
        let (headers, kept, size) = self.headers().await?;
        let length = headers.get(CONTENT_LENGTH).map(|value| {
            let length = value.to_str().ok().and_then(|text| text.parse().ok());
            length.ok_or_else(|| ExchangeEnd::nonsense(format!("invalid content-length {value:?}")))
        });
        let length = length.transpose()?;
        match (&method, length) {
            (&Method::PUT, None) => Err(ExchangeEnd::nonsense(format!("No content-length sent for {line}"))),
            (&Method::PUT, _) | (_, None | Some(0)) => Ok(SubrequestHead {
                method,
                path,
                headers,
                kept,
                size,
                length,
            }),
            (method, _) => Err(ExchangeEnd::nonsense(format!(
                "{method} subrequest with content-length"
            ))),
        }
    }

    /// The headers, their names, and how many bytes they came in.
    async fn headers(&mut self) -> Result<(HeaderMap, Option<HeaderValue>, usize), ExchangeEnd> {
        let mut headers = HeaderMap::new();
        let mut kept = String::new();
        let mut size = 0;
        // Lines are counted, not names: the same name may come again without end.
        for count in 0.. {
            let line = self.lines.next().await?;
            let line = line.ok_or_else(|| ExchangeEnd::Gone("it ended among headers".into()))?;
            if line.is_empty() {
                break;
            }
            size += line.len();
            if count >= MOST_HEADERS || size > LONGEST_HEAD {
                return Err(ExchangeEnd::nonsense("too many headers"));
            }
            let (name, value) = header(&line).ok_or_else(|| ExchangeEnd::nonsense("a header that is none"))?;
            kept.push_str(name.as_str());
            kept.push(' ');
            headers.insert(name, value);
        }
        // Names of headers are header values.
        Ok((headers, HeaderValue::from_str(kept.trim_end()).ok(), size))
    }

    /// Writes what has gathered, once few batches are running: so much is in memory a few times at most.
    async fn begin_batch(&self, batch: &mut PutBatch, running: &mut RunningRequests) {
        if batch.is_empty() {
            return;
        }
        running.room_for_batch().await;
        let (paths, work) = std::mem::take(batch).work(&self.state, &self.place);
        running.begin_batch(paths, work);
    }

    /// Reads the request's body, and has it carried out meanwhile or afterwards.
    async fn carry_out(
        &mut self,
        head: SubrequestHead,
        running: &mut RunningRequests,
        batch: &mut PutBatch,
    ) -> Result<(), ExchangeEnd> {
        let (path, method) = (Arc::new(head.path), head.method);
        let target = Target {
            device: self.place.device.clone(),
            partition: self.place.key.partition,
            path: path.clone(),
        };
        let policy = self.place.key.policy.into();
        let length = head.length.unwrap_or(0);
        let message: Message = match method {
            Method::PUT => {
                let message = PutObject {
                    policy,
                    is_replication: true,
                    replication_headers: head.kept,
                    ..PutObject::decode(target, head.headers)
                };
                if length <= SMALL {
                    let body = self.whole(length).await?;
                    batch.add(path, message, body, head.size);
                    return Ok(());
                }
                message.into()
            }
            Method::POST => PostObject {
                policy,
                is_replication: true,
                replication_headers: head.kept,
                ..PostObject::decode(target, head.headers)
            }
            .into(),
            _ => DeleteObject {
                policy,
                is_replication: true,
                ..DeleteObject::decode(target, head.headers)
            }
            .into(),
        };
        let call = Call::new(RequestContext::default(), message);
        if length == 0 {
            running.begin(path.clone(), self.answer(call, method, path));
            return Ok(());
        }
        let (feed, body) = Body::channel(PIECES_AHEAD, Some(length));
        running.begin(path.clone(), self.answer(call.with_body(body), method, path));
        self.pass_on(feed, length).await
    }

    /// How many requests were done: this one, or none.
    fn answer(
        &self,
        call: Call,
        method: Method,
        path: Arc<EntityPath>,
    ) -> impl Future<Output = usize> + Send + 'static {
        let (state, place) = (self.state.clone(), self.place.clone());
        async move {
            let answered = match on_object(&state, call, Lane::Replication) {
                Ok(answering) => answering.await,
                Err(refusal) => Err(refusal),
            };
            let status = answered.map_or_else(|refusal| refusal.status(), |response| response.status());
            usize::from(is_done(&place, status, &method, &path))
        }
    }

    async fn whole(&mut self, length: u64) -> Result<Bytes, ExchangeEnd> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        // At most `SMALL`.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let first = self.lines.bytes(length).await?;
        if first.len() == length {
            return Ok(first);
        }
        let mut all = BytesMut::from(first.as_ref());
        while all.len() < length {
            all.extend_from_slice(&self.lines.bytes(length - all.len()).await?);
        }
        Ok(all.freeze())
    }

    /// Passes a body on; reads it to its end also when it is refused, since the next request is behind it.
    async fn pass_on(&mut self, feed: Feed, length: u64) -> Result<(), ExchangeEnd> {
        let mut left = length;
        let mut wanted = true;
        while left > 0 {
            self.check_time()?;
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
            let piece = self.lines.bytes(most).await?;
            left -= piece.len() as u64;
            wanted = wanted && feed.send(piece).await;
        }
        feed.finish().await;
        Ok(())
    }
}

/// Names that HTTP libraries refuse are encoded, as they are when they come by HTTP.
fn header(line: &Bytes) -> Option<(HeaderName, HeaderValue)> {
    let colon = memchr::memchr(b':', line)?;
    let name = header_name::encode(line[..colon].trim_ascii());
    let value = line[colon + 1..].trim_ascii();
    Some((
        HeaderName::from_bytes(&name).ok()?,
        HeaderValue::from_bytes(value).ok()?,
    ))
}
