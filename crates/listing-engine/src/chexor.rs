//! `chexor`: the SQL function that keeps a database's hash, in which the order of rows does not matter.
//!
//! Each row contributes MD5 of `name-timestamp`; contributions are combined by XOR, so adding and
//! removing a row are the same operation. Two replicas with equal hashes list the same rows.

use md5::{Digest, Md5};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use vocabulary::PathHash;

/// `old` with the contribution of `name` at `timestamp` toggled; `None` when `old` is no hash.
pub fn chexor(old: &str, name: &str, timestamp: &str) -> Option<String> {
    let old = PathHash::from_hex(old)?;
    let mut md5 = Md5::new();
    md5.update(name);
    md5.update("-");
    md5.update(timestamp);
    let row: [u8; 16] = md5.finalize().into();
    Some(PathHash(std::array::from_fn(|i| old.0[i] ^ row[i])).hex())
}

/// Makes the function known to the triggers.
pub(crate) fn register(connection: &Connection) -> rusqlite::Result<()> {
    // Innocuous: else a schema that is not trusted could not use it (`connection.rs`).
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("chexor", 3, flags, |call| {
        let text = |i| {
            call.get_raw(i)
                .as_str()
                .map_err(|e| rusqlite::Error::UserFunctionError(Box::new(e)))
        };
        chexor(text(0)?, text(1)?, text(2)?)
            .ok_or_else(|| rusqlite::Error::UserFunctionError("the stored hash is not 32 hexadecimal digits".into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value comes from an account database written by OpenStack Swift.
    #[test]
    fn equals_openstacks_and_undoes_itself() {
        let zero = "0".repeat(32);
        let one = chexor(&zero, "c1", "1700000001.00000-0-3-4").unwrap();
        assert_eq!(one, "6cd0d1c655c4dfd7f9bf82e472b6e8d6");
        assert_eq!(chexor(&one, "c1", "1700000001.00000-0-3-4").unwrap(), zero);
        assert_eq!(chexor("rubbish", "c1", "1"), None);
    }
}
