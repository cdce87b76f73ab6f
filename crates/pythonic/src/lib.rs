//! JSON, texts and numbers as Python prints and reads them, since that is what OpenStack's files hold, its programs
//! print and its clients have always received.
//!
//! What always holds: JSON is ASCII and reads back as the same value; no text and no value makes anything here panic.
//! What it does not do: pickles (the crate `pickle` has them), and what any of it means.
//!
//! | as Python | here | file |
//! |---|---|---|
//! | `json.dumps(value)`, with `sort_keys=True` | [`json`], [`json_sorted`] | `value.rs` |
//! | `json.dumps(text)`; `ensure_ascii` over a document | [`json_text`], [`json_ascii`] | `text.rs` |
//! | `repr(value)` of what `json.loads` made | [`repr`] | `value.rs` |
//! | `repr(text)`, `repr(float)` | [`quoted`], [`float`] | `text.rs`, `number.rs` |
//! | `int(text)`, `round(float, digits)` | [`int`], [`round`] | `number.rs` |

mod number;
mod text;
mod value;

pub use number::{float, int, round};
pub use text::{json_ascii, json_text, quoted};
pub use value::{json, json_sorted, repr};
