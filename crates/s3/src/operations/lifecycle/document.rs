//! Lifecycle rules as XML.
//!
//! Always holds: a document with anything that is not served, or that contradicts itself, is refused as a whole and
//! says why; what is printed is read back as the same rules.
//! Source: AWS, "PutBucketLifecycleConfiguration" and "Lifecycle configuration elements".

use crate::error::{INVALID_ARGUMENT, INVALID_REQUEST, MALFORMED_XML, NOT_IMPLEMENTED, S3Error};
use crate::operations::tag_set::TagSet;
use crate::xml::{Element, XmlWriter};
use ::lifecycle::{LifecycleExpiration, LifecycleFilter, LifecycleRule, LifecycleRules, NoncurrentExpiration};
use std::collections::BTreeSet;
use vocabulary::calendar;

const ROOT: &str = "LifecycleConfiguration";
/// Rules of a bucket.
const MOST_RULES: usize = 1000;
/// Characters of an ID.
const LONGEST_ID: usize = 255;
/// Bytes of a prefix: as many as a key has.
const LONGEST_PREFIX: usize = 1024;
/// Newer versions that a rule keeps.
const MOST_KEPT: u32 = 100;
const DAY: u64 = 24 * 60 * 60;
/// Actions that move objects to another storage class, of which there is one.
const TRANSITIONS: [&str; 2] = ["Transition", "NoncurrentVersionTransition"];

/// Reads a document. Rules without an ID have an empty one.
pub(crate) fn read(document: &[u8]) -> Result<LifecycleRules, S3Error> {
    let document = Element::parse(document).map_err(|_| MALFORMED_XML)?;
    if document.name != ROOT {
        return Err(malformed("the document is no LifecycleConfiguration"));
    }
    only(&document, &["Rule"])?;
    if !(1..=MOST_RULES).contains(&document.children.len()) {
        return Err(malformed("a configuration has 1 to 1000 rules"));
    }
    let rules = document.children.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    let mut ids = BTreeSet::new();
    let named = rules.iter().map(|rule| &rule.id).filter(|id| !id.is_empty());
    for id in named {
        if !ids.insert(id) {
            return Err(INVALID_ARGUMENT
                .saying("Rule ID must be unique. Found same ID for more than one rule")
                .with("ArgumentName", "ID")
                .with("ArgumentValue", id));
        }
    }
    Ok(LifecycleRules { rules })
}

fn malformed(why: &str) -> S3Error {
    MALFORMED_XML.saying(format!("{}: {why}.", MALFORMED_XML.message))
}

/// Refuses elements other than these, and those that come twice but for rules and tags.
fn only(parent: &Element, known: &[&str]) -> Result<(), S3Error> {
    for (number, child) in parent.children.iter().enumerate() {
        let name = child.name.as_str();
        if !known.contains(&name) {
            return Err(malformed(&format!("{} has no element {name:?}", parent.name)));
        }
        let repeats = parent.children.iter().take(number).any(|other| other.name == name);
        if repeats && !["Rule", "Tag"].contains(&name) {
            return Err(malformed(&format!("{} has {name} twice", parent.name)));
        }
    }
    Ok(())
}

