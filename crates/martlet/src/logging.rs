//! Where logs go: where the name the program was called by logs, from the level that the configuration says.

use crate::failure::CommandFailure;
use crate::program::Program;
use settings::report::{Severity, Warning};
use settings::server::ServerCommon;

/// Starts logging; later calls change nothing.
pub fn start(common: &ServerCommon) {
    Program::called().start_logging(common);
}

/// Starts logging where the one who tests a configuration reads: on standard error, what a start would warn of.
pub fn start_test() {
    telemetry::log::start(settings::LogLevel::Warning, None);
}

/// A configuration that is tested: says what a start says, and refuses besides what is probably a slip.
pub fn refuse_slips(warnings: &[Warning]) -> Result<(), CommandFailure> {
    let slips = warnings.iter().filter(|warning| warning.severity == Severity::Unknown);
    match slips.count() {
        0 => Ok(()),
        count => Err(CommandFailure::Usage(format!(
            "the configuration has {count} option(s) or section(s) that nothing reads (see above)"
        ))),
    }
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
