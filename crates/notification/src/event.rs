//! Events of objects, and the patterns by which rules name them.
//!
//! Source: AWS, "Supported event types for SQS, SNS, and Lambda".

use serde::{Deserialize, Serialize};

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectEvent {
    /// Written by a PUT.
    Put,
    /// Written by a form of a browser.
    Post,
    /// Copied.
    Copy,
    /// Made of parts.
    CompleteMultipartUpload,
    /// Deleted, or one version of it.
    Delete,
    /// Hidden by a delete marker.
    DeleteMarkerCreated,
    /// Deleted by a lifecycle rule, or one version of it.
    LifecycleDelete,
    /// Hidden by a delete marker by a lifecycle rule.
    LifecycleDeleteMarkerCreated,
}

impl ObjectEvent {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Put,
        Self::Post,
        Self::Copy,
        Self::CompleteMultipartUpload,
        Self::Delete,
        Self::DeleteMarkerCreated,
        Self::LifecycleDelete,
        Self::LifecycleDeleteMarkerCreated,
    ];

    /// As records of events have it: `ObjectCreated:Put`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "ObjectCreated:Put",
            Self::Post => "ObjectCreated:Post",
            Self::Copy => "ObjectCreated:Copy",
            Self::CompleteMultipartUpload => "ObjectCreated:CompleteMultipartUpload",
            Self::Delete => "ObjectRemoved:Delete",
            Self::DeleteMarkerCreated => "ObjectRemoved:DeleteMarkerCreated",
            Self::LifecycleDelete => "LifecycleExpiration:Delete",
            Self::LifecycleDeleteMarkerCreated => "LifecycleExpiration:DeleteMarkerCreated",
        }
    }

    /// Whether the object, or a version of it, has gone.
    pub fn is_removal(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteMarkerCreated) || self.is_of_lifecycle()
    }

    /// Whether a lifecycle rule, and no client, has done it.
    pub fn is_of_lifecycle(self) -> bool {
        matches!(self, Self::LifecycleDelete | Self::LifecycleDeleteMarkerCreated)
    }
}

/// Events that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum EventPattern {
    /// `s3:ObjectCreated:*`.
    Created,
    /// `s3:ObjectRemoved:*`: by clients.
    Removed,
    /// `s3:LifecycleExpiration:*`.
    Expired,
    /// One kind.
    Only(ObjectEvent),
}

impl EventPattern {
    /// Reads `s3:ObjectCreated:Put`; nothing when it is no event that is served.
    pub fn read(text: &str) -> Option<Self> {
        let name = text.strip_prefix("s3:")?;
        match name {
            "ObjectCreated:*" => Some(Self::Created),
            "ObjectRemoved:*" => Some(Self::Removed),
            "LifecycleExpiration:*" => Some(Self::Expired),
            _ => {
                let mut all = ObjectEvent::ALL.into_iter();
                all.find(|event| event.name() == name).map(Self::Only)
            }
        }
    }

    /// Whether an event is among them.
    pub fn fits(self, event: ObjectEvent) -> bool {
        match self {
            Self::Created => !event.is_removal(),
            Self::Removed => event.is_removal() && !event.is_of_lifecycle(),
            Self::Expired => event.is_of_lifecycle(),
            Self::Only(only) => only == event,
        }
    }

    /// As documents have it.
    pub fn text(self) -> String {
        let name = match self {
            Self::Created => "ObjectCreated:*",
            Self::Removed => "ObjectRemoved:*",
            Self::Expired => "LifecycleExpiration:*",
            Self::Only(event) => event.name(),
        };
        format!("s3:{name}")
    }
}

impl TryFrom<String> for EventPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text).ok_or_else(|| format!("{text:?} is no event"))
    }
}

impl From<EventPattern> for String {
    fn from(pattern: EventPattern) -> Self {
        pattern.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_name() {
        for (text, fitting) in [
            ("s3:ObjectCreated:*", &ObjectEvent::ALL[..4]),
            ("s3:ObjectRemoved:*", &ObjectEvent::ALL[4..6]),
            ("s3:LifecycleExpiration:*", &ObjectEvent::ALL[6..]),
            ("s3:LifecycleExpiration:Delete", &[ObjectEvent::LifecycleDelete]),
            ("s3:ObjectCreated:Copy", &[ObjectEvent::Copy]),
            (
                "s3:ObjectRemoved:DeleteMarkerCreated",
                &[ObjectEvent::DeleteMarkerCreated],
            ),
        ] {
            let pattern = EventPattern::read(text).unwrap();
            let found: Vec<_> = ObjectEvent::ALL
                .into_iter()
                .filter(|event| pattern.fits(*event))
                .collect();
            assert_eq!(found, fitting, "{text}");
            assert_eq!(pattern.text(), text);
        }
        for none in [
            "",
            "ObjectCreated:Put",
            "s3:ObjectCreated",
            "s3:objectcreated:put",
            "s3:*",
            "s3:ObjectRestore:*",
            "s3:LifecycleTransition",
        ] {
            assert_eq!(EventPattern::read(none), None, "{none}");
        }
    }
}
