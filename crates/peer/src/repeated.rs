//! Requests to a node that may be sent once more after they have left, over a connection that the node closed just
//! then.
//!
//! A read changes nothing. A write of an object that is in memory leaves the same however often it arrives, as it has
//! one time; where the node has done it already, it refuses it as not newer, which is then no refusal. A body that
//! waits for the node's word ([`HeldRequest`]) has not begun.
//! Always holds: what depends on what was there before, such as `If-None-Match` or the expirer's deletion, is sent
//! once.

use crate::body::Body;
use crate::body_error::BodyError;
use crate::message::header_names::{X_BACKEND_TIMESTAMP, X_OBJ_METADATA_FOOTER};
use crate::message::{Message, RequestContext};
use crate::{Call, Digest, Response};
use bytes::Bytes;
use futures_util::Stream;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use vocabulary::Timestamp;

/// What can be sent once more after it has left.
#[expect(clippy::large_enum_variant, reason = "one for each request, on its way")]
pub(crate) enum Repeated {
    /// Nothing: the node may have done what was asked.
    Never,
    /// A call that leaves the same when it arrives twice.
    Call(RepeatedCall),
    /// A request whose body waits: before it the node does nothing that lasts.
    Held(HeldRequest),
}

/// A call, as often as it is wanted.
pub(crate) struct RepeatedCall {
    context: RequestContext,
    message: Message,
    body: Bytes,
    digest: Option<Digest>,
    write: Option<Write>,
}

/// Of a call that writes.
struct Write {
    time: Timestamp,
    /// The answer to a write that was done before.
    done: StatusCode,
}

impl Repeated {
    pub(crate) fn of(call: &Call) -> Self {
        let write = match &call.message {
            message if matches!(message.method(), Method::GET | Method::HEAD) => None,
            message => match write(message) {
                Some(write) => Some(write),
                None => return Self::Never,
            },
        };
        let Some(body) = call.body.as_whole().filter(|_| call.body.footer().is_none()) else {
            return Self::Never;
        };
        Self::Call(RepeatedCall {
            context: call.context.clone(),
            message: call.message.clone(),
            body,
            digest: call.body.digest(),
            write,
        })
    }

    /// The answer, where it may be to a write that has been done before.
    pub(crate) fn judge(&self, mut response: Response, is_repeated: bool) -> Response {
        if is_repeated
            && let Self::Call(call) = self
            && let Some(write) = &call.write
            && response.status() == StatusCode::CONFLICT
            && let Some(stored) = response.headers().get(X_BACKEND_TIMESTAMP)
            && stored.to_str().ok().and_then(|text| text.parse().ok()) == Some(write.time)
        {
            *response.status_mut() = write.done;
        }
        response
    }
}

/// The write that may arrive twice; none where it depends on what was there before, or has no time.
fn write(message: &Message) -> Option<Write> {
    let (time, done) = match message {
        Message::PutObject(put) if put.if_none_match.is_none() && put.expect.is_none() => {
            (&put.timestamp, StatusCode::CREATED)
        }
        Message::PostObject(post) => (&post.timestamp, StatusCode::ACCEPTED),
        Message::DeleteObject(delete) if delete.if_delete_at.value().is_none() => {
            (&delete.timestamp, StatusCode::NO_CONTENT)
        }
        _ => return None,
    };
    let time = *time.value()?;
    Some(Write { time, done })
}

impl RepeatedCall {
    /// To be sent.
    pub(crate) fn call(&self) -> Call {
        let body = Body::whole(self.body.clone());
        let body = self.digest.iter().cloned().fold(body, Body::with_digest);
        Call::new(self.context.clone(), self.message.clone()).with_body(body)
    }
}

/// A request whose body is kept back until the node has said `100 Continue`; one with a footer for good when the node
/// does not say with it that it reads those.
pub(crate) struct HeldRequest {
    head: http::request::Parts,
    length: Option<u64>,
    digest: Option<Digest>,
    has_footer: bool,
    /// Until it begins.
    body: HeldBody,
}

type HeldBody = Arc<Mutex<Option<Body>>>;

impl HeldRequest {
    /// Not sent yet.
    pub(crate) fn new(request: http::Request<Body>, has_footer: bool) -> Self {
        let (head, body) = request.into_parts();
        Self {
            head,
            length: body.length(),
            digest: body.digest(),
            has_footer,
            body: Arc::new(Mutex::new(Some(body))),
        }
    }

    /// To be sent; `None` once the body has begun. What was made before this gets no body any more.
    pub(crate) fn request(&mut self) -> Option<http::Request<Body>> {
        let body = self.body.lock().take()?;
        self.body = Arc::new(Mutex::new(Some(body)));
        let (open, gate) = oneshot::channel();
        let held = Held::Waits(gate, self.body.clone());
        let body = Body::stream(held, self.length);
        let body = self.digest.iter().cloned().fold(body, Body::with_digest);
        let mut request = http::Request::from_parts(self.head.clone(), body);
        let (open, has_footer) = (Mutex::new(Some(open)), self.has_footer);
        hyper::ext::on_informational(&mut request, move |informational| {
            if informational.status() == StatusCode::CONTINUE
                && let Some(open) = open.lock().take()
                && (!has_footer || says_yes(informational.headers().get(X_OBJ_METADATA_FOOTER)))
            {
                // The body may be gone already; then there is nothing to open.
                let _ = open.send(());
            }
        });
        Some(request)
    }
}

fn says_yes(value: Option<&http::HeaderValue>) -> bool {
    value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"yes"))
}

/// The body of one attempt.
enum Held {
    Waits(oneshot::Receiver<()>, HeldBody),
    Flows(Body),
}

impl Stream for Held {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Self::Waits(gate, body) = &mut *self {
            let is_open = ready!(Pin::new(gate).poll(context)).is_ok();
            // A closed gate leaves the body to the next attempt.
            let body = is_open.then(|| body.lock().take()).flatten();
            let Some(body) = body else {
                // Refused with a final answer: nothing of the body is wanted. Or it goes over another connection.
                return Poll::Ready(Some(Err(BodyError::Abandoned)));
            };
            *self = Self::Flows(body);
        }
        match &mut *self {
            Self::Flows(body) => http_body::Body::poll_frame(Pin::new(body), context)
                .map(|frame| frame.map(|f| f.map(|f| f.into_data().unwrap_or_default()))),
            Self::Waits(..) => Poll::Pending,
        }
    }
}
