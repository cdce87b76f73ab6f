//! Values: one walk over them, in two languages.

use crate::{float, json_text, quoted};
use serde_json::{Map, Number, Value};

/// What `json.dumps` makes of a value: a blank after commas and colons, ASCII alone, fields in their order.
pub fn json(value: &Value) -> String {
    Json { sorted: false }.print(value)
}

/// The same with `sort_keys=True`.
pub fn json_sorted(value: &Value) -> String {
    Json { sorted: true }.print(value)
}

/// What `repr` makes of what `json.loads` made of a document.
pub fn repr(value: &Value) -> String {
    Repr.print(value)
}

/// How a language says what stands in a value.
trait Language {
    /// Null, true, false.
    const WORDS: [&'static str; 3];

    fn text(&self, out: &mut String, text: &str);

    fn sorted(&self) -> bool;

    fn print(&self, value: &Value) -> String {
        let mut out = String::new();
        self.value(&mut out, value);
        out
    }

    fn value(&self, out: &mut String, value: &Value) {
        let [null, yes, no] = Self::WORDS;
        match value {
            Value::Null => out.push_str(null),
            Value::Bool(true) => out.push_str(yes),
            Value::Bool(false) => out.push_str(no),
            Value::Number(number) => out.push_str(&numeral(number)),
            Value::String(text) => self.text(out, text),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    self.value(out, item);
                }
                out.push(']');
            }
            Value::Object(fields) => self.object(out, fields),
        }
    }

    fn object(&self, out: &mut String, fields: &Map<String, Value>) {
        let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
        if self.sorted() {
            sorted.sort_by_key(|field| field.0);
        }
        out.push('{');
        for (at, (name, item)) in sorted.into_iter().enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            self.text(out, name);
            out.push_str(": ");
            self.value(out, item);
        }
        out.push('}');
    }
}

fn numeral(number: &Number) -> String {
    match number.as_f64() {
        Some(real) if number.is_f64() => float(real),
        _ => number.to_string(),
    }
}

struct Json {
    sorted: bool,
}

impl Language for Json {
    const WORDS: [&'static str; 3] = ["null", "true", "false"];

    fn text(&self, out: &mut String, text: &str) {
        json_text(out, text);
    }

    fn sorted(&self) -> bool {
        self.sorted
    }
}

struct Repr;

impl Language for Repr {
    const WORDS: [&'static str; 3] = ["None", "True", "False"];

    fn text(&self, out: &mut String, text: &str) {
        out.push_str(&quoted(text));
    }

    fn sorted(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json as value;

    /// What `json.dumps` printed for the same value.
    #[test]
    fn as_python_writes_json() {
        let value = value!({"z": [1, 1.5, null, true, 1e16], "ü\u{1f426}": "\"\\/\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{80}", "e": {}, "l": []});
        let bird = "\"\\u00fc\\ud83d\\udc26\": \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\\u0080\"";
        assert_eq!(
            json(&value),
            format!("{{\"z\": [1, 1.5, null, true, 1e+16], {bird}, \"e\": {{}}, \"l\": []}}")
        );
        assert_eq!(
            json_sorted(&value),
            format!("{{\"e\": {{}}, \"l\": [], \"z\": [1, 1.5, null, true, 1e+16], {bird}}}")
        );
    }

    /// Printed by CPython 3.11.
    #[test]
    fn as_python_shows_values() {
        let value = value!({"a": null, "b": [true, false, 1, 1.0, 2.5e-5, 1e16, 1.5e300], "it's": "\"\n\u{7f}ü"});
        assert_eq!(
            repr(&value),
            "{'a': None, 'b': [True, False, 1, 1.0, 2.5e-05, 1e+16, 1.5e+300], \"it's\": '\"\\n\\x7fü'}"
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(name in "\\PC*", text in any::<String>(), whole in any::<i64>()) {
            let value = value!({name: [text, whole], "": null});
            let printed = json(&value);
            prop_assert!(printed.is_ascii());
            prop_assert_eq!(&json_sorted(&serde_json::from_str(&printed).unwrap()), &json_sorted(&value));
            repr(&value);
        }
    }
}
