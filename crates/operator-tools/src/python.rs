//! Numbers and texts as OpenStack's programs, written in Python, read and write them.

/// What `int(text)` makes of a text: space around it, a sign and single underscores between digits are allowed.
/// Numbers that need more than 128 bits are none.
pub(crate) fn int(text: &str) -> Option<i128> {
    let text = text.trim();
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let groups_are_digits = digits
        .split('_')
        .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()));
    if !groups_are_digits {
        return None;
    }
    format!("{sign}{}", digits.replace('_', "")).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers_as_python_does() {
        for (text, number) in [("5", 5), (" 5 ", 5), ("+1", 1), ("-60", -60), ("6_0", 60), ("0001", 1)] {
            assert_eq!(int(text), Some(number), "{text}");
        }
        for text in ["", " ", "x", "1.5", "_1", "1_", "1__2", "--1", "+-1", "0x1", "- 1"] {
            assert_eq!(int(text), None, "{text}");
        }
    }
}
