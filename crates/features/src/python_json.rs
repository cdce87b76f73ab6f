//! JSON as Python prints it, since that is what OpenStack's clients have always received.
//!
//! `", "` and `": "` between things, everything beyond ASCII as `\uXXXX` in UTF-16.
//! Always holds: the output is ASCII and reads back as the same value.

use serde_json::Value;
use std::fmt::Write;

/// The text of a value.
pub fn print(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, item)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_text(out, name);
                out.push_str(": ");
                write_value(out, item);
            }
            out.push('}');
        }
    }
}

/// A text with its quotes.
pub fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// What `json.dumps` printed for the same value.
    #[test]
    fn as_python_prints() {
        let value = json!({"a": [1, 1.5, null, true], "ü\u{1f426}": "\"\\/\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{80}", "e": {}, "l": []});
        assert_eq!(
            print(&value),
            "{\"a\": [1, 1.5, null, true], \"\\u00fc\\ud83d\\udc26\": \
             \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\\u0080\", \"e\": {}, \"l\": []}"
        );
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in any::<String>()) {
            let printed = print(&Value::String(text.clone()));
            prop_assert!(printed.is_ascii());
            prop_assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), text);
        }
    }
}
