//! S3's own access control lists: who owns a bucket or an object, and what it grants to whom.
//!
//! Always holds: a list is kept in system metadata as OpenStack's s3api keeps it, byte for byte; what is kept there
//! and cannot be read grants nothing; an owner may do everything.
//! Deliberately absent: requests, storage; `operations/access_checks.rs` fetches lists and asks them.
//! Source: AWS, "Access control list (ACL) overview"; what OpenStack's s3api stored when asked.
//!
//! | question | file |
//! |---|---|
//! | lists in a request's headers, canned ones among them | `asked.rs` |
//! | lists as XML | `document.rs` |
//! | what must be granted for an operation | `needed.rs` |

mod asked;
mod document;
mod needed;

pub(crate) use asked::asked;
pub(crate) use document::{LARGEST_DOCUMENT, print, read};
pub(crate) use needed::{Needed, needed};

use serde_json::{Value, json};
use std::fmt::Write;

/// Grants of one list (AWS, "Access control list (ACL) overview").
pub(crate) const MOST_GRANTS: usize = 100;

/// What may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AclPermission {
    /// To list a bucket, to read an object.
    Read,
    /// To put objects into a bucket and to delete them.
    Write,
    /// To read the list itself.
    ReadAcp,
    /// To replace the list.
    WriteAcp,
    /// All of these.
    FullControl,
}

impl AclPermission {
    /// In the order in which headers name them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::ReadAcp,
        Self::WriteAcp,
        Self::FullControl,
    ];

    /// `READ_ACP`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::ReadAcp => "READ_ACP",
            Self::WriteAcp => "WRITE_ACP",
            Self::FullControl => "FULL_CONTROL",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

/// Users that are meant together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AclGroup {
    /// Everybody. A request without a signature never gets so far.
    AllUsers,
    /// Everybody who has signed the request.
    AuthenticatedUsers,
    /// AWS's own delivery of logs; no user is meant here.
    LogDelivery,
}

impl AclGroup {
    const ALL: [Self; 3] = [Self::AllUsers, Self::AuthenticatedUsers, Self::LogDelivery];

    /// As it is kept.
    const fn name(self) -> &'static str {
        match self {
            Self::AllUsers => "AllUsers",
            Self::AuthenticatedUsers => "AuthenticatedUsers",
            Self::LogDelivery => "LogDelivery",
        }
    }

    /// As clients name it.
    pub(crate) const fn uri(self) -> &'static str {
        match self {
            Self::AllUsers => "http://acs.amazonaws.com/groups/global/AllUsers",
            Self::AuthenticatedUsers => "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
            Self::LogDelivery => "http://acs.amazonaws.com/groups/s3/LogDelivery",
        }
    }

    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.uri() == uri)
    }
}

/// A user or a group that is granted something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AclGrantee {
    /// A user, by the name that the authenticator gives.
    User(String),
    Group(AclGroup),
}

impl AclGrantee {
    fn kept(&self) -> &str {
        match self {
            Self::User(user) => user,
            Self::Group(group) => group.name(),
        }
    }

    fn of_kept(text: &str) -> Self {
        let group = AclGroup::ALL.into_iter().find(|group| group.name() == text);
        group.map_or_else(|| Self::User(text.to_owned()), Self::Group)
    }

    /// Everybody, or all who sign their requests.
    fn is_public(&self) -> bool {
        matches!(self, Self::Group(AclGroup::AllUsers | AclGroup::AuthenticatedUsers))
    }

    /// Whether a user who has signed the request is meant.
    fn includes(&self, user: &str) -> bool {
        match self {
            Self::User(meant) => meant == user,
            Self::Group(AclGroup::AllUsers | AclGroup::AuthenticatedUsers) => true,
            Self::Group(AclGroup::LogDelivery) => false,
        }
    }
}

/// The list of a bucket or an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AccessControl {
    /// Absent of what was made by Swift's clients.
    pub(crate) owner: Option<String>,
    pub(crate) grants: Vec<(AclPermission, AclGrantee)>,
}

impl AccessControl {
    /// The owner alone, who is granted everything.
    pub(crate) fn private(owner: &str) -> Self {
        Self {
            owner: Some(owner.to_owned()),
            grants: vec![(AclPermission::FullControl, AclGrantee::User(owner.to_owned()))],
        }
    }

    /// Of a value of system metadata; without one, or with one that is no list, there is no owner.
    pub(crate) fn of_kept(kept: Option<&str>) -> Self {
        kept.filter(|kept| !kept.is_empty())
            .and_then(Self::parse)
            .unwrap_or_default()
    }

