//! Where logs go: where the name the program was called by logs, from the level that the configuration says.

use crate::failure::CommandFailure;
use crate::program::Program;
use settings::report::Warning;
use settings::server::ServerCommon;

/// Starts logging; later calls change nothing.
pub fn start(common: &ServerCommon) {
    Program::called().start_logging(common);
}

/// Logs what the configuration asks for and will not get; refuses what would be dangerous to ignore.
pub fn warn_of(warnings: &[Warning]) -> Result<(), CommandFailure> {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    match settings::unsafe_to_start(warnings).next() {
        Some(warning) => Err(CommandFailure::Unsafe(warning.to_string())),
        None => Ok(()),
    }
}
