//! Objects made of segments: by manifest (`slo`) and by prefix (`dlo`).
//!
//! | question | file |
//! |---|---|
//! | static large objects | `slo/` |
//! | dynamic large objects | `dlo.rs` |
//! | how segments become one body | `segments.rs`, `segments/` |
//! | conditions and ranges of what features make | `conditional_reply.rs` |

pub mod conditional_reply;
pub mod dlo;
pub mod segments;
pub mod slo;
