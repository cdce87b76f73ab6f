//! Lists in the headers of a request: a canned one (`x-amz-acl`), or grants (`x-amz-grant-read` and its like).

use super::{AccessControl, AclGrantee, AclGroup, AclPermission, MOST_GRANTS};
use crate::error::{INVALID_ARGUMENT, INVALID_REQUEST, MALFORMED_ACL, NOT_IMPLEMENTED, S3Error};
use http::HeaderMap;

const CANNED: &str = "x-amz-acl";

/// The list that the headers ask for, of something that `owner` owns and that is, or is in, the bucket of
/// `bucket_owner`.
pub(crate) fn asked(
    headers: &HeaderMap,
    owner: &str,
    bucket_owner: Option<&str>,
) -> Result<Option<AccessControl>, S3Error> {
    let mut grants = Vec::new();
    let mut has_grants = false;
    for permission in AclPermission::ALL {
        for value in headers.get_all(header(permission)) {
            has_grants = true;
            let value = String::from_utf8_lossy(value.as_bytes());
            for part in value.split(',') {
                grants.push((permission, grantee(part)?));
            }
        }
    }
    if grants.len() > MOST_GRANTS {
        return Err(MALFORMED_ACL.into());
    }
    let name = headers.get(CANNED).map(|name| String::from_utf8_lossy(name.as_bytes()));
    match (name, has_grants) {
        (None, false) => Ok(None),
        (Some(_), true) => Err(INVALID_REQUEST.saying("Specifying both Canned ACLs and Header Grants is not allowed")),
        (Some(name), false) => canned(&name, owner, bucket_owner).map(Some),
        (None, true) => Ok(Some(AccessControl {
            owner: Some(owner.to_owned()),
            grants,
        })),
    }
}

const fn header(permission: AclPermission) -> &'static str {
    match permission {
        AclPermission::Read => "x-amz-grant-read",
        AclPermission::Write => "x-amz-grant-write",
        AclPermission::ReadAcp => "x-amz-grant-read-acp",
        AclPermission::WriteAcp => "x-amz-grant-write-acp",
        AclPermission::FullControl => "x-amz-grant-full-control",
    }
}

/// `id="test:tester"`, `uri=http://acs.amazonaws.com/groups/global/AllUsers`.
fn grantee(text: &str) -> Result<AclGrantee, S3Error> {
    let (kind, value) = text.split_once('=').ok_or(INVALID_REQUEST)?;
    let kind = kind.trim().to_ascii_lowercase();
    let value = value.trim().trim_matches(['"', '\'']);
    let refuse = |message: &str| {
        Err(INVALID_ARGUMENT
            .saying(message)
            .with("ArgumentName", kind.clone())
            .with("ArgumentValue", value))
    };
    match kind.as_str() {
        "id" => Ok(AclGrantee::User(value.to_owned())),
        "uri" => {
            AclGroup::of_uri(value).map_or_else(|| refuse("Invalid group uri"), |group| Ok(AclGrantee::Group(group)))
        }
        "emailaddress" => Err(NOT_IMPLEMENTED.saying("Users are not known by their mail addresses.")),
        _ => refuse("Argument format not recognized"),
    }
}

