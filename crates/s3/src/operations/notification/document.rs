//! Notification rules as XML.
//!
//! Always holds: a document with anything that is not served, or that contradicts itself, is refused as a whole and
//! says why, and so is one by which a write would be notified twice; what is printed is read back as the same rules.
//! Source: AWS, "PutBucketNotificationConfiguration", "Supported event types for SQS, SNS, and Lambda" and "Configuring
//! event notifications using object key name filtering".

use crate::error::{INVALID_ARGUMENT, MALFORMED_XML, NOT_IMPLEMENTED, S3Error};
use crate::xml::{Element, XmlWriter};
use ::notification::{Destination, EventPattern, NotificationRule, NotificationRules, TargetArn};
use std::collections::BTreeSet;

const ROOT: &str = "NotificationConfiguration";
/// Rules of a bucket.
const MOST_RULES: usize = 100;
/// Characters of an ID.
const LONGEST_ID: usize = 255;
/// Bytes of a prefix or a suffix: as many as a key has.
const LONGEST_PART: usize = 1024;

/// The element of a rule, and the one of its ARN.
fn elements(destination: Destination) -> (&'static str, &'static str) {
    match destination {
        Destination::Topic => ("TopicConfiguration", "Topic"),
        Destination::Queue => ("QueueConfiguration", "Queue"),
        Destination::Function => ("CloudFunctionConfiguration", "CloudFunction"),
    }
}

/// Reads a document. Rules without an ID have an empty one.
pub(crate) fn read(document: &[u8]) -> Result<NotificationRules, S3Error> {
    let document = Element::parse(document).map_err(|_| MALFORMED_XML)?;
    if document.name != ROOT {
        return Err(malformed("the document is no NotificationConfiguration"));
    }
    if document.children.len() > MOST_RULES {
        return Err(malformed("a configuration has at most 100 rules"));
    }
    let mut ids = BTreeSet::new();
    let mut rules = Vec::new();
    for element in &document.children {
        let rule = rule(element)?;
        if !rule.id.is_empty() && !ids.insert(rule.id.clone()) {
            return Err(INVALID_ARGUMENT
                .saying("Same ID used for multiple configurations. IDs must be unique")
                .with("ArgumentName", "Id")
                .with("ArgumentValue", rule.id));
        }
        rules.push(rule);
    }
    let rules = NotificationRules { rules };
    if let Some((event, rule)) = rules.overlap() {
        return Err(INVALID_ARGUMENT
            .saying("Configurations overlap. Configurations on the same bucket cannot share a common event type.")
            .with("ArgumentName", "Event")
            .with("ArgumentValue", EventPattern::Only(event).text())
            .with("ConfigurationId", rule.id.as_str()));
    }
    Ok(rules)
}

fn malformed(why: &str) -> S3Error {
    MALFORMED_XML.saying(format!("{}: {why}.", MALFORMED_XML.message))
}

/// Refuses elements other than these, and those that come twice but for these that may.
fn only(parent: &Element, known: &[&str], repeated: &str) -> Result<(), S3Error> {
    for (number, child) in parent.children.iter().enumerate() {
        let name = child.name.as_str();
        if !known.contains(&name) {
            return Err(malformed(&format!("{} has no element {name:?}", parent.name)));
        }
        let is_second = parent.children.iter().take(number).any(|other| other.name == name);
        if is_second && name != repeated {
            return Err(malformed(&format!("{} has {name} twice", parent.name)));
        }
    }
    Ok(())
}

fn rule(element: &Element) -> Result<NotificationRule, S3Error> {
    if element.name == "EventBridgeConfiguration" {
        return Err(NOT_IMPLEMENTED
            .saying("EventBridge is not served: events go to webhooks. Nothing of the configuration was stored.")
            .with("ResourceType", "EventBridgeConfiguration"));
    }
    let mut all = Destination::ALL.into_iter();
    let destination = all.find(|destination| elements(*destination).0 == element.name);
    let destination = destination.ok_or_else(|| malformed(&format!("{ROOT} has no element {:?}", element.name)))?;
    let (_, arn_element) = elements(destination);
    only(element, &["Id", arn_element, "Event", "Filter"], "Event")?;
    let id = element.text_of("Id").unwrap_or_default();
    if id.chars().count() > LONGEST_ID {
        return Err(INVALID_ARGUMENT.saying("ID length should not exceed allowed limit of 255"));
    }
    let arn = element.text_of(arn_element).unwrap_or_default();
    if TargetArn::read(arn).is_none_or(|read| read.destination != destination) {
        return Err(INVALID_ARGUMENT
            .saying(format!(
                "The ARN is not well formed. One of a {arn_element} is arn:martlet:{}::NAME:webhook, NAME being a \
                 target of the cluster",
                destination.service()
            ))
            .with("ArgumentName", arn_element)
            .with("ArgumentValue", arn));
    }
    let events = element
        .all("Event")
        .map(|event| pattern(event.text.trim()))
        .collect::<Result<Vec<_>, _>>()?;
    if events.is_empty() {
        return Err(malformed(&format!("{} has at least one Event", element.name)));
    }
    let (prefix, suffix) = element.child("Filter").map_or(Ok((None, None)), filter)?;
    Ok(NotificationRule {
        id: id.to_owned(),
        arn: arn.to_owned(),
        events,
        prefix,
        suffix,
    })
}

