//! The replicas of an upload that streams: each is asked to take the body before that flows.
//!
//! A replica whose primary refuses or fails is taken by a handoff; so is one whose primary is silent, or becomes silent
//! while it is asked (`silence.rs`). Where no handoff is left, such a replica is put off: its nodes are asked after
//! all, and waited for, if the others make no quorum. An upload under a write lock waits for its primaries.
//! Always holds: the wait for a node's word is counted as one for an answer, the time in which the body flows is not.
//! A call whose answer nothing waits for any more has `node_timeout` to end.
//! Deliberately absent: the body (`fan.rs`), what the answers mean (`put_object.rs`).

use crate::backend::Reply;
use crate::fan::{BodyEnd, CHUNKS_AHEAD, OpenReplica};
use crate::fan_out::Spares;
use crate::located::Updates;
use crate::nodes::Node;
use crate::route::Route;
use crate::shared::Shared;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use http::header::HeaderValue;
use peer::message::{Message, PutObject, RequestContext};
use peer::{Body, Call, Target};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The calls of one PUT to its replicas.
#[derive(Clone)]
pub(crate) struct PutCalls {
    pub(crate) context: RequestContext,
    pub(crate) message: PutObject,
    pub(crate) route: Route,
    pub(crate) updates: Arc<Updates>,
}

impl PutCalls {
    /// The call for replica number `replica`, to `node`.
    pub(crate) fn call(&self, replica: usize, node: &Node) -> Call {
        let target = Target {
            device: node.device.clone(),
            partition: self.route.partition,
            path: self.message.target.path.clone(),
        };
        let mut message = Message::PutObject(PutObject {
            target,
            ..self.message.clone()
        });
        self.updates.add_to(&mut message, replica, &self.context);
        Call::new(self.context.clone(), message)
    }
}

/// Asks the replicas of one upload.
pub(crate) struct Opening<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) calls: &'a PutCalls,
    /// Bytes of the body, where that is known.
    pub(crate) length: Option<u64>,
    pub(crate) end: &'a BodyEnd,
}

