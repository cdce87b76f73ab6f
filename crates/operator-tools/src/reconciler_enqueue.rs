//! `reconciler-enqueue`: asks the reconciler to look after one object that may be in a wrong policy.
//!
//! A row in the account `.misplaced_objects` says so, written to the container servers of its hour directly.
//! Compared with `swift-reconciler-enqueue` in `tests/operator/test_small_tools.py`.
//! Always holds: it is queued when a majority of the replicas has the row.

use crate::OURS;
use crate::console::{Console, ToolStatus};
use crate::swift_dir::{DEFAULT, SwiftDir};
use crate::words::{explained, path};
use clap::{Args, ValueEnum};
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method};
use peer::message::header_names;
use peer::{Peers, RawCall, Target, Timeouts};
use placement::{Device, Ring};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::timestamp::TimestampError;
use vocabulary::{EntityPath, Fault, PolicyIndex, Timestamp};
use world::World;

/// The account of the queue.
const QUEUE: &str = ".misplaced_objects";
/// Seconds per container of the queue.
const SPAN: u64 = 3_600;
/// As OpenStack's program waits.
const PATIENCE: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    response: Duration::from_secs(15),
};
const USAGE: &str = "Usage: swift-reconciler-enqueue <policy_index> </a/c/o> <timestamp> [options]

This script enqueues an object to be evaluated by the reconciler.

Arguments:
policy_index: the policy the object is currently stored in.
      /a/c/o: the full path of the object - utf-8
   timestamp: the timestamp of the datafile/tombstone.
";

/// The command line of `reconciler-enqueue`.
#[derive(Debug, Args)]
pub struct ReconcilerEnqueueArguments {
    /// POLICY_INDEX /ACCOUNT/CONTAINER/OBJECT TIMESTAMP: the policy the object is in now, its path, and the timestamp
    /// of its file.
    #[arg(value_name = "ARGUMENT")]
    pub words: Vec<String>,
    /// What happened under the wrong policy.
    #[arg(short = 'X', long = "op", value_name = "OP", default_value = "PUT")]
    pub op: Operation,
    /// Queue it again though it was queued and looked after before.
    #[arg(short, long)]
    pub force: bool,
    /// Where swift.conf and the rings are.
    #[arg(long, value_name = "DIR", default_value = DEFAULT, value_parser = path(), help_heading = OURS)]
    pub swift_dir: PathBuf,
    /// Speak to storage servers as the cluster_tls options of this server's configuration say.
    #[arg(long, value_name = "CONF", help_heading = OURS, value_parser = path())]
    pub cluster_tls: Option<PathBuf>,
}

/// What happened.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Operation {
    /// It was written.
    #[value(name = "PUT")]
    Put,
    /// It was deleted.
    #[value(name = "DELETE")]
    Delete,
}

/// What is to be queued.
struct Misplaced {
    policy: PolicyIndex,
    path: String,
    spelled: String,
    at: Timestamp,
}

/// Queues it and prints the container of the queue.
pub async fn run(
    arguments: &ReconcilerEnqueueArguments,
    peers: &Peers,
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    let world = peers.world();
    let [policy, path, timestamp] = arguments.words.as_slice() else {
        console.say(format_args!("{USAGE}\n{}", explained::<ReconcilerEnqueueArguments>()))?;
        return Ok(ToolStatus::SUCCESS);
    };
    let prepared = prepare(arguments, world, policy, path, timestamp);
    let (dir, ring, misplaced) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => {
            console.complain(format_args!("ERROR: {reason}"))?;
            return Ok(ToolStatus::FAILURE);
        }
    };
    let container = (misplaced.at.seconds() / SPAN * SPAN).to_string();
    if tell(arguments, peers, &dir, &ring, &misplaced, &container, console).await? {
        console.say(container)?;
        return Ok(ToolStatus::SUCCESS);
    }
    console.complain("ERROR: unable to enqueue!")?;
    Ok(ToolStatus::FAILURE)
}

