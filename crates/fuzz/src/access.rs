//! ACLs, tokens and signatures.

use crate::input::text;
use features::access::signatures::Signature;
use features::access::tempurl::disposition::Wishes;
use features::access::tempurl::ip_range;
use features::access::tempurl::query::Signed;
use identity::keystone::{Token, Whose};
use identity::{AccountAcl, AclKind, ContainerAcl, clean_container_acl};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is stored of a container's ACL is stored alike when it is sent again, and no item gets lost.
pub(crate) fn container_acl(bytes: &[u8]) {
    let text = text(bytes);
    for kind in [AclKind::Read, AclKind::Write] {
        if let Ok(stored) = clean_container_acl(kind, &text) {
            let acl = ContainerAcl::parse(&stored);
            // A star before a host goes each time, as with OpenStack, whatever comes to light behind it.
            if !text.contains('*') {
                assert_eq!(clean_container_acl(kind, &stored).as_ref(), Ok(&stored), "sent again");
            }
            let items = stored.split(',').filter(|item| !item.is_empty()).count();
            assert_eq!(acl.referrers.len() + acl.groups.len(), items);
            assert!(kind == AclKind::Read || acl.referrers.is_empty());
        }
    }
    let acl = ContainerAcl::parse(&text);
    let _ = acl.rlistings();
}

/// What is stored of an account's ACL grants what was sent, and is stored alike when it is sent again.
pub(crate) fn account_acl(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(stored) = AccountAcl::check(&text) {
        assert!(stored.is_ascii());
        assert_eq!(AccountAcl::check(&stored).as_ref(), Ok(&stored));
        assert_eq!(AccountAcl::parse(&stored), AccountAcl::parse(&text));
    }
}

/// Signed addresses: the query that goes on says what was signed, and a file's name stays within its quotes.
pub(crate) fn tempurl(bytes: &[u8]) {
    let text = text(bytes);
    if let Some(signed) = Signed::read(&text) {
        let again = Signed::read(&signed.query());
        let expected = Signed {
            ip_range: None,
            ..signed.clone()
        };
        assert_eq!(again.as_ref(), Some(&expected));
        let _ = (signed.ends(), Signature::parse(&signed.signature));
        for inline in [false, true] {
            let filename = signed.filename.as_deref().map(str::as_bytes);
            let wishes = Wishes {
                filename,
                inline,
                is_page: false,
                stored: None,
                name: &text,
            };
            let value = wishes.disposition();
            let quotes = value.iter().filter(|byte| **byte == b'"').count();
            assert!(quotes == 2 || inline && quotes == 0);
            assert!(value.iter().all(|byte| (0x20..0x7f).contains(byte)), "{value:?}");
        }
    }
    let _ = Signature::parse(&text);
    for from in [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        if ip_range::contains(&text, from) {
            assert!(text.starts_with(|first: char| first.is_ascii_hexdigit() || first == ':'));
        }
    }
}

/// What Keystone says of a token comes back from the cache alike.
pub(crate) fn keystone_token(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else {
        return;
    };
    let Ok(token) = Token::parse(&value) else { return };
    let cached = token.to_cache();
    let Some(again) = Token::from_cache(&cached, "secret") else {
        panic!("what was kept is not read: {cached}")
    };
    assert_eq!(again.headers(Whose::User), token.headers(Whose::User));
    assert_eq!(again.headers(Whose::Service), token.headers(Whose::Service));
    assert!(
        !cached
            .as_str()
            .is_some_and(|text| text.contains("\"auth_token\":\"secret\""))
    );
}
