//! The three timestamps of an object row in one text: data, content type, metadata.
//!
//! `1700000002.00000+30d40+186a0`: the first in Swift's short form (offset as `_1`, without
//! zeros), the next two as signed hexadecimal ticks from the one before, their offsets lost. When all
//! three name the same tick only the first is written.

use vocabulary::Timestamp;
use vocabulary::timestamp::decode_series;

/// When data, content type and metadata were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) data: Timestamp,
    pub(crate) content_type: Timestamp,
    pub(crate) meta: Timestamp,
}

impl Times {
    /// From the `created_at` of a row; a text that is none counts as the beginning of time.
    pub(crate) fn decode(text: &str) -> Self {
        let [data, content_type, meta] = decode_series(text).unwrap_or_default();
        Self {
            data,
            content_type,
            meta,
        }
    }

    /// The spelling of `created_at`.
    pub(crate) fn encode(&self) -> String {
        let mut text = short(self.data);
        if self.content_type.ticks() != self.data.ticks() || self.meta.ticks() != self.data.ticks() {
            push_delta(&mut text, self.data, self.content_type);
            push_delta(&mut text, self.content_type, self.meta);
        }
        text
    }
}

fn short(time: Timestamp) -> String {
    match time.offset() {
        0 => time.normal(),
        offset => format!("{}_{offset:x}", time.normal()),
    }
}

fn push_delta(text: &mut String, from: Timestamp, to: Timestamp) {
    let sign = if to.ticks() >= from.ticks() { '+' } else { '-' };
    text.push(sign);
    text.push_str(&format!("{:x}", to.ticks().abs_diff(from.ticks())));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spellings observed in databases written by OpenStack Swift.
    #[test]
    fn spelled_as_openstack_spells_them() {
        let t = |s: &str| s.parse::<Timestamp>().unwrap();
        let table = [
            (
                "1700000002.00000",
                "1700000002.00000",
                "1700000002.00000",
                "1700000002.00000",
            ),
            ("1700000002", "1700000004", "1700000005", "1700000002.00000+30d40+186a0"),
            ("1700000003", "1700000003", "1700000005", "1700000003.00000+0+30d40"),
            ("1700000004", "1700000003", "1700000002", "1700000004.00000-186a0-186a0"),
            (
                "1700000001_2",
                "1700000003",
                "1700000001_2",
                "1700000001.00000_2+30d40-30d40",
            ),
            ("1700000002_1", "1700000002_1", "1700000002_1", "1700000002.00000_1"),
        ];
        for (data, content_type, meta, spelled) in table {
            let (data, content_type, meta) = (t(data), t(content_type), t(meta));
            let times = Times {
                data,
                content_type,
                meta,
            };
            assert_eq!(times.encode(), spelled);
            assert_eq!(Times::decode(spelled).data, data);
        }
        assert_eq!(Times::decode("rubbish").meta, Timestamp::ZERO);
    }
}
