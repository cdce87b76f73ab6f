//! CORS rules as XML.
//!
//! Always holds: a document with anything that is not served is refused as a whole and says why; what is printed is
//! read back as the same rules.

use super::{CorsRule, CorsRules};
use crate::error::{INVALID_ARGUMENT, INVALID_REQUEST, MALFORMED_XML, S3Error};
use crate::xml::{Element, XmlWriter};
use http::HeaderName;

const ROOT: &str = "CORSConfiguration";
/// Bytes of a document.
pub(crate) const LARGEST_DOCUMENT: u64 = 64 * 1024;
/// Rules of a bucket.
const MOST_RULES: usize = 100;
/// Characters of an ID.
const LONGEST_ID: usize = 255;
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "DELETE", "HEAD"];
/// Elements of a rule that may come once.
const SINGLE: [&str; 2] = ["ID", "MaxAgeSeconds"];
/// Elements of a rule that may come several times.
const REPEATED: [&str; 4] = ["AllowedOrigin", "AllowedMethod", "AllowedHeader", "ExposeHeader"];

/// Reads a document.
pub(crate) fn read(document: &[u8]) -> Result<CorsRules, S3Error> {
    let document = Element::parse(document).map_err(|_| MALFORMED_XML)?;
    if document.name != ROOT {
        return Err(malformed("the document is no CORSConfiguration"));
    }
    if let Some(other) = document.children.iter().find(|child| child.name != "CORSRule") {
        return Err(malformed(&format!("{ROOT} has no element {:?}", other.name)));
    }
    if !(1..=MOST_RULES).contains(&document.children.len()) {
        return Err(malformed("a configuration has 1 to 100 rules"));
    }
    let rules = document.children.iter().map(rule).collect::<Result<_, _>>()?;
    Ok(CorsRules { rules })
}

fn malformed(why: &str) -> S3Error {
    MALFORMED_XML.saying(format!("{}: {why}.", MALFORMED_XML.message))
}

fn rule(element: &Element) -> Result<CorsRule, S3Error> {
    for child in &element.children {
        let name = child.name.as_str();
        if !SINGLE.contains(&name) && !REPEATED.contains(&name) {
            return Err(malformed(&format!("CORSRule has no element {name:?}")));
        }
        if SINGLE.contains(&name) && element.all(name).count() > 1 {
            return Err(malformed(&format!("CORSRule has {name} twice")));
        }
        if name != "ID" && child.text.trim().is_empty() {
            return Err(malformed(&format!("{name} is empty")));
        }
    }
    let id = element.text_of("ID").unwrap_or_default();
    if id.chars().count() > LONGEST_ID {
        return Err(INVALID_ARGUMENT
            .saying("ID length should not exceed allowed limit of 255")
            .with("ArgumentName", "ID")
            .with("ArgumentValue", id));
    }
    let texts = |name: &str| {
        let texts = element.all(name).map(|child| child.text.trim().to_owned());
        texts.collect::<Vec<String>>()
    };
    let rule = CorsRule {
        id: id.to_owned(),
        origins: texts("AllowedOrigin"),
        methods: texts("AllowedMethod"),
        headers: texts("AllowedHeader"),
        exposed: texts("ExposeHeader"),
        max_age: element.text_of("MaxAgeSeconds").map(seconds).transpose()?,
    };
    check(&rule)?;
    Ok(rule)
}

fn seconds(text: &str) -> Result<u32, S3Error> {
    let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds <= i32::MAX as u32);
    seconds.ok_or_else(|| malformed("MaxAgeSeconds is a whole number"))
}

fn check(rule: &CorsRule) -> Result<(), S3Error> {
    if rule.origins.is_empty() || rule.methods.is_empty() {
        return Err(malformed("a CORSRule has AllowedOrigin and AllowedMethod"));
    }
    for (name, patterns) in [("AllowedOrigin", &rule.origins), ("AllowedHeader", &rule.headers)] {
        if let Some(pattern) = patterns.iter().find(|pattern| pattern.matches('*').count() > 1) {
            return Err(INVALID_REQUEST.saying(format!("{name} \"{pattern}\" can not have more than one wildcard.")));
        }
    }
    if let Some(method) = rule.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        return Err(INVALID_REQUEST.saying(format!(
            "Found unsupported HTTP method in CORS config. Unsupported method is {method}"
        )));
    }
    for name in &rule.exposed {
        if name.contains('*') {
            return Err(INVALID_REQUEST.saying(format!(
                "ExposeHeader \"{name}\" contains wildcard. We currently do not support wildcard for ExposeHeader."
            )));
        }
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(INVALID_REQUEST.saying(format!("ExposeHeader \"{name}\" is no name of a header.")));
        }
    }
    Ok(())
}

/// The document of these rules.
pub(crate) fn print(rules: &CorsRules) -> XmlWriter {
    let mut xml = XmlWriter::document(ROOT);
    for rule in &rules.rules {
        xml.open("CORSRule");
        if !rule.id.is_empty() {
            xml.text("ID", &rule.id);
        }
        for (name, texts) in [
            ("AllowedHeader", &rule.headers),
            ("AllowedMethod", &rule.methods),
            ("AllowedOrigin", &rule.origins),
            ("ExposeHeader", &rule.exposed),
        ] {
            for text in texts {
                xml.text(name, text);
            }
        }
        if let Some(seconds) = rule.max_age {
            xml.number("MaxAgeSeconds", seconds.into());
        }
        xml.close();
    }
    xml
}
