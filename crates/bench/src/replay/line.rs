//! A line of a proxy's access log, in OpenStack's default form, as Martlet writes it, too.
//!
//! The field with the time, `25/Nov/2026/20/10/32`, is looked for: what stands before the two addresses in front of
//! it is the logger's (a time, a host, a name), and differs. All fields behind it are at fixed places. Lines of a log
//! in JSON have that line as their `message`.
//! Source: OpenStack Swift's documentation, "Logs", "Proxy Logs".

use std::borrow::Cow;

/// Places of fields behind the time.
const METHOD: usize = 1;
const PATH: usize = 2;
const STATUS: usize = 4;
const RECEIVED: usize = 8;
const SENT: usize = 9;
const SOURCE: usize = 14;
const START: usize = 16;
const END: usize = 17;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub struct LoggedRequest<'a> {
    /// When it began: microseconds since 1970.
    pub start: u64,
    /// Of HTTP.
    pub method: &'a str,
    /// Empty for requests of another API.
    pub account: &'a str,
    /// Empty for requests to the account.
    pub container: &'a str,
    /// Empty for requests to containers.
    pub object: &'a str,
    /// Of the answer.
    pub status: u16,
    /// Bytes of the request's body.
    pub received: u64,
    /// Bytes of the answer's body.
    pub sent: u64,
    /// A part of the proxy itself has asked.
    pub is_internal: bool,
}

/// The text of a line: of JSON its message.
pub fn message(line: &str) -> Cow<'_, str> {
    if !line.starts_with('{') {
        return line.into();
    }
    let read: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let message = read.as_ref().and_then(|read| read.get("message")?.as_str());
    message.map_or_else(|| line.into(), |message| message.to_owned().into())
}

/// What a line says; nothing when it is none of an access log.
pub fn read(line: &str) -> Option<LoggedRequest<'_>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let time = fields.iter().position(|field| is_time(field))?;
    let field = |place: usize| fields.get(time + place).copied();
    let path = field(PATH)?;
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let mut names = path.splitn(5, '/');
    let (Some(""), Some("v1" | "v1.0"), Some(account)) = (names.next(), names.next(), names.next()) else {
        // Of another API: it has no account.
        return Some(LoggedRequest {
            account: "",
            ..read_rest(&field)?
        });
    };
    Some(LoggedRequest {
        account,
        container: names.next().unwrap_or_default(),
        object: names.next().unwrap_or_default(),
        ..read_rest(&field)?
    })
}

fn read_rest<'a>(field: &impl Fn(usize) -> Option<&'a str>) -> Option<LoggedRequest<'a>> {
    let bytes = |place: usize| match field(place)? {
        "-" => Some(0),
        number => number.parse().ok(),
    };
    // A line that was cut has no end.
    micros(field(END)?)?;
    Some(LoggedRequest {
        start: micros(field(START)?)?,
        method: field(METHOD)?,
        account: "",
        container: "",
        object: "",
        status: field(STATUS)?.parse().ok()?,
        received: bytes(RECEIVED)?,
        sent: bytes(SENT)?,
        is_internal: field(SOURCE)? != "-",
    })
}

/// `25/Nov/2026/20/10/32`.
fn is_time(field: &str) -> bool {
    let parts: Vec<&str> = field.split('/').collect();
    let has_digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let [day, month, year, hour, minute, second] = parts[..] else {
        return false;
    };
    let is_month = month.len() == 3 && month.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_month && has_digits(year, 4) && [day, hour, minute, second].iter().all(|part| has_digits(part, 2))
}

/// Seconds with a fraction as microseconds.
fn micros(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(6).collect();
    let (seconds, fraction): (u64, u64) = (seconds.parse().ok()?, digits.parse().ok()?);
    seconds.checked_mul(1_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::{LoggedRequest, message, read};

    const LINE: &str = "127.0.0.1 127.0.0.1 24/Nov/2026/13/39/28 PUT /v1/AUTH_test/c/o/p?x=/y HTTP/1.0 201 - curl/7.88.1 \
                        AUTH_tk439b29c06... 17 - - tx66ab87bed7835c9ba39d7-006b059390 - 0.0284 - - \
                        1795527568.254550000 1795527568.282973839 0 test:tester";

    #[test]
    fn lines_are_read_whoever_wrote_them() {
        let expected = LoggedRequest {
            start: 1_795_527_568_254_550,
            method: "PUT",
            account: "AUTH_test",
            container: "c",
            object: "o/p",
            status: 201,
            received: 17,
            sent: 0,
            is_internal: false,
        };
        for before in [
            "",
            "2026-11-24T13:39:28.282986Z proxy-server: ",
            "Nov 24 13:39:28 saio proxy-server: ",
        ] {
            let line = format!("{before}{LINE}");
            assert_eq!(read(&line).as_ref(), Some(&expected), "{line}");
        }
        let json = serde_json::json!({"level": "INFO", "message": LINE}).to_string();
        assert_eq!(read(&message(&json)), Some(expected));
        let internal = LINE.replace("0.0284 - -", "0.0284 SLO -");
        assert!(read(&internal).unwrap().is_internal);
        let s3 = LINE.replace("/v1/AUTH_test/c/o/p?x=/y", "/bucket/key");
        assert_eq!(read(&s3).unwrap().account, "");
    }

    #[test]
    fn other_lines_are_none() {
        let cut: String = LINE.chars().take(180).collect();
        for line in [
            "",
            "serving on 127.0.0.1:8080",
            &cut,
            &LINE.replace(" 17 ", " many "),
            &LINE.replace("/Nov/", "/11/"),
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(message("{not json"), "{not json");
    }
}
