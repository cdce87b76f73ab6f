//! The container servers that rows are sent to, and which of their devices are silent.
//!
//! Always holds: of the requests under way to a device, one at most was sent while that was known to be silent.

use peer::message::UpdateNode;
use peer::{Call, PeerError, Peers, Response, Silence, Timeouts};
use std::sync::Arc;

/// See the module's header.
pub(super) struct ContainerServers {
    pub(super) peers: Arc<Peers>,
    pub(super) silence: Arc<Silence<UpdateNode>>,
    pub(super) timeouts: Timeouts,
}

impl ContainerServers {
    /// Whether some of these are not to be waited for.
    pub(super) fn some_are_silent(&self, nodes: &[UpdateNode]) -> bool {
        nodes.iter().any(|node| self.silence.is_silent(node))
    }

    /// The answer of `node`; `None` when it was not asked: it is silent, and another request finds out whether
    /// it still is.
    pub(super) async fn ask(&self, node: &UpdateNode, call: Call) -> Option<Result<Response, PeerError>> {
        let asked = match self.silence.is_silent(node) {
            true => self.silence.probe(node)?,
            false => self.silence.asked(node),
        };
        let answer = self.peers.send(&node.ip, node.port, call, self.timeouts).await;
        if answer.is_ok() {
            asked.answered();
        }
        Some(answer)
    }
}
