//! A bucket's rules: which events go to which target, and how a container keeps that.
//!
//! ```text
//! [{"id":"new","to":"arn:martlet:sqs::billing:webhook","on":["s3:ObjectCreated:*"],"pre":"in/","suf":".pdf"}]
//! ```
//! Always holds: what is printed is ASCII, at most [`LONGEST_STORED`] bytes, and read back as the same.

use crate::arn::{Destination, TargetArn};
use crate::event::{EventPattern, ObjectEvent};
use serde::{Deserialize, Serialize};

/// System metadata of a container, as the gateway describes it.
pub const CONFIGURATION: &str = "s3api-notification";
/// The same as a header.
pub const STORED_RULES: &str = "x-container-sysmeta-s3api-notification";
/// Bytes of the stored text. A header between servers has at most 8,192 bytes with OpenStack's.
const LONGEST_STORED: usize = 7_000;

/// Which events go to a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotificationRule {
    /// Its name, in documents and in records of its events.
    #[serde(rename = "id")]
    pub id: String,
    /// The ARN, as the client has sent it.
    #[serde(rename = "to")]
    pub arn: String,
    /// The events.
    #[serde(rename = "on")]
    pub events: Vec<EventPattern>,
    /// Keys begin with this.
    #[serde(rename = "pre", default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Keys end with this.
    #[serde(rename = "suf", default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
}

impl NotificationRule {
    /// The target; nothing where the ARN is none of ours.
    pub fn target(&self) -> Option<&str> {
        TargetArn::read(&self.arn).map(|arn| arn.name)
    }

    /// The kind of its destination.
    pub fn destination(&self) -> Destination {
        TargetArn::read(&self.arn).map_or(Destination::Queue, |arn| arn.destination)
    }

    /// Whether it is about this event of this key.
    pub fn fits(&self, event: ObjectEvent, key: &str) -> bool {
        let begins = self.prefix.as_deref().is_none_or(|prefix| key.starts_with(prefix));
        let ends = self.suffix.as_deref().is_none_or(|suffix| key.ends_with(suffix));
        begins && ends && self.names(event)
    }

    fn names(&self, event: ObjectEvent) -> bool {
        self.events.iter().any(|pattern| pattern.fits(event))
    }

    /// An event that both are about, of some key.
    fn common_event(&self, other: &Self) -> Option<ObjectEvent> {
        let texts =
            |part: fn(&Self) -> &Option<String>| [self, other].map(|rule| part(rule).as_deref().unwrap_or_default());
        let [one, two] = texts(|rule| &rule.prefix);
        let begin_alike = one.starts_with(two) || two.starts_with(one);
        let [one, two] = texts(|rule| &rule.suffix);
        let end_alike = one.ends_with(two) || two.ends_with(one);
        let mut events = ObjectEvent::ALL.into_iter().filter(|_| begin_alike && end_alike);
        events.find(|event| self.names(*event) && other.names(*event))
    }
}

/// All rules of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NotificationRules {
    /// In the order of the document.
    pub rules: Vec<NotificationRule>,
}

/// Rules that cannot be stored, or stored text that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoredNotificationError {
    /// They are too long.
    #[error("the configuration takes more than {LONGEST_STORED} bytes as it is stored")]
    TooLong,
    /// The text is damaged, or of a newer version.
    #[error("the stored notification configuration cannot be read")]
    Damaged,
}

impl NotificationRules {
    /// An event that two rules are about, and the later one of them: a configuration has none such, though one that was
    /// stored before that was asked may have. Prefixes overlap where one begins with the other, suffixes where one ends
    /// with the other, and no filter overlaps with all.
    pub fn overlap(&self) -> Option<(ObjectEvent, &NotificationRule)> {
        self.rules.iter().enumerate().find_map(|(number, rule)| {
            let before = self.rules.iter().take(number);
            let event = before.filter_map(|other| rule.common_event(other)).next()?;
            Some((event, rule))
        })
    }

    /// As they are stored; empty where there are none.
    pub fn to_text(&self) -> Result<String, StoredNotificationError> {
        if self.rules.is_empty() {
            return Ok(String::new());
        }
        let json = serde_json::to_string(self).map_err(|_| StoredNotificationError::Damaged)?;
        let text = ascii(&json);
        match text.len() <= LONGEST_STORED {
            true => Ok(text),
            false => Err(StoredNotificationError::TooLong),
        }
    }

    /// Of stored text; an empty one has no rules.
    pub fn of_text(text: &str) -> Result<Self, StoredNotificationError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let rules: Self = serde_json::from_str(text).map_err(|_| StoredNotificationError::Damaged)?;
        let is_fine = rules.rules.iter().all(|rule| rule.target().is_some());
        is_fine.then_some(rules).ok_or(StoredNotificationError::Damaged)
    }
}