fn pattern(text: &str) -> Result<EventPattern, S3Error> {
    EventPattern::read(text).ok_or_else(|| {
        INVALID_ARGUMENT
            .saying(format!(
                "The event {text:?} is not supported for notifications. Served are s3:ObjectCreated:* and :Put, :Post, \
                 :Copy, :CompleteMultipartUpload, s3:ObjectRemoved:* and :Delete, :DeleteMarkerCreated"
            ))
            .with("ArgumentName", "Event")
            .with("ArgumentValue", text)
    })
}

type Filter = (Option<String>, Option<String>);

/// Prefix and suffix.
fn filter(element: &Element) -> Result<Filter, S3Error> {
    only(element, &["S3Key"], "")?;
    let Some(key) = element.child("S3Key") else {
        return Ok((None, None));
    };
    only(key, &["FilterRule"], "FilterRule")?;
    let (mut prefix, mut suffix) = (None, None);
    for rule in key.all("FilterRule") {
        only(rule, &["Name", "Value"], "")?;
        let name = rule.text_of("Name").unwrap_or_default().to_ascii_lowercase();
        let part = match name.as_str() {
            "prefix" => &mut prefix,
            "suffix" => &mut suffix,
            _ => {
                return Err(INVALID_ARGUMENT
                    .saying("filter rule name must be either prefix or suffix")
                    .with("ArgumentName", "FilterRule.Name")
                    .with("ArgumentValue", name));
            }
        };
        if part.is_some() {
            return Err(INVALID_ARGUMENT
                .saying(format!("Cannot specify more than one {name} rule in a filter."))
                .with("ArgumentName", "FilterRule.Name"));
        }
        // White space belongs to keys.
        let value = rule.child("Value").map(|value| value.text.clone());
        let value = value.ok_or_else(|| malformed("a FilterRule has Name and Value"))?;
        if value.len() > LONGEST_PART {
            return Err(INVALID_ARGUMENT
                .saying("Size of filter rule value cannot exceed 1024 bytes in UTF-8 representation")
                .with("ArgumentName", "FilterRule.Value"));
        }
        *part = Some(value);
    }
    Ok((prefix, suffix))
}

