//! Numbers.

/// What `repr` and the JSON writer make of a float: the shortest digits that read back as it, an exponent below 1e-4
/// and from 1e16 on.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = number.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{number:?}");
    }
    let shortest = format!("{number:e}");
    // `{:e}` of a finite float always has an `e`.
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (sign, power) = match exponent.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{power:0>2}")
}

/// What `int(text)` makes of a text: space around it, a sign and single underscores between digits are allowed.
/// Numbers that need more than 128 bits are none.
pub fn int(text: &str) -> Option<i128> {
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

/// What `round(value, digits)` gives.
pub fn round(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn writes_floats_as_python_does() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (12.35, "12.35"),
            (1e-4, "0.0001"),
            (2.5e-5, "2.5e-05"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(value), text);
        }
        assert_eq!(
            (round(2.675, 2), round(0.125, 2), round(99.999, 2)),
            (2.67, 0.12, 100.0)
        );
    }

    proptest! {
        #[test]
        fn any_text_and_number_is_looked_at(text in "\\PC*|[-+_0-9 ]*", number in any::<f64>()) {
            int(&text);
            prop_assert!(!number.is_finite() || float(number).parse::<f64>().unwrap() == number);
        }
    }
}
