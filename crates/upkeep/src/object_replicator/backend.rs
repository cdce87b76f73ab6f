//! The requests that object servers are sent: REPLICATE and SSYNC of a partition.

use super::{NAME, Shared};
use crate::faults::ToFault;
use crate::ring_client::context_of;
use object_engine::PartitionKey;
use peer::message::{Message, ReplicateSuffixes, Ssync};
use peer::{Body, Call, PartitionTarget, Response, Timeouts};
use placement::Device;
use std::time::Duration;
use vocabulary::Fault;

impl Shared {
    /// Sends REPLICATE, with the suffixes that have been changed by other means than requests.
    pub(super) async fn replicate(&self, key: PartitionKey, node: &Device, rest: &str) -> Result<Response, Fault> {
        let replicate = ReplicateSuffixes {
            policy: key.policy.into(),
            ..ReplicateSuffixes::new(partition_target(key, node, rest))
        };
        // Hashing takes its time.
        let patience = self.options.node_timeout.max(self.options.http_timeout);
        self.ask(node, replicate, Body::empty(), patience).await
    }

    /// Begins an exchange, whose sending side is `body`.
    pub(super) async fn ssync(&self, key: PartitionKey, node: &Device, body: Body) -> Result<Response, Fault> {
        let ssync = Ssync {
            policy: key.policy.into(),
            ..Ssync::new(partition_target(key, node, ""))
        };
        self.ask(node, ssync, body, self.options.node_timeout).await
    }

    async fn ask(
        &self,
        node: &Device,
        message: impl Into<Message>,
        body: Body,
        response: Duration,
    ) -> Result<Response, Fault> {
        let call = Call::new(context_of(NAME), message).with_body(body);
        let timeouts = Timeouts {
            connect: self.options.conn_timeout,
            response,
        };
        let (ip, port) = (&node.replication_ip, node.replication_port);
        let sent = self.ring_client.peers.send(ip, port, call, timeouts).await;
        sent.map_err(|error| error.to_fault())
    }
}

fn partition_target(key: PartitionKey, node: &Device, rest: &str) -> PartitionTarget {
    PartitionTarget {
        device: node.device.as_str().into(),
        partition: key.partition,
        rest: rest.to_owned(),
    }
}
