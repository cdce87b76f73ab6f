//! One connection between two nodes: what is written at one end arrives at the other late, in other pieces, or no more.
//!
//! Always holds: bytes of one direction arrive in the order in which they were written, as TCP has it; only connections
//! overtake one another. What a connection may meet:
//!
//! | what | then |
//! |---|---|
//! | the link is cut | what is under direction waits for the link, or the connection is reset |
//! | an answer gets lost | nothing comes any more, or the connection is reset |
//! | a body breaks off | at any byte: the connection is reset, or it just ends |
//! | a process is killed | the connection ends |
//! | a node loses its power | nothing comes any more; what is written once it is up again is answered by a reset |
//! | a call comes twice | the bytes of the request are sent again, some time later, over a connection of their own |

use crate::net::{Between, Net};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use world::BoxFuture;

/// Bytes that may be under direction in one direction.
const WINDOW: usize = 48 * 1024;
/// A request longer than this does not come twice.
const MOST_REPEATED: usize = 256 * 1024;
/// The side that connected, and the one that accepted.
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Sends what was a request once more, over a connection of its own.
pub(crate) type SendsAgain = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

struct Wire {
    net: Net,
    between: Between,
    again: SendsAgain,
    state: Mutex<WireState>,
}

#[derive(Default)]
struct WireState {
    /// By the side that writes.
    directions: [Direction; 2],
    is_reset: bool,
    /// Sides that are no more.
    gone: [bool; 2],
    /// Sides that vanished with their node's power.
    dark: [bool; 2],
    request: Request,
}

/// The request that is under direction, as it was written.
#[derive(Default)]
struct Request {
    bytes: Vec<u8>,
    is_answered: bool,
    /// An answer is due: the client was the last to write.
    is_due: bool,
}

#[derive(Default)]
struct Direction {
    /// What is under direction, and when it arrives.
    pieces: VecDeque<(Duration, Vec<u8>)>,
    under_way: usize,
    /// When the last of it arrives.
    last: Duration,
    /// What comes after the last piece.
    end: Option<DirectionEnd>,
    /// Nothing arrives any more.
    is_lost: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectionEnd {
    Closed,
    Reset,
}

impl Direction {
    fn wake(&mut self) {
        let both = [self.reader.take(), self.writer.take()];
        both.into_iter().flatten().for_each(Waker::wake);
    }
}

impl WireState {
    fn reset(&mut self) {
        self.is_reset = true;
        self.directions.iter_mut().for_each(Direction::wake);
    }
}

/// One end of a connection.
pub(crate) struct SimStream {
    wire: Arc<Wire>,
    side: usize,
    /// Until the next piece arrives.
    sleep: Option<BoxFuture<'static, ()>>,
}

/// Both ends of a new connection: of the side that connects, and of the one that accepts.
pub(crate) fn connection(net: Net, between: Between, again: SendsAgain) -> (SimStream, SimStream) {
    let wire = Arc::new(Wire {
        net,
        between,
        again,
        state: Mutex::default(),
    });
    let end = |side| SimStream {
        wire: wire.clone(),
        side,
        sleep: None,
    };
    (end(CLIENT), end(SERVER))
}

/// What a look at a direction comes to.
enum Arrived {
    Bytes,
    End,
    Reset,
    Nothing,
    Later(Duration),
}

impl Wire {
    fn node(&self, side: usize) -> usize {
        match side {
            CLIENT => self.between.from,
            _ => self.between.to,
        }
    }

    /// What there is for the reader of what `writer` writes; cut links take effect.
    fn arrived(&self, state: &mut WireState, writer: usize) -> Arrived {
        if state.is_reset {
            return Arrived::Reset;
        }
        let now = self.net.executor().now();
        let (from, to) = (self.node(writer), self.node(1 - writer));
        let direction = &mut state.directions[writer];
        let due = match direction.pieces.front() {
            Some((at, _)) => *at,
            None if direction.end.is_some() => direction.last,
            None => return Arrived::Nothing,
        };
        if due > now {
            return Arrived::Later(due - now);
        }
        if self.net.is_cut(from, to) {
            let dice = self.net.dice();
            if dice.chance(10) {
                state.reset();
                return Arrived::Reset;
            }
            let again = Duration::from_micros(dice.between(200_000, 3_000_000));
            match direction.pieces.front_mut() {
                Some((at, _)) => *at = now + again,
                None => direction.last = now + again,
            }
            return Arrived::Later(again);
        }
        match (direction.pieces.is_empty(), direction.end) {
            (false, _) => Arrived::Bytes,
            (true, Some(DirectionEnd::Reset)) => {
                state.reset();
                Arrived::Reset
            }
            (true, _) => Arrived::End,
        }
    }

