//! How rules name a target: `arn:martlet:sqs::NAME:webhook`, NAME being one that the operator has configured.
//!
//! Always holds: nothing of an address is in it, so that no client chooses where the cluster sends anything.

use serde::{Deserialize, Serialize};

/// What kind of destination a rule names. A webhook stands for each of them; only documents tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Destination {
    /// `TopicConfiguration`.
    Topic,
    /// `QueueConfiguration`.
    Queue,
    /// `CloudFunctionConfiguration`, which SDKs call a Lambda function.
    Function,
}

impl Destination {
    /// All of them, in the order of documents.
    pub const ALL: [Self; 3] = [Self::Topic, Self::Queue, Self::Function];

    /// The service in an ARN.
    pub fn service(self) -> &'static str {
        match self {
            Self::Topic => "sns",
            Self::Queue => "sqs",
            Self::Function => "lambda",
        }
    }
}

/// The longest name of a target.
const LONGEST_NAME: usize = 64;

/// Whether a target may have this name: letters, digits, `_` and `-`.
pub fn is_target_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_fine)
}

/// An ARN, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetArn<'a> {
    /// The kind of destination.
    pub destination: Destination,
    /// The target.
    pub name: &'a str,
}

impl<'a> TargetArn<'a> {
    /// Reads `arn:martlet:SERVICE:REGION:NAME:webhook`, whose region may be anything; nothing when it is no such ARN.
    pub fn read(text: &'a str) -> Option<Self> {
        let words: Vec<&str> = text.split(':').collect();
        let ["arn", "martlet", service, _, name, "webhook"] = words[..] else {
            return None;
        };
        let mut all = Destination::ALL.into_iter();
        let destination = all.find(|destination| destination.service() == service)?;
        is_target_name(name).then_some(Self { destination, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_name_targets_and_nothing_else() {
        let read = TargetArn::read("arn:martlet:sqs::billing-2:webhook").unwrap();
        assert_eq!((read.destination, read.name), (Destination::Queue, "billing-2"));
        let read = TargetArn::read("arn:martlet:lambda:us-east-1:x:webhook").unwrap();
        assert_eq!(read.destination, Destination::Function);
        for none in [
            "",
            "arn:aws:sqs:us-east-1:123456789012:queue",
            "arn:martlet:sqs:::webhook",
            "arn:martlet:sqs::a/b:webhook",
            "arn:martlet:sqs::a:webhook:",
            "arn:martlet:s3::a:webhook",
            "http://10.0.0.1/",
        ] {
            assert_eq!(TargetArn::read(none), None, "{none}");
        }
        assert!(!is_target_name(&"x".repeat(LONGEST_NAME + 1)));
    }
}
