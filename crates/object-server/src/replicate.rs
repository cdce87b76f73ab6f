//! REPLICATE: what a partition holds, suffix by suffix, for another node to compare with its own.
//!
//! `/device/partition` is answered with a pickled dictionary of hashes; with `/suffix-suffix` behind it the
//! sender says that it has changed these by other means than requests (rsync), and nothing is told. OpenStack's sender reads
//! the answer to that without a look at its status, and removes what it has brought; so where that cannot be made durable,
//! the answer breaks off.

use crate::devices::Lane;
use crate::options::ObjectServerOptions;
use crate::refusal::{Refusal, empty};
use crate::request::policy;
use crate::service::Shared;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, StatusCode};
use object_engine::{EngineError, ObjectEngine, PartitionKey, Rehash, SuffixHashes, encode_hashes};
use peer::{Address, Body, BodyError, PartitionTarget, RawCall, Response};
use pickle::Value;
use std::sync::Arc;

/// More suffixes than there are.
const MOST_SUFFIXES: usize = 5_000;

/// A partition of a device that a request names.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) device: String,
    pub(crate) key: PartitionKey,
    /// What follows in the path.
    pub(crate) rest: String,
}

impl Place {
    pub(crate) fn of(address: Address, headers: &HeaderMap, options: &ObjectServerOptions) -> Result<Self, Refusal> {
        let policy = policy(headers, options)?;
        match address {
            Address::Partition(PartitionTarget {
                device,
                partition: vocabulary::Partition(partition),
                rest,
            }) => Ok(Self {
                device: device.to_string(),
                key: PartitionKey { policy, partition },
                rest,
            }),
            other => Err(Refusal::bad_request(format!("Invalid path: {}", other.url_path()))),
        }
    }
}

/// Answers a REPLICATE.
pub(crate) async fn replicate(shared: &Arc<Shared>, call: RawCall) -> Result<Response, Refusal> {
    let Place { device, key, rest } = Place::of(call.address, &call.headers, &shared.options)?;
    let suffixes: Vec<String> = rest.split('-').take(MOST_SUFFIXES).map(str::to_owned).collect();
    let is_told = !rest.is_empty();
    let job = move |engine: &dyn ObjectEngine| match rest.is_empty() {
        true => compared(engine, key).map(Some),
        false => engine.replica().invalidate(key, &suffixes).map(|()| None),
    };
    let ran = shared.devices.run(&device, Lane::Replication, job).await;
    let (hashes, _) = match ran.map_err(|trouble| Refusal::from_trouble(trouble, &device)) {
        Err(refusal) if is_told => return Ok(broken_off(refusal)),
        ran => ran?,
    };
    let told = hashes.map(|found| encode_hashes(&found.hashes));
    let body = Body::whole(told.unwrap_or_else(|| pickle::dumps(&Value::None)));
    let length = body.length().unwrap_or_default();
    let mut response = empty(StatusCode::OK).map(|_| body);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// A refusal whose body never comes.
fn broken_off(refusal: Refusal) -> Response {
    let status = refusal.into_response().status();
    let nothing = futures_util::stream::once(async { Err(BodyError::Abandoned) });
    let mut response = empty(status).map(|_| Body::stream(nothing, Some(1)));
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