impl Opening<'_> {
    /// Asks all replicas to take the body; answers with those that will, and the refusals of those
    /// that never will (`412`, `409`, …).
    ///
    /// Replicas whose nodes are silent are put off, and asked for after all if the others make no quorum.
    pub(crate) async fn open_all(&self) -> (Vec<OpenReplica>, Vec<Reply>) {
        let wanted = self
            .shared
            .options
            .request_node_count
            .for_replicas(self.calls.route.replicas());
        let spares = Spares::new(self.calls.route.clone(), wanted);
        let opening: FuturesUnordered<_> = (self.calls.route.primaries.iter().enumerate())
            .map(|(replica, primary)| self.open_one(replica, primary.clone(), &spares))
            .collect();
        let mut opened = OpenedReplicas::default();
        opened.collect(opening).await;
        let quorum = quorum::size(self.calls.route.replicas());
        if !quorum::is_possible(opened.replicas.len() + opened.early.len(), quorum) {
            let opening: FuturesUnordered<_> = (std::mem::take(&mut opened.put_off).into_iter())
                .map(|(replica, silent)| self.open_silent(replica, silent))
                .collect();
            opened.collect(opening).await;
        }
        (opened.replicas, opened.early)
    }

    async fn open_one(&self, replica: usize, primary: Node, spares: &Spares) -> Opened {
        let mut silent = Vec::new();
        let (mut candidate, mut is_handoff) = (Some(primary), false);
        while let Some(node) = candidate {
            if !(self.shared).is_left_alone(&node, || self.calls.call(replica, &node)) {
                match self
                    .open_unless_silent(replica, &node, is_handoff.then_some(spares))
                    .await
                {
                    Tried::Opened(opened) => return opened,
                    Tried::Failed => {}
                    Tried::IsSilent => silent.push(node),
                }
            }
            candidate = spares.next();
            is_handoff = true;
        }
        Opened::PutOff(replica, silent)
    }

    /// Asks `node`, of `spares` where it is a handoff, until it is silent.
    async fn open_unless_silent(&self, replica: usize, node: &Node, spares: Option<&Spares>) -> Tried {
        if self.shared.is_silent(node, || self.calls.call(replica, node)) {
            return Tried::IsSilent;
        }
        if let Some(spares) = spares {
            spares.note_use(self.shared);
        }
        if self.calls.message.write_lock.is_some() {
            return self.try_open(replica, node).await.map_or(Tried::Failed, Tried::Opened);
        }
        let opening = pin!(self.try_open(replica, node));
        let silence = pin!(self.shared.silence.becomes_silent(node));
        match select(opening, silence).await {
            Either::Left((opened, _)) => opened.map_or(Tried::Failed, Tried::Opened),
            Either::Right(_) => Tried::IsSilent,
        }
    }

    /// Asks silent nodes, and waits for them.
    async fn open_silent(&self, replica: usize, silent: Vec<Node>) -> Opened {
        for node in silent {
            if let Some(opened) = self.try_open(replica, &node).await {
                return opened;
            }
        }
        Opened::PutOff(replica, vec![])
    }

    async fn try_open(&self, replica: usize, node: &Node) -> Option<Opened> {
        // Until the node takes the body; how long that flows is no matter of the node's.
        let asked = self.shared.silence.asked(node);
        let (mut feed, body) = Body::channel(CHUNKS_AHEAD, self.length);
        let mut call = self.calls.call(replica, node).with_body(self.end.belongs_to(body));
        if let Message::PutObject(put) = &mut call.message {
            put.expect = Some(HeaderValue::from_static("100-continue"));
        }
        let answer = self.send_in_background(node.clone(), call);
        let limit = self.shared.options.node_timeout;
        match self.shared.world.timeout(limit, feed.started()).await {
            Ok(true) => {
                if asked.answered() {
                    self.shared.suppression.forgive(node);
                }
                Some(Opened::Accepts(OpenReplica {
                    node: node.clone(),
                    feed,
                    answer,
                }))
            }
            Ok(false) => {
                let reply = self.shared.world.timeout(limit, answer).await.ok()?.ok()??;
                (reply.status < 500).then_some(Opened::Refuses(reply))
            }
            Err(_) => {
                self.shared
                    .suppression
                    .error(node, "did not say in time whether it takes an object");
                None
            }
        }
    }

    /// The call runs by itself while its body is fed; its answer comes through the receiver.
    fn send_in_background(&self, node: Node, call: Call) -> oneshot::Receiver<Option<Reply>> {
        let (mut answer, receiver) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.world.clone().spawn(async move {
            // The head of the answer comes after the whole body: its deadline is the body's pace.
            let limit = std::time::Duration::from_secs(365 * 24 * 3600);
            let asking = pin!(async {
                let response = shared.ask_patiently(&node, call, limit).await?;
                shared.whole(&node, response, shared.options.node_timeout).await
            });
            // A node that hangs would keep the connections of all uploads that went on without it.
            let given_up = async {
                answer.closed().await;
                shared.world.clock.sleep(shared.options.node_timeout).await;
            };
            let reply = match select(asking, pin!(given_up)).await {
                Either::Left((reply, _)) => reply,
                Either::Right(_) => return,
            };
            // The upload may have been given up.
            let _ = answer.send(reply);
        });
        receiver
    }
}

/// What became of one node that was asked.
enum Tried {
    Opened(Opened),
    Failed,
    IsSilent,
}

enum Opened {
    Accepts(OpenReplica),
    Refuses(Reply),
    /// No node takes this replica; these may, but they are silent.
    PutOff(usize, Vec<Node>),
}

/// What has become of the replicas that were asked to take a body.
#[derive(Default)]
struct OpenedReplicas {
    replicas: Vec<OpenReplica>,
    early: Vec<Reply>,
    put_off: Vec<(usize, Vec<Node>)>,
}

impl OpenedReplicas {
    async fn collect(&mut self, mut opening: FuturesUnordered<impl Future<Output = Opened>>) {
        while let Some(opened) = opening.next().await {
            match opened {
                Opened::Accepts(replica) => self.replicas.push(replica),
                Opened::Refuses(reply) => self.early.push(reply),
                Opened::PutOff(_, silent) if silent.is_empty() => {}
                Opened::PutOff(replica, silent) => self.put_off.push((replica, silent)),
            }
        }
    }
}
