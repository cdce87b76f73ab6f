//! Taking an object out of sight that cannot be trusted, so that replication brings a good copy.
//!
//! The hash directory is moved to `quarantined/` as it is, which the suffix's invalidation announces.

use super::EngineState;
use super::announcements::{announce, confirm};
use crate::error::EngineError;
use crate::key::ObjectKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Moves a hash directory to quarantine; where it is now, or `None` when it was already gone.
pub(super) fn quarantine(
    state: &EngineState,
    key: &ObjectKey,
    directory: &Path,
    why: &str,
) -> Result<Option<PathBuf>, EngineError> {
    let announced = announce(state, directory)?;
    match state.device.move_aside(directory, &state.layout.quarantined(key)) {
        Ok(place) => {
            confirm(state, directory, announced);
            state.hot.forget(key);
            state.config.quarantined.send();
            tracing::warn!(
                device = state.config.name,
                object = key.name,
                from = %directory.display(),
                to = %place.display(),
                why,
                "quarantined an object"
            );
            Ok(Some(place))
        }
        Err(error) if error.is_absent() => state.present().map(|()| None),
        Err(error) => Err(state.blame(error)),
    }
}

/// Quarantines what a reader found to be damaged; the error that says so.
pub(super) fn distrust(state: &Arc<EngineState>, key: &ObjectKey, directory: &Path, why: String) -> EngineError {
    match quarantine(state, key, directory, &why) {
        Ok(_) => EngineError::Quarantined {
            path: directory.display().to_string(),
            why,
        },
        Err(error) => error,
    }
}
