//! ACLs of containers: `X-Container-Read` and `X-Container-Write`.
//!
//! [`clean_container_acl`] makes what a client sends into what is stored, or says what is wrong with
//! it in OpenStack's words (a 400); [`ContainerAcl`] reads what is stored.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::fmt;

/// Which header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclKind {
    /// `X-Container-Read`.
    Read,
    /// `X-Container-Write`.
    Write,
}

/// Why an ACL is refused; its text is the body of the 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AclError {
    /// `.r:` in a write ACL.
    #[error("Referrers not allowed in write ACL: {0}")]
    ReferrerInWrite(QuotedValue),
    /// `.r:` without a host.
    #[error("No host/domain value after referrer designation in ACL: {0}")]
    NoHost(QuotedValue),
    /// A dotted word before a colon that means nothing.
    #[error("Unknown designator {0} in ACL: {1}")]
    Unknown(QuotedValue, QuotedValue),
}

/// Text as Python would show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedValue(pub String);

impl fmt::Display for QuotedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&pythonic::quoted(&self.0))
    }
}

/// Normalises a client's ACL for storing.
pub fn clean_container_acl(kind: AclKind, value: &str) -> Result<String, AclError> {
    let mut cleaned: Vec<String> = Vec::new();
    for item in value.split(',').map(str::trim) {
        if !item.is_empty() {
            cleaned.push(clean_item(kind, item)?);
        }
    }
    Ok(cleaned.join(","))
}

fn clean_item(kind: AclKind, item: &str) -> Result<String, AclError> {
    let Some((first, second)) = item.split_once(':') else {
        return Ok(item.into());
    };
    let (first, second) = (first.trim(), second.trim());
    if !first.starts_with('.') {
        return Ok(item.into());
    }
    if ![".r", ".ref", ".referer", ".referrer"].contains(&first) {
        return Err(AclError::Unknown(QuotedValue(first.into()), QuotedValue(item.into())));
    }
    if kind == AclKind::Write {
        return Err(AclError::ReferrerInWrite(QuotedValue(item.into())));
    }
    let (minus, host) = match second.strip_prefix('-') {
        Some(host) => ("-", host.trim()),
        None => ("", second),
    };
    let host = match host.strip_prefix('*') {
        Some(rest) if host != "*" => rest.trim(),
        _ => host,
    };
    match host {
        "" | "." => Err(AclError::NoHost(QuotedValue(item.into()))),
        host => Ok(format!(".r:{minus}{host}")),
    }
}

/// A stored ACL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContainerAcl<'a> {
    /// What stands after each `.r:`.
    pub referrers: Vec<&'a str>,
    /// Everything else: accounts, account:user pairs, `.rlistings`. Clients may escape them, as they must a comma.
    pub groups: Vec<Cow<'a, str>>,
}

impl<'a> ContainerAcl<'a> {
    /// Reads a stored ACL; anything can be read.
    pub fn parse(stored: &'a str) -> Self {
        let mut acl = Self::default();
        if stored.is_empty() {
            return acl;
        }
        for item in stored.split(',') {
            match item.strip_prefix(".r:") {
                Some(rule) => acl.referrers.push(rule),
                None => acl.groups.push(percent_decode_str(item).decode_utf8_lossy()),
            }
        }
        acl
    }

    /// Whether listings are open to whom objects are open.
    pub fn rlistings(&self) -> bool {
        self.groups.iter().any(|group| group == ".rlistings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What OpenStack Swift 2.38.3 answered.
    #[test]
    fn cleaned_as_openstack_cleans() {
        for (value, expected) in [
            ("", ""),
            (" , ", ""),
            ("a , b", "a,b"),
            ("a:b,c", "a:b,c"),
            (" .r : *", ".r:*"),
            (".referrer:*,.rlistings", ".r:*,.rlistings"),
            (".r: - bad.com", ".r:-bad.com"),
            (".r:*.bad.com", ".r:.bad.com"),
            (".r:-*.bad.com", ".r:-.bad.com"),
            (".r:-*", ".r:-*"),
            (".x", ".x"),
            ("*:*", "*:*"),
            ("a:b:c", "a:b:c"),
        ] {
            assert_eq!(
                clean_container_acl(AclKind::Read, value).as_deref(),
                Ok(expected),
                "{value}"
            );
        }
        for (kind, value, expected) in [
            (
                AclKind::Read,
                ".r:",
                "No host/domain value after referrer designation in ACL: '.r:'",
            ),
            (
                AclKind::Read,
                ".r:*.",
                "No host/domain value after referrer designation in ACL: '.r:*.'",
            ),
            (AclKind::Read, ".x:y", "Unknown designator '.x' in ACL: '.x:y'"),
            (AclKind::Write, ".r:*", "Referrers not allowed in write ACL: '.r:*'"),
        ] {
            assert_eq!(clean_container_acl(kind, value).unwrap_err().to_string(), expected);
        }
        assert_eq!(
            clean_container_acl(AclKind::Write, ".rlistings").as_deref(),
            Ok(".rlistings")
        );
    }

    #[test]
    fn stored_acls() {
        let acl = ContainerAcl::parse(".r:*,.rlistings,a:b");
        assert_eq!(
            (acl.referrers.as_slice(), acl.groups.len(), acl.rlistings()),
            (&["*"][..], 2, true)
        );
        assert_eq!(ContainerAcl::parse(""), ContainerAcl::default());
        let acl = ContainerAcl::parse("%74est:a%2Cb,%C3%BC,%zz,.r:%2a,%2Erlistings");
        assert_eq!(acl.groups, ["test:a,b", "ü", "%zz", ".rlistings"]);
        assert_eq!((acl.referrers.as_slice(), acl.rlistings()), (&["%2a"][..], true));
    }

    proptest! {
        #[test]
        fn never_panics_and_is_stable(value in "([.r:*, a-]|\\PC)*") {
            if let Ok(cleaned) = clean_container_acl(AclKind::Read, &value) {
                let _ = ContainerAcl::parse(&cleaned);
                prop_assert!(!cleaned.contains(",,"));
            }
            let _ = clean_container_acl(AclKind::Write, &value).map_err(|e| e.to_string());
        }
    }
}
