//! Texts.

use std::fmt::Write;

/// Appends what `json.dumps` makes of a text: quotes around it, ASCII alone within.
/// Stretches that need no escape are copied whole.
pub fn json_text(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|byte| !matches!(byte, b' '..=b'~') || byte == b'"' || byte == b'\\')
    {
        out.push_str(&rest[..at]);
        let Some(character) = rest[at..].chars().next() else {
            break;
        };
        json_escape(out, character);
        rest = &rest[at + character.len_utf8()..];
    }
    out.push_str(rest);
    out.push('"');
}

/// A JSON document in ASCII alone: what is beyond that stands within texts only, where its escape means the same.
pub fn json_ascii(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for character in document.chars() {
        match character {
            ' '..='~' => out.push(character),
            _ => json_escape(&mut out, character),
        }
    }
    out
}

fn json_escape(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        _ => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

/// What `repr` makes of a text: single quotes around it, or double ones where only single ones are within. What does
/// not print is escaped; characters that are not assigned are let pass.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let mark = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(mark);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            it if it == mark => out.extend(['\\', it]),
            it if prints(it) => out.push(it),
            it => {
                // Writing to a String cannot fail.
                let _ = match u32::from(it) {
                    code @ ..0x100 => write!(out, "\\x{code:02x}"),
                    code @ ..0x1_0000 => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(mark);
    out
}

/// Neither a control character, nor a space but the plain one, nor one of those that only say how others are shown.
fn prints(character: char) -> bool {
    match character {
        ' '..='~' => true,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' => false,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0001}'..='\u{e007f}' | '\u{e000}'..='\u{f8ff}' => false,
        '\u{f0000}'.. => false,
        it => !it.is_control() && !it.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Printed by CPython 3.11.
    #[test]
    fn as_python_quotes() {
        for (text, shown) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("\"", "'\"'"),
            ("\n\r\t\\\0\u{7f}", "'\\n\\r\\t\\\\\\x00\\x7f'"),
            ("ü€", "'ü€'"),
            (
                "\u{85}\u{a0}\u{ad}\u{2028}\u{200b}\u{202e}\u{3000}\u{e000}\u{feff}\u{10ffff}",
                "'\\x85\\xa0\\xad\\u2028\\u200b\\u202e\\u3000\\ue000\\ufeff\\U0010ffff'",
            ),
        ] {
            assert_eq!(quoted(text), shown);
        }
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in any::<String>()) {
            let mut printed = String::new();
            json_text(&mut printed, &text);
            prop_assert!(printed.is_ascii());
            prop_assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), text.clone());
            let document = json_ascii(&serde_json::Value::from(text.as_str()).to_string());
            prop_assert!(document.is_ascii());
            prop_assert_eq!(serde_json::from_str::<String>(&document).unwrap(), text.clone());
            prop_assert!(quoted(&text).chars().all(prints));
        }
    }
}
