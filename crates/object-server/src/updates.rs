//! Rows for the container servers: one per write, and a durable record when they do not answer.
//!
//! An acknowledgement waits for them at most `container_update_timeout`. Whatever has not succeeded by
//! then is kept in the device's pending records for the updater; requests still under way go on, for a row
//! that arrives twice changes nothing. The row of a silent server ([`peer::Silence`]) is kept at once, and sent only to
//! find out whether the server answers again.
//! From before the change that a row follows from, the device's intent log has the row (`updates/recorded.rs`), in case
//! the server crashes meanwhile.
//! Always holds: when [`ListingUpdates::send`] succeeds, every row is either with all its container servers or in the
//! device's pending records; where a device cannot keep one the write is refused, so that a handoff takes it with its
//! row, and what the intent log says is left for the updater.
//! Deliberately absent: retries; those are the updater's. What a row says: `updates/row.rs`. Many rows in one request:
//! `updates/batch.rs`.

mod batch;
mod container_servers;
mod recorded;
mod row;

use self::container_servers::ContainerServers;
use crate::devices::ObjectDevice;
use crate::request::is_true;
use futures_util::future::{join, join_all};
use futures_util::stream::{StreamExt, iter};
use http::StatusCode;
use http::header::LOCATION;
use object_engine::ListingUpdate;
use peer::message::header_names::{X_LOCATION_IS_QUOTED, X_REDIRECT_TIMESTAMP};
use peer::message::{UpdateNode, UpdateTargets};
use peer::{Call, PeerError, Peers, Response, Silence, Timeouts};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use storage_shell::{DeviceFault, Refusal, Turn};
use telemetry::Statsd;
use vocabulary::Timestamp;
use vocabulary::names::unquote;
use world::{BoxFuture, World};

pub(crate) use recorded::RecordedRows;
use row::shard;
pub(crate) use row::{ListingRow, named};

/// A container server says that the row belongs to a shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RowRedirect {
    /// First, so that the newest is the greatest: it knows best.
    timestamp: Timestamp,
    container_path: String,
}

struct RowDelivery {
    is_done: bool,
    redirect: Option<RowRedirect>,
}

impl RowDelivery {
    /// No server was asked.
    const NONE: Self = Self {
        is_done: false,
        redirect: None,
    };
}

/// Rows that are sent at once by themselves: no more than a device has room for.
const ALONE_AT_ONCE: usize = 8;

/// Delivers rows.
pub(crate) struct ListingUpdates {
    world: World,
    peers: OnceLock<Arc<Peers>>,
    timeouts: Timeouts,
    patience: Duration,
    silence: Arc<Silence<UpdateNode>>,
    statsd: Statsd,
}

impl ListingUpdates {
    /// Acknowledgements wait for `patience`; servers may say nothing for `silence_timeout`.
    pub(crate) fn new(
        world: World,
        timeouts: Timeouts,
        (patience, silence_timeout): (Duration, Duration),
        statsd: Statsd,
    ) -> Self {
        let peers = OnceLock::new();
        let silence = Silence::new(&world, silence_timeout);
        Self {
            world,
            peers,
            timeouts,
            patience,
            silence,
            statsd,
        }
    }

    /// The peers through which container servers are reached; the first call counts.
    pub(crate) fn set_peers(&self, peers: Arc<Peers>) {
        // A second set of peers would only repeat the first: a process has one.
        let _ = self.peers.set(peers);
    }

    /// Which devices of container servers are silent.
    pub(crate) fn silence(&self) -> Arc<Silence<UpdateNode>> {
        self.silence.clone()
    }

    fn servers(&self) -> Option<ContainerServers> {
        Some(ContainerServers {
            peers: self.peers.get()?.clone(),
            silence: self.silence.clone(),
            timeouts: self.timeouts,
        })
    }

