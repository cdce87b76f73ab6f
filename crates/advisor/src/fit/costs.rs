//! What a request costs.
