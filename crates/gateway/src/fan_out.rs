//! Writes without a body to stream: to all primaries at once, answered at quorum.
//!
//! Each replica has its own attempt, which begins with its primary and goes on through the shared
//! handoffs while nodes fail. Once enough replicas agree the others get a moment more
//! (`post_quorum_timeout`), then finish in the background.
//! Silent nodes (`silence.rs`) are passed over, and so is one that becomes silent while it is asked: the request to it
//! goes on by itself. A write under a write lock waits for its primaries. Where no handoff is left, the attempt is put
//! off: it asks silent nodes after all if the others make no quorum. Otherwise each write would wait for a node that
//! hangs, and requests to it pile up.
//! Always holds: a handoff is used by one replica only; an attempt that was begun is ended, whether
//! or not anybody waits for it; that a handoff has nothing says nothing of a primary that cannot be asked.

use crate::backend::Reply;
use crate::nodes::Node;
use crate::route::{HandoffCount, Route};
use crate::shared::Shared;
use crate::silence::is_under_lock;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use peer::Call;
use peer::message::Message;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use vocabulary::Timestamp;
use world::BoxFuture;

/// The attempts of one write, one per replica.
pub(crate) type Attempts = FuturesUnordered<BoxFuture<'static, AttemptEnd>>;

/// What became of one.
pub(crate) enum AttemptEnd {
    /// A node answered.
    Answered(Reply),
    /// None did.
    Failed,
    /// Those that are left are silent: the rest of the attempt, which asks them.
    PutOff(BoxFuture<'static, AttemptEnd>),
}

impl From<Option<Reply>> for AttemptEnd {
    fn from(reply: Option<Reply>) -> Self {
        reply.map_or(Self::Failed, Self::Answered)
    }
}

/// Makes the call for replica number `n` to a node.
pub(crate) type MakeCall = Arc<dyn Fn(usize, &Node) -> Call + Send + Sync>;

/// The calls of the same write at another time.
pub(crate) fn retimed(make_call: MakeCall, timestamp: Timestamp) -> MakeCall {
    Arc::new(move |replica, node| {
        let mut call = make_call(replica, node);
        let field = match &mut call.message {
            Message::PutObject(put) => &mut put.timestamp,
            Message::PostObject(post) => &mut post.timestamp,
            Message::DeleteObject(delete) => &mut delete.timestamp,
            Message::PutContainer(put) => &mut put.timestamp,
            Message::PostContainer(post) => &mut post.timestamp,
            Message::DeleteContainer(delete) => &mut delete.timestamp,
            Message::PutAccount(put) => &mut put.timestamp,
            Message::PostAccount(post) => &mut post.timestamp,
            Message::DeleteAccount(delete) => &mut delete.timestamp,
            // No write of a client's.
            _ => return call,
        };
        *field = timestamp.into();
        call
    })
}

/// The handoffs of one write, shared by its replicas.
pub(crate) struct Spares {
    route: Route,
    wanted: usize,
    found: Mutex<Option<VecDeque<Node>>>,
    used: Mutex<HandoffCount>,
}

impl Spares {
    /// None looked up yet.
    pub(crate) fn new(route: Route, wanted: usize) -> Self {
        Self {
            used: Mutex::new(HandoffCount::new(&route, wanted)),
            route,
            wanted,
            found: Mutex::new(None),
        }
    }

    /// The next handoff that no replica uses yet.
    pub(crate) fn next(&self) -> Option<Node> {
        let mut found = self.found.lock();
        found
            .get_or_insert_with(|| self.route.handoffs(self.wanted).into())
            .pop_front()
    }

