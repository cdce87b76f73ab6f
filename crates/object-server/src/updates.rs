//! Rows for the container servers: one per write, and a durable record when they do not answer.
//!
//! An acknowledgement waits for them at most `container_update_timeout`. Whatever has not succeeded by
//! then is kept in the device's pending records for the updater; requests still under way go on, for a row
//! that arrives twice changes nothing.
//! From before the change that a row follows from, the device's intent log has the row (`updates/noted.rs`), in case the
//! server crashes meanwhile.
//! Always holds: when [`ListingUpdates::send`] returns, every row is either with all its container
//! servers or in the device's pending records (or why not is in the log).
//! Deliberately absent: retries; those are the updater's. Many rows in one request: `updates/batch.rs`.

mod batch;
mod noted;

use crate::devices::ObjectDevice;
use crate::request::{ObjectRequest, is_true};
use futures_util::future::{join, join_all};
use futures_util::stream::{StreamExt, iter};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use object_engine::{ListingUpdate, Metadata};
use peer::{PeerError, Peers, RawCall, Response, Target, Timeouts};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::header_name::title;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, Fault, Partition, PathHash, PolicyIndex, Timestamp};
use world::{BoxFuture, World};

pub(crate) use noted::NotedRows;

const BACKEND_OVERRIDE: &str = "x-backend-container-update-override-";
const SYSTEM_OVERRIDE: &str = "x-object-sysmeta-container-update-override-";

/// What is to happen to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOperation {
    Put,
    Delete,
}

impl RowOperation {
    fn verb(self) -> Method {
        match self {
            RowOperation::Put => Method::PUT,
            RowOperation::Delete => Method::DELETE,
        }
    }
}

/// A container server and its device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListingNode {
    ip: String,
    port: u16,
    device: String,
    partition: u32,
}

/// Where a row is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowDelivery {
    /// To these; the flag says that the gateway meant more of them, but where they are cannot be read.
    Now(Vec<ListingNode>, bool),
    /// Nowhere now: the updater finds out.
    LaterOnly,
}

/// A row of a listing, on its way.
#[derive(Debug, Clone)]
pub(crate) struct ListingRow {
    pub(crate) operation: RowOperation,
    /// The object's policy: chooses the directory of pending records.
    pub(crate) policy: PolicyIndex,
    /// Of `path`.
    pub(crate) hash: PathHash,
    pub(crate) timestamp: Timestamp,
    /// The row's own path.
    pub(crate) path: EntityPath,
    /// `account/container` of the shard it belongs to.
    pub(crate) container_path: Option<String>,
    pub(crate) db_state: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) delivery: RowDelivery,
}

impl ListingRow {
    /// The row of the request's own container; `None` when the gateway named no container server for this node.
    pub(crate) fn of_object(
        request: &ObjectRequest,
        operation: RowOperation,
        timestamp: Timestamp,
        more: HeaderMap,
    ) -> Option<Self> {
        let text = |name| request.text(name).unwrap_or_default();
        let partition = text("x-container-partition");
        if partition.is_empty() {
            return None;
        }
        let delivery = nodes(text("x-container-host"), text("x-container-device"), partition)?;
        let mut headers = Self::common_headers(request, timestamp);
        headers.insert(
            "x-backend-storage-policy-index",
            HeaderValue::from(request.key.policy.0),
        );
        headers.extend(more);
        let quoted = request.text("x-backend-quoted-container-path");
        let quoted = quoted.and_then(|path| unquote(path).ok());
        let plain = request.text("x-backend-container-path").map(str::to_owned);
        Some(Self {
            operation,
            policy: request.key.policy,
            hash: request.key.hash,
            timestamp,
            path: (*request.path).clone(),
            container_path: quoted.or(plain).filter(|path| shard(path).is_some()),
            db_state: request.text("x-container-root-db-state").map(str::to_owned),
            headers,
            delivery,
        })
    }

    /// What every row carries.
    pub(crate) fn common_headers(request: &ObjectRequest, timestamp: Timestamp) -> HeaderMap {
        let host = request.text("host").unwrap_or("localhost");
        let referer = format!(
            "{} http://{host}/{}/{}{}",
            request.method,
            request.device,
            request.partition,
            request.path.quoted()
        );
        let mut headers = HeaderMap::with_capacity(12);
        set(&mut headers, "x-timestamp", &timestamp.internal());
        set(&mut headers, "x-trans-id", request.trans_id());
        set(&mut headers, "referer", &referer);
        headers.insert("user-agent", user_agent());
        headers
    }

    /// The row's place: the shard's when it has one.
    fn target(&self) -> EntityPath {
        let object = self.path.object.clone().unwrap_or_default();
        match self.container_path.as_deref().and_then(shard) {
            Some(container) => container.with_object(object),
            None => self.path.clone(),
        }
    }

    fn pending(&self, redirect: Option<RowRedirect>) -> ListingUpdate {
        ListingUpdate {
            policy: self.policy,
            hash: self.hash,
            timestamp: self.timestamp,
            op: self.operation.verb().to_string(),
            account: self.path.account.clone(),
            container: self.path.container.clone().unwrap_or_default(),
            object: self.path.object.clone().unwrap_or_default(),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (title(name.as_str()), value.as_bytes().to_vec()))
                .collect(),
            container_path: redirect
                .map(|to| to.container_path)
                .or_else(|| self.container_path.clone()),
            db_state: self.db_state.clone(),
        }
    }
}

