//! Lists as XML: `AccessControlPolicy`.

use super::{AccessControl, AclGrantee, AclGroup, AclPermission, MOST_GRANTS};
use crate::error::{INVALID_ARGUMENT, MALFORMED_ACL, NOT_IMPLEMENTED, S3Error};
use crate::xml::{Element, XmlWriter};

/// Bytes of a document (OpenStack's s3api takes as many).
pub(crate) const LARGEST_DOCUMENT: u64 = 200 * 1024;

const INSTANCE: &str = "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type";

/// The list as clients see it.
pub(crate) fn print(list: &AccessControl) -> XmlWriter {
    let mut xml = XmlWriter::document("AccessControlPolicy");
    let user = |xml: &mut XmlWriter, name: &str| {
        xml.text("ID", name);
        xml.text("DisplayName", name);
        xml.close();
    };
    xml.open("Owner");
    user(&mut xml, list.owner.as_deref().unwrap_or_default());
    xml.open("AccessControlList");
    for (permission, grantee) in &list.grants {
        xml.open("Grant");
        match grantee {
            AclGrantee::User(name) => {
                xml.open_with("Grantee", &format!("{INSTANCE}=\"CanonicalUser\""));
                user(&mut xml, name);
            }
            AclGrantee::Group(group) => {
                xml.open_with("Grantee", &format!("{INSTANCE}=\"Group\""));
                xml.text("URI", group.uri());
                xml.close();
            }
        }
        xml.text("Permission", permission.name());
        xml.close();
    }
    xml
}

/// The list that a client sent. A DTD is passed over, its entities are dropped.
pub(crate) fn read(document: &[u8]) -> Result<AccessControl, S3Error> {
    let root = Element::parse_passing_dtd(document).map_err(|_| MALFORMED_ACL)?;
    if root.name != "AccessControlPolicy" {
        return Err(MALFORMED_ACL.into());
    }
    let [owner, list] = children(&root, ["Owner", "AccessControlList"])?;
    let id = only(owner, "ID", Some("DisplayName"))?;
    if list.children.iter().any(|child| child.name != "Grant") || list.children.len() > MOST_GRANTS {
        return Err(MALFORMED_ACL.into());
    }
    let grants = list.children.iter().map(grant).collect::<Result<_, _>>()?;
    Ok(AccessControl {
        owner: Some(id.text.clone()),
        grants,
    })
}

fn grant(grant: &Element) -> Result<(AclPermission, AclGrantee), S3Error> {
    let [grantee, permission] = children(grant, ["Grantee", "Permission"])?;
    let permission = AclPermission::of_name(permission.text.trim()).ok_or(MALFORMED_ACL)?;
    let grantee = match grantee.kind.as_str() {
        "CanonicalUser" => {
            let id = only(grantee, "ID", Some("DisplayName"))?;
            AclGrantee::User(id.text.clone())
        }
        "Group" => {
            let uri = only(grantee, "URI", None)?.text.trim();
            let group = AclGroup::of_uri(uri).ok_or_else(|| {
                INVALID_ARGUMENT
                    .saying("Invalid group uri")
                    .with("ArgumentName", "uri")
                    .with("ArgumentValue", uri)
            })?;
            AclGrantee::Group(group)
        }
        "AmazonCustomerByEmail" => {
            return Err(NOT_IMPLEMENTED.saying("Users are not known by their mail addresses."));
        }
        _ => return Err(MALFORMED_ACL.into()),
    };
    Ok((permission, grantee))
}

/// The children of these names, each of which is there once, and nothing else.
fn children<'a>(parent: &'a Element, names: [&str; 2]) -> Result<[&'a Element; 2], S3Error> {
    let found = names.map(|name| parent.child(name));
    match found {
        [Some(first), Some(second)] if parent.children.len() == 2 => Ok([first, second]),
        _ => Err(MALFORMED_ACL.into()),
    }
}