    /// One of them is asked.
    pub(crate) fn note_use(&self, shared: &Shared) {
        self.used.lock().another(&shared.options);
    }
}

/// Sends a write to all replicas of `route`; the replies in the order they came, one per replica
/// that could be reached at all.
pub(crate) async fn write(shared: &Arc<Shared>, route: &Route, make_call: MakeCall) -> Vec<Reply> {
    write_as(shared, route, make_call, Missing::IsAnAnswer).await
}

/// The same to what must be there already: for a primary that has missed it, a handoff may have it.
pub(crate) async fn change(shared: &Arc<Shared>, route: &Route, make_call: MakeCall) -> Vec<Reply> {
    write_as(shared, route, make_call, Missing::AskOthers).await
}

/// The same of a deletion: a node that had nothing has taken note of it too.
pub(crate) async fn delete(shared: &Arc<Shared>, route: &Route, make_call: MakeCall) -> Vec<Reply> {
    write_as(shared, route, make_call, Missing::IsDone).await
}

/// What a 404 means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// But a handoff's does not speak for a primary that gave none, which may have what it lacks.
    IsAnAnswer,
    /// With others that have deleted it there is no need to ask silent nodes whether they have it.
    IsDone,
    /// From a primary.
    AskOthers,
}

impl Missing {
    /// Whether silent nodes need not be asked after all.
    fn suffices(self, statuses: &[u16], quorum: usize) -> bool {
        self == Self::IsDone && quorum::best_reading_as(statuses, quorum, 404, 204).is_some()
    }
}

async fn write_as(shared: &Arc<Shared>, route: &Route, make_call: MakeCall, missing: Missing) -> Vec<Reply> {
    let spares = Arc::new(Spares::new(
        route.clone(),
        shared.options.request_node_count.for_replicas(route.replicas()),
    ));
    let attempts = Attempts::new();
    for (replica, primary) in route.primaries.iter().enumerate() {
        let (spares, primary) = (spares.clone(), primary.clone());
        let attempt = Attempt {
            shared: shared.clone(),
            make_call: make_call.clone(),
            replica,
            missing,
        };
        attempts.push(Box::pin(attempt.begin(spares, primary)));
    }
    let (gathering, quorum) = (shared.clone(), quorum::size(route.replicas()));
    to_its_end(
        shared,
        async move { gather(&gathering, attempts, quorum, missing).await },
    )
    .await
    .unwrap_or_default()
}

/// Runs work that a client has set in motion to its end, even when the client leaves and nothing waits
/// for it any more. `None` when it failed unexpectedly.
pub(crate) async fn to_its_end<T: Send + 'static>(
    shared: &Shared,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (done, result) = oneshot::channel();
    // That nothing waits any more is fine: the work itself has been done.
    shared.world.spawn(async move { drop(done.send(work.await)) });
    result.await.ok()
}

/// Collects replies until a quorum agrees, then a moment longer.
pub(crate) async fn gather(
    shared: &Arc<Shared>,
    mut attempts: Attempts,
    quorum: usize,
    missing: Missing,
) -> Vec<Reply> {
    let mut replies: Vec<Reply> = Vec::with_capacity(attempts.len());
    let mut statuses: Vec<u16> = Vec::with_capacity(attempts.len());
    let mut put_off = Vec::new();
    let mut take = |ended: AttemptEnd, statuses: &mut Vec<u16>| match ended {
        AttemptEnd::Answered(reply) => {
            statuses.push(reply.status);
            replies.push(reply);
            None
        }
        AttemptEnd::Failed => None,
        AttemptEnd::PutOff(again) => Some(again),
    };
    while !quorum::is_reached(&statuses, quorum) {
        if attempts.is_empty() && missing.suffices(&statuses, quorum) {
            break;
        }
        if attempts.is_empty() || !quorum::is_possible(statuses.len() + attempts.len(), quorum) {
            attempts.extend(put_off.drain(..));
        }
        let Some(ended) = attempts.next().await else { break };
        put_off.extend(take(ended, &mut statuses));
    }
    let stragglers = async {
        while let Some(ended) = attempts.next().await {
            // An attempt that is put off now is not needed.
            drop(take(ended, &mut statuses));
        }
    };
    if shared
        .world
        .timeout(shared.options.post_quorum_timeout, stragglers)
        .await
        .is_err()
    {
        shared
            .world
            .spawn(async move { while attempts.next().await.is_some() {} });
    }
    replies
}

/// The write of one replica.
struct Attempt {
    shared: Arc<Shared>,
    make_call: MakeCall,
    replica: usize,
    missing: Missing,
}

