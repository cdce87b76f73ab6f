//! Words on a command line, as OpenStack's programs read them (Python's optparse).

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::PathBuf;

/// A path. The empty one is one too, where nothing is; clap's own would refuse it.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A whole number: `0x1f` and `0b11` are numbers, `010` is eight. What no machine counts to is the largest number.
pub(crate) fn whole(text: &str) -> Result<i64, &'static str> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        [b'0', _, ..] => (8, &text[1..]),
        _ => (10, text),
    };
    let number = match radix {
        10 => pythonic::int(digits),
        _ => i128::from_str_radix(digits, radix)
            .ok()
            .filter(|_| !digits.starts_with(['+', '-'])),
    };
    let number = number.ok_or("expected a whole number")?;
    Ok(number.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// A number with a fraction, written as Python reads them: spaces around it, and underscores between digits.
pub(crate) fn float(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    let stray = text.starts_with('_')
        || text.ends_with('_')
        || text.contains("__")
        || text.contains("_.")
        || text.contains("._");
    let number = text.replace('_', "").parse().ok();
    number.filter(|_| !stray).ok_or("expected a number")
}

/// A tool's options as `--help` lists them. Its other words are for the line above them.
pub(crate) fn explained<A: clap::Args>() -> String {
    let command = A::augment_args(clap::Command::new("")).help_template("{all-args}");
    let mut command = command.mut_args(|arg| match arg.is_positional() {
        true => arg.hide(true),
        false => arg,
    });
    command.render_help().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_are_those_of_optparse() {
        let cases = [
            ("5", 5),
            (" 5 ", 5),
            ("+1_0", 10),
            ("-7", -7),
            ("0", 0),
            ("0x1F", 31),
            ("0b101", 5),
            ("010", 8),
            ("99999999999999999999", i64::MAX),
        ];
        for (text, number) in cases {
            assert_eq!(whole(text), Ok(number), "{text}");
        }
        for text in ["", "x", "1.5", "08", "0x", "0x-1", "0b2", "-0x1", "1__0", "0 5"] {
            assert!(whole(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_with_fractions_are_those_of_python() {
        for (text, number) in [
            ("5", 5.0),
            (" 1_0.5 ", 10.5),
            ("-inf", f64::NEG_INFINITY),
            (".5", 0.5),
            ("1e3", 1000.0),
        ] {
            assert_eq!(float(text), Ok(number), "{text}");
        }
        for text in ["", "x", "_1", "1_", "1__0", "1_.5", "1 0"] {
            assert!(float(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _ = (whole(&text), float(&text));
        }
    }
}
