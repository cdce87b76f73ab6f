//! A client that reaches a container server's port, and is no replicator: it brings a database that calls itself a
//! replica and has a trigger of its own.
//!
//! It is what a node has of the container at that time, and its trigger takes back every row that is written to it. So
//! a server that obeys it acknowledges rows that vanish.

use super::client::TIMEOUTS;
use super::names::{ACCOUNT, container};
use crate::cluster::SimCluster;
use crate::topology::{DRIVE, LISTINGS, address};
use bytes::Bytes;
use http::header::HeaderValue;
use peer::message::{ReplicateDatabase, RequestContext};
use peer::{Body, Call, PartitionTarget};
use rusqlite::{Connection, MAIN_DB};
use serde_json::json;

/// What it calls itself.
const NAME: &str = "0f0e1900-0000-4000-8000-000000000000";
const TRIGGER: &str =
    "CREATE TRIGGER object_kept AFTER INSERT ON object BEGIN DELETE FROM object WHERE ROWID = new.ROWID; END";

/// Has `to` take the database in, sent from `from`: in the place of what is there, or where nothing is.
pub(super) fn bring(cluster: &SimCluster, from: usize, to: usize, number: usize) {
    let (Some(process), Some(content)) = (&cluster.nodes[from].process, replica(cluster, number)) else {
        return;
    };
    let Ok(content) = with_trigger(&content) else { return };
    cluster
        .trace
        .note(format!("foreign: n{to} is brought container {number} by n{from}"));
    let hash = cluster.topology.hash.container(ACCOUNT, &container(number));
    let target = PartitionTarget {
        device: DRIVE.into(),
        partition: cluster.topology.listings.load().partition_of(&hash.0),
        rest: hash.hex(),
    };
    let file = format!("{}.db", hash.hex());
    let operations = [json!(["rsync_then_merge", NAME]), json!(["complete_rsync", NAME, file])];
    let (peers, trace) = (process.peers.clone(), cluster.trace.clone());
    let bringing = async move {
        // Whatever is there: the database is brought again for each.
        for operation in operations {
            let upload = ReplicateDatabase {
                database: Some(HeaderValue::from_static(NAME)),
                ..ReplicateDatabase::new(target.clone())
            };
            let order = ReplicateDatabase::new(target.clone());
            let brought = Call::new(RequestContext::default(), upload).with_body(Body::whole(content.clone()));
            let ordered = Call::new(RequestContext::default(), order).with_body(Body::whole(operation.to_string()));
            for call in [brought, ordered] {
                let answer = peers.send(&address(to), LISTINGS, call, TIMEOUTS).await;
                let status = answer.map_or(0, |response| response.status().as_u16());
                trace.note(format!("foreign: n{to} answers {status}"));
            }
        }
    };
    cluster.executor.spawn(process.home, Box::pin(bringing));
}

/// What some node has of a container.
fn replica(cluster: &SimCluster, number: usize) -> Option<Vec<u8>> {
    let hash = cluster.topology.hash.container(ACCOUNT, &container(number)).hex();
    let name = format!("/{hash}.db");
    let found = cluster.nodes.iter().flat_map(|node| node.files.contents(&name));
    let whole = found.filter(|(path, (content, _))| path.ends_with(&name) && !content.is_empty());
    whole.map(|(_, (content, _))| content).next()
}

fn with_trigger(content: &[u8]) -> rusqlite::Result<Bytes> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, content, content.len(), false)?;
    connection.execute_batch(TRIGGER)?;
    Ok(Bytes::copy_from_slice(&connection.serialize(MAIN_DB)?))
}