/// Sets a header from text; text that HTTP cannot carry is left out.
pub(crate) fn set(headers: &mut HeaderMap, name: &'static str, text: &str) {
    if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// What the listing is to show instead: headers for this purpose, and above them what was stored with the
/// object for it.
pub(crate) fn overrides(more: &mut HeaderMap, headers: &HeaderMap, stored: &Metadata) {
    let mut replace = |name: &str, value: &[u8]| {
        if name.is_empty() {
            return;
        }
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(format!("x-{name}")),
            HeaderValue::from_bytes(value),
        ) {
            more.insert(name, value);
        }
    };
    for (name, value) in headers {
        if let Some(name) = name.as_str().strip_prefix(BACKEND_OVERRIDE) {
            replace(name, value.as_bytes());
        }
    }
    for (name, value) in stored.iter() {
        let lower = name.to_ascii_lowercase();
        if let Some(name) = lower.strip_prefix(SYSTEM_OVERRIDE) {
            replace(name, value);
        }
    }
}

fn user_agent() -> HeaderValue {
    static AGENT: OnceLock<HeaderValue> = OnceLock::new();
    let make = || HeaderValue::from_str(&format!("object-server {}", std::process::id()));
    let agent = AGENT.get_or_init(|| make().unwrap_or(HeaderValue::from_static("object-server")));
    agent.clone()
}

/// `account/container`.
fn shard(path: &str) -> Option<EntityPath> {
    let path = EntityPath::split(path).ok()?;
    (path.container.is_some() && path.object.is_none()).then_some(path)
}

/// The container servers of comma lists; `None` when the lists do not belong together.
pub(crate) fn nodes(hosts: &str, devices: &str, partition: &str) -> Option<RowDelivery> {
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
    let devices: Vec<&str> = devices.split(',').map(str::trim).collect();
    if hosts.len() != devices.len() {
        tracing::error!(
            "{} container hosts but {} devices: no listing update",
            hosts.len(),
            devices.len()
        );
        return None;
    }
    let node = |(host, device): (&&str, &&str)| {
        let (ip, port) = host.rsplit_once(':')?;
        Some(ListingNode {
            ip: ip.to_owned(),
            port: port.parse().ok()?,
            device: (!device.is_empty()).then(|| (*device).to_owned())?,
            partition: partition.trim().parse().ok()?,
        })
    };
    let known: Vec<ListingNode> = hosts.iter().zip(&devices).filter_map(node).collect();
    let some_missing = known.len() < hosts.len();
    Some(RowDelivery::Now(known, some_missing))
}

/// A container server says that the row belongs to a shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RowRedirect {
    /// First, so that the newest is the greatest: it knows best.
    timestamp: Timestamp,
    container_path: String,
}

struct RowDelivered {
    delivered: bool,
    redirect: Option<RowRedirect>,
}

/// Rows that are sent at once by themselves: no more than a device has room for.
const ALONE_AT_ONCE: usize = 8;

/// Delivers rows.
pub(crate) struct ListingUpdates {
    world: World,
    peers: Arc<OnceLock<Arc<Peers>>>,
    timeouts: Timeouts,
    patience: Duration,
    statsd: Statsd,
}

impl ListingUpdates {
    pub(crate) fn new(world: World, timeouts: Timeouts, patience: Duration, statsd: Statsd) -> Self {
        let peers = Arc::default();
        Self {
            world,
            peers,
            timeouts,
            patience,
            statsd,
        }
    }

    /// The peers through which container servers are reached; the first call counts.
    pub(crate) fn set_peers(&self, peers: Arc<Peers>) {
        // A second set of peers would only repeat the first: a process has one.
        let _ = self.peers.set(peers);
    }

    /// Delivers the rows, or keeps them on `device`. Deletions of one container travel together.
    pub(crate) async fn send(&self, rows: NotedRows, device: &Arc<ObjectDevice>) {
        let (mut rows, _until_sent) = rows.into_parts();
        if rows.len() < 2 {
            if let Some(row) = rows.pop() {
                self.send_one(row, device).await;
            }
            return;
        }
        let (batches, alone) = batch::group(rows);
        let batches = batches.into_iter().map(|batch| self.send_batch(batch, device));
        let alone = alone.into_iter().map(|row| self.send_one(row, device));
        let alone = iter(alone).buffer_unordered(ALONE_AT_ONCE).collect::<()>();
        join(join_all(batches), alone).await;
    }

    async fn send_one(&self, row: ListingRow, device: &Arc<ObjectDevice>) {
        let RowDelivery::Now(nodes, some_missing) = &row.delivery else {
            return self.keep(row, None, device).await;
        };
        let Some(peers) = self.peers.get().filter(|_| !nodes.is_empty()) else {
            return self.keep(row, None, device).await;
        };
        let mut sending = send_all(peers.clone(), row.clone(), nodes.clone(), self.timeouts);
        match self.world.timeout(self.patience, &mut sending).await {
            Ok(outcome) if outcome.delivered && !some_missing => {}
            Ok(outcome) => self.keep(row, outcome.redirect, device).await,
            Err(_) => {
                self.keep(row, None, device).await;
                self.world.spawn(async move { drop(sending.await) });
            }
        }
    }