    /// Delivers the rows, or keeps them on `device`. Deletions of one container travel together. Refuses where a row is
    /// neither delivered nor kept.
    pub(crate) async fn send(&self, rows: RecordedRows, device: &Arc<ObjectDevice>) -> Result<(), Refusal> {
        let (rows, intent) = rows.into_parts();
        let sent = self.send_all(rows, device).await;
        if let (Err(_), Some(intent)) = (&sent, intent) {
            intent.leave();
        }
        sent
    }

    async fn send_all(&self, mut rows: Vec<ListingRow>, device: &Arc<ObjectDevice>) -> Result<(), Refusal> {
        if rows.len() < 2 {
            return match rows.pop() {
                Some(row) => self.send_one(row, device).await,
                None => Ok(()),
            };
        }
        let (batches, alone) = batch::group(rows);
        let batches = batches.into_iter().map(|batch| self.send_batch(batch, device));
        let alone = alone.into_iter().map(|row| self.send_one(row, device));
        let alone = iter(alone).buffer_unordered(ALONE_AT_ONCE).collect::<Vec<_>>();
        let (batches, alone) = join(join_all(batches), alone).await;
        batches.into_iter().chain(alone).collect()
    }

    async fn send_one(&self, row: ListingRow, device: &Arc<ObjectDevice>) -> Result<(), Refusal> {
        let (nodes, some_unreadable) = match &row.servers {
            UpdateTargets::Nodes {
                nodes, some_unreadable, ..
            } => (&nodes[..], *some_unreadable),
            _ => (&[][..], false),
        };
        let Some(servers) = self.servers().filter(|_| !nodes.is_empty()) else {
            return self.keep(&row, None, device).await;
        };
        let some_silent = servers.some_are_silent(nodes);
        let row = Arc::new(row);
        let mut sending = send_to_all(servers, row.clone());
        if some_silent {
            let kept = self.keep(&row, None, device).await;
            self.finish_later(sending);
            return kept;
        }
        match self.world.timeout(self.patience, &mut sending).await {
            Ok(delivery) if delivery.is_done && !some_unreadable => Ok(()),
            Ok(delivery) => self.keep(&row, delivery.redirect, device).await,
            Err(_) => {
                let kept = self.keep(&row, None, device).await;
                self.finish_later(sending);
                kept
            }
        }
    }

    /// Goes on with what is under way: whatever comes of it, the rows have been kept, or their write is refused.
    fn finish_later<T: Send + 'static>(&self, sending: BoxFuture<'static, T>) {
        self.world.spawn(async move {
            sending.await;
        });
    }

    async fn keep(
        &self,
        row: &ListingRow,
        redirect: Option<RowRedirect>,
        device: &Arc<ObjectDevice>,
    ) -> Result<(), Refusal> {
        let shard = redirect.map(|redirect| redirect.container_path);
        self.keep_all(vec![row.pending(shard)], device).await
    }

    /// Waits for its turn: what the rows are of has been done already.
    async fn keep_all(&self, updates: Vec<ListingUpdate>, device: &Arc<ObjectDevice>) -> Result<(), Refusal> {
        let (count, updates) = (updates.len(), Arc::new(updates));
        let save_all = |updates: Arc<Vec<ListingUpdate>>, device: &ObjectDevice| {
            let save = |update: &ListingUpdate| device.engine().save_listing_update(update).err();
            let lost = updates.iter().filter_map(|update| Some((update, save(update)?)));
            let describe = |(update, error): (&ListingUpdate, _)| {
                let ListingUpdate {
                    op,
                    account,
                    container,
                    object,
                    ..
                } = update;
                format!("{op} {account}/{container}/{object}: {error}")
            };
            Ok::<_, DeviceFault>(lost.map(describe).collect::<Vec<_>>())
        };
        let job = || {
            let updates = updates.clone();
            move |device: &ObjectDevice| save_all(updates, device)
        };
        let (lost, why, refusal) = match device.run_patiently(Turn::First, job).await {
            Ok(lost) => (lost.len(), lost.join("; "), Refusal::Device(device.name().to_owned())),
            Err(fault) => (count, fault.fault.to_string(), fault.into()),
        };
        if count > lost {
            self.statsd.count(format_args!("async_pendings"), (count - lost) as u64);
        }
        if lost == 0 {
            return Ok(());
        }
        let name = device.name();
        tracing::error!(
            "device {name} cannot keep {lost} of {count} listing updates, so that writes are refused: {why}"
        );
        Err(refusal)
    }
}

