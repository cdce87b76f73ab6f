//! A device that is being worked on: its name, and the thread that does it.

use std::sync::Arc;
use world::Workers;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct OpenDevice {
    /// Whose work it is, for the log.
    pub(crate) who: &'static str,
    /// The device's directory name.
    pub(crate) name: String,
    /// Where all that touches it is done.
    pub(crate) thread: Arc<Workers>,
}

impl OpenDevice {
    /// Runs `job` on the device's thread. What fails is logged.
    pub(crate) async fn run<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Option<T> {
        let said = match self.thread.run(job).await {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!("{}: device {}: {said}", self.who, self.name);
        None
    }
}
