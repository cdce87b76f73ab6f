//! One replica of a database spoken to over REPLICATE.
//!
//! Always holds: an answer is read up to a limit and for a limited time.

use super::context::Context;
use crate::faults::ToFault;
use crate::open_device::OpenDevice;
use crate::ring_client::{context_of, json_body, place};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use peer::message::ReplicateDatabase;
use peer::message::header_names::X_MARTLET_TAKES;
use peer::{Body, BodyError, Call, OFFER_VALUE, PartitionTarget, Timeouts};
use placement::Device;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocabulary::{Fault, Partition};
use world::World;
use world::files::Purpose;

/// The most bytes of an answer, of which there are as many at a time as databases are worked at: a summary with a
/// hundred thousand items of metadata has half as many.
const MAX_ANSWER: u64 = 16 << 20;
/// The same of a list of shard ranges.
const MAX_SHARD_RANGES: u64 = 64 << 20;
/// Bytes of a database read at a time.
const PIECE: usize = 1 << 20;
/// The slowest transfer that is waited for, in bytes per second.
const SLOWEST: u64 = 1 << 20;

/// Sends requests about one database to one of its replicas.
pub(super) struct ReplicaClient<'c> {
    pub(super) context: &'c Context,
    pub(super) node: &'c Device,
    pub(super) partition: Partition,
    pub(super) hash: String,
}

/// The response of a replica.
pub(super) struct ReplicaResponse {
    pub(super) status: StatusCode,
    /// It takes databases over HTTP.
    pub(super) takes_databases: bool,
    pub(super) body: Bytes,
}

impl ReplicaResponse {
    /// The response, if its status says that the replica did what it was asked.
    pub(super) fn success(self) -> Result<Self, Fault> {
        match self.status.is_success() {
            true => Ok(self),
            false => Err(Fault::peer(self.status.to_string())),
        }
    }
}

impl ReplicaClient<'_> {
    /// For the log: `ip:port/device`.
    pub(super) fn place(&self) -> String {
        place(self.node)
    }

    /// Asks for one operation.
    pub(super) async fn ask(&self, arguments: Vec<Value>) -> Result<ReplicaResponse, Fault> {
        self.ask_patiently(arguments, self.context.ring_client.timeouts.response)
            .await
    }

    /// The same for what may take longer.
    pub(super) async fn ask_patiently(
        &self,
        arguments: Vec<Value>,
        patience: Duration,
    ) -> Result<ReplicaResponse, Fault> {
        let body = Value::Array(arguments).to_string();
        self.send(Body::whole(body), None, patience, MAX_ANSWER).await
    }

    /// Asks for its shard ranges.
    pub(super) async fn shard_ranges(&self) -> Result<Bytes, Fault> {
        let patience = self.context.ring_client.timeouts.response;
        let question = Body::whole(json!(["get_shard_ranges"]).to_string());
        let answer = self.send(question, None, patience, MAX_SHARD_RANGES).await?;
        Ok(answer.success()?.body)
    }

    /// Sends the file `path`, to be called `name` there.
    pub(super) async fn send_database(&self, device: &OpenDevice, path: &Path, name: &str) -> Result<(), Fault> {
        let world = self.context.world.clone();
        let length = world.files.info(path).map_err(|error| error.to_fault())?.size;
        let (feed, body) = Body::channel(2, Some(length));
        let reading = read(world.clone(), device.clone(), path.to_owned(), length, feed);
        world.spawn(reading);
        let patience = self.context.ring_client.timeouts.response + Duration::from_secs(length / SLOWEST);
        let name = HeaderValue::from_str(name).map_err(|error| Fault::caller(error.to_string()))?;
        self.send(body, Some(name), patience, MAX_ANSWER).await?.success()?;
        Ok(())
    }

    async fn send(
        &self,
        body: Body,
        database: Option<HeaderValue>,
        patience: Duration,
        most: u64,
    ) -> Result<ReplicaResponse, Fault> {
        let ring_client = &self.context.ring_client;
        let replicate = ReplicateDatabase {
            database,
            headers: json_body(),
            ..ReplicateDatabase::new(PartitionTarget {
                device: self.node.device.as_str().into(),
                partition: self.partition,
                rest: self.hash.clone(),
            })
        };
        let call = Call::new(context_of(self.context.name), replicate).with_body(body);
        let timeouts = Timeouts {
            connect: ring_client.timeouts.connect,
            response: patience,
        };
        let (ip, port) = (&self.node.replication_ip, self.node.replication_port);
        let response = ring_client.peers.send(ip, port, call, timeouts).await;
        let (head, body) = response.map_err(|error| error.to_fault())?.into_parts();
        let body = self.context.world.timeout(patience, body.collect(most)).await;
        let body = body.map_err(|_| Fault::peer("no end of the answer in time"))?;
        Ok(ReplicaResponse {
            status: head.status,
            takes_databases: head
                .headers
                .get(X_MARTLET_TAKES)
                .is_some_and(|offer| offer == OFFER_VALUE),
            body: body.map_err(|error| error.to_fault())?,
        })
    }
}

/// Reads the file on its device's thread, as fast as it is taken.
async fn read(world: World, device: OpenDevice, path: PathBuf, length: u64, feed: peer::Feed) {
    let mut offset = 0;
    while offset < length {
        let (world, path) = (world.clone(), path.clone());
        let piece = device.try_run(move || {
            let file = world.files.open(&path, Purpose::Read)?;
            let mut piece = vec![0; PIECE.min(usize::try_from(length - offset).unwrap_or(PIECE))];
            file.read_at(&mut piece, offset).map(|count| {
                piece.truncate(count);
                piece
            })
        });
        let piece = match piece.await {
            Ok(piece) if !piece.is_empty() => piece,
            Ok(_) => return feed.fail(BodyError::Broken("the file has become shorter".into())).await,
            Err(fault) => return feed.fail(BodyError::Broken(fault.what)).await,
        };
        offset += piece.len() as u64;
        if !feed.send(piece.into()).await {
            return;
        }
    }
    feed.finish().await;
}