fn rule(element: &Element) -> Result<LifecycleRule, S3Error> {
    for name in TRANSITIONS {
        if element.child(name).is_some() {
            return Err(NOT_IMPLEMENTED
                .saying(format!(
                    "{name} is not served: there is one storage class, STANDARD. Nothing of the configuration was stored."
                ))
                .with("ResourceType", name));
        }
    }
    only(
        element,
        &[
            "ID",
            "Status",
            "Filter",
            "Prefix",
            "Expiration",
            "NoncurrentVersionExpiration",
            "AbortIncompleteMultipartUpload",
        ],
    )?;
    let id = element.text_of("ID").unwrap_or_default();
    if id.chars().count() > LONGEST_ID {
        return Err(INVALID_ARGUMENT.saying("ID length should not exceed allowed limit of 255"));
    }
    let is_enabled = match element.text_of("Status") {
        Some("Enabled") => true,
        Some("Disabled") => false,
        _ => return Err(malformed("the Status of a rule is Enabled or Disabled")),
    };
    let rule = LifecycleRule {
        id: id.to_owned(),
        is_enabled,
        filter: filter_of_rule(element)?,
        expiration: element.child("Expiration").map(expiration).transpose()?,
        noncurrent: element
            .child("NoncurrentVersionExpiration")
            .map(noncurrent)
            .transpose()?,
        abort_after_days: element.child("AbortIncompleteMultipartUpload").map(abort).transpose()?,
    };
    check(&rule)?;
    Ok(rule)
}

/// Refuses a rule that does nothing, and filters with actions that they cannot be about.
fn check(rule: &LifecycleRule) -> Result<(), S3Error> {
    if rule.expiration.is_none() && rule.noncurrent.is_none() && rule.abort_after_days.is_none() {
        return Err(INVALID_REQUEST.saying("At least one action needs to be specified in a rule"));
    }
    let cleans_markers = matches!(rule.expiration, Some(LifecycleExpiration::DeleteMarkers(_)));
    let filter = &rule.filter;
    for (has_action, action) in [
        (rule.abort_after_days.is_some(), "AbortIncompleteMultipartUpload"),
        (cleans_markers, "ExpiredObjectDeleteMarker"),
    ] {
        let refused = match () {
            () if !has_action => None,
            () if !filter.tags.is_empty() => Some("Tags"),
            () if filter.larger_than.is_some() || filter.smaller_than.is_some() => Some("object sizes"),
            () => None,
        };
        if let Some(what) = refused {
            return Err(INVALID_REQUEST.saying(format!("{action} cannot be specified with {what}.")));
        }
    }
    Ok(())
}

fn filter_of_rule(rule: &Element) -> Result<LifecycleFilter, S3Error> {
    match (rule.child("Filter"), rule.child("Prefix")) {
        (Some(filter), None) => {
            only(
                filter,
                &["Prefix", "Tag", "ObjectSizeGreaterThan", "ObjectSizeLessThan", "And"],
            )?;
            match (filter.child("And"), filter.children.len()) {
                (_, 2..) => Err(malformed("a Filter has one condition; several stand in its And")),
                (Some(and), _) => {
                    only(and, &["Prefix", "Tag", "ObjectSizeGreaterThan", "ObjectSizeLessThan"])?;
                    match and.children.len() {
                        0 | 1 => Err(malformed("And has at least two conditions")),
                        _ => conditions(and),
                    }
                }
                (None, _) => conditions(filter),
            }
        }
        (None, Some(old)) => Ok(LifecycleFilter {
            is_rules_prefix: true,
            prefix: Some(prefix(old)?),
            ..LifecycleFilter::default()
        }),
        _ => Err(malformed("a rule has either Filter or Prefix")),
    }
}

fn prefix(element: &Element) -> Result<String, S3Error> {
    // White space belongs to keys.
    match element.text.len() <= LONGEST_PREFIX {
        true => Ok(element.text.clone()),
        false => Err(INVALID_REQUEST.saying("The maximum size of a prefix is 1024.")),
    }
}

fn conditions(parent: &Element) -> Result<LifecycleFilter, S3Error> {
    let tags = parent.all("Tag").map(|tag| {
        only(tag, &["Key", "Value"])?;
        let text = |name| tag.child(name).map(|child| child.text.clone());
        text("Key")
            .zip(text("Value"))
            .ok_or_else(|| malformed("a Tag has Key and Value"))
    });
    let tags = TagSet(tags.collect::<Result<_, S3Error>>()?);
    tags.check(usize::MAX, "")?;
    let filter = LifecycleFilter {
        is_rules_prefix: false,
        prefix: parent.child("Prefix").map(prefix).transpose()?,
        tags: tags.0,
        larger_than: size(parent, "ObjectSizeGreaterThan", 0)?,
        smaller_than: size(parent, "ObjectSizeLessThan", 1)?,
    };
    match (filter.larger_than, filter.smaller_than) {
        (Some(larger), Some(smaller)) if larger >= smaller => {
            Err(INVALID_REQUEST.saying("'ObjectSizeGreaterThan' has to be a value smaller than 'ObjectSizeLessThan'"))
        }
        _ => Ok(filter),
    }
}

