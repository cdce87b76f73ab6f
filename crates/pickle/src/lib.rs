//! Python pickles as plain data: a byte-exact writer and a reader that refuses anything but data.
//!
//! OpenStack Swift keeps object metadata, suffix hashes, pending listing rows and builder files as
//! pickles. [`dumps`] writes what CPython 3.11 writes at protocol 2 for the same data, byte for
//! byte; [`dumps_protocol0`] does so for the text protocol that `async_pending` files use.
//! [`loads`] reads protocols 0 to 5. For dictionaries of text and of bytes there
//! are [`loads_flat`], [`loads_bytes`] and [`DictWriter`], which make no value of each entry.
//!
//! What always holds: reading runs no code, imports nothing, needs memory in proportion to the
//! input and the [`PickleLimits`], and never panics. The only globals accepted are those that stand for
//! data, the same ones Swift's own restricted unpickler lets pass; any other is refused by name.
//!
//! What it does not do: files, base64, or the meaning of what it reads.
//!
//! Bytes drawn in `docs/formats/pickle.md`; golden files written by CPython in `tests/golden`.

mod error;
mod expand;
mod flat;
mod limits;
mod machine;
mod memo;
mod node;
mod opcode;
mod protocol;
mod read;
mod reduce;
mod text;
mod value;
mod write;
mod write_text;

pub use error::PickleError;
pub use flat::{BytesEntry, DictWriter, Flat, loads_bytes, loads_flat};
pub use limits::PickleLimits;
pub use read::loads;
pub use value::{ArrayCode, Value};
pub use write::dumps;
pub use write_text::dumps_protocol0;
