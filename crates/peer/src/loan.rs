//! A chunk that was handed over and can still be taken back.
//!
//! Always holds: either side gets the bytes, never both.

use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// See the module's header.
#[derive(Clone)]
pub struct Loan(Arc<Mutex<Option<Bytes>>>);

impl Loan {
    pub(crate) fn of(chunk: Bytes) -> Self {
        Self(Arc::new(Mutex::new(Some(chunk))))
    }

    /// The chunk, unless the other side has taken it.
    pub fn take_back(&self) -> Option<Bytes> {
        self.0.lock().take()
    }
}
