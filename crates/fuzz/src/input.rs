//! What targets make of their bytes: a size of pieces, texts, bodies; and running what is asynchronous.

use bytes::Bytes;
use futures_util::stream;
use peer::Body;
use std::borrow::Cow;

/// The first byte as the size of the pieces in which the others come.
pub(crate) fn cut(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes.split_first() {
        Some((size, rest)) => (usize::from(*size).max(1), rest),
        None => (1, bytes),
    }
}

/// A body that comes in pieces of `size`.
pub(crate) fn body(bytes: &[u8], size: usize) -> Body {
    let pieces: Vec<_> = bytes
        .chunks(size)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    Body::stream(stream::iter(pieces), None)
}

/// The bytes as text; what is not UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Runs a future to its end on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        // Without a runtime nothing here can be run at all.
        #[expect(clippy::expect_used, reason = "a machine without threads and timers cannot fuzz")]
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