fn prepare(
    arguments: &ReconcilerEnqueueArguments,
    world: &World,
    policy: &str,
    path: &str,
    timestamp: &str,
) -> Result<(SwiftDir, Ring, Misplaced), Fault> {
    let dir = SwiftDir::open(world, &arguments.swift_dir)?;
    let ring = dir.ring(world, "container")?;
    let ring = ring.ok_or_else(|| Fault::caller(format!("no container ring in {}", arguments.swift_dir.display())))?;
    let index = pythonic::int(policy).and_then(|index| u32::try_from(index).ok());
    let index = index.map(PolicyIndex).filter(|index| dir.policy(*index).is_some());
    let policy = index.ok_or_else(|| Fault::caller(format!("invalid storage policy index: {policy}")))?;
    let mut parts = path.strip_prefix('/').unwrap_or_default().splitn(3, '/');
    if (0..3).any(|_| parts.next().is_none_or(str::is_empty)) {
        return Err(Fault::caller(format!("Invalid path: {path}")));
    }
    let at = timestamp
        .parse()
        .map_err(|error: TimestampError| Fault::caller(error.to_string()));
    let misplaced = Misplaced {
        policy,
        path: path.to_owned(),
        spelled: timestamp.to_owned(),
        at: at?,
    };
    Ok((dir, ring, misplaced))
}

/// Whether a majority has it now.
async fn tell(
    arguments: &ReconcilerEnqueueArguments,
    peers: &Peers,
    dir: &SwiftDir,
    ring: &Ring,
    misplaced: &Misplaced,
    container: &str,
    console: &mut Console<'_>,
) -> io::Result<bool> {
    let Some(hash) = dir.hash(&[QUEUE, container]) else {
        return Ok(false);
    };
    let partition = ring.partition_of(&hash.0);
    let name = format!("{}:{}", misplaced.policy, misplaced.path);
    let path = Arc::new(EntityPath::account(QUEUE).with_container(container).with_object(name));
    let headers = headers(arguments, peers.world(), misplaced);
    let primaries: Vec<&Device> = ring.primaries(partition);
    let mut accepted = 0;
    for node in &primaries {
        let target = Target {
            device: node.device.as_str().into(),
            partition,
            path: path.clone(),
        };
        let call = RawCall::new(Method::PUT, target, headers.clone());
        let (ip, port) = (&node.replication_ip, node.replication_port);
        match peers.send(ip, port, call, PATIENCE).await {
            Ok(response) if response.status().is_success() => accepted += 1,
            Ok(response) => console.complain(format_args!("{ip}:{port}/{}: {}", node.device, response.status()))?,
            Err(error) => console.complain(format_args!("{ip}:{port}/{}: {error}", node.device))?,
        }
    }
    Ok(accepted > primaries.len() / 2)
}

fn headers(arguments: &ReconcilerEnqueueArguments, world: &World, misplaced: &Misplaced) -> HeaderMap {
    let kind = match arguments.op {
        Operation::Put => "application/x-put",
        Operation::Delete => "application/x-delete",
    };
    let now = world.clock.now().internal();
    let time = if arguments.force { &now } else { &misplaced.spelled };
    let pairs = [
        (header_names::X_SIZE, "0"),
        (header_names::X_ETAG, misplaced.spelled.as_str()),
        (header_names::X_TIMESTAMP, time),
        (header_names::X_CONTENT_TYPE, kind),
        (header_names::X_USE_REPLICATION_NETWORK, "true"),
        (header_names::X_ALLOW_RESERVED_NAMES, "true"),
        (USER_AGENT, "direct-client"),
    ];
    // Timestamps are plain digits: the values are headers.
    let pairs = pairs.into_iter().filter_map(|(name, value)| {
        let value = HeaderValue::from_str(value).ok()?;
        Some((name, value))
    });
    pairs.collect()
}
