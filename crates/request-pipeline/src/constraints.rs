//! Limits on user metadata that clients run into, with Swift's texts.
//!
//! The gateway's core checks them, and so does a feature after which no other can (`encryption`).
//! Always holds: what is refused here has been written nowhere.

use crate::reply;
use crate::request::ClientRequest;
use http::{HeaderMap, HeaderName, HeaderValue};
use peer::Response;
use vocabulary::Limits;
use vocabulary::header_name;
use vocabulary::metadata::Entity;

/// In OpenStack's words.
pub const PRIVATE_PARAMETER: &str = "Invalid Content-Type, swift_* is not a valid parameter name.";

/// Whether a content type has a parameter that Swift keeps for itself: sizes of large objects, and delete markers, are
/// known by these.
pub fn has_private_parameter(content_type: &str) -> bool {
    content_type
        .split(';')
        .skip(1)
        .any(|parameter| parameter.trim_start().to_ascii_lowercase().starts_with("swift_"))
}

/// Checks the user metadata of a PUT or POST.
pub fn check_metadata(request: &ClientRequest, entity: Entity, limits: &Limits) -> Result<(), Response> {
    let (mut count, mut total, mut odd) = (0, 0, false);
    for name in request.headers.keys() {
        let value = joined(&request.headers, name)
            .map(|v| v.as_bytes().to_vec())
            .unwrap_or_default();
        if value.len() > limits.max_header_size {
            return Err(reply::plain(
                400,
                format!("Header value too long: {}", title(name.as_str())),
            ));
        }
        let name = name.as_str();
        let Some(key) = name.strip_prefix(entity.user_prefix()) else {
            odd |= entity != Entity::Object && name.strip_prefix(entity.remove_prefix()).is_some_and(is_odd);
            continue;
        };
        odd |= entity != Entity::Object && is_odd(key);
        if key.is_empty() {
            return Err(reply::plain(400, "Metadata name cannot be empty"));
        }
        let real = header_name::decode(key);
        let is_text = |bytes: &[u8]| entity == Entity::Object || std::str::from_utf8(bytes).is_ok();
        let titled = header_name::title(key);
        let shown = || {
            format!(
                "{}{}",
                entity.user_prefix(),
                String::from_utf8_lossy(&header_name::decode(&titled))
            )
        };
        let fault = if !(is_text(&real) && is_text(&value)) {
            "Metadata must be valid UTF-8".to_owned()
        } else if real.len() > limits.max_meta_name_length {
            format!("Metadata name too long: {}", shown())
        } else if value.len() > limits.max_meta_value_length {
            format!(
                "Metadata value longer than {}: {}",
                limits.max_meta_value_length,
                shown()
            )
        } else {
            count += 1;
            total += real.len() + value.len();
            continue;
        };
        return Err(reply::plain(400, fault));
    }
    if count > limits.max_meta_count {
        return Err(reply::plain(
            400,
            format!("Too many metadata items; max {}", limits.max_meta_count),
        ));
    }
    if total > limits.max_meta_overall_size {
        return Err(reply::plain(
            400,
            format!("Total metadata too large; max {}", limits.max_meta_overall_size),
        ));
    }
    if odd {
        return Err(reply::html(400, "Metadata must be valid UTF-8".into()));
    }
    Ok(())
}

/// Whether OpenStack's account and container servers refuse an encoded name. They make letters of Latin-1
/// small first, which spoils characters of two bytes: only those of three and four, and Hebrew, are taken.
fn is_odd(name: &str) -> bool {
    let small = |byte: &u8| match byte {
        0xc0..=0xd6 | 0xd8..=0xde => byte + 0x20,
        other => *other,
    };
    let name = header_name::decode(name);
    !name.is_ascii() && std::str::from_utf8(&name.iter().map(small).collect::<Vec<u8>>()).is_err()
}

/// `temp-url-key` → `Temp-Url-Key`, the spelling WSGI gives header names.
pub fn title(name: &str) -> String {
    let mut start = true;
    name.chars()
        .map(|c| {
            let shown = if start { c.to_ascii_uppercase() } else { c };
            start = !c.is_ascii_alphanumeric();
            shown
        })
        .collect()
}

/// One value for a header that was sent several times, as WSGI servers join them.
pub fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.clone();
    let Some(second) = values.next() else {
        return Some(first);
    };
    let mut all = first.as_bytes().to_vec();
    for value in std::iter::once(second).chain(values) {
        all.push(b',');
        all.extend_from_slice(value.as_bytes());
    }
    HeaderValue::from_bytes(&all).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_wsgi_spells_them() {
        assert_eq!(title("temp-url-key2x"), "Temp-Url-Key2x");
        assert_eq!(title("nnn"), "Nnn");
    }
}