/// The document of these rules.
pub(crate) fn print(rules: &NotificationRules) -> XmlWriter {
    let mut xml = XmlWriter::document(ROOT);
    for rule in &rules.rules {
        let (element, arn) = elements(rule.destination());
        xml.open(element);
        xml.text("Id", &rule.id);
        xml.text(arn, &rule.arn);
        for event in &rule.events {
            xml.text("Event", &event.text());
        }
        let parts = [("prefix", &rule.prefix), ("suffix", &rule.suffix)];
        let parts: Vec<_> = parts
            .into_iter()
            .filter_map(|(name, part)| Some((name, part.as_ref()?)))
            .collect();
        if !parts.is_empty() {
            xml.open("Filter");
            xml.open("S3Key");
            for (name, part) in parts {
                xml.open("FilterRule");
                xml.text("Name", name);
                xml.text("Value", part);
                xml.close();
            }
            xml.close();
            xml.close();
        }
        xml.close();
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "<Queue>arn:martlet:sqs::hook:webhook</Queue>";
    const PUT: &str = "<Event>s3:ObjectCreated:Put</Event>";
    const COPY: &str = "<Event>s3:ObjectCreated:Copy</Event>";
    const POST: &str = "<Event>s3:ObjectCreated:Post</Event>";

    fn of(inside: &str) -> Result<NotificationRules, S3Error> {
        read(format!("<{ROOT}>{inside}</{ROOT}>").as_bytes())
    }

    fn of_queue(inside: &str) -> Result<NotificationRules, S3Error> {
        of(&format!("<QueueConfiguration>{inside}</QueueConfiguration>"))
    }

    #[test]
    fn documents_come_back_as_they_were_sent() {
        assert_eq!(of(""), Ok(NotificationRules::default()));
        for inside in [
            format!("<QueueConfiguration><Id>a</Id>{ARN}{PUT}</QueueConfiguration>"),
            format!(
                "<QueueConfiguration><Id>ü</Id>{ARN}{PUT}<Event>s3:ObjectRemoved:*</Event><Filter><S3Key><FilterRule>\
                 <Name>Prefix</Name><Value> in/</Value></FilterRule><FilterRule><Name>suffix</Name><Value>.j</Value>\
                 </FilterRule></S3Key></Filter></QueueConfiguration><TopicConfiguration><Id>b</Id>\
                 <Topic>arn:martlet:sns::hook:webhook</Topic>{COPY}</TopicConfiguration><CloudFunctionConfiguration>\
                 <Id>c</Id><CloudFunction>arn:martlet:lambda:eu:hook:webhook</CloudFunction>{POST}\
                 </CloudFunctionConfiguration>"
            ),
        ] {
            let rules = of(&inside).unwrap();
            assert_eq!(read(print(&rules).finish().as_bytes()), Ok(rules), "{inside}");
        }
        let rule = &of_queue(&format!("{ARN}{PUT}<Filter/>")).unwrap().rules[0];
        assert_eq!(
            (rule.id.as_str(), &rule.prefix, rule.target()),
            ("", &None, Some("hook"))
        );
    }

    #[test]
    fn what_is_wrong_is_refused_by_its_name() {
        let filter = |rules: &str| format!("{ARN}{PUT}<Filter><S3Key>{rules}</S3Key></Filter>");
        let part =
            |name: &str, value: &str| format!("<FilterRule><Name>{name}</Name><Value>{value}</Value></FilterRule>");
        for (inside, code, words) in [
            (ARN.to_owned(), "MalformedXML", "at least one Event"),
            (PUT.to_owned(), "InvalidArgument", "arn:martlet:sqs::NAME:webhook"),
            (format!("{ARN}{ARN}{PUT}"), "MalformedXML", "Queue twice"),
            (format!("{ARN}{PUT}<Other/>"), "MalformedXML", "Other"),
            (
                format!("<Topic>arn:martlet:sns::hook:webhook</Topic>{PUT}"),
                "MalformedXML",
                "Topic",
            ),
            (
                format!("<Queue>arn:martlet:sns::hook:webhook</Queue>{PUT}"),
                "InvalidArgument",
                "not well formed",
            ),
            (
                format!("<Queue>http://169.254.169.254/</Queue>{PUT}"),
                "InvalidArgument",
                "not well formed",
            ),
            (
                format!("{ARN}<Event>s3:LifecycleTransition</Event>"),
                "InvalidArgument",
                "s3:LifecycleTransition",
            ),
            (
                format!("<Id>{}</Id>{ARN}{PUT}", "x".repeat(256)),
                "InvalidArgument",
                "255",
            ),
            (filter(&part("middle", "x")), "InvalidArgument", "prefix or suffix"),
            (
                filter(&[part("prefix", "x"), part("Prefix", "y")].concat()),
                "InvalidArgument",
                "more than one prefix",
            ),
            (filter(&part("suffix", &"x".repeat(1025))), "InvalidArgument", "1024"),
            (
                filter("<FilterRule><Name>prefix</Name></FilterRule>"),
                "MalformedXML",
                "Name and Value",
            ),
        ] {
            let error = of_queue(&inside).unwrap_err();
            assert_eq!(error.code.name, code, "{inside}");
            assert!(error.words().contains(words), "{inside}: {}", error.words());
        }
        let queue = format!("<QueueConfiguration><Id>a</Id>{ARN}{PUT}</QueueConfiguration>");
        for (inside, code) in [
            (queue.repeat(2), "InvalidArgument"),
            (queue.replace("<Id>a</Id>", "").repeat(101), "MalformedXML"),
            ("<EventBridgeConfiguration/>".to_owned(), "NotImplemented"),
            ("<Other/>".to_owned(), "MalformedXML"),
        ] {
            assert_eq!(of(&inside).unwrap_err().code.name, code);
        }
        assert_eq!(read(b"<Other/>").unwrap_err().code.name, "MalformedXML");
    }

    /// Whatever their targets are.
    #[test]
    fn rules_that_overlap_are_refused_and_others_are_not() {
        let queue = |id: &str, event: &str, prefix: &str| {
            format!(
                "<QueueConfiguration><Id>{id}</Id>{ARN}<Event>s3:{event}</Event><Filter><S3Key><FilterRule>\
                 <Name>prefix</Name><Value>{prefix}</Value></FilterRule></S3Key></Filter></QueueConfiguration>"
            )
        };
        let topic = format!(
            "<TopicConfiguration><Id>t</Id><Topic>arn:martlet:sns::other:webhook</Topic>{PUT}</TopicConfiguration>"
        );
        let first = queue("a", "ObjectCreated:*", "in/");
        for second in [
            queue("b", "ObjectCreated:*", "in/"),
            queue("b", "ObjectCreated:Put", "in/deeper"),
            topic.clone(),
        ] {
            let error = of(&format!("{first}{second}")).unwrap_err();
            assert_eq!(error.code.name, "InvalidArgument");
            assert!(error.words().starts_with("Configurations overlap."), "{second}");
        }
        let fine = [
            first,
            queue("b", "ObjectCreated:*", "out/"),
            queue("c", "ObjectRemoved:*", "in/"),
        ];
        assert_eq!(of(&fine.concat()).unwrap().rules.len(), 3);
    }
}
