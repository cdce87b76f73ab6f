//! Where a link leads: as a client says it, as it is stored with the link, as a listing has it.
//!
//! Stored are `X-Object-Sysmeta-Symlink-Target`, `-Target-Account`, `-Target-Etag` and `-Target-Bytes`, names
//! percent-encoded. Listings have it behind the entity tag: `ETAG; symlink_target=…; symlink_target_account=…;
//! symlink_target_etag=…; symlink_target_bytes=…`.
//! Always holds: what is stored reads back as the same link.

use http::{HeaderMap, HeaderName};
use request_pipeline::{is_true, set_header};
use vocabulary::EntityPath;
use vocabulary::names::{quote, unquote};

/// What clients set and see.
pub(super) const TARGET: &str = "x-symlink-target";
pub(super) const TARGET_ACCOUNT: &str = "x-symlink-target-account";
pub(super) const TARGET_ETAG: &str = "x-symlink-target-etag";
pub(super) const TARGET_BYTES: &str = "x-symlink-target-bytes";

pub(super) const STORED_TARGET: &str = "x-object-sysmeta-symlink-target";
const STORED_ACCOUNT: &str = "x-object-sysmeta-symlink-target-account";
pub(super) const STORED_ETAG: &str = "x-object-sysmeta-symlink-target-etag";
const STORED_BYTES: &str = "x-object-sysmeta-symlink-target-bytes";
/// This link does not count.
const EXTENDS: &str = "x-object-sysmeta-symloop-extend";
/// A feature has vouched for where this link leads.
const ALLOWS_RESERVED: &str = "x-object-sysmeta-allow-reserved-names";
/// What a listing is to say instead of the object's entity tag.
pub(super) const LISTED_ETAG: &str = "x-object-sysmeta-container-update-override-etag";
/// Of no bytes.
pub(super) const EMPTY_ETAG: &str = "d41d8cd98f00b204e9800998ecf8427e";

const NAMES: [(&str, &str); 4] = [
    (TARGET, STORED_TARGET),
    (TARGET_ACCOUNT, STORED_ACCOUNT),
    (TARGET_ETAG, STORED_ETAG),
    (TARGET_BYTES, STORED_BYTES),
];

/// A link, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// `container/object`, percent-encoded.
    pub(super) target: String,
    /// Percent-encoded; the link's own account when there is none.
    pub(super) account: Option<String>,
    /// Of a static link.
    pub(super) etag: Option<String>,
    pub(super) bytes: Option<String>,
    pub(super) extends: bool,
    pub(super) allows_reserved: bool,
}

impl Link {
    /// The link that an object with these headers is.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| {
            let text = std::str::from_utf8(headers.get(name)?.as_bytes()).ok()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Some(Self {
            target: text(STORED_TARGET)?,
            account: text(STORED_ACCOUNT),
            etag: text(STORED_ETAG),
            bytes: text(STORED_BYTES),
            extends: text(EXTENDS).is_some_and(|text| is_true(&text)),
            allows_reserved: text(ALLOWS_RESERVED).is_some_and(|text| is_true(&text)),
        })
    }

    /// Its target, for a link in `account`; `None` when what is stored names nothing.
    pub(super) fn leads_to(&self, account: &str) -> Option<EntityPath> {
        let target = unquote(self.target.trim_start_matches('/')).ok()?;
        let account = match &self.account {
            Some(account) => unquote(account).ok()?,
            None => account.to_owned(),
        };
        let path = EntityPath::split(&format!("{account}/{target}")).ok()?;
        path.object.as_ref()?;
        (self.allows_reserved || !path.path().contains('\0')).then_some(path)
    }

    /// The path of its target, as clients see it.
    pub(super) fn location(&self, version: &str, account: &str) -> String {
        let own = quote(account);
        let account = self.account.as_deref().unwrap_or(&own);
        format!("/{version}/{account}/{}", self.target.trim_start_matches('/'))
    }

    /// Says it in the headers of the link's PUT.
    pub(super) fn store(&self, headers: &mut HeaderMap) {
        for (name, stored) in NAMES {
            headers.remove(name);
            headers.remove(stored);
        }
        set_header(headers, STORED_TARGET, &self.target);
        for (name, value) in [
            (STORED_ACCOUNT, &self.account),
            (STORED_ETAG, &self.etag),
            (STORED_BYTES, &self.bytes),
        ] {
            if let Some(value) = value {
                set_header(headers, name, value);
            }
        }
        let before = headers
            .get(LISTED_ETAG)
            .and_then(|etag| etag.to_str().ok())
            .unwrap_or(EMPTY_ETAG);
        let listed = self.listed(before);
        set_header(headers, LISTED_ETAG, &listed);
    }

    /// `etag`, which may have parameters of other features, with those of this link.
    fn listed(&self, etag: &str) -> String {
        let mut listed = without_link(etag);
        listed.push_str(&format!("; symlink_target={}", self.target));
        for (name, value) in [("account", &self.account), ("etag", &self.etag), ("bytes", &self.bytes)] {
            if let Some(value) = value {
                listed.push_str(&format!("; symlink_target_{name}={value}"));
            }
        }
        listed
    }

    /// What a listing's `hash` says; the second is the hash without it.
    pub(super) fn listed_in(hash: &str) -> Option<(Self, String)> {
        let mut link = Link {
            target: String::new(),
            account: None,
            etag: None,
            bytes: None,
            extends: false,
            allows_reserved: false,
        };
        for (name, value) in hash.split(';').skip(1).filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"').to_owned();
            match name.trim() {
                "symlink_target" => link.target = value,
                "symlink_target_account" => link.account = Some(value),
                "symlink_target_etag" => link.etag = Some(value),
                "symlink_target_bytes" => link.bytes = Some(value),
                _ => {}
            }
        }
        (!link.target.is_empty()).then(|| (link, without_link(hash)))
    }
}

/// An entity tag with the parameters that are no link's.
pub(super) fn without_link(etag: &str) -> String {
    let parts = etag.split(';').map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.starts_with("symlink_target")).collect();
    parts.join("; ")
}

/// Shows a link to the client as what it is.
pub(super) fn show(headers: &mut HeaderMap) {
    for (name, stored) in NAMES {
        if let Some(value) = headers.remove(stored) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