/// A list by its name.
fn canned(name: &str, owner: &str, bucket_owner: Option<&str>) -> Result<AccessControl, S3Error> {
    use AclGroup::{AllUsers, AuthenticatedUsers, LogDelivery};
    use AclPermission::{FullControl, Read, ReadAcp, Write};
    let to = |permission, group| (permission, AclGrantee::Group(group));
    let to_bucket_owner = |permission| bucket_owner.map(|owner| (permission, AclGrantee::User(owner.to_owned())));
    let more: Vec<_> = match name {
        "private" => vec![],
        "public-read" => vec![to(Read, AllUsers)],
        "public-read-write" => vec![to(Read, AllUsers), to(Write, AllUsers)],
        "authenticated-read" => vec![to(Read, AuthenticatedUsers)],
        "bucket-owner-read" => to_bucket_owner(Read).into_iter().collect(),
        "bucket-owner-full-control" => to_bucket_owner(FullControl).into_iter().collect(),
        "log-delivery-write" => vec![to(Write, LogDelivery), to(ReadAcp, LogDelivery)],
        _ => {
            return Err(INVALID_ARGUMENT
                .about("ArgumentName", CANNED)
                .with("ArgumentValue", name));
        }
    };
    let mut list = AccessControl::private(owner);
    let own = list.grants.split_off(0);
    list.grants = match name {
        // The order in which OpenStack's s3api keeps them.
        "bucket-owner-full-control" => own.into_iter().chain(more).collect(),
        _ => more.into_iter().chain(own).collect(),
    };
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn ask(pairs: &[(&'static str, &'static str)]) -> Result<String, &'static str> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        match asked(&pairs.collect(), "a:o", Some("a:b")) {
            Ok(list) => Ok(list.map_or_else(String::new, |list| list.kept())),
            Err(error) => Err(error.code.name),
        }
    }

    /// As OpenStack's s3api kept them.
    #[test]
    fn canned_lists() {
        for (name, grants) in [
            ("private", r#"[{"Permission":"FULL_CONTROL","Grantee":"a:o"}]"#),
            (
                "public-read-write",
                r#"[{"Permission":"READ","Grantee":"AllUsers"},{"Permission":"WRITE","Grantee":"AllUsers"},{"Permission":"FULL_CONTROL","Grantee":"a:o"}]"#,
            ),
            (
                "bucket-owner-read",
                r#"[{"Permission":"READ","Grantee":"a:b"},{"Permission":"FULL_CONTROL","Grantee":"a:o"}]"#,
            ),
            (
                "bucket-owner-full-control",
                r#"[{"Permission":"FULL_CONTROL","Grantee":"a:o"},{"Permission":"FULL_CONTROL","Grantee":"a:b"}]"#,
            ),
            (
                "log-delivery-write",
                r#"[{"Permission":"WRITE","Grantee":"LogDelivery"},{"Permission":"READ_ACP","Grantee":"LogDelivery"},{"Permission":"FULL_CONTROL","Grantee":"a:o"}]"#,
            ),
        ] {
            assert_eq!(
                ask(&[("x-amz-acl", name)]),
                Ok(format!(r#"{{"Owner":"a:o","Grant":{grants}}}"#)),
                "{name}"
            );
        }
        assert_eq!(ask(&[("x-amz-acl", "aws-exec-read")]), Err("InvalidArgument"));
        assert_eq!(ask(&[]), Ok(String::new()));
    }

    #[test]
    fn grants() {
        assert_eq!(
            ask(&[
                ("x-amz-grant-full-control", "Id=\"b\""),
                (
                    "x-amz-grant-read",
                    "id=c, uri=\"http://acs.amazonaws.com/groups/global/AllUsers\""
                ),
            ]),
            Ok(concat!(
                r#"{"Owner":"a:o","Grant":[{"Permission":"READ","Grantee":"c"},"#,
                r#"{"Permission":"READ","Grantee":"AllUsers"},{"Permission":"FULL_CONTROL","Grantee":"b"}]}"#
            )
            .to_owned())
        );
        for (value, code) in [
            ("", "InvalidRequest"),
            ("id=a,", "InvalidRequest"),
            ("uri=http://x", "InvalidArgument"),
            ("name=x", "InvalidArgument"),
            ("emailAddress=a@b", "NotImplemented"),
        ] {
            assert_eq!(ask(&[("x-amz-grant-write", value)]), Err(code), "{value}");
        }
        assert_eq!(
            ask(&[("x-amz-acl", "private"), ("x-amz-grant-read", "id=a")]),
            Err("InvalidRequest")
        );
    }
}
