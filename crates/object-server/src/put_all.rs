//! Many PUTs of small objects that another node's upkeep brings, as one job on the device.
//!
//! Always holds: each is answered as if it had come alone, and not before it is durable; none tells the listings, which
//! were told where the objects come from.
//! Deliberately absent: what a PUT is (`put.rs`).
//! Tests: those of SSYNC (`tests/ssync.rs`, `tests/replication_as_openstack.rs`).

use crate::devices::Lane;
use crate::put::{Intent, intend};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::service::Shared;
use bytes::Bytes;
use http::StatusCode;
use object_engine::{EngineError, ObjectEngine, ObjectKey, OpenOptions};
use peer::RawCall;
use std::sync::Arc;

/// Writes them, which are of one partition, each with its body; what each is answered with, in their order.
pub(crate) async fn put_all(shared: &Arc<Shared>, device: &str, puts: Vec<(RawCall, Bytes)>) -> Vec<StatusCode> {
    let mut statuses = vec![StatusCode::CREATED; puts.len()];
    let (mut numbers, mut wanted) = (vec![], vec![]);
    for (number, (call, body)) in puts.into_iter().enumerate() {
        match intent(shared, call, body.len() as u64) {
            Ok(intent) => {
                numbers.push(number);
                wanted.push((intent, body));
            }
            Err(refusal) => statuses[number] = status_of(refusal),
        }
    }
    let here = device.to_owned();
    let job = move |engine: &dyn ObjectEngine| Ok::<_, EngineError>(write(engine, &here, wanted));
    match shared.devices.run(device, Lane::Replication, job).await {
        Ok((outcomes, _)) => {
            for (number, outcome) in numbers.into_iter().zip(outcomes) {
                statuses[number] = outcome.map_or_else(status_of, |()| StatusCode::CREATED);
            }
        }
        Err(trouble) => {
            let status = status_of(Refusal::from_trouble(trouble, device));
            numbers.into_iter().for_each(|number| statuses[number] = status);
        }
    }
    statuses
}

fn intent(shared: &Shared, call: RawCall, length: u64) -> Result<Intent, Refusal> {
    let (method, address, headers) = (call.method, call.address, call.headers);
    let mut request = Request::new(method, address, headers, Lane::Replication, &shared.options)?;
    intend(&mut request, length, shared)
}

/// Blocks.
fn write(engine: &dyn ObjectEngine, device: &str, wanted: Vec<(Intent, Bytes)>) -> Vec<Result<(), Refusal>> {
    let keys: Vec<ObjectKey> = wanted.iter().map(|(intent, _)| intent.key.clone()).collect();
    let found = engine.open_all(&keys, OpenOptions::BEFORE_WRITE);
    let mut outcomes = vec![];
    let (mut numbers, mut puts) = (vec![], vec![]);
    let refused = |error: EngineError| Refusal::from_engine(&error, device);
    for (number, ((intent, body), found)) in wanted.into_iter().zip(found).enumerate() {
        let wanted = intent.of_whole(found, &body).map_err(refused).flatten();
        outcomes.push(wanted.map(|commit| {
            numbers.push(number);
            puts.push((intent.key, body, commit));
        }));
    }
    for (number, done) in numbers.into_iter().zip(engine.put_all(&puts)) {
        if let Err(error) = done {
            outcomes[number] = Err(refused(error));
        }
    }
    outcomes
}

fn status_of(refusal: Refusal) -> StatusCode {
    refusal.into_response().status()
}
