//! Headers that become known while a body is sent.
//!
//! The sender fills a [`Footer`] at the body's end ([`crate::Body::with_footer`]). A service of this process finds it
//! with the body; for any other node `footer_mime.rs` makes a multipart body of both.

use http::HeaderMap;
use std::sync::{Arc, OnceLock};

/// Headers known at the end of a body, shared by everyone who receives the same bytes.
#[derive(Clone, Default)]
pub struct Footer(Arc<OnceLock<HeaderMap>>);

impl Footer {
    /// Says what they are; the first word counts.
    pub fn set(&self, headers: HeaderMap) {
        // There is one producer per body; it has one end.
        let _ = self.0.set(headers);
    }

    /// `None` before the end of the body.
    pub fn get(&self) -> Option<&HeaderMap> {
        self.0.get()
    }
}
