//! How a container keeps the rules of its bucket: in system metadata, as text in pieces.
//!
//! ```text
//! [{"id":"logs","on":true,"pre":"logs/","exp":{"days":30}}]     JSON, up to a piece
//! z<base64 of zlib of the same>                                 where that is longer
//! ```
//! A header between servers has at most 8,192 bytes with OpenStack's, and all of a container's metadata travel with
//! every look at it: so the text is cut, packed and bounded. A bucket's pieces are written together, so that replicas
//! have one set of rules or another.
//! Always holds: what is printed is ASCII without white space at its ends, and is read back as the same; no text
//! unpacks to more than [`MOST_UNPACKED`] bytes.

use crate::rule::LifecycleRules;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read;

/// Bytes of a piece.
const PIECE: usize = 4096;
/// The headers of a container that hold the pieces.
pub const PIECE_HEADERS: [&str; 8] = [
    "x-container-sysmeta-s3api-lifecycle-0",
    "x-container-sysmeta-s3api-lifecycle-1",
    "x-container-sysmeta-s3api-lifecycle-2",
    "x-container-sysmeta-s3api-lifecycle-3",
    "x-container-sysmeta-s3api-lifecycle-4",
    "x-container-sysmeta-s3api-lifecycle-5",
    "x-container-sysmeta-s3api-lifecycle-6",
    "x-container-sysmeta-s3api-lifecycle-7",
];
/// Bytes of all pieces together: with the longest policy of a bucket half of what a server takes as headers.
pub const LARGEST_STORED: usize = PIECE * PIECE_HEADERS.len();
/// Bytes of JSON: a thousand rules with long names and several tags each.
const MOST_UNPACKED: u64 = 2 << 20;
/// In front of what is packed; JSON begins with `[`.
const PACKED: char = 'z';

/// Rules that cannot be stored, or stored text that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoredRulesError {
    /// They are too long, packed or as they are.
    #[error("the rules take more than {LARGEST_STORED} bytes as they are stored, or {MOST_UNPACKED} before")]
    TooLong,
    /// The text is damaged, or of a newer version.
    #[error("the stored lifecycle rules cannot be read")]
    Damaged,
}

impl LifecycleRules {
    /// As they are stored.
    pub fn to_text(&self) -> Result<String, StoredRulesError> {
        let json = serde_json::to_string(self).map_err(|_| StoredRulesError::Damaged)?;
        // What would not be unpacked again.
        if json.len() as u64 > MOST_UNPACKED {
            return Err(StoredRulesError::TooLong);
        }
        let text = match json.len() <= PIECE && json.is_ascii() {
            true => json,
            false => packed(&json)?,
        };
        match text.len() <= LARGEST_STORED {
            true => Ok(text),
            false => Err(StoredRulesError::TooLong),
        }
    }

    /// Of stored text.
    pub fn of_text(text: &str) -> Result<Self, StoredRulesError> {
        let read = match text.strip_prefix(PACKED) {
            Some(packed) => {
                let bytes = STANDARD_NO_PAD.decode(packed).map_err(|_| StoredRulesError::Damaged)?;
                let mut json = String::new();
                let mut unpacked = ZlibDecoder::new(&*bytes).take(MOST_UNPACKED);
                unpacked
                    .read_to_string(&mut json)
                    .map_err(|_| StoredRulesError::Damaged)?;
                serde_json::from_str(&json)
            }
            None => serde_json::from_str(text),
        };
        read.map_err(|_| StoredRulesError::Damaged)
    }
}

fn packed(json: &str) -> Result<String, StoredRulesError> {
    let mut bytes = Vec::new();
    let mut encoder = ZlibEncoder::new(json.as_bytes(), Compression::best());
    encoder.read_to_end(&mut bytes).map_err(|_| StoredRulesError::Damaged)?;
    Ok(format!("{PACKED}{}", STANDARD_NO_PAD.encode(bytes)))
}

/// The text in pieces, each with its header; empty ones take away what was stored there.
pub fn pieces(text: &str) -> impl Iterator<Item = (&'static str, &str)> {
    PIECE_HEADERS.into_iter().enumerate().map(move |(number, header)| {
        let start = (number * PIECE).min(text.len());
        // The text is ASCII.
        let piece = text.get(start..(start + PIECE).min(text.len()));
        (header, piece.unwrap_or_default())
    })
}

/// The text of pieces that `piece` finds by their headers; nothing where there are none.
pub fn text_of_pieces<'a>(piece: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let text: String = PIECE_HEADERS.into_iter().filter_map(piece).collect();
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{LifecycleExpiration, LifecycleFilter, LifecycleRule, NoncurrentExpiration};
    use std::collections::BTreeMap;

    fn rules(count: usize, name: &str) -> LifecycleRules {
        let rule = |number| LifecycleRule {
            id: format!("{name}-{number}"),
            is_enabled: true,
            filter: LifecycleFilter {
                is_rules_prefix: false,
                prefix: Some(format!("tenant-{number}/")),
                tags: vec![("k".into(), "v".into())],
                larger_than: Some(5),
                smaller_than: None,
            },
            expiration: Some(LifecycleExpiration::Days(30)),
            noncurrent: Some(NoncurrentExpiration {
                days: 3,
                newer_versions: Some(2),
            }),
            abort_after_days: Some(7),
        };
        LifecycleRules {
            rules: (0..count).map(rule).collect(),
        }
    }

    #[test]
    fn rules_come_back_from_pieces() {
        for (rules, is_packed) in [
            (LifecycleRules::default(), false),
            (rules(1, "rule"), false),
            (rules(1, "Regel für alles"), true),
            (rules(1000, "rule"), true),
        ] {
            let text = rules.to_text().unwrap();
            assert_eq!(text.starts_with('z'), is_packed);
            assert!(text.is_ascii() && text.trim() == text);
            let stored: BTreeMap<&str, &str> = pieces(&text).collect();
            assert!(stored.values().all(|piece| piece.len() <= PIECE));
            let read = text_of_pieces(|header| stored.get(header).copied()).unwrap();
            assert_eq!(LifecycleRules::of_text(&read), Ok(rules));
        }
        assert_eq!(text_of_pieces(|_| Some("")), None);
    }

    #[test]
    fn what_could_not_be_unpacked_is_not_stored() {
        let mut long = rules(1000, "rule");
        for rule in &mut long.rules {
            rule.filter.prefix = Some("\"".repeat(1024));
        }
        assert_eq!(long.to_text(), Err(StoredRulesError::TooLong));
    }

    #[test]
    fn what_is_stored_stays_readable() {
        let text =
            r#"[{"id":"a","on":true,"plain":true,"pre":"x","exp":{"date":86400}},{"id":"b","on":false,"abort":1}]"#;
        let read = LifecycleRules::of_text(text).unwrap();
        assert_eq!(read.rules[0].expiration, Some(LifecycleExpiration::Date(86_400)));
        assert_eq!(read.to_text().as_deref(), Ok(text));
    }

    #[test]
    fn damaged_text_is_no_rules() {
        let whole = rules(1000, "rule").to_text().unwrap();
        for bad in ["", "{", "z", "z!", "[{\"id\":\"a\"}]", &whole[..whole.len() / 2]] {
            assert_eq!(
                LifecycleRules::of_text(bad),
                Err(StoredRulesError::Damaged),
                "{bad:.20}"
            );
        }
        let bomb = packed(&" ".repeat(MOST_UNPACKED as usize + 1)).unwrap();
        assert_eq!(LifecycleRules::of_text(&bomb), Err(StoredRulesError::Damaged));
    }
}
