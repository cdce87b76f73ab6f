//! The checksum of a body, shared by those who receive it.

use std::sync::{Arc, OnceLock};

/// The MD5 of a body, known at its end, shared by everyone who receives the same bytes in this
/// process: one pass per byte and node.
#[derive(Clone, Default)]
pub struct Digest(Arc<OnceLock<String>>);

impl Digest {
    /// A digest that is known already.
    pub fn known(hex: impl Into<String>) -> Self {
        let digest = Self::default();
        digest.set(hex.into());
        digest
    }

    /// Says what it is; the first word counts.
    pub fn set(&self, hex: String) {
        // Setting it twice can only repeat the same value: there is one producer per body.
        let _ = self.0.set(hex);
    }

    /// Lower-case hexadecimal; `None` before the end of the body.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