/// JSON with everything that is not printable ASCII escaped: beyond ASCII there are only letters of its texts.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            ' '..='~' => text.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(prefix: Option<&str>, suffix: Option<&str>) -> NotificationRule {
        NotificationRule {
            id: "new".into(),
            arn: "arn:martlet:sqs::billing:webhook".into(),
            events: vec![EventPattern::Created, EventPattern::Only(ObjectEvent::Delete)],
            prefix: prefix.map(str::to_owned),
            suffix: suffix.map(str::to_owned),
        }
    }

    #[test]
    fn rules_fit_events_of_their_keys() {
        for (prefix, suffix, key, event, fits) in [
            (None, None, "k", ObjectEvent::Put, true),
            (None, None, "k", ObjectEvent::Delete, true),
            (None, None, "k", ObjectEvent::DeleteMarkerCreated, false),
            (Some("in/"), None, "in/k", ObjectEvent::Copy, true),
            (Some("in/"), None, "ink", ObjectEvent::Copy, false),
            (Some("in/"), Some(".pdf"), "in/k.pdf", ObjectEvent::Post, true),
            (Some("in/"), Some(".pdf"), "in/k.PDF", ObjectEvent::Post, false),
        ] {
            assert_eq!(
                rule(prefix, suffix).fits(event, key),
                fits,
                "{prefix:?} {suffix:?} {key}"
            );
        }
    }

    #[test]
    fn rules_overlap_where_an_event_of_a_key_may_fit_both() {
        use EventPattern::{Created, Expired, Only, Removed};
        let of = |event, prefix: &str, suffix: &str| NotificationRule {
            events: vec![event],
            ..rule(
                Some(prefix).filter(|part| !part.is_empty()),
                Some(suffix).filter(|part| !part.is_empty()),
            )
        };
        let (put, delete) = (ObjectEvent::Put, ObjectEvent::Delete);
        for (one, two, common) in [
            (of(Created, "", ""), of(Created, "", ""), Some(put)),
            (of(Created, "", ""), of(Only(put), "in/", ".jpg"), Some(put)),
            (of(Created, "", ""), of(Removed, "", ""), None),
            (of(Removed, "", ""), of(Expired, "", ""), None),
            (of(Only(put), "", ""), of(Only(ObjectEvent::Copy), "", ""), None),
            (of(Removed, "a", ""), of(Only(delete), "ab", ""), Some(delete)),
            (of(Created, "a", ""), of(Created, "b", ""), None),
            (of(Created, "", ".jpg"), of(Created, "", ".png"), None),
            (of(Created, "", "g"), of(Created, "", ".png"), Some(put)),
            (of(Created, "in/", ""), of(Created, "", ".png"), Some(put)),
            (of(Created, "in/", ".jpg"), of(Created, "in/", ".png"), None),
            (of(Created, "in/", ".jpg"), of(Created, "out/", ".jpg"), None),
        ] {
            for pair in [[one.clone(), two.clone()], [two, one]] {
                let third = NotificationRule {
                    events: vec![],
                    ..rule(None, None)
                };
                let [first, second] = pair;
                let rules = NotificationRules {
                    rules: vec![first, third, second.clone()],
                };
                assert_eq!(rules.overlap(), common.map(|event| (event, &second)), "{rules:?}");
            }
        }
    }

    #[test]
    fn damaged_text_is_no_other_rules() {
        assert_eq!(NotificationRules::of_text(""), Ok(NotificationRules::default()));
        let text = NotificationRules {
            rules: vec![rule(None, None)],
        }
        .to_text()
        .unwrap();
        for damaged in [
            "x".to_owned(),
            text[..text.len() - 1].to_owned(),
            text.replace("s3:ObjectCreated:*", "s3:Other:*"),
            text.replace("arn:martlet", "arn:other"),
            text.replace("\"on\"", "\"other\""),
        ] {
            assert_eq!(
                NotificationRules::of_text(&damaged),
                Err(StoredNotificationError::Damaged),
                "{damaged}"
            );
        }
        let long = NotificationRules {
            rules: vec![rule(Some(&"x".repeat(LONGEST_STORED)), None)],
        };
        assert_eq!(long.to_text(), Err(StoredNotificationError::TooLong));
    }

    proptest! {
        #[test]
        fn rules_are_read_back(prefix in "\\PC{0,20}", suffix in ".{0,20}") {
            let rules = NotificationRules { rules: vec![rule(Some(&prefix), Some(&suffix)), rule(None, None)] };
            let text = rules.to_text().unwrap();
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(NotificationRules::of_text(&text), Ok(rules));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = NotificationRules::of_text(&text);
        }
    }
}
