//! What failures of the layers below mean to upkeep: each becomes a [`Fault`].

use durable_fs::{Health, Symptom};
use futures_util::future::{Either, select};
use listing_engine::Error as DatabaseError;
use object_engine::EngineError;
use peer::{BodyError, PeerError};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use vocabulary::{Fault, FaultKind};
use world::{Elapsed, WorkerError, Workers};

/// A failure whose kind is known.
pub(crate) trait ToFault {
    /// The failure as a fault, with the text that it has.
    fn to_fault(&self) -> Fault;
}

/// Implements [`ToFault`] by a function from the failure to its kind.
macro_rules! kind_of {
    ($error:ty, $kind:expr) => {
        impl ToFault for $error {
            fn to_fault(&self) -> Fault {
                let kind: fn(&$error) -> FaultKind = $kind;
                Fault::new(kind(self), self.to_string())
            }
        }
    };
}

kind_of!(io::Error, |error| Symptom::of(error).fault_kind());
kind_of!(Elapsed, |_| FaultKind::Peer);
kind_of!(BodyError, |error| match error {
    BodyError::Corrupt => FaultKind::Data,
    BodyError::Device(_) => FaultKind::Device,
    _ => FaultKind::Peer,
});
kind_of!(PeerError, |error| match error {
    PeerError::Unspeakable(_) | PeerError::LongRequest => FaultKind::Caller,
    _ => FaultKind::Peer,
});
kind_of!(WorkerError, |error| match error {
    WorkerError::Busy => FaultKind::Contention,
    WorkerError::Panicked => FaultKind::Caller,
});
kind_of!(EngineError, EngineError::kind);
kind_of!(DatabaseError, DatabaseError::kind);

impl ToFault for Fault {
    fn to_fault(&self) -> Fault {
        self.clone()
    }
}

/// Runs `work` on one of these threads. That no thread takes it is a fault, too.
pub(crate) async fn run_on<T: Send + 'static, E: ToFault + Send + 'static>(
    threads: &Workers,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Fault> {
    let done = threads.run(work).await.map_err(|error| error.to_fault())?;
    done.map_err(|error| error.to_fault())
}

/// [`run_on`] of the threads of a drive, announced to its health. Refused where the drive is out of service; and no
/// longer waited for once it is, for a job on a drive that hangs may never end.
pub(crate) async fn run_on_drive<T: Send + 'static, E: ToFault + Send + 'static>(
    health: &Arc<Health>,
    threads: &Workers,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Fault> {
    health.check()?;
    let announced = health.clone();
    let working = run_on(threads, move || {
        let _job = announced.enter();
        work()
    });
    match select(pin!(working), pin!(health.gone())).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => {
            health.check()?;
            Err(Fault::device("the drive was out of service meanwhile"))
        }
    }
}