/// The child of this name, which is there once, and nothing else but perhaps one that says nothing.
fn only<'a>(parent: &'a Element, name: &str, ignored: Option<&str>) -> Result<&'a Element, S3Error> {
    let mut found = parent
        .children
        .iter()
        .filter(|child| Some(child.name.as_str()) != ignored);
    match (found.next(), found.next()) {
        (Some(only), None) if only.name == name => Ok(only),
        _ => Err(MALFORMED_ACL.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XSI: &str = "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:type";

    fn with(grants: &str) -> String {
        format!(
            "<AccessControlPolicy xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Owner><ID>a:o</ID></Owner>\
             <AccessControlList>{grants}</AccessControlList></AccessControlPolicy>"
        )
    }

    fn to(kind: &str, whom: &str, permission: &str) -> String {
        format!("<Grant><Grantee {XSI}='{kind}'>{whom}</Grantee><Permission>{permission}</Permission></Grant>")
    }

    fn code(document: &str) -> Result<String, &'static str> {
        let list = read(document.as_bytes()).map_err(|error| error.code.name)?;
        Ok(list.kept())
    }

    #[test]
    fn documents_come_back() {
        let list = AccessControl::of_kept(Some(concat!(
            r#"{"Owner":"a:o","Grant":[{"Permission":"READ","Grantee":"AuthenticatedUsers"},"#,
            r#"{"Permission":"FULL_CONTROL","Grantee":"a:<o"}]}"#
        )));
        assert_eq!(read(print(&list).finish().as_bytes()), Ok(list));
    }

    #[test]
    fn documents_are_right_or_refused() {
        let user = |permission: &str| to("CanonicalUser", "<DisplayName>x</DisplayName><ID> u </ID>", permission);
        let kept = r#"{"Owner":"a:o","Grant":[{"Permission":"WRITE","Grantee":" u "}]}"#;
        assert_eq!(code(&with(&user("WRITE"))), Ok(kept.into()));
        assert_eq!(code(&with("")), Ok(r#"{"Owner":"a:o","Grant":[]}"#.into()));
        assert!(code(&with(&user("READ").repeat(MOST_GRANTS))).is_ok());
        for (bad, name) in [
            (with(&user("READ").repeat(MOST_GRANTS + 1)), "MalformedACLError"),
            (with(&user("OTHER")), "MalformedACLError"),
            (with(&to("CanonicalUser", "", "READ")), "MalformedACLError"),
            (
                with(&to("CanonicalUser", "<ID>a</ID><ID>b</ID>", "READ")),
                "MalformedACLError",
            ),
            (with(&to("Other", "<ID>a</ID>", "READ")), "MalformedACLError"),
            (
                with("<Grant><Grantee><ID>a</ID></Grantee><Permission>READ</Permission></Grant>"),
                "MalformedACLError",
            ),
            (with(&format!("{}<Other/>", user("READ"))), "MalformedACLError"),
            (with(&to("Group", "<URI>http://x</URI>", "READ")), "InvalidArgument"),
            (
                with(&to("AmazonCustomerByEmail", "<EmailAddress>a@b</EmailAddress>", "READ")),
                "NotImplemented",
            ),
            (with("").replace("<Owner><ID>a:o</ID></Owner>", ""), "MalformedACLError"),
            ("<Other/>".into(), "MalformedACLError"),
            ("<a".into(), "MalformedACLError"),
        ] {
            assert_eq!(code(&bad), Err(name), "{bad}");
        }
    }

    #[test]
    fn entities_of_a_dtd_are_dropped() {
        let dtd = "<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\"><!ENTITY f 'READ'>]>";
        let user = |id: &str, permission: &str| with(&to("CanonicalUser", &format!("<ID>{id}</ID>"), permission));
        let kept = r#"{"Owner":"a:o","Grant":[{"Permission":"READ","Grantee":"u"}]}"#;
        assert_eq!(code(&format!("\n{dtd}{}", user("u&e;v", "READ"))), Ok(kept.into()));
        assert_eq!(code(&format!("{dtd}{}", user("u", "&f;"))), Err("MalformedACLError"));
        assert_eq!(code(&user("u&e;", "READ")), Err("MalformedACLError"));
        let bomb: String = ('b'..='j')
            .map(|name| format!("<!ENTITY {name} '{}'>", "&a;".repeat(9)))
            .collect();
        let bomb = format!("<!DOCTYPE x [<!ENTITY a 'a'>{bomb}]>{}", user("u&j;", "READ"));
        assert_eq!(code(&bomb), Ok(kept.into()));
    }
}
