//! Numbers and texts as OpenStack's programs, written in Python, read and write them.

use serde_json::Value;
use std::fmt::Write;

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

/// What `repr(value)` makes of what `json.loads` made of a document.
pub(crate) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => match number.as_f64() {
            Some(real) if number.is_f64() => out.push_str(&float(real)),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, item)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_text(out, name);
                out.push_str(": ");
                write_repr(out, item);
            }
            out.push('}');
        }
    }
}

/// With single quotation marks, or double ones where only single ones are within. What does not print is escaped.
fn write_text(out: &mut String, text: &str) {
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
            c if c == mark => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 || (0x7f..0xa1).contains(&u32::from(c)) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push(mark);
}

/// What `repr` makes of a float: the shortest text that reads back as it, with an exponent below 1e-4 and from 1e16 on.
pub(crate) fn float(value: f64) -> String {
    if !value.is_finite() {
        return match value {
            value if value.is_nan() => "nan".into(),
            value if value > 0.0 => "inf".into(),
            _ => "-inf".into(),
        };
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent
            .strip_prefix('-')
            .map_or(("+", exponent), |exponent| ("-", exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}

/// What `round(value, digits)` gives.
pub(crate) fn round(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().unwrap_or(value)
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

    /// Printed by CPython 3.11.
    #[test]
    fn writes_values_as_python_does() {
        let value =
            serde_json::json!({"a": null, "b": [true, false, 1, 1.0, 2.5e-5, 1e16, 1.5e300], "it's": "\"\n\u{7f}ü"});
        assert_eq!(
            repr(&value),
            "{'a': None, 'b': [True, False, 1, 1.0, 2.5e-05, 1e+16, 1.5e+300], \"it's\": '\"\\n\\x7fü'}"
        );
        assert_eq!(repr(&serde_json::json!("'\"")), "'\\'\"'");
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (12.35, "12.35"),
            (1e-4, "0.0001"),
        ] {
            assert_eq!(float(value), text);
        }
        assert_eq!(
            (round(2.675, 2), round(0.125, 2), round(99.999, 2)),
            (2.67, 0.12, 100.0)
        );
    }
}
