//! Writes without a body to stream: to all primaries at once, answered at quorum.
//!
//! Each replica has its own attempt, which begins with its primary and goes on through the shared
//! handoffs while nodes fail. Once enough replicas agree the others get a moment more
//! (`post_quorum_timeout`), then finish in the background.
//! Always holds: a handoff is used by one replica only; an attempt that was begun is ended, whether
//! or not anybody waits for it.

use crate::backend::Reply;
use crate::nodes::Node;
use crate::route::{HandoffCount, Route};
use crate::shared::Shared;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use peer::Call;
use peer::message::Message;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;
use vocabulary::Timestamp;
use world::BoxFuture;

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

/// What the 404 of a primary means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsAnAnswer,
    AskOthers,
}

async fn write_as(shared: &Arc<Shared>, route: &Route, make_call: MakeCall, missing: Missing) -> Vec<Reply> {
    let spares = Arc::new(Spares::new(
        route.clone(),
        shared.options.request_node_count.for_replicas(route.replicas()),
    ));
    let attempts: FuturesUnordered<BoxFuture<'static, Option<Reply>>> = FuturesUnordered::new();
    for (replica, primary) in route.primaries.iter().enumerate() {
        let (shared, spares, make_call, primary) = (shared.clone(), spares.clone(), make_call.clone(), primary.clone());
        attempts.push(Box::pin(async move {
            attempt(&shared, &spares, replica, primary, &make_call, missing).await
        }));
    }
    let (gathering, quorum) = (shared.clone(), quorum::size(route.replicas()));
    to_its_end(shared, async move { gather(&gathering, attempts, quorum).await })
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
    mut attempts: FuturesUnordered<BoxFuture<'static, Option<Reply>>>,
    quorum: usize,
) -> Vec<Reply> {
    let mut replies: Vec<Reply> = Vec::with_capacity(attempts.len());
    let mut statuses: Vec<u16> = Vec::with_capacity(attempts.len());
    let mut take = |reply: Option<Reply>, statuses: &mut Vec<u16>| {
        if let Some(reply) = reply {
            statuses.push(reply.status);
            replies.push(reply);
        }
    };
    while !quorum::is_reached(&statuses, quorum) {
        let Some(reply) = attempts.next().await else { break };
        take(reply, &mut statuses);
    }
    let stragglers = async {
        while let Some(reply) = attempts.next().await {
            take(reply, &mut statuses);
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

async fn attempt(
    shared: &Shared,
    spares: &Spares,
    replica: usize,
    primary: Node,
    make_call: &MakeCall,
    missing: Missing,
) -> Option<Reply> {
    let limit = shared.options.node_timeout;
    let mut not_there = None;
    let (mut candidate, mut is_handoff) = (Some(primary), false);
    while let Some(node) = candidate {
        let is_suppressed = shared.suppression.is_suppressed(&node);
        if is_handoff && !is_suppressed {
            spares.note_use(shared);
        }
        if !is_suppressed
            && let Some(response) = shared.ask(&node, make_call(replica, &node), limit).await
            && !response.status().is_server_error()
            && let Some(reply) = shared.whole(&node, response, limit).await
        {
            if reply.status != 404 || missing == Missing::IsAnAnswer {
                return Some(reply);
            }
            not_there.get_or_insert(reply);
        }
        candidate = spares.next();
        is_handoff = true;
    }
    not_there
}