fn size(parent: &Element, name: &'static str, least: i64) -> Result<Option<u64>, S3Error> {
    let Some(number) = number(parent, name)? else {
        return Ok(None);
    };
    match u64::try_from(number) {
        Ok(size) if number >= least => Ok(Some(size)),
        _ => Err(INVALID_ARGUMENT
            .saying(format!("'{name}' must be at least {least}"))
            .with("ArgumentName", name)
            .with("ArgumentValue", number.to_string())),
    }
}

fn number(parent: &Element, name: &str) -> Result<Option<i64>, S3Error> {
    let Some(text) = parent.text_of(name) else {
        return Ok(None);
    };
    let number = text.parse().ok();
    number
        .map(Some)
        .ok_or_else(|| malformed(&format!("{name} is a whole number")))
}

/// A number of days or versions among these elements, which is at least one.
fn positive(parent: &Element, name: &'static str) -> Result<Option<u32>, S3Error> {
    let Some(number) = number(parent, name)? else {
        return Ok(None);
    };
    match u32::try_from(number) {
        Ok(days) if days > 0 && days <= i32::MAX as u32 => Ok(Some(days)),
        _ => Err(INVALID_ARGUMENT
            .saying(format!(
                "'{name}' for {} action must be a positive integer",
                parent.name
            ))
            .with("ArgumentName", name)
            .with("ArgumentValue", number.to_string())),
    }
}

fn expiration(element: &Element) -> Result<LifecycleExpiration, S3Error> {
    only(element, &["Days", "Date", "ExpiredObjectDeleteMarker"])?;
    if element.children.len() != 1 {
        return Err(malformed(
            "an Expiration has one of Days, Date and ExpiredObjectDeleteMarker",
        ));
    }
    if let Some(days) = positive(element, "Days")? {
        return Ok(LifecycleExpiration::Days(days));
    }
    if let Some(text) = element.text_of("Date") {
        return date(text).map(LifecycleExpiration::Date);
    }
    match element.text_of("ExpiredObjectDeleteMarker") {
        Some("true") => Ok(LifecycleExpiration::DeleteMarkers(true)),
        Some("false") => Ok(LifecycleExpiration::DeleteMarkers(false)),
        _ => Err(malformed("ExpiredObjectDeleteMarker is true or false")),
    }
}

/// `2030-01-31T00:00:00.000Z`, `2030-01-31T00:00:00Z`, `2030-01-31`.
fn date(text: &str) -> Result<u64, S3Error> {
    let whole = match text.contains('T') {
        true => text.to_owned(),
        false => format!("{text}T00:00:00"),
    };
    let (seconds, rest) =
        calendar::parse_iso(&whole, calendar::LAST_SECOND).ok_or_else(|| malformed("a Date is one of ISO 8601"))?;
    let rest = ["Z", "+00:00"]
        .iter()
        .find_map(|zone| rest.strip_suffix(zone))
        .unwrap_or(rest);
    let fraction = rest.strip_prefix('.').unwrap_or(rest);
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed("a Date is one of ISO 8601 in UTC"));
    }
    match seconds % DAY == 0 && fraction.bytes().all(|byte| byte == b'0') {
        true => Ok(seconds),
        false => Err(INVALID_ARGUMENT
            .saying("'Date' must be at midnight GMT")
            .with("ArgumentName", "Date")
            .with("ArgumentValue", text)),
    }
}

