//! The links between nodes: calls are delivered late, out of order, or not at all, and so are their answers.
//!
//! Nodes speak through [`Service`] calls, unless a run has them speak HTTP (`doors.rs`): what a connection can do to a
//! call is done here, and which links are cut and what gets lost is known here for both. A call or an answer may be
//! held up long enough for later ones to overtake it; a link may be cut (then what is sent is refused, or nothing comes
//! back until the caller's patience ends), an answer may get lost although the call was served, a call may come twice,
//! a body may break off anywhere; a node that dies takes the calls along that it serves.
//! A break is seen where bodies have a length, and mostly where they have none; what replicators of objects say to one
//! another may also just end, as it does when a server gives up in the middle. Of what a node knows only what HTTP
//! carries arrives: no shared checksums.

use crate::dice::Dice;
use crate::executor::{Executor, TaskOwner};
use crate::trace::Trace;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::unfold;
use http::StatusCode;
use parking_lot::Mutex;
use peer::{Body, BodyError, Call, RawCall, Response, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Where messages are while they are under way.
const UNDER_WAY: TaskOwner = TaskOwner(0);

/// All links between nodes.
#[derive(Clone)]
pub struct Net(Arc<Shared>);

struct Shared {
    executor: Executor,
    dice: Dice,
    trace: Trace,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cut: BTreeSet<(usize, usize)>,
    /// So many of 100 answers get lost.
    losing: u64,
    /// So many of 100 calls come twice.
    repeating: u64,
    /// So many of 100 pieces of bodies are the last that comes.
    breaking: u64,
    doors: BTreeMap<(usize, u16), Door>,
    /// Nothing is late.
    hurries: bool,
    /// A node that loses its power right now.
    darkened: Option<usize>,
}

#[derive(Clone)]
struct Door {
    home: TaskOwner,
    service: Arc<dyn Service>,
}

impl Net {
    /// No node is there yet.
    pub fn new(executor: Executor, dice: Dice, trace: Trace) -> Self {
        Self(Arc::new(Shared {
            executor,
            dice,
            trace,
            state: Mutex::default(),
        }))
    }

    /// `node` serves at `port` in this process of it.
    pub fn open(&self, node: usize, port: u16, home: TaskOwner, service: Arc<dyn Service>) {
        self.0.state.lock().doors.insert((node, port), Door { home, service });
    }

    /// Nothing of `node` answers any more. Until [`Net::closed`], its connections end as its power does, or as its
    /// process.
    pub fn close(&self, node: usize, with_power: bool) {
        let mut state = self.0.state.lock();
        state.darkened = with_power.then_some(node);
        let closed: Vec<_> = state.doors.extract_if(.., |(number, _), _| *number == node).collect();
        drop(state);
        drop(closed);
    }

    /// All connections of the node that was closed have ended.
    pub fn closed(&self) {
        self.0.state.lock().darkened = None;
    }

    /// Whether no process of `node` runs.
    pub(crate) fn is_down(&self, node: usize) -> bool {
        let state = self.0.state.lock();
        !state.doors.keys().any(|(number, _)| *number == node)
    }

    /// Whether `node` loses its power right now.
    pub(crate) fn is_darkened(&self, node: usize) -> bool {
        self.0.state.lock().darkened == Some(node)
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.0.executor
    }

    pub(crate) fn dice(&self) -> &Dice {
        &self.0.dice
    }

    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        self.0.trace.note(line());
    }

    /// Whether a request comes a second time.
    pub(crate) fn repeats(&self) -> bool {
        let repeating = self.0.state.lock().repeating;
        repeating > 0 && self.0.dice.chance(repeating)
    }

    /// Cuts the link from one node to another, or mends it.
    pub fn cut(&self, from: usize, to: usize, cut: bool) {
        let mut state = self.0.state.lock();
        match cut {
            true => state.cut.insert((from, to)),
            false => state.cut.remove(&(from, to)),
        };
    }

    /// Whether nothing is late from now on; what it was before.
    pub(crate) fn hurry(&self, hurries: bool) -> bool {
        std::mem::replace(&mut self.0.state.lock().hurries, hurries)
    }

    /// So many of 100 answers get lost from now on.
    pub fn lose(&self, percent: u64) {
        self.0.state.lock().losing = percent;
    }

    /// So many of 100 calls come a second time from now on, some time after the first.
    pub fn repeat(&self, percent: u64) {
        self.0.state.lock().repeating = percent;
    }

    /// So many of 100 pieces of bodies are the last that comes, from now on.
    pub fn break_off(&self, percent: u64) {
        self.0.state.lock().breaking = percent;
    }

    /// All is well.
    pub fn heal(&self) {
        let mut state = self.0.state.lock();
        (state.cut, state.losing, state.repeating, state.breaking) = (BTreeSet::new(), 0, 0, 0);
    }

    pub(crate) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.0.state.lock().cut.contains(&(from, to))
    }

    pub(crate) fn loses(&self) -> bool {
        let losing = self.0.state.lock().losing;
        losing > 0 && self.0.dice.chance(losing)
    }

    /// Whether a connection breaks in the middle of a body.
    pub(crate) fn breaks(&self) -> bool {
        let breaking = self.0.state.lock().breaking;
        (breaking > 0 && self.0.dice.chance(breaking)) || (self.loses() && self.0.dice.chance(20))
    }

    /// How long a message takes; a few are overtaken by many.
    pub(crate) fn delay(&self) -> Duration {
        let dice = &self.0.dice;
        let hurries = self.0.state.lock().hurries;
        Duration::from_micros(match dice.up_to(40) {
            0 if !hurries => dice.between(5_000, 3_000_000),
            _ => dice.between(50, 5_000),
        })
    }

    pub(crate) async fn travel(&self) {
        self.0.executor.sleep(self.delay()).await;
    }

    /// The body as it arrives. One that `may_just_end` is not always seen to break off.
    fn carried(&self, body: Body, from: usize, to: usize, may_just_end: bool) -> Body {
        let length = body.length();
        if length == Some(0) {
            return Body::empty();
        }
        if let Some(bytes) = body.as_whole().filter(|_| self.0.dice.chance(70)) {
            return Body::whole(bytes);
        }
        let may_just_end = may_just_end && length.is_none();
        let net = self.clone();
        let chunks = unfold(Rest::Coming(body), move |rest| {
            let net = net.clone();
            async move {
                let mut body = match rest {
                    Rest::Coming(body) => body,
                    Rest::Broken => return Some((reset(), Rest::Over)),
                    Rest::Over => return None,
                };
                let chunk = body.next().await?;
                let (executor, dice) = (&net.0.executor, &net.0.dice);
                executor.sleep(Duration::from_micros(dice.between(10, 2_000))).await;
                let Ok(mut chunk) = chunk else {
                    return Some((reset(), Rest::Over));
                };
                if net.is_cut(from, to) {
                    return Some((reset(), Rest::Over));
                }
                if !net.breaks() {
                    return Some((Ok(chunk), Rest::Coming(body)));
                }
                // Where it breaks has nothing to do with the pieces that it was sent in.
                chunk.truncate([0, 0, dice.up_to(chunk.len())][dice.up_to(3)]);
                let ends = may_just_end && dice.chance(50);
                match (chunk.is_empty(), ends) {
                    (true, true) => None,
                    (true, false) => Some((reset(), Rest::Over)),
                    (false, true) => Some((Ok(chunk), Rest::Over)),
                    (false, false) => Some((Ok(chunk), Rest::Broken)),
                }
            }
        });
        Body::stream(chunks, length)
    }

    async fn deliver(self, way: Way, call: RawCall, gone: oneshot::Receiver<()>, answer: oneshot::Sender<Response>) {
        let Way { from, to, port } = way;
        let label = format!("n{from}>n{to} {} {}", call.method, call.address.url_path());
        let is_exchange = call.method.as_str() == "SSYNC";
        let (dice, trace) = (&self.0.dice, &self.0.trace);
        self.travel().await;
        if self.is_cut(from, to) {
            trace.note(format!("{label}: cut"));
            return self.silence(answer, 50).await;
        }
        let door = self.0.state.lock().doors.get(&(to, port)).cloned();
        let Some(Door { home, service }) = door else {
            return trace.note(format!("{label}: nobody there"));
        };
        self.perhaps_again(way, &call);
        let call = RawCall {
            body: self.carried(call.body, from, to, is_exchange),
            ..call
        };
        let (done, result) = oneshot::channel();
        // A server may notice that its client is gone, or go on.
        let notices = dice.chance(50);
        self.0.executor.spawn(
            home,
            Box::pin(async move {
                let serving = service.call(call.into());
                let served = match notices {
                    false => serving.await,
                    true => match select(serving, gone).await {
                        Either::Left((response, _)) => response,
                        Either::Right(_) => return,
                    },
                };
                // The caller may not wait any longer.
                let _ = done.send(served);
            }),
        );
        let Ok(response) = result.await else {
            return trace.note(format!("{label}: ended without an answer"));
        };
        trace.note(format!("{label}: {}", response.status()));
        self.travel().await;
        if self.is_cut(to, from) || self.loses() {
            trace.note(format!("{label}: its answer is lost"));
            return self.silence(answer, 80).await;
        }
        let response = response.map(|body| self.carried(body, to, from, is_exchange));
        // The caller may have lost patience.
        let _ = answer.send(response);
    }

    /// The same call may come again, as from a client that lost patience with the first.
    fn perhaps_again(&self, way: Way, call: &RawCall) {
        let repeating = self.0.state.lock().repeating;
        if repeating == 0 || !self.0.dice.chance(repeating) {
            return;
        }
        let Some(body) = call.body.as_whole() else { return };
        let again = RawCall {
            method: call.method.clone(),
            address: call.address.clone(),
            query: call.query.clone(),
            headers: call.headers.clone(),
            body: Body::whole(body),
            interim: None,
        };
        let (net, Way { to, port, .. }) = (self.clone(), way);
        let repeated = async move {
            net.travel().await;
            net.travel().await;
            let door = net.0.state.lock().doors.get(&(to, port)).cloned();
            let Some(Door { home, service }) = door else { return };
            let label = format!("n{to}: {} {} again", again.method, again.address.url_path());
            net.0.trace.note(label);
            let serving = async move { drop(service.call(again.into()).await) };
            net.0.executor.spawn(home, Box::pin(serving));
        };
        self.0.executor.spawn(UNDER_WAY, Box::pin(repeated));
    }

    /// Nothing comes back, ever, or in the other cases a refusal.
    async fn silence(&self, answer: oneshot::Sender<Response>, percent: u64) {
        if self.0.dice.chance(percent) {
            let mut answer = answer;
            answer.closed().await;
        }
    }
}

/// What is to come of a body.
enum Rest {
    Coming(Body),
    Broken,
    Over,
}

fn reset() -> Result<Bytes, BodyError> {
    Err(BodyError::Broken("the connection was reset".into()))
}

/// Between which nodes a connection is, and to which port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) port: u16,
}

#[derive(Clone, Copy)]
struct Way {
    from: usize,
    to: usize,
    port: u16,
}

/// The services of another node, as one node reaches them.
pub struct NodeLink {
    net: Net,
    way: Way,
}

impl NodeLink {
    /// From a node to what another serves at `port`.
    pub fn new(net: Net, from: usize, to: usize, port: u16) -> Self {
        let way = Way { from, to, port };
        Self { net, way }
    }
}

#[async_trait::async_trait]
impl Service for NodeLink {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let (answer, answered) = oneshot::channel();
        let (_here, gone) = oneshot::channel();
        let delivery = self.net.clone().deliver(self.way, call, gone, answer);
        self.net.0.executor.spawn(UNDER_WAY, Box::pin(delivery));
        answered.await.unwrap_or_else(|_| {
            let mut refused = Response::new(Body::empty());
            *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            refused
        })
    }
}
