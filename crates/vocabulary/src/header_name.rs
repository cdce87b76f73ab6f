//! Header names with bytes that HTTP libraries refuse, in a spelling that they take.
//!
//! OpenStack Swift accepts, keeps and shows metadata named `X-Object-Meta-Größe` or
//! `X-Object-Meta-a/b`; the type for header names knows tokens of ASCII only. So at the border of the
//! process ([`encode`], where sockets are read) every other byte of a name becomes `%XX`, `%` itself
//! too; where a name is stored, counted or sent it becomes again what it was ([`decode`]).
//! Always holds: decoding an encoded name gives the name back; no decoded byte is a letter, a digit or
//! `-`, so that an encoded name never stands for a header that means something.
//! Deliberately absent: spaces, control characters and colons, which no name may have.

use std::borrow::Cow;

/// Whether a byte of a name must be encoded.
pub const fn is_encoded(byte: u8) -> bool {
    matches!(
        byte,
        0x80..|b'%'| b'"'
            | b'('
            | b')'
            | b','
            | b'/'
            | b';'
            | b'<'
            | b'='
            | b'>'
            | b'?'
            | b'@'
            | b'['
            | b'\\'
            | b']'
            | b'{'
            | b'}'
    )
}

/// Appends `byte` of a name to `out`, encoded if it must be. Lower case, as header names are.
pub fn encode_byte(byte: u8, out: &mut Vec<u8>) {
    if is_encoded(byte) {
        let [high, low] = crate::hex::pair(byte);
        out.extend([b'%', high, low]);
    } else {
        out.push(byte);
    }
}

/// A name's bytes in a spelling that header names may have; others of its bytes stay as they are.
pub fn encode(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.iter().copied().any(is_encoded) {
        return Cow::Borrowed(name);
    }
    let mut out = Vec::with_capacity(name.len() + 16);
    for byte in name {
        encode_byte(*byte, &mut out);
    }
    Cow::Owned(out)
}

/// [`encode`] for text.
pub fn encode_text(name: &str) -> Cow<'_, str> {
    match encode(name.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(name),
        // Only whole characters have been replaced, by ASCII.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The bytes that an encoded name stands for.
pub fn decode(name: &str) -> Cow<'_, [u8]> {
    if !name.contains('%') {
        return Cow::Borrowed(name.as_bytes());
    }
    let mut out = Vec::with_capacity(name.len());
    decode_into(name.as_bytes(), &mut out);
    Cow::Owned(out)
}

fn decode_into(mut name: &[u8], out: &mut Vec<u8>) {
    while let Some((unit, rest)) = next(name) {
        out.push(unit);
        name = rest;
    }
}

/// How many bytes the name has that an encoded one stands for.
pub fn decoded_len(name: &str) -> usize {
    name.len()
        - 2 * std::iter::successors(Some(name.as_bytes()), |rest| next(rest).map(|(_, rest)| rest))
            .filter(|rest| encoded_byte(rest).is_some())
            .count()
}

/// An encoded name as OpenStack spells names: each ASCII letter that follows no ASCII letter is a
/// capital, the others are small, all other bytes stay (`bytes.title` of Python).
pub fn title(name: &str) -> String {
    let mut out = Vec::with_capacity(name.len());
    let (mut after_letter, mut rest) = (false, name.as_bytes());
    while let Some((unit, tail)) = next(rest) {
        let encoded = rest.len() - tail.len() > 1;
        match (encoded, after_letter) {
            (true, _) => encode_byte(unit, &mut out),
            (false, true) => out.push(unit.to_ascii_lowercase()),
            (false, false) => out.push(unit.to_ascii_uppercase()),
        }
        after_letter = !encoded && unit.is_ascii_alphabetic();
        rest = tail;
    }
    // Bytes that are not ASCII have been passed on in their order.
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The first byte that `name` stands for, and what is left.
fn next(name: &[u8]) -> Option<(u8, &[u8])> {
    match encoded_byte(name) {
        Some(byte) => Some((byte, name.get(3..).unwrap_or_default())),
        None => name.split_first().map(|(first, rest)| (*first, rest)),
    }
}

/// The byte that the first three of `name` stand for. What [`encode`] never makes stands for itself.
fn encoded_byte(name: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = name else { return None };
    let byte = crate::hex::digit(*high)? << 4 | crate::hex::digit(*low)?;
    is_encoded(byte).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_their_spelling() {
        for (name, encoded) in [
            ("x-object-meta-plain_1!", "x-object-meta-plain_1!"),
            ("x-object-meta-größe", "x-object-meta-gr%c3%b6%c3%9fe"),
            ("x-object-meta-50%", "x-object-meta-50%25"),
            ("x-object-meta-a/b(c)", "x-object-meta-a%2fb%28c%29"),
        ] {
            assert_eq!(encode_text(name), encoded);
            assert_eq!(decode(encoded), name.as_bytes());
            assert_eq!(decoded_len(encoded), name.len());
        }
    }

    #[test]
    fn nothing_that_means_something_can_be_disguised() {
        for literal in ["%62%61", "%2d", "%", "%c", "%zz", "x%0d%0ay", "%3a", "%20", "%00"] {
            assert_eq!(decode(literal), literal.as_bytes());
            assert_eq!(decoded_len(literal), literal.len());
        }
    }

    #[test]
    fn titles_as_openstack_writes_them() {
        let titled = |name: &str| String::from_utf8(decode(&title(&encode_text(name))).into_owned()).unwrap();
        assert_eq!(titled("x-object-meta-a1b_c"), "X-Object-Meta-A1B_C");
        assert_eq!(titled("ETAG"), "Etag");
        assert_eq!(titled("x-container-meta-uni\u{e12}x"), "X-Container-Meta-Uni\u{e12}X");
        assert_eq!(titled("x-object-meta-éaÉ%c3"), "X-Object-Meta-éAÉ%C3");
        assert_eq!(titled("x-object-meta-ïx"), "X-Object-Meta-ïX");
    }

    proptest! {
        #[test]
        fn decoding_is_inverse(name in prop::collection::vec(any::<u8>(), 0..40)) {
            let encoded = encode(&name);
            if let Ok(text) = std::str::from_utf8(&encoded) {
                prop_assert_eq!(decode(text), name.as_slice());
                prop_assert_eq!(decoded_len(text), name.len());
                prop_assert_eq!(decode(&title(text)).to_ascii_lowercase(), name.to_ascii_lowercase());
            }
        }

        #[test]
        fn any_text_is_decoded(name in "\\PC*|[%0-9a-f]*") {
            prop_assert_eq!(decode(&name).len(), decoded_len(&name));
            prop_assert_eq!(title(&name).to_ascii_lowercase(), title(&name.to_ascii_lowercase()).to_ascii_lowercase());
        }
    }
}
