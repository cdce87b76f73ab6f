//! The entity tags of a container's listing, decrypted.
//!
//! Always holds: a row whose tag cannot be decrypted says `<unknown>`, as OpenStack's does, and the log says
//! why; rows stay in their order and lose nothing.

use super::EncryptionError;
use super::meta::EncryptedValue;
use crate::encryption::keymaster::{Key, KeyError, RootSecrets};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use vocabulary::EntityPath;

/// Bytes of a listing that are read.
pub(super) const MOST: u64 = 128 << 20;
const UNKNOWN: &str = "<unknown>";

/// Only rows in JSON have entity tags.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| {
        let media_type = content_type.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case("application/json")
    })
}

/// The rows with their tags; `None` when nothing in them is encrypted.
pub(super) fn decrypt(
    secrets: Option<&RootSecrets>,
    container: &EntityPath,
    rows: &[u8],
) -> Result<Option<String>, EncryptionError> {
    if memchr::memmem::find(rows, b"swift_meta=").is_none() {
        return Ok(None);
    }
    let Ok(Value::Array(mut rows)) = serde_json::from_slice(rows) else {
        return Ok(None);
    };
    let secrets = secrets.ok_or(KeyError::NoKeymaster)?;
    let mut keys = LastKey::default();
    for row in &mut rows {
        if let Some(Value::String(hash)) = row.get_mut("hash")
            && let Some(shown) = keys.shown(secrets, container, hash)?
        {
            *hash = shown;
        }
    }
    Ok(Some(pythonic::json(&Value::Array(rows))))
}

/// The key of the row before, which mostly is that of the next.
#[derive(Default)]
struct LastKey(Option<(Value, Key)>);

impl LastKey {
    /// What the listing shows for `hash`; `None` for one that is not encrypted.
    fn shown(
        &mut self,
        secrets: &RootSecrets,
        container: &EntityPath,
        hash: &str,
    ) -> Result<Option<String>, EncryptionError> {
        let hidden = match EncryptedValue::parse(hash) {
            Ok(None) => return Ok(None),
            Ok(Some(hidden)) => hidden,
            Err(error) => return Ok(Some(unknown(container, &error.to_string()))),
        };
        let key = match self.key(secrets, container, hidden.meta.key_id()) {
            Err(error @ (KeyError::UnknownSecret(_) | KeyError::NoId(_))) => {
                return Ok(Some(unknown(container, &error.to_string())));
            }
            key => key?,
        };
        let shown = hidden.decrypt(key).map_err(|error| error.to_string());
        let shown = shown.and_then(|shown| String::from_utf8(shown).map_err(|_| "it decrypts to no text".to_owned()));
        Ok(Some(shown.unwrap_or_else(|error| unknown(container, &error))))
    }

    fn key(&mut self, secrets: &RootSecrets, container: &EntityPath, id: Option<&Value>) -> Result<&Key, KeyError> {
        let mut id = id.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        // Of the path only account and container count: the object's part would make every row's id its own.
        if let Some(Value::String(path)) = id.get_mut("path") {
            let end = path.match_indices('/').nth(2).map_or(path.len(), |(at, _)| at);
            path.truncate(end);
        }
        if self.0.as_ref().is_none_or(|(last, _)| *last != id) {
            let keys = secrets.named(container, &id)?;
            self.0 = Some((id, keys.container));
        }
        let found = self.0.as_ref().map(|(_, key)| key);
        found.ok_or(KeyError::NoKeymaster)
    }
}

fn unknown(container: &EntityPath, error: &str) -> String {
    tracing::error!(
        "an entity tag in the listing of {} cannot be decrypted: {error}",
        container.path()
    );
    UNKNOWN.to_owned()
}
