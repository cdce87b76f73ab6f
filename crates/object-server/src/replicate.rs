//! REPLICATE: what a partition holds, suffix by suffix, for another node to compare with its own.
//!
//! `/device/partition` is answered with a pickled dictionary of hashes; with `/suffix-suffix` behind it the sender says
//! that it has changed these by other means than requests (rsync), and there are no hashes in the answer. OpenStack's
//! sender reads the answer to that without a look at its status, and removes what it has brought; so where that cannot
//! be made durable, the answer breaks off.

use crate::devices::ObjectDevice;
use crate::options::ObjectServerOptions;
use crate::refusal::refused_by;
use crate::request::known_policy;
use crate::state::ObjectServerState;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, StatusCode};
use object_engine::{EngineError, ObjectEngine, PartitionKey, Rehash, SuffixHashes, encode_hashes};
use peer::message::{HeaderField, ReplicateSuffixes};
use peer::{Body, BodyError, PartitionTarget, Response};
use pickle::Value;
use std::sync::Arc;
use storage_shell::{Lane, Refusal, empty};
use vocabulary::PolicyIndex;

/// More suffixes than there are.
const MOST_SUFFIXES: usize = 5_000;

/// A partition of a device that a request names.
#[derive(Debug, Clone)]
pub(crate) struct PartitionAddress {
    pub(crate) device: Arc<str>,
    pub(crate) key: PartitionKey,
    /// What follows in the path.
    pub(crate) rest: String,
}

impl PartitionAddress {
    pub(crate) fn of(
        target: PartitionTarget,
        policy: &HeaderField<PolicyIndex>,
        options: &ObjectServerOptions,
    ) -> Result<Self, Refusal> {
        let (policy, partition) = (known_policy(policy, options)?, target.partition);
        Ok(Self {
            device: target.device,
            key: PartitionKey { policy, partition },
            rest: target.rest,
        })
    }
}

/// Answers a REPLICATE.
pub(crate) async fn replicate(state: &Arc<ObjectServerState>, message: ReplicateSuffixes) -> Result<Response, Refusal> {
    let PartitionAddress { device, key, rest } = PartitionAddress::of(message.target, &message.policy, &state.options)?;
    let suffixes: Vec<String> = rest.split('-').take(MOST_SUFFIXES).map(str::to_owned).collect();
    let is_informed = !rest.is_empty();
    let job = move |device: &ObjectDevice| {
        let engine = &**device.engine();
        let hashes = match rest.is_empty() {
            true => compared(engine, key).map(Some),
            false => engine.replica().invalidate(key, &suffixes).map(|()| None),
        };
        hashes.map_err(refused_by(device))
    };
    let hashes = match state.devices.run(&device, Lane::Replication, job).await {
        Err(refusal) if is_informed => return Ok(broken_off(&refusal)),
        hashes => hashes?,
    };
    let hashes = hashes.map(|found| encode_hashes(&found.hashes));
    let body = Body::whole(hashes.unwrap_or_else(|| pickle::dumps(&Value::None)));
    let length = body.length().unwrap_or_default();
    let mut response = empty(StatusCode::OK).map(|_| body);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// A refusal whose body never comes.
fn broken_off(refusal: &Refusal) -> Response {
    let nothing = futures_util::stream::once(async { Err(BodyError::Abandoned) });
    let mut response = empty(refusal.status()).map(|_| Body::stream(nothing, Some(1)));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(1));
    response
}

/// What the partition holds. Where nothing is, the next is often rsync with all of it, which makes the partition's
/// directory, but not the one that is in.
fn compared(engine: &dyn ObjectEngine, key: PartitionKey) -> Result<SuffixHashes, EngineError> {
    let found = engine.replica().suffix_hashes(key, Rehash::default())?;
    if found.hashes.is_empty() {
        engine.replica().prepare(key.policy)?;
    }
    Ok(found)
}
