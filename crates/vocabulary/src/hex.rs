//! Bytes as hexadecimal digits and back; the one place of the workspace that does this.
//!
//! Always holds: digits are written in lower case but for [`upper_pair`]; [`decode`] takes both cases and
//! [`decode_lower`] the lower one; both refuse anything else.

/// The two lower-case digits of `byte`.
#[inline]
pub const fn pair(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// The two upper-case digits of `byte`, as percent-encoding has them.
#[inline]
pub const fn upper_pair(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Lower-case hexadecimal, two digits for each byte.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len() * 2);
    push(&mut text, bytes);
    text
}

/// Appends what [`encode`] makes of `bytes`.
pub fn push(text: &mut String, bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    text.reserve(bytes.len() * 2);
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        // Digits are ASCII.
        text.push_str(str::from_utf8(&digits(*block)).unwrap_or_default());
    }
    for byte in rest {
        let [high, low] = pair(*byte);
        text.push(char::from(high));
        text.push(char::from(low));
    }
}

/// The 32 lower-case digits of 16 bytes, without an allocation.
pub fn digits(bytes: [u8; 16]) -> [u8; 32] {
    let mut digits = [0; 32];
    for (slot, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *slot = pair(byte);
    }
    digits
}

/// The bytes that `text` spells; `None` where it holds anything but pairs of hexadecimal digits.
pub fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_ref().as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

/// [`decode`] for text that must be lower case, as signatures are.
pub fn decode_lower(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let text = text.as_ref();
    (!text.iter().any(u8::is_ascii_uppercase))
        .then(|| decode(text))
        .flatten()
}

/// The 16 bytes that 32 lower-case digits spell, without an allocation; `None` for any other text.
pub fn decode_digits(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    for (slot, [high, low]) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
        *slot = lower_digit(*high)? << 4 | lower_digit(*low)?;
    }
    Some(bytes)
}

/// The value of one digit of either case.
#[inline]
pub const fn digit(byte: u8) -> Option<u8> {
    lower_digit(byte.to_ascii_lowercase())
}

/// The value of one lower-case digit.
#[inline]
pub const fn lower_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        assert_eq!(decode("00fFa5"), Some(vec![0, 255, 165]));
        for text in ["0", "0g", "+1", "é", " 0"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
        assert_eq!(decode_lower("00ffa5"), Some(vec![0, 255, 165]));
        assert_eq!(decode_lower("00fFa5"), None);
        assert_eq!((pair(0xa5), upper_pair(0xa5)), (*b"a5", *b"A5"));
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse_of_encoding(bytes: Vec<u8>) {
            prop_assert_eq!(decode(encode(&bytes)), Some(bytes.clone()));
            prop_assert_eq!(decode_lower(encode(&bytes)), Some(bytes));
        }

        #[test]
        fn fixed_sizes_are_the_same_digits(bytes: [u8; 16], other in "[0-9a-fA-F]{30,34}") {
            let text = encode(bytes);
            prop_assert_eq!(text.as_bytes(), digits(bytes));
            prop_assert_eq!(decode_digits(&text), Some(bytes));
            let expected = decode_lower(&other).and_then(|bytes| bytes.try_into().ok());
            prop_assert_eq!(decode_digits(&other), expected);
        }
    }
}