    /// Takes note of what `side` writes, and decides what becomes of it: how many bytes get through.
    fn carries(&self, state: &mut WireState, side: usize, bytes: &[u8]) -> usize {
        let dice = self.net.dice();
        if side == CLIENT {
            if state.request.is_answered {
                state.request = Request::default();
            }
            state.request.is_due = true;
            if state.request.bytes.len() <= MOST_REPEATED {
                state.request.bytes.extend_from_slice(bytes);
            }
        } else if std::mem::take(&mut state.request.is_due) {
            self.answers(state, bytes);
        }
        if !self.net.breaks() {
            return bytes.len();
        }
        let direction = &mut state.directions[side];
        direction.end = Some(match dice.chance(50) {
            true => DirectionEnd::Closed,
            false => DirectionEnd::Reset,
        });
        self.net
            .note(|| format!("n{}>n{} breaks off", self.node(side), self.node(1 - side)));
        [0, 0, dice.up_to(bytes.len())][dice.up_to(3)]
    }

    /// The server begins an answer.
    fn answers(&self, state: &mut WireState, bytes: &[u8]) {
        let Between { from, to, port } = self.between;
        if !bytes.starts_with(b"HTTP/1.1 1") {
            state.request.is_answered = true;
            if state.request.bytes.len() <= MOST_REPEATED && self.net.repeats() {
                (self.again)(state.request.bytes.clone());
            }
        }
        if self.net.loses() {
            self.net.note(|| format!("n{to}>n{from}:{port}: its answer is lost"));
            match self.net.dice().chance(80) {
                true => state.directions[SERVER].is_lost = true,
                false => state.reset(),
            }
        }
    }
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = self.wire.clone();
        let writer = 1 - self.side;
        loop {
            let mut state = wire.state.lock();
            match wire.arrived(&mut state, writer) {
                Arrived::Reset => return Poll::Ready(Err(reset())),
                Arrived::End => return Poll::Ready(Ok(())),
                Arrived::Nothing => {
                    state.directions[writer].reader = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Arrived::Bytes => {
                    let direction = &mut state.directions[writer];
                    let Some((_, piece)) = direction.pieces.front_mut() else {
                        continue;
                    };
                    let read = piece.len().min(buffer.remaining());
                    buffer.put_slice(&piece[..read]);
                    piece.drain(..read);
                    if piece.is_empty() {
                        direction.pieces.pop_front();
                    }
                    direction.under_way -= read;
                    if let Some(waiting) = direction.writer.take() {
                        waiting.wake();
                    }
                    return Poll::Ready(Ok(()));
                }
                Arrived::Later(time) => {
                    state.directions[writer].reader = Some(context.waker().clone());
                    drop(state);
                    let mut sleep = wire.net.executor().sleep(time);
                    if sleep.as_mut().poll(context).is_ready() {
                        continue;
                    }
                    self.sleep = Some(sleep);
                    return Poll::Pending;
                }
            }
        }
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let (wire, side) = (&self.wire, self.side);
        let mut state = wire.state.lock();
        let other = 1 - side;
        let is_over = state.is_reset || state.directions[side].end.is_some();
        let is_refused = state.gone[other] && !(state.dark[other] && wire.net.is_down(wire.node(other)));
        if is_over || is_refused {
            state.reset();
            return Poll::Ready(Err(reset()));
        }
        let room = WINDOW.saturating_sub(state.directions[side].under_way);
        if room == 0 {
            state.directions[side].writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let written = bytes.len().min(room);
        let carried = wire.carries(&mut state, side, &bytes[..written]);
        if state.directions[side].is_lost || state.gone[other] {
            return Poll::Ready(Ok(written));
        }
        let direction = &mut state.directions[side];
        let dice = wire.net.dice();
        let mut rest = &bytes[..carried];
        // Where it is split has nothing to do with the pieces that it was written in.
        while !rest.is_empty() {
            let length = match dice.chance(20) {
                true => 1 + dice.up_to(rest.len()),
                false => rest.len(),
            };
            direction.last = direction.last.max(wire.net.executor().now() + wire.net.delay());
            direction.pieces.push_back((direction.last, rest[..length].to_vec()));
            rest = &rest[length..];
        }
        direction.under_way += carried;
        if let Some(waiting) = direction.reader.take() {
            waiting.wake();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.wire.state.lock();
        end(&self.wire, &mut state.directions[self.side]);
        Poll::Ready(Ok(()))
    }
}

/// Nothing more is written.
fn end(wire: &Wire, direction: &mut Direction) {
    if direction.end.is_none() && !direction.is_lost {
        direction.last = direction.last.max(wire.net.executor().now() + wire.net.delay());
        direction.end = Some(DirectionEnd::Closed);
    }
    direction.wake();
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let (wire, side) = (self.wire.clone(), self.side);
        let mut state = wire.state.lock();
        state.gone[side] = true;
        if wire.net.is_darkened(wire.node(side)) {
            state.dark[side] = true;
            state.directions[side].is_lost = true;
            return;
        }
        end(&wire, &mut state.directions[side]);
        // A writer that waits for room finds out that nothing is read any more.
        if let Some(waiting) = state.directions[1 - side].writer.take() {
            waiting.wake();
        }
    }
}
