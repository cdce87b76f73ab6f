//! JSON exactly as Python's `json.dumps(…, sort_keys=True)` writes it: sorted keys, a blank after
//! `,` and `:`, everything but printable ASCII escaped, floats as `repr` shows them.
//!
//! Ring files are compared byte for byte with OpenStack's, which are written so.

use serde_json::Value;

/// The JSON text of a value.
pub(crate) fn dumps(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (None, None, Some(float)) => out.push_str(&pickle::python_repr(float)),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            out.push('{');
            for (place, name) in names.into_iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                write_text(out, name);
                out.push_str(": ");
                write(out, &fields[name.as_str()]);
            }
            out.push('}');
        }
    }
}

fn write_text(out: &mut String, text: &str) {
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
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}