impl Attempt {
    /// Asks its primary, then handoffs, until one has done it.
    async fn begin(self, spares: Arc<Spares>, primary: Node) -> AttemptEnd {
        let (mut not_there, mut silent) = (None, Vec::new());
        let (mut candidate, mut is_handoff) = (Some(primary), false);
        while let Some(node) = candidate {
            let call = || (self.make_call)(self.replica, &node);
            if !self.shared.is_left_alone(&node, call) {
                match self.ask_unless_silent(node, is_handoff.then_some(&spares)).await {
                    Ok(Some(reply)) if is_handoff && self.says_nothing(&reply) => break,
                    Ok(mut reply) => {
                        reply.iter_mut().for_each(|reply| reply.is_primarys = !is_handoff);
                        if let Some(reply) = self.ends_with(reply, &mut not_there) {
                            return AttemptEnd::Answered(reply);
                        }
                    }
                    Err(node) => silent.push((node, is_handoff)),
                }
            }
            candidate = spares.next();
            is_handoff = true;
        }
        match silent.is_empty() {
            true => not_there.into(),
            false => AttemptEnd::PutOff(Box::pin(self.ask_silent(silent, not_there))),
        }
    }

    /// Asks `node`, of `spares` where it is a handoff, until it is silent.
    async fn ask_unless_silent(&self, node: Node, spares: Option<&Arc<Spares>>) -> Result<Option<Reply>, SilentNode> {
        let shared = &self.shared;
        if shared.is_silent(&node, || (self.make_call)(self.replica, &node)) {
            return Err(SilentNode::Unasked(node));
        }
        if let Some(spares) = spares {
            spares.note_use(shared);
        }
        let call = (self.make_call)(self.replica, &node);
        if is_under_lock(&call.message) {
            return Ok(ask(shared.clone(), node, call).await);
        }
        let asking = Box::pin(ask(shared.clone(), node.clone(), call));
        match select(asking, pin!(shared.silence.becomes_silent(&node))).await {
            Either::Left((reply, _)) => Ok(reply),
            Either::Right((_, asking)) => {
                let (done, answer) = oneshot::channel();
                // Nothing may wait for it any more.
                shared.world.spawn(async move { drop(done.send(asking.await)) });
                Err(SilentNode::Asked(answer))
            }
        }
    }

    /// Asks silent nodes after all, or waits for them.
    async fn ask_silent(self, silent: Vec<(SilentNode, bool)>, mut not_there: Option<Reply>) -> AttemptEnd {
        for (node, is_handoff) in silent {
            let reply = match node {
                SilentNode::Unasked(node) => {
                    let call = (self.make_call)(self.replica, &node);
                    ask(self.shared.clone(), node, call).await
                }
                SilentNode::Asked(answer) => answer.await.ok().flatten(),
            };
            let reply = reply.filter(|reply| !(is_handoff && self.says_nothing(reply)));
            if let Some(reply) = self.ends_with(reply, &mut not_there) {
                return AttemptEnd::Answered(reply);
            }
        }
        not_there.into()
    }

    /// Whether a handoff's reply leaves open what the primary would say.
    fn says_nothing(&self, reply: &Reply) -> bool {
        reply.status == 404 && self.missing == Missing::IsAnAnswer
    }

    /// The reply if it ends the attempt; a 404 that does not is kept.
    fn ends_with(&self, reply: Option<Reply>, not_there: &mut Option<Reply>) -> Option<Reply> {
        let reply = reply?;
        if reply.status != 404 || self.missing != Missing::AskOthers {
            return Some(reply);
        }
        not_there.get_or_insert(reply);
        None
    }
}

/// A node that was passed over.
enum SilentNode {
    /// It was silent before.
    Unasked(Node),
    /// It became silent: the answer to what it was asked.
    Asked(oneshot::Receiver<Option<Reply>>),
}

/// The answer of `node`, unless it failed.
async fn ask(shared: Arc<Shared>, node: Node, call: Call) -> Option<Reply> {
    let limit = shared.options.node_timeout;
    let response = shared.ask(&node, call, limit).await?;
    if response.status().is_server_error() {
        return None;
    }
    shared.whole(&node, response, limit).await
}