fn send_to_all(servers: ContainerServers, row: Arc<ListingRow>) -> BoxFuture<'static, RowDelivery> {
    Box::pin(async move {
        let UpdateTargets::Nodes { partition, nodes, .. } = &row.servers else {
            return RowDelivery::NONE;
        };
        let send = |node: &UpdateNode| {
            let call = Call::new(row.context.clone(), row.message(&node.device, *partition));
            let (row, servers, node) = (&row, &servers, node.clone());
            async move {
                let answer = servers.ask(&node, call).await;
                answer.map_or(RowDelivery::NONE, |answer| judge(row, &node, answer))
            }
        };
        // Most containers have one server that gets its row from this node.
        if let [node] = &nodes[..] {
            return send(node).await;
        }
        let deliveries = join_all(nodes.iter().map(send)).await;
        RowDelivery {
            is_done: deliveries.iter().all(|delivery| delivery.is_done),
            redirect: deliveries.into_iter().filter_map(|delivery| delivery.redirect).max(),
        }
    })
}

fn judge(row: &ListingRow, node: &UpdateNode, answer: Result<Response, PeerError>) -> RowDelivery {
    let (is_done, redirect) = match &answer {
        Ok(response) if response.status().is_success() => (true, None),
        Ok(response) if response.status() == StatusCode::MOVED_PERMANENTLY => (false, redirect(response)),
        Ok(_) | Err(_) => (false, None),
    };
    if !is_done {
        let why = answer.map_or_else(|error| error.to_string(), |response| response.status().to_string());
        tracing::info!(
            "container server {}:{}/{} did not take {}: {why}; the updater will try again",
            node.ip,
            node.port,
            node.device,
            row.path.path()
        );
    }
    RowDelivery { is_done, redirect }
}

fn redirect(response: &Response) -> Option<RowRedirect> {
    let text = |name: http::HeaderName| response.headers().get(name)?.to_str().ok();
    let timestamp = text(X_REDIRECT_TIMESTAMP)?.parse().ok()?;
    let location = text(LOCATION)?;
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => location.trim_start_matches('/'),
    };
    let quoted = text(X_LOCATION_IS_QUOTED).is_some_and(is_true);
    let container_path = if quoted { unquote(path).ok()? } else { path.to_owned() };
    shard(&container_path)?;
    Some(RowRedirect {
        timestamp,
        container_path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn redirects_are_read() {
        let mut response = Response::new(peer::Body::empty());
        for (location, quoted, expected) in [
            ("/.shards_a/y", false, Some(".shards_a/y")),
            ("http://h/.shards_a/y", false, Some(".shards_a/y")),
            ("/.shards_a/y%20z", false, Some(".shards_a/y%20z")),
            ("/.shards_a/y%20z", true, Some(".shards_a/y z")),
            ("/onlyone", false, None),
            ("", false, None),
        ] {
            let headers = response.headers_mut();
            headers.insert(LOCATION, HeaderValue::from_static(location));
            headers.insert(X_REDIRECT_TIMESTAMP, HeaderValue::from_static("1700000000.00000"));
            let quoted = if quoted { "true" } else { "no" };
            headers.insert(X_LOCATION_IS_QUOTED, HeaderValue::from_static(quoted));
            let found = redirect(&response).map(|to| to.container_path);
            assert_eq!(found.as_deref(), expected, "{location}");
        }
        response.headers_mut().remove(X_REDIRECT_TIMESTAMP);
        assert_eq!(redirect(&response), None);
    }
}
