//! How answers are shown.
//!
//! | output | file |
//! |---|---|
//! | a terminal, and `--explain` | `report/terminal.rs` |
//! | a page with pictures | `report/html.rs`, `report/plots.rs` |
//! | fitted curves | `report/curves.rs` |
//! | JSON | [`crate::advice::AdviceReport`], by serde |

pub mod curves;
pub mod html;
mod plots;
pub mod terminal;
