//! The engine's errors as refusals: the one place of this server where they become status codes.

use crate::devices::ObjectDevice;
use http::StatusCode;
use object_engine::EngineError;
use storage_shell::Refusal;
use vocabulary::FaultKind;

const TOO_LONG: &str = "The object's metadata are longer than this storage can keep with it.";

/// What the engine of `device` could not do, as a refusal.
pub(crate) fn refused_by(device: &ObjectDevice) -> impl Fn(EngineError) -> Refusal {
    |error| refusal_of(&error, device)
}

/// What the engine of `device` could not do, as a refusal.
pub(crate) fn refusal_of(error: &EngineError, device: &ObjectDevice) -> Refusal {
    match error.kind() {
        FaultKind::Absent => Refusal::not_found(error.deleted_at()),
        // This server has run out of descriptors or memory, or another process has the lock.
        FaultKind::Contention => {
            tracing::warn!("device {}: {error}", device.name());
            Refusal::busy(device.name(), &error.to_string())
        }
        FaultKind::Item => {
            tracing::error!("device {}: {error}", device.name());
            Refusal::one_item(error.to_string())
        }
        FaultKind::NoSpace | FaultKind::Device => Refusal::Device(device.name().to_owned()),
        // Two names with one hash; Swift forbids the second.
        FaultKind::Data if matches!(error, EngineError::Collision { .. }) => Refusal::Page(StatusCode::FORBIDDEN),
        FaultKind::Data => Refusal::not_found(None),
        _ if matches!(error, EngineError::MetadataTooLong { .. }) => {
            tracing::info!("device {}: {error}", device.name());
            Refusal::Text(StatusCode::BAD_REQUEST, TOO_LONG.into())
        }
        _ => Refusal::Text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
