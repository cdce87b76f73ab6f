//! The engine's errors as refusals: the one place of this server where they become status codes.

use http::StatusCode;
use listing_engine::{Broker, Error};
use storage_shell::Refusal;
use vocabulary::FaultKind;

/// What went wrong with a database on `device`.
pub(crate) fn refusal_of(error: &Error, device: &str) -> Refusal {
    match error.kind() {
        FaultKind::Absent | FaultKind::Conflict => Refusal::not_found(None),
        FaultKind::NoSpace | FaultKind::Device => {
            tracing::error!("device {device}: {error}");
            Refusal::Device(device.to_owned())
        }
        // This server has run out of descriptors or memory.
        FaultKind::Contention if !matches!(error, Error::Busy { .. } | Error::TooLong { .. }) => {
            tracing::warn!("device {device}: {error}");
            Refusal::busy(device, &error.to_string())
        }
        FaultKind::Contention => {
            tracing::warn!("{error}");
            Refusal::Text(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }
        FaultKind::Item => {
            tracing::error!("device {device}: {error}");
            Refusal::one_item(error.to_string())
        }
        _ => {
            tracing::error!("{error}");
            Refusal::Text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        }
    }
}

/// A listing would be longer than any is (`render.rs`).
pub(crate) fn too_long(broker: &Broker) -> Refusal {
    let path = broker.location().db_file();
    let why = format!(
        "{}: so many names of its listing take more than 128 MiB, which no gateway reads: ask for fewer (limit)",
        path.display()
    );
    tracing::error!("{why}");
    Refusal::one_item(why)
}