    async fn keep(&self, row: ListingRow, redirect: Option<RowRedirect>, device: &Arc<ObjectDevice>) {
        self.keep_all(vec![row.pending(redirect)], device).await;
    }

    async fn keep_all(&self, updates: Vec<ListingUpdate>, device: &Arc<ObjectDevice>) {
        let count = updates.len();
        let job = move |device: &ObjectDevice| {
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
            Ok::<_, Fault>(lost.map(describe).collect::<Vec<_>>())
        };
        let (lost, why) = match device.run(job).await {
            Ok(lost) => (lost.len(), lost.join("; ")),
            Err(fault) => (count, fault.to_string()),
        };
        if count > lost {
            self.statsd.count(format_args!("async_pendings"), (count - lost) as u64);
        }
        if lost > 0 {
            tracing::error!("device {} lost {lost} of {count} listing updates: {why}", device.name());
        }
    }
}

fn send_all(
    peers: Arc<Peers>,
    row: ListingRow,
    nodes: Vec<ListingNode>,
    timeouts: Timeouts,
) -> BoxFuture<'static, RowDelivered> {
    Box::pin(async move {
        let target = Arc::new(row.target());
        let calls = nodes.into_iter().map(|node| {
            let (row, target, peers) = (&row, target.clone(), &peers);
            async move {
                let answer = peers
                    .send(&node.ip, node.port, call(row, &node, target), timeouts)
                    .await;
                judge(row, &node, answer)
            }
        });
        let outcomes = join_all(calls).await;
        RowDelivered {
            delivered: outcomes.iter().all(|outcome| outcome.delivered),
            redirect: outcomes.into_iter().filter_map(|outcome| outcome.redirect).max(),
        }
    })
}

fn call(row: &ListingRow, node: &ListingNode, path: Arc<EntityPath>) -> RawCall {
    let target = Target {
        device: node.device.as_str().into(),
        partition: Partition(node.partition),
        path,
    };
    RawCall::new(row.operation.verb(), target, row.headers.clone())
}

fn judge(row: &ListingRow, node: &ListingNode, answer: Result<Response, PeerError>) -> RowDelivered {
    let (delivered, redirect) = match &answer {
        Ok(response) if response.status().is_success() => (true, None),
        Ok(response) if response.status() == StatusCode::MOVED_PERMANENTLY => (false, redirect(response)),
        Ok(_) | Err(_) => (false, None),
    };
    if !delivered {
        let why = answer.map_or_else(|error| error.to_string(), |response| response.status().to_string());
        tracing::info!(
            "container server {}:{}/{} did not take {}: {why}; the updater will try again",
            node.ip,
            node.port,
            node.device,
            row.path.path()
        );
    }
    RowDelivered { delivered, redirect }
}

fn redirect(response: &Response) -> Option<RowRedirect> {
    let text = |name: &str| response.headers().get(name)?.to_str().ok();
    let timestamp = text("x-backend-redirect-timestamp")?.parse().ok()?;
    let location = text("location")?;
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => location.trim_start_matches('/'),
    };
    let quoted = text("x-backend-location-is-quoted").is_some_and(is_true);
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
    use proptest::prelude::*;

    #[test]
    fn lists_belong_together_or_are_left_alone() {
        let Some(RowDelivery::Now(two, false)) = nodes("10.0.0.1:6201, fe80::1:6201", "sda,sdb", "7") else {
            panic!("two nodes expected");
        };
        assert_eq!(
            (two[1].ip.as_str(), two[1].port, two[1].partition),
            ("fe80::1", 6201, 7)
        );
        assert_eq!(nodes("10.0.0.1:6201", "sda,sdb", "7"), None);
        for (host, device, partition) in [
            ("", "sda", "7"),
            ("h:1", "", "7"),
            ("h:1", "sda", "x"),
            ("h", "sda", "7"),
        ] {
            assert_eq!(
                nodes(host, device, partition),
                Some(RowDelivery::Now(vec![], true)),
                "{host}"
            );
        }
    }

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
            set(headers, "location", location);
            set(headers, "x-backend-redirect-timestamp", "1700000000.00000");
            set(
                headers,
                "x-backend-location-is-quoted",
                if quoted { "true" } else { "no" },
            );
            let found = redirect(&response).map(|to| to.container_path);
            assert_eq!(found.as_deref(), expected, "{location}");
        }
        response.headers_mut().remove("x-backend-redirect-timestamp");
        assert_eq!(redirect(&response), None);
    }

    proptest! {
        #[test]
        fn any_lists_are_read_or_refused(hosts in "[\\PC,:]{0,40}", devices in "[\\PC,]{0,40}", partition in "\\PC{0,12}") {
            let _ = nodes(&hosts, &devices, &partition);
        }
    }
}