fn noncurrent(element: &Element) -> Result<NoncurrentExpiration, S3Error> {
    only(element, &["NoncurrentDays", "NewerNoncurrentVersions"])?;
    let days = positive(element, "NoncurrentDays")?;
    let newer_versions = positive(element, "NewerNoncurrentVersions")?;
    if newer_versions.is_some_and(|kept| kept > MOST_KEPT) {
        return Err(INVALID_ARGUMENT
            .saying("'NewerNoncurrentVersions' for NoncurrentVersionExpiration action must be between 1 and 100")
            .with("ArgumentName", "NewerNoncurrentVersions"));
    }
    let days = days.ok_or_else(|| malformed("NoncurrentVersionExpiration has NoncurrentDays"))?;
    Ok(NoncurrentExpiration { days, newer_versions })
}

fn abort(element: &Element) -> Result<u32, S3Error> {
    only(element, &["DaysAfterInitiation"])?;
    let days = positive(element, "DaysAfterInitiation")?;
    days.ok_or_else(|| malformed("AbortIncompleteMultipartUpload has DaysAfterInitiation"))
}

/// The document of these rules.
pub(super) fn print(rules: &LifecycleRules) -> XmlWriter {
    let mut xml = XmlWriter::document(ROOT);
    for rule in &rules.rules {
        xml.open("Rule");
        match rule.expiration {
            Some(LifecycleExpiration::Days(days)) => within(&mut xml, "Expiration", "Days", &days.to_string()),
            Some(LifecycleExpiration::Date(at)) => {
                let date = format!("{}.000Z", calendar::iso(at, 'T'));
                within(&mut xml, "Expiration", "Date", &date);
            }
            Some(LifecycleExpiration::DeleteMarkers(flag)) => {
                within(&mut xml, "Expiration", "ExpiredObjectDeleteMarker", &flag.to_string());
            }
            None => {}
        }
        xml.text("ID", &rule.id);
        print_filter(&mut xml, &rule.filter);
        xml.text("Status", if rule.is_enabled { "Enabled" } else { "Disabled" });
        if let Some(noncurrent) = rule.noncurrent {
            xml.open("NoncurrentVersionExpiration");
            xml.number("NoncurrentDays", noncurrent.days.into());
            if let Some(kept) = noncurrent.newer_versions {
                xml.number("NewerNoncurrentVersions", kept.into());
            }
            xml.close();
        }
        if let Some(days) = rule.abort_after_days {
            let days = days.to_string();
            within(&mut xml, "AbortIncompleteMultipartUpload", "DaysAfterInitiation", &days);
        }
        xml.close();
    }
    xml
}

fn within(xml: &mut XmlWriter, outer: &'static str, inner: &'static str, text: &str) {
    xml.open(outer);
    xml.text(inner, text);
    xml.close();
}

fn print_filter(xml: &mut XmlWriter, filter: &LifecycleFilter) {
    if filter.is_rules_prefix {
        return xml.text("Prefix", filter.prefix());
    }
    let sizes = usize::from(filter.larger_than.is_some()) + usize::from(filter.smaller_than.is_some());
    let are_many = usize::from(filter.prefix.is_some()) + filter.tags.len() + sizes > 1;
    xml.open("Filter");
    if are_many {
        xml.open("And");
    }
    if let Some(prefix) = &filter.prefix {
        xml.text("Prefix", prefix);
    }
    for (key, value) in &filter.tags {
        xml.open("Tag");
        xml.text("Key", key);
        xml.text("Value", value);
        xml.close();
    }
    for (name, size) in [
        ("ObjectSizeGreaterThan", filter.larger_than),
        ("ObjectSizeLessThan", filter.smaller_than),
    ] {
        if let Some(size) = size {
            xml.number(name, size);
        }
    }
    if are_many {
        xml.close();
    }
    xml.close();
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
