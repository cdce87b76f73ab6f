//! Many PUTs of small objects that another node's upkeep brings, as one job on the device.
//!
//! Always holds: each is answered as if it had come alone, and not before it is durable; none tells the listings, which
//! were told where the objects come from.
//! Deliberately absent: what a PUT is (`put.rs`).
//! Tests: those of SSYNC (`tests/ssync.rs`).

use crate::devices::Lane;
use crate::put::{Intent, intend};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::service::Shared;
use bytes::Bytes;
use http::StatusCode;
use object_engine::{EngineError, ObjectEngine};
use peer::Call;
use std::sync::Arc;

/// Writes them, each with its body; what each is answered with, in their order.
pub(crate) async fn put_all(shared: &Arc<Shared>, device: &str, puts: Vec<(Call, Bytes)>) -> Vec<StatusCode> {
    let mut statuses = vec![StatusCode::CREATED; puts.len()];
    let (mut places, mut wanted) = (vec![], vec![]);
    for (place, (call, body)) in puts.into_iter().enumerate() {
        match intent(shared, call, body.len() as u64) {
            Ok(intent) => {
                places.push(place);
                wanted.push((intent, body));
            }
            Err(refusal) => statuses[place] = status_of(refusal),
        }
    }
    let job = move |engine: &dyn ObjectEngine| Ok::<_, EngineError>(write(engine, wanted));
    match shared.devices.run(device, Lane::Replication, job).await {
        Ok((outcomes, _)) => {
            for (place, outcome) in places.into_iter().zip(outcomes) {
                statuses[place] = match outcome {
                    Ok(Ok(())) => StatusCode::CREATED,
                    Ok(Err(refusal)) => status_of(refusal),
                    Err(error) => status_of(Refusal::from_engine(&error, device)),
                };
            }
        }
        Err(trouble) => {
            let status = status_of(Refusal::from_trouble(trouble, device));
            places.into_iter().for_each(|place| statuses[place] = status);
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
fn write(engine: &dyn ObjectEngine, wanted: Vec<(Intent, Bytes)>) -> Vec<Result<Result<(), Refusal>, EngineError>> {
    let mut outcomes = vec![];
    let (mut places, mut puts) = (vec![], vec![]);
    for (place, (intent, body)) in wanted.into_iter().enumerate() {
        outcomes.push(intent.of_whole(engine, &body).map(|wanted| {
            wanted.map(|commit| {
                places.push(place);
                puts.push((intent.key, body, commit));
            })
        }));
    }
    for (place, done) in places.into_iter().zip(engine.put_all(&puts)) {
        if let Err(error) = done {
            outcomes[place] = Err(error);
        }
    }
    outcomes
}

fn status_of(refusal: Refusal) -> StatusCode {
    refusal.into_response().status()
}
