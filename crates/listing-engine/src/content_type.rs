//! Content types with Swift's `swift_bytes` parameter, which belongs to the data and not to the type.
//!
//! A large object's manifest has its true size in `;swift_bytes=N`. When the data of one row meets
//! the content type of another, the parameter stays with the data. Parsing never fails: what is no
//! parameter is dropped, as OpenStack drops it.

use std::borrow::Cow;

/// The content type of `typed` with the `swift_bytes` of `data`.
pub(crate) fn combine(typed: &str, data: &str) -> String {
    let (mut text, parameters) = split(typed);
    for (key, value) in parameters {
        if key != "swift_bytes" {
            text.push_str(&format!(";{key}={value}"));
        }
    }
    if let Some(bytes) = swift_bytes(data) {
        text.push_str(&format!(";swift_bytes={bytes}"));
    }
    text
}

/// A content type as listings show it, and the size that `swift_bytes` says the data has.
pub fn listed(content_type: &str) -> (Cow<'_, str>, Option<u64>) {
    if !content_type.contains(';') {
        return (Cow::Borrowed(content_type), None);
    }
    let size = swift_bytes(content_type).and_then(|bytes| bytes.trim_matches('"').parse().ok());
    (Cow::Owned(combine(content_type, "")), size)
}

/// The value of the last `swift_bytes` parameter, unless it is empty.
pub(crate) fn swift_bytes(content_type: &str) -> Option<String> {
    let (_, parameters) = split(content_type);
    let last = parameters.into_iter().rev().find(|(key, _)| *key == "swift_bytes");
    last.map(|(_, value)| value.to_owned())
        .filter(|value| !value.is_empty())
}

/// The type as written, and its parameters.
fn split(content_type: &str) -> (String, Vec<(&str, &str)>) {
    let Some(at) = content_type.find(';') else {
        return (content_type.to_owned(), Vec::new());
    };
    let (kind, mut rest) = content_type.split_at(at);
    let mut parameters = Vec::new();
    while let Some(semicolon) = rest.find(';') {
        rest = &rest[semicolon + 1..];
        if let Some((key, value, behind)) = parameter(rest) {
            parameters.push((key, value));
            rest = behind;
        }
    }
    (kind.to_owned(), parameters)
}

/// `token [= (token | quoted)]` at the beginning of `text`, and what is behind it.
fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let (key, behind) = token(text.trim_start())?;
    let value = behind.trim_start().strip_prefix('=').map(str::trim_start);
    match value.and_then(|v| token(v).or_else(|| quoted(v))) {
        Some((value, behind)) => Some((key, value, behind)),
        None => Some((key, "", behind)),
    }
}

fn token(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| c <= ' ' || c == '\x7f' || "()<>@,;:\"/[]?={}".contains(c))
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let inner = text.strip_prefix('"')?;
    let end = inner.char_indices().find_map(|(i, c)| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes.then_some(i)
    })?;
    Some(text.split_at(end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (type of the newer content type, type of the newer data, what OpenStack Swift stored)
    #[test]
    fn combined_as_openstack_combines_them() {
        let table = [
            ("b", "a;swift_bytes=99", "b;swift_bytes=99"),
            ("b;swift_bytes=88", "a;swift_bytes=99", "b;swift_bytes=99"),
            ("b;swift_bytes=88", "a", "b"),
            ("b ; c = d", "a", "b ;c=d"),
            ("b; \"x", "a", "b"),
            (";", "a", ""),
            ("b;;c", "a", "b;c="),
            (
                " b; c=\"d e\" ; f",
                "a;swift_bytes=\"9\"",
                " b;c=\"d e\";f=;swift_bytes=\"9\"",
            ),
            ("b", "a;swift_bytes=", "b"),
            ("b", "a;swift_bytes=1;swift_bytes=2", "b;swift_bytes=2"),
            ("A;SWIFT_BYTES=9", "b;swift_bytes=7", "A;SWIFT_BYTES=9;swift_bytes=7"),
            ("a; x=\"q;swift_bytes=3\"", "b", "a;x=\"q;swift_bytes=3\""),
            ("", "a;swift_bytes=9", ";swift_bytes=9"),
        ];
        for (typed, data, expected) in table {
            assert_eq!(combine(typed, data), expected, "{typed:?} {data:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_content_type(typed in "\\PC*", data in "[a-z;=\" \\\\]*") {
            let combined = combine(&typed, &data);
            prop_assert_eq!(swift_bytes(&combined), swift_bytes(&data));
        }
    }
}
