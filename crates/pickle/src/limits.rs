//! How large a pickle and what it expands to may be.

/// What a pickle may cost. The defaults suit everything Swift stores but builder files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PickleLimits {
    /// Longest input, and most bytes of text in the result.
    pub max_bytes: usize,
    /// Most values made, counting a value named again through the memo as one more.
    pub max_items: usize,
    /// Deepest nesting.
    pub max_depth: usize,
    /// Whether `array.array` may occur.
    pub arrays: bool,
}

impl Default for PickleLimits {
    fn default() -> Self {
        PickleLimits {
            max_bytes: 16 << 20,
            max_items: 1 << 20,
            max_depth: 32,
            arrays: false,
        }
    }
}

impl PickleLimits {
    /// For `.builder` files: arrays allowed, and room for a large partition table.
    pub fn for_builder() -> Self {
        PickleLimits {
            max_bytes: 1 << 30,
            max_items: 1 << 29,
            max_depth: 32,
            arrays: true,
        }
    }
}
