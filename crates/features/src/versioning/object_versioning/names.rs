//! Names of versions: the hidden container, the hidden objects in it, and their ids.
//!
//! ```text
//! container  c       versions in   \0versions\0c
//! object     o       version in    \0o\0<9999999999.99999 - id>
//! ```
//! The difference makes newer versions sort first. An id is the timestamp of the write, `null` for an object that
//! was written while versioning was not enabled. Source: what OpenStack Swift 2.38.3 writes.

use std::fmt;
use std::str::FromStr;
use vocabulary::names::{RESERVED, quote, unquote};
use vocabulary::{EntityPath, Timestamp};

/// The last moment Swift can name, in ticks: `9999999999.99999`.
const LAST_TICK: u64 = 10_000_000_000 * vocabulary::timestamp::TICKS_PER_SECOND - 1;

/// One version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionId {
    /// What was written while versioning was not enabled.
    Null,
    /// Written at that moment.
    At(Timestamp),
}

/// It is neither `null` nor a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoVersion;

impl FromStr for VersionId {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        if text == "null" {
            return Ok(Self::Null);
        }
        let plain = text.parse().ok();
        plain.or_else(|| any_number(text)).map(Self::At).ok_or(NoVersion)
    }
}

/// Seconds in the spellings that OpenStack takes besides the plain one: `1e5`, ` 5`, `1_000`.
fn any_number(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let is_apart =
        |part: &str| part.starts_with(|c: char| c.is_ascii_digit()) && part.ends_with(|c: char| c.is_ascii_digit());
    if text.contains('_') && !text.split('_').all(is_apart) {
        return None;
    }
    let seconds: f64 = text.replace('_', "").parse().ok()?;
    let ticks = (seconds * vocabulary::timestamp::TICKS_PER_SECOND as f64).round();
    // What is no number fails the comparison; up to here `as` keeps whole numbers as they are.
    (ticks >= 0.0 && ticks <= LAST_TICK as f64)
        .then(|| Timestamp::from_ticks(ticks as u64).ok())
        .flatten()
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::At(timestamp) => f.write_str(&timestamp.normal()),
        }
    }
}

/// Where the versions of a container's objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    account: String,
    container: String,
}

impl Hidden {
    /// For a container that gets versions now.
    pub fn new(account: &str, container: &str) -> Self {
        Self {
            account: account.into(),
            container: hidden_container(container),
        }
    }

    /// From what the container's system metadata says. Nothing when that is not a hidden name: no
    /// metadata, however it came there, leads to what users can name.
    pub fn stored(account: &str, _container: &str, quoted: &str) -> Option<Self> {
        let container = unquote(quoted).ok()?;
        (container.starts_with(RESERVED) && !container.contains('/')).then(|| Self {
            account: account.into(),
            container,
        })
    }

    /// As system metadata says it.
    pub fn quoted(&self) -> String {
        quote(&self.container)
    }

    /// The hidden container.
    pub fn container(&self) -> EntityPath {
        EntityPath::account(&self.account).with_container(&self.container)
    }

    /// A version; there is none for [`VersionId::Null`], whose place is the object's own.
    pub fn version(&self, object: &str, id: VersionId) -> EntityPath {
        self.container().with_object(hidden_name(object, id))
    }

    /// The object and version that a path (decoded, `/v1/a/c/o`) names, if it is one of these.
    pub fn read_path(&self, path: &str) -> Option<(String, VersionId)> {
        let rest = path.splitn(4, '/').nth(3)?;
        self.read_target(rest, path.split('/').nth(2)?)
    }

    /// The same for `c/o` of an account.
    pub fn read_target(&self, target: &str, account: &str) -> Option<(String, VersionId)> {
        let object = target.strip_prefix(self.container.as_str())?.strip_prefix('/')?;
        (account == self.account).then(|| read_hidden_name(object)).flatten()
    }

    /// What a link to a version says, as it is stored.
    pub fn link_target(&self, object: &str, id: VersionId) -> String {
        quote(&format!("{}/{}", self.container, hidden_name(object, id)))
    }
}

/// `\0versions\0c`.
pub fn hidden_container(container: &str) -> String {
    format!("{RESERVED}versions{RESERVED}{container}")
}

/// The inverse of [`hidden_container`].
pub fn visible_container(name: &str) -> Option<&str> {
    name.strip_prefix(RESERVED)?
        .strip_prefix("versions")?
        .strip_prefix(RESERVED)
}

/// `\0o\0<difference>`.
pub fn hidden_name(object: &str, id: VersionId) -> String {
    let at = match id {
        VersionId::Null => Timestamp::ZERO,
        VersionId::At(timestamp) => timestamp,
    };
    format!("{RESERVED}{object}{RESERVED}{}", mirrored(at).normal())
}

/// The inverse of [`hidden_name`].
pub fn read_hidden_name(name: &str) -> Option<(String, VersionId)> {
    let (object, mirror) = name.strip_prefix(RESERVED)?.rsplit_once(RESERVED)?;
    let mirror: Timestamp = mirror.parse().ok()?;
    Some((object.into(), VersionId::At(mirrored(mirror))))
}

fn mirrored(timestamp: Timestamp) -> Timestamp {
    // The difference to the last moment is never beyond it.
    Timestamp::from_ticks(LAST_TICK.saturating_sub(timestamp.ticks())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_as_openstack_writes_them() {
        let hidden = Hidden::new("AUTH_test", "c2");
        let id: VersionId = "1795187419.55300".parse().unwrap();
        assert_eq!(hidden.quoted(), "%00versions%00c2");
        assert_eq!(
            hidden.link_target("null", id),
            "%00versions%00c2/%00null%008204812580.44699"
        );
        assert_eq!(hidden.version("null", id).object.unwrap(), "\0null\x008204812580.44699");
        let path = "/v1/AUTH_test/\0versions\0c2/\0null\x008204812580.44699";
        assert_eq!(hidden.read_path(path), Some(("null".into(), id)));
        assert_eq!(hidden.read_path("/v1/AUTH_test/c2/null"), None);
        assert_eq!(
            hidden.read_path("/v1/AUTH_other/\0versions\0c2/\0null\x008204812580.44699"),
            None
        );
        assert_eq!(id.to_string(), "1795187419.55300");
        assert_eq!(Hidden::stored("a", "c", "c"), None);
        assert_eq!(Hidden::stored("a", "c", "%00versions%00c"), Some(Hidden::new("a", "c")));
        assert_eq!(visible_container(&hidden_container("c")), Some("c"));
        assert_eq!(visible_container("c"), None);
        assert_eq!("bad".parse::<VersionId>(), Err(NoVersion));
    }

    proptest! {
        #[test]
        fn any_name_is_read_back(object in "\\PC+", ticks in 0..LAST_TICK) {
            let id = VersionId::At(Timestamp::from_ticks(ticks).unwrap());
            prop_assert_eq!(read_hidden_name(&hidden_name(&object, id)), Some((object, id)));
        }

        #[test]
        fn foreign_names_are_refused_or_read(name in any::<String>()) {
            let _ = read_hidden_name(&name);
            let _ = Hidden::new("a", "c").read_path(&name);
            let _ = name.parse::<VersionId>();
        }
    }
}