    fn parse(kept: &str) -> Option<Self> {
        let kept: Value = serde_json::from_str(kept).ok()?;
        let owner = kept["Owner"].as_str().map(str::to_owned);
        let mut grants = Vec::new();
        for grant in kept["Grant"].as_array()? {
            let permission = AclPermission::of_name(grant["Permission"].as_str()?)?;
            grants.push((permission, AclGrantee::of_kept(grant["Grantee"].as_str()?)));
        }
        Some(Self { owner, grants })
    }

    /// As it is kept: `{"Owner":"a:u","Grant":[{"Permission":"READ","Grantee":"AllUsers"}]}`, in ASCII.
    pub(crate) fn kept(&self) -> String {
        let text = |text: &str| ascii(&json!(text).to_string());
        let grants: Vec<String> = self
            .grants
            .iter()
            .map(|(permission, grantee)| {
                format!(
                    "{{\"Permission\":\"{}\",\"Grantee\":{}}}",
                    permission.name(),
                    text(grantee.kept())
                )
            })
            .collect();
        let owner = self.owner.as_deref().map_or_else(|| "null".to_owned(), text);
        format!("{{\"Owner\":{owner},\"Grant\":[{}]}}", grants.join(","))
    }

    /// Whether the user is the owner; of what has none every user is, where `allow_no_owner` says so.
    pub(crate) fn is_owned_by(&self, user: &str, allow_no_owner: bool) -> bool {
        self.owner.as_deref().map_or(allow_no_owner, |owner| owner == user)
    }

    /// Whether it grants anything to everybody, or to all who sign their requests.
    pub(crate) fn is_public(&self) -> bool {
        self.grants.iter().any(|(_, grantee)| grantee.is_public())
    }

    /// Without what it grants to everybody, or to all who sign their requests.
    pub(crate) fn without_public(mut self) -> Self {
        self.grants.retain(|(_, grantee)| !grantee.is_public());
        self
    }

    /// Whether the user may do this.
    pub(crate) fn allows(&self, permission: AclPermission, user: &str, allow_no_owner: bool) -> bool {
        let is_granted = |(granted, grantee): &(AclPermission, AclGrantee)| {
            (*granted == permission || *granted == AclPermission::FullControl) && grantee.includes(user)
        };
        self.is_owned_by(user, allow_no_owner) || self.grants.iter().any(is_granted)
    }
}

/// JSON with every character beyond ASCII escaped.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenStack's s3api stored it.
    const KEPT: &str = concat!(
        r#"{"Owner":"test:tester","Grant":[{"Permission":"READ","Grantee":"AllUsers"},"#,
        r#"{"Permission":"WRITE_ACP","Grantee":"t:\u00fc\ud83d\udc26"},{"Permission":"FULL_CONTROL","Grantee":"b"}]}"#
    );

    #[test]
    fn what_is_kept_comes_back() {
        let list = AccessControl::of_kept(Some(KEPT));
        assert_eq!(list.owner.as_deref(), Some("test:tester"));
        assert_eq!(
            list.grants[1],
            (AclPermission::WriteAcp, AclGrantee::User("t:ü🐦".into()))
        );
        assert_eq!(list.kept(), KEPT);
        assert_eq!(
            AccessControl::private("a:\"u").kept(),
            r#"{"Owner":"a:\"u","Grant":[{"Permission":"FULL_CONTROL","Grantee":"a:\"u"}]}"#
        );
        for no_list in [None, Some(""), Some("{"), Some("[]"), Some(r#"{"Owner":"a"}"#)] {
            assert_eq!(AccessControl::of_kept(no_list), AccessControl::default(), "{no_list:?}");
        }
    }

    #[test]
    fn grants_and_owners() {
        let list = AccessControl::of_kept(Some(KEPT));
        for (permission, user, is_allowed) in [
            (AclPermission::Read, "x", true),
            (AclPermission::Write, "x", false),
            (AclPermission::WriteAcp, "t:ü🐦", true),
            (AclPermission::ReadAcp, "t:ü🐦", false),
            (AclPermission::ReadAcp, "b", true),
            (AclPermission::Write, "test:tester", true),
        ] {
            assert_eq!(
                list.allows(permission, user, false),
                is_allowed,
                "{permission:?} {user}"
            );
        }
        assert!(!list.is_owned_by("b", true));
        let logs = (AclPermission::Read, AclGrantee::Group(AclGroup::LogDelivery));
        let nobodys = AccessControl {
            owner: None,
            grants: vec![logs],
        };
        assert!(list.is_public() && !nobodys.is_public());
        let for_named = list.clone().without_public();
        assert!(!for_named.is_public() && !for_named.allows(AclPermission::Read, "x", false));
        assert!(for_named.allows(AclPermission::ReadAcp, "b", false) && for_named.owner == list.owner);
        assert!(!nobodys.allows(AclPermission::Read, "x", false));
        assert!(nobodys.allows(AclPermission::Read, "x", true));
    }
}
