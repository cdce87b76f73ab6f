//! Bytes as hexadecimal digits and back; the one place of the workspace that does this.
//!
//! Always holds: [`encode`] writes lower case; [`decode`] takes both cases and refuses anything else.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Lower-case hexadecimal, two digits for each byte.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The bytes that `text` spells; `None` where it holds anything but pairs of hexadecimal digits.
pub fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let text = text.as_ref();
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

/// The value of one digit.
fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|value| value.try_into().ok())
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
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse_of_encoding(bytes: Vec<u8>) {
            prop_assert_eq!(decode(encode(&bytes)), Some(bytes));
        }
    }
}
