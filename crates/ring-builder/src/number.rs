//! Numbers as an operator may write them to OpenStack's program, which reads them as Python does.
//!
//! Always holds: what is refused is refused with the words OpenStack's program has for it; no text panics.

use vocabulary::Fault;

/// A whole number, with a sign, blanks around it and `_` between digits if one likes.
pub fn whole(text: &str) -> Result<i64, Fault> {
    let refuse = || {
        Fault::caller(format!(
            "invalid literal for int() with base 10: {}",
            pythonic::quoted(text)
        ))
    };
    let plain = without_underscores(text.trim()).ok_or_else(refuse)?;
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    plain
        .parse()
        .map_err(|_| Fault::caller(format!("{plain} is too large")))
}

/// A number with a point or an exponent, `nan` and `inf` included.
pub fn float(text: &str) -> Result<f64, Fault> {
    let refuse = || Fault::caller(format!("could not convert string to float: {}", pythonic::quoted(text)));
    let plain = without_underscores(text.trim()).ok_or_else(refuse)?;
    plain.parse().map_err(|_| refuse())
}

/// Underscores are for the eye, and stand between digits only.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |place: Option<usize>| place.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let misplaced = |(at, byte): (usize, &u8)| *byte == b'_' && !(digit(at.checked_sub(1)) && digit(Some(at + 1)));
    if bytes.iter().enumerate().any(misplaced) {
        return None;
    }
    Some(text.replace('_', ""))
}

/// A weight as OpenStack's program says it in a sentence: `100.0`.
pub fn decimal(number: f64) -> String {
    pythonic::float(number)
}

/// `%.<places>f` of Python, where what is no number is in small letters.
pub fn fixed(number: f64, places: usize) -> String {
    match number {
        it if it.is_nan() => "nan".to_owned(),
        it if it.is_infinite() => if it > 0.0 { "inf" } else { "-inf" }.to_owned(),
        it => format!("{it:.places$}"),
    }
}

/// Seconds as `H:MM:SS`, with days in front of them when there are any.
pub fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, rest) = (seconds / 86400, seconds % 86400);
    let clock = format!("{}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    match days {
        0 => clock,
        1 => format!("1 day, {clock}"),
        days => format!("{days} days, {clock}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(whole("12"), Ok(12));
        assert_eq!(whole(" -5 "), Ok(-5));
        assert_eq!(whole("1_000"), Ok(1000));
        assert_eq!(
            whole("x").unwrap_err().what,
            "invalid literal for int() with base 10: 'x'"
        );
        assert_eq!(
            whole("").unwrap_err().what,
            "invalid literal for int() with base 10: ''"
        );
        assert_eq!(
            whole("1.5").unwrap_err().what,
            "invalid literal for int() with base 10: '1.5'"
        );
        assert!(whole("1__0").is_err() && whole("_1").is_err() && whole("1_").is_err());
        assert!(whole("99999999999999999999").is_err());
    }

    #[test]
    fn floats() {
        assert_eq!(float("1e3"), Ok(1000.0));
        assert_eq!(float(" 10 "), Ok(10.0));
        assert!(float("nan").is_ok_and(f64::is_nan));
        assert_eq!(
            float("abc").unwrap_err().what,
            "could not convert string to float: 'abc'"
        );
    }

    #[test]
    fn what_is_shown() {
        assert_eq!(decimal(100.0), "100.0");
        assert_eq!(fixed(f64::NAN, 2), "nan");
        assert_eq!(fixed(12.345, 1), "12.3");
        assert_eq!(duration(3599), "0:59:59");
        assert_eq!(duration(86400 * 2 + 3600), "2 days, 1:00:00");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _ = (whole(&text), float(&text));
        }
    }
}
