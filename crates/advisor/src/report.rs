//! How answers are shown.
//!
//! | output | file |
//! |---|---|
//! | a terminal, and `--explain` | `report/terminal.rs` |
//! | JSON | [`crate::advice::AdviceReport`], by serde |

pub mod terminal;
