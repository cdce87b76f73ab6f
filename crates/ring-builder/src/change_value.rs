//! What `set_info` changes: `1.2.3.4:5678R5.6.7.8:9012/sdb1_remark`, any part left out, but not all.

use crate::device_options::{as_port, device_name};
use crate::search_value::Rest;
use placement::builder::Change;
use pythonic::quoted;
use vocabulary::Fault;

/// Reads a change value.
pub fn read(value: &str) -> Result<Change, Fault> {
    let mut rest = Rest(value);
    let port = |number: Option<i64>| number.map(|it| as_port(it, "port")).transpose();
    let mut change = Change {
        ip: rest.ip()?,
        port: port(rest.number_after(':')?)?,
        ..Change::default()
    };
    if rest.skip('R') {
        change.replication_ip = rest.ip()?;
        change.replication_port = port(rest.number_after(':')?)?;
    }
    change.device = rest.name().as_deref().map(device_name).transpose()?;
    change.meta = rest.remark();
    if rest.0.is_empty() && change != Change::default() {
        return Ok(change);
    }
    Err(Fault::caller(format!(
        "Invalid set info change value: {}",
        quoted(value)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_part_may_change() {
        let change = read("[::1]:55R[::2]:66/sdr_x_y").unwrap();
        assert_eq!((change.ip.as_deref(), change.port), (Some("::1"), Some(55)));
        assert_eq!(
            (change.replication_ip.as_deref(), change.replication_port),
            (Some("::2"), Some(66))
        );
        assert_eq!(
            (change.device.as_deref(), change.meta.as_deref()),
            (Some("sdr"), Some("x_y"))
        );
        assert_eq!(read("R:78").unwrap().replication_port, Some(78));
        assert_eq!(read("_").unwrap().meta.as_deref(), Some(""));
    }

    #[test]
    fn errors_have_openstacks_words() {
        let why = |value| read(value).unwrap_err().what;
        for value in ["", "R", "foo", "node.example.org", "1.2.3.4x"] {
            assert_eq!(why(value), format!("Invalid set info change value: '{value}'"));
        }
        assert_eq!(why(":x"), "invalid literal for int() with base 10: ''");
        assert_eq!(why("300.1.1.1"), "Invalid ip 300.1.1.1");
        assert_eq!(why("/ bad"), "Invalid device name");
        assert!(why(":66000").contains("66000"));
    }

    proptest! {
        #[test]
        fn nothing_panics(value in "[0-9\\[\\]:./_R x-]{0,30}|.*") {
            let _ = read(&value);
        }
    }
}
