//! A body on its way to all replicas that take it.
//!
//! `put_object.rs` opens the [`OpenReplica`]s; a [`Fan`] moves the body to all of them at their common pace and
//! collects their answers.
//! Always holds: no more than [`CHUNKS_AHEAD`] chunks wait per replica; a replica that is slower than
//! `node_timeout` for one chunk is left behind; too few replicas end the upload at once.

use crate::backend::Reply;
use crate::fan_out::{self, Attempts, Missing};
use crate::nodes::Node;
use crate::shared::Shared;
use crate::upload_body::UploadBody;
use bytes::Bytes;
use md5::{Digest as _, Md5};
use peer::{Body, Digest, Feed, Footer};
use request_pipeline::{Response, reply};
use std::sync::Arc;
use tokio::sync::oneshot;
use vocabulary::hex;

/// Chunks that may wait for a slow replica.
pub(crate) const CHUNKS_AHEAD: usize = 8;
/// What becomes known at a body's end.
pub(crate) struct BodyEnd {
    pub(crate) digest: Digest,
    /// Absent when no feature has anything to say, and replicas know the MD5 already.
    pub(crate) footer: Option<Footer>,
}

impl BodyEnd {
    pub(crate) fn belongs_to(&self, body: Body) -> Body {
        let body = body.with_digest(self.digest.clone());
        self.footer.iter().cloned().fold(body, Body::with_footer)
    }
}

/// A replica that takes the body.
pub(crate) struct OpenReplica {
    pub(crate) node: Node,
    pub(crate) feed: Feed,
    pub(crate) answer: oneshot::Receiver<Option<Reply>>,
}

/// The replicas that are still with us.
pub(crate) struct Fan<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) replicas: Vec<OpenReplica>,
    pub(crate) quorum: usize,
}

impl Fan<'_> {
    /// Moves the body to all replicas; answers with its MD5.
    pub(crate) async fn pump(
        &mut self,
        mut body: UploadBody,
        length: Option<u64>,
        most: u64,
    ) -> Result<String, Response> {
        let mut md5 = Md5::new();
        let mut received = 0u64;
        while let Some(chunk) = body.next().await? {
            received += chunk.len() as u64;
            if received > most {
                return Err(reply::status(413));
            }
            md5.update(&chunk);
            self.send(chunk).await?;
        }
        match length {
            Some(length) if length != received => Err(self.shared.client_left()),
            _ => Ok(hex::encode(md5.finalize())),
        }
    }

    async fn send(&mut self, chunk: Bytes) -> Result<(), Response> {
        let limit = self.shared.options.node_timeout;
        let sends = self
            .replicas
            .iter()
            .map(|replica| self.shared.world.timeout(limit, replica.feed.send(chunk.clone())));
        let delivered = futures_util::future::join_all(sends).await;
        let mut delivered = delivered.into_iter();
        let shared = self.shared;
        self.replicas.retain(|replica| match delivered.next() {
            Some(Ok(true)) => true,
            Some(Ok(false)) => false,
            _ => {
                shared.suppression.error(&replica.node, "is too slow to take an object");
                false
            }
        });
        match quorum::is_possible(self.replicas.len(), self.quorum) {
            true => Ok(()),
            false => Err(reply::status(503)),
        }
    }

    /// No replica may keep what it has: its body fails, as its feed goes without having finished it. One that hangs
    /// may have no room for a word.
    pub(crate) fn abort(self) {
        drop(self.replicas);
    }

    /// The body is whole: collects the answers.
    pub(crate) async fn finish(self, shared: Arc<Shared>) -> Vec<Reply> {
        let limit = shared.options.node_timeout;
        let answers = Attempts::new();
        for replica in self.replicas {
            let shared = shared.clone();
            answers.push(Box::pin(async move {
                let answer = async move {
                    replica.feed.finish().await;
                    replica.answer.await.ok().flatten()
                };
                let reply = match shared.world.timeout(limit, answer).await {
                    Ok(reply) => reply,
                    Err(_) => {
                        shared
                            .suppression
                            .error(&replica.node, "did not say in time whether it has stored an object");
                        None
                    }
                };
                reply.into()
            }));
        }
        fan_out::gather(&shared, answers, self.quorum, Missing::IsAnAnswer).await
    }
}
