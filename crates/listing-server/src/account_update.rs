//! The rows that an account gets of a container that came, changed or went.
//!
//! Sent to the account servers that the gateway names, each once. What they do not take is made up
//! for by the container updater, for the container remembers what it last reported. A silent server
//! ([`peer::Silence`]) is not waited for, and gets a row only to find out whether it answers again.

use crate::request::{ListingRequest, text};
use crate::state::ListingServerState;
use futures_util::future::{Either, join_all, select};
use http::{HeaderValue, StatusCode};
use listing_engine::Info;
use peer::message::{RequestContext, UpdateAccount, UpdateNode, UpdateTargets};
use peer::{AskedDevice, Call, PeerError, Peers, Response, Silence, Target, Timeouts};
use std::pin::pin;
use std::sync::Arc;
use storage_shell::{Refusal, header_value};
use vocabulary::{Partition, PolicyIndex, Timestamp};
use world::World;

/// What the account keeps of a container.
pub(crate) struct ContainerFigures {
    put: Timestamp,
    delete: Timestamp,
    objects: u64,
    bytes: u64,
    pub(crate) policy: PolicyIndex,
}

impl ContainerFigures {
    pub(crate) fn of(info: &Info) -> Self {
        Self {
            put: info.put_timestamp,
            delete: info.delete_timestamp,
            objects: info.object_count,
            bytes: info.bytes_used,
            policy: info.policy,
        }
    }
}

/// The account servers that get the row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AccountUpdate {
    nodes: Vec<UpdateNode>,
    partition: Partition,
    overrides_deleted: bool,
}

impl AccountUpdate {
    /// To the servers that the gateway names; 400 when any of them cannot be read.
    pub(crate) fn new(servers: UpdateTargets, overrides_deleted: bool) -> Result<Self, Refusal> {
        let (nodes, partition) = match servers {
            UpdateTargets::Absent => (Vec::new(), Partition::default()),
            UpdateTargets::Nodes {
                partition,
                nodes,
                some_unreadable: false,
            } => (nodes, partition),
            UpdateTargets::Nodes { .. } => return Err(Refusal::Page(StatusCode::BAD_REQUEST)),
            UpdateTargets::Mismatched { hosts, devices } => {
                tracing::error!("{hosts} account hosts but {devices} devices");
                return Err(Refusal::Page(StatusCode::BAD_REQUEST));
            }
        };
        Ok(Self {
            nodes,
            partition,
            overrides_deleted,
        })
    }

    /// Sends it to all at once; 404 when every one of them answers that there is no such account.
    pub(crate) async fn send(
        self,
        state: &ListingServerState,
        request: &ListingRequest,
        figures: &ContainerFigures,
    ) -> Result<(), Refusal> {
        let Some(peers) = state.peers.get().filter(|_| !self.nodes.is_empty()) else {
            return Ok(());
        };
        let servers = AccountServers {
            world: &state.world,
            peers,
            silence: &state.silence,
            timeouts: Timeouts {
                connect: state.options.conn_timeout,
                response: state.options.node_timeout,
            },
        };
        let (servers, path) = (
            &servers,
            Arc::new(vocabulary::EntityPath::account(request.account()).with_container(request.container())),
        );
        let context = context(request);
        let calls = self.nodes.iter().map(|node| {
            let target = Target {
                device: node.device.clone(),
                partition: self.partition,
                path: path.clone(),
            };
            let call = Call::new(context.clone(), self.message(target, request, figures));
            async move {
                let Some(answer) = servers.ask(node, call).await else {
                    return StatusCode::SERVICE_UNAVAILABLE;
                };
                let error = match &answer {
                    Ok(response) if response.status().is_success() => return StatusCode::OK,
                    Ok(response) => response.status().to_string(),
                    Err(error) => error.to_string(),
                };
                tracing::warn!(
                    "account server {}:{}/{} did not take the update of {}: {error}; the updater will try again",
                    node.ip,
                    node.port,
                    node.device,
                    request.target.path.path()
                );
                answer.map_or(StatusCode::SERVICE_UNAVAILABLE, |response| response.status())
            }
        });
        let statuses = join_all(calls).await;
        match statuses.iter().all(|status| *status == StatusCode::NOT_FOUND) {
            true => Err(Refusal::not_found(None)),
            false => Ok(()),
        }
    }

    fn message(&self, target: Target, request: &ListingRequest, figures: &ContainerFigures) -> UpdateAccount {
        UpdateAccount {
            // An account server of ours or of OpenStack's needs a timestamp only to create what is missing.
            timestamp: request.timestamp.clone(),
            put_timestamp: figures.put.into(),
            delete_timestamp: figures.delete.into(),
            object_count: figures.objects.into(),
            bytes_used: figures.bytes.into(),
            policy: figures.policy.into(),
            overrides_deleted: self.overrides_deleted.then_some(HeaderValue::from_static("yes")),
            ..UpdateAccount::new(target)
        }
    }
}

/// The account servers as they are asked.
struct AccountServers<'a> {
    world: &'a World,
    peers: &'a Arc<Peers>,
    silence: &'a Arc<Silence<UpdateNode>>,
    timeouts: Timeouts,
}

impl AccountServers<'_> {
    /// The answer of `node`; `None` where that is silent, or becomes silent before it answers.
    async fn ask(&self, node: &UpdateNode, call: Call) -> Option<Result<Response, PeerError>> {
        if !self.silence.is_silent(node) {
            let answer = pin!(self.send(node, call, self.silence.asked(node)));
            let silence = pin!(self.silence.becomes_silent(node));
            return match select(answer, silence).await {
                Either::Left((answer, _)) => Some(answer),
                Either::Right(_) => None,
            };
        }
        if let Some(asked) = self.silence.probe(node) {
            let probe = self.send(node, call, asked);
            self.world.spawn(async move { drop(probe.await) });
        }
        None
    }

    fn send(
        &self,
        node: &UpdateNode,
        call: Call,
        asked: AskedDevice<UpdateNode>,
    ) -> impl Future<Output = Result<Response, PeerError>> + Send + use<> {
        let (peers, timeouts, node) = (self.peers.clone(), self.timeouts, node.clone());
        async move {
            let answer = peers.send(&node.ip, node.port, call, timeouts).await;
            if answer.is_ok() {
                asked.answered();
            }
            answer
        }
    }
}

fn context(request: &ListingRequest) -> RequestContext {
    let host = request.context.host.as_ref().and_then(text).unwrap_or("localhost");
    let referer = format_args!("{} http://{host}{}", request.method, request.url_path()).to_string();
    RequestContext {
        trans_id: Some(request.context.trans_id().into()),
        user_agent: header_value(format_args!("container-server {}", std::process::id())),
        referer: header_value(referer),
        ..RequestContext::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_cannot_be_read_are_refused() {
        let update = |hosts: &str, devices: &str, partition: &str| {
            AccountUpdate::new(UpdateTargets::parse(hosts, devices, partition), false)
        };
        let two = update("10.0.0.1:6202, fe80::1:6202", "sda,sdb", "7").unwrap();
        assert_eq!(
            (two.nodes.len(), &*two.nodes[1].ip, two.partition),
            (2, "fe80::1", Partition(7))
        );
        assert!(
            AccountUpdate::new(UpdateTargets::Absent, false)
                .unwrap()
                .nodes
                .is_empty()
        );
        for (hosts, devices, partition) in [("a:1,b:1", "sda", "1"), ("rubbish", "sda", "1"), ("a:1", "sda", "x")] {
            assert!(
                update(hosts, devices, partition).is_err(),
                "{hosts} {devices} {partition}"
            );
        }
    }
}
