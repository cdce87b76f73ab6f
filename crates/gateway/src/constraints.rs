//! Limits on metadata and names that clients run into, with Swift's texts.
//!
//! Always holds: what is refused here has been written nowhere.

use crate::backend::{header, joined};
use features::{ClientRequest, Response, reply};
use vocabulary::Limits;
use vocabulary::header_name;
use vocabulary::metadata::Entity;

/// Checks the user metadata of a PUT or POST.
pub(crate) fn check_metadata(request: &ClientRequest, entity: Entity, limits: &Limits) -> Result<(), Response> {
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
pub(crate) fn title(name: &str) -> String {
    let mut start = true;
    name.chars()
        .map(|c| {
            let shown = if start { c.to_ascii_uppercase() } else { c };
            start = !c.is_ascii_alphanumeric();
            shown
        })
        .collect()
}

/// The length a client declared: `Ok(None)` for a chunked body, `Err` when it declared none.
pub(crate) fn declared_length(request: &ClientRequest) -> Result<Option<u64>, Response> {
    if let Some(length) = header(&request.headers, "content-length") {
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        return match digits {
            true => Ok(Some(length.parse().unwrap_or(u64::MAX))),
            false => Err(reply::plain(400, "Invalid Content-Length header value")),
        };
    }
    match header(&request.headers, "transfer-encoding") {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => Ok(None),
        Some(_) => Err(reply::plain(400, "Invalid Transfer-Encoding header value")),
        None => Err(reply::plain(411, "Missing Content-Length header.")),
    }
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
