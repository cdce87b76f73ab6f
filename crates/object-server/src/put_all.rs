//! Many PUTs of small objects that another node's upkeep brings, as one job on the device.
//!
//! Always holds: each is answered as if it had come alone, and not before it is durable; none tells the listings, which
//! were told where the objects come from. Whether there is anything to replace is known of all at once, by the names of
//! files; what there is, is looked at as for one PUT: it may be another object's, or not to be trusted.
//! Deliberately absent: what a PUT is (`put.rs`).
//! Tests: those of SSYNC (`tests/ssync.rs`, `tests/replication_as_openstack.rs`).

use crate::devices::Lane;
use crate::put::{Intent, intend};
use crate::refusal::Refusal;
use crate::replicate::Place;
use crate::request::Request;
use crate::service::Shared;
use bytes::Bytes;
use http::StatusCode;
use object_engine::{Commit, EngineError, ObjectEngine, ObjectKey, OpenOptions};
use peer::Call;
use std::sync::Arc;
use vocabulary::PathHash;

/// Writes them, which are of one place, each with its body; what each is answered with, in their order.
pub(crate) async fn put_all(shared: &Arc<Shared>, place: &Place, puts: Vec<(Call, Bytes)>) -> Vec<StatusCode> {
    let device = &place.device;
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
    let here = place.clone();
    let job = move |engine: &dyn ObjectEngine| write(engine, &here, wanted);
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

fn intent(shared: &Shared, call: Call, length: u64) -> Result<Intent, Refusal> {
    let (method, address, headers) = (call.method, call.address, call.headers);
    let mut request = Request::new(method, address, headers, Lane::Replication, &shared.options)?;
    intend(&mut request, length, shared)
}

/// Blocks.
fn write(
    engine: &dyn ObjectEngine,
    place: &Place,
    wanted: Vec<(Intent, Bytes)>,
) -> Result<Vec<Result<(), Refusal>>, EngineError> {
    let hashes: Vec<PathHash> = wanted.iter().map(|(intent, _)| intent.key.hash).collect();
    let here = engine.replica().versions_of(place.key, &hashes)?;
    let mut outcomes = vec![];
    let (mut numbers, mut puts) = (vec![], vec![]);
    let refused = |error: &EngineError| Refusal::from_engine(error, &place.device);
    for (number, ((intent, body), here)) in wanted.into_iter().zip(here).enumerate() {
        let wanted = intent.of_whole(engine, here.is_some(), &body);
        outcomes.push(wanted.map_err(|error| refused(&error)).flatten().map(|commit| {
            numbers.push(number);
            puts.push((intent.key, body, commit));
        }));
    }
    let done = engine.put_all(&puts);
    for ((number, put), done) in numbers.into_iter().zip(&puts).zip(done) {
        if let Err(error) = done.or_else(|error| again(engine, put, error)) {
            outcomes[number] = Err(refused(&error));
        }
    }
    Ok(outcomes)
}

/// Another attempt, if what kept the object away was no directory, or a damaged one, in the place of its own: whoever looks for
/// the object puts it into quarantine. Blocks.
fn again(
    engine: &dyn ObjectEngine,
    (key, body, commit): &(ObjectKey, Bytes, Commit),
    error: EngineError,
) -> Result<(), EngineError> {
    let looked = matches!(error, EngineError::Io { .. }).then(|| engine.open(key, OpenOptions::BEFORE_WRITE));
    match looked {
        Some(Err(EngineError::Quarantined { .. })) => engine.put(key, body, commit.clone()),
        _ => Err(error),
    }
}

fn status_of(refusal: Refusal) -> StatusCode {
    refusal.into_response().status()
}
