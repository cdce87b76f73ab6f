//! How an encrypted object was encrypted: what `object-info` prints of its crypto-metadata.
//!
//! It is a JSON object, quoted for a URL (`features/src/encryption/meta.rs` says what is in it). Nothing is decrypted,
//! and no secret is printed: the body's key in it is encrypted.

use crate::console::Console;
use crate::text::shown;
use object_engine::ObjectMetadata;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::io;
use vocabulary::Fault;

/// What is printed, and the name under which an object has it.
const DETAILS: [(&str, &str); 2] = [
    ("Data", "X-Object-Sysmeta-Crypto-Body-Meta"),
    ("Metadata", "X-Object-Transient-Sysmeta-Crypto-Meta"),
];

/// Whether all there is could be read; what could not is complained of, and nothing printed after it.
pub(crate) fn print(metadata: &ObjectMetadata, console: &mut Console<'_>) -> io::Result<bool> {
    for (of, name) in DETAILS {
        // Spelled otherwise it is not taken for it.
        let Some((_, quoted)) = metadata.iter().find(|(spelled, _)| *spelled == name) else {
            continue;
        };
        match parse(quoted) {
            Ok(details) => {
                let mut printed = String::new();
                indented(&mut printed, &details, 0);
                console.say(format_args!("{of} crypto details: {printed}"))?;
            }
            Err(reason) => {
                let quoted = shown(quoted);
                console.complain(format_args!(
                    "the metadata's {name} {quoted} is no crypto-metadata: {reason}"
                ))?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn parse(quoted: &[u8]) -> Result<Value, Fault> {
    let text = String::from_utf8_lossy(quoted).replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8_lossy();
    match serde_json::from_str(&decoded).map_err(|error| Fault::data(error.to_string()))? {
        details @ Value::Object(_) => Ok(details),
        _ => Err(Fault::data("it is no JSON object")),
    }
}

/// Appends what `json.dumps` makes of a value with `indent=2, sort_keys=True`.
fn indented(out: &mut String, value: &Value, depth: usize) {
    let line = |out: &mut String, depth| out.extend(["\n", &"  ".repeat(depth)]);
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(out, depth + 1);
                indented(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Object(fields) if !fields.is_empty() => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|field| field.0);
            out.push('{');
            for (at, (name, item)) in sorted.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(out, depth + 1);
                pythonic::json_text(out, name);
                out.push_str(": ");
                indented(out, item, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        plain => out.push_str(&pythonic::json(plain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    /// Printed by CPython 3.11.
    #[test]
    fn as_python_indents_json() {
        let value = value!({"z": [1.0, {"ü": null}], "e": {}, "l": [], "a": {"b": true}});
        let printed = "{\n  \"a\": {\n    \"b\": true\n  },\n  \"e\": {},\n  \"l\": [],\n  \"z\": [\n    1.0,\n    {\n      \"\\u00fc\": null\n    }\n  ]\n}";
        let mut out = String::new();
        indented(&mut out, &value, 0);
        assert_eq!(out, printed);
    }
}
