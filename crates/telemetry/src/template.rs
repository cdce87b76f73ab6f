//! `log_msg_template`: which fields stand on the proxy's line, and how they are shown.
//!
//! `{field}` is a value, `{field.transformer}` the same in another form: `anonymized` for what tells who
//! and what, the forms of a moment for times. Two braces are one.
//! Always holds: a template that exists names only fields and transformers that there are; what is
//! anonymized shows nothing of itself but a hash.

use crate::fields::LogMoment;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;
use vocabulary::Fault;
use vocabulary::calendar::{self, short};

/// A template that has been understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(pub(crate) Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    Text(String),
    /// A field that has no other forms.
    Plain(Plain),
    /// What can be anonymized.
    Telling(Telling, bool),
    Time(Time, Option<TimeForm>),
}

/// Declares an enumeration with the names of its values.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl $name {
            fn of(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

named! {
    /// Fields that have one form only.
    Plain {
        Method = "method", Protocol = "protocol", Status = "status_int", Token = "auth_token", Received = "bytes_recvd",
        Sent = "bytes_sent", Transaction = "transaction_id", Took = "request_time", Source = "source", Info = "log_info",
        FirstByte = "ttfb", Policy = "policy_index", Pid = "pid", WireStatus = "wire_status_int", User = "access_user_id",
    }
}

named! {
    /// Fields that tell who and what.
    Telling {
        Client = "client_ip", Remote = "remote_addr", Domain = "domain", Path = "path", Referer = "referer",
        Agent = "user_agent", Etag = "client_etag", Headers = "headers", Account = "account", Container = "container",
        Object = "object",
    }
}

named! {
    /// Moments.
    Time { Start = "start_time", End = "end_time" }
}

named! {
    /// Forms of a moment.
    TimeForm {
        Datetime = "datetime", Asctime = "asctime", Iso = "iso8601", Seconds = "s", Millis = "ms", Micros = "us",
        Nanos = "ns", Day3 = "a", DayName = "A", Month3 = "b", MonthName = "B", Locale = "c", Day = "d", Hour = "H", Hour12 = "I",
        YearDay = "j", Month = "m", Minute = "M", Half = "p", Second = "S", SundayWeek = "U", WeekDay = "w", MondayWeek = "W",
        Date = "x", Clock = "X", Year2 = "y", Year = "Y", Zone = "Z",
    }
}

impl Template {
    /// Understands a template, or says what is expected.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            plain.push_str(before);
            if let Some(tail) = brace.strip_prefix("{{").or(brace.strip_prefix("}}")) {
                plain.push_str(&brace[..1]);
                rest = tail;
                continue;
            }
            let Some((name, tail)) = brace.strip_prefix('{').and_then(|field| field.split_once('}')) else {
                return Err(Fault::caller(
                    "text in which every { is followed by a field and a }; two of either stand for one",
                ));
            };
            if !plain.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            }
            parts.push(field(name)?);
            rest = tail;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(TemplatePart::Text(plain));
        }
        Ok(Self(parts))
    }

    /// Whether the transaction's id is on the line.
    pub fn names_transaction(&self) -> bool {
        self.0.contains(&TemplatePart::Plain(Plain::Transaction))
    }
}

fn field(text: &str) -> Result<TemplatePart, Fault> {
    let (name, form) = text
        .split_once('.')
        .map_or((text, None), |(name, form)| (name, Some(form)));
    let wrong = || match form {
        Some(form) => Err(Fault::caller(format!(
            "fields that there are: {{{name}}} has no form {form:?}"
        ))),
        None => Err(Fault::caller(format!(
            "fields that there are: {{{name}}} is none of those in OpenStack's documentation"
        ))),
    };
    if let Some(plain) = Plain::of(name) {
        return if form.is_none() {
            Ok(TemplatePart::Plain(plain))
        } else {
            wrong()
        };
    }
    if let Some(telling) = Telling::of(name) {
        return match form {
            None => Ok(TemplatePart::Telling(telling, false)),
            Some("anonymized") => Ok(TemplatePart::Telling(telling, true)),
            Some(_) => wrong(),
        };
    }
    match (Time::of(name), form.map(TimeForm::of)) {
        (Some(time), None) => Ok(TemplatePart::Time(time, None)),
        (Some(time), Some(Some(form))) => Ok(TemplatePart::Time(time, Some(form))),
        _ => wrong(),
    }
}

/// How fields are anonymized: `log_anonymization_method` and `log_anonymization_salt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anonymizer {
    method: Method,
    salt: String,
}

named! {
    /// Hashes, each by the name that stands before it.
    Method { Md5 = "MD5", Sha1 = "SHA1", Sha224 = "SHA224", Sha256 = "SHA256", Sha384 = "SHA384", Sha512 = "SHA512" }
}

impl Default for Anonymizer {
    fn default() -> Self {
        Self {
            method: Method::Md5,
            salt: String::new(),
        }
    }
}

impl Anonymizer {
    /// `None` for a method that there is not.
    pub fn new(method: &str, salt: &str) -> Option<Self> {
        Some(Self {
            method: Method::of(&method.to_ascii_uppercase())?,
            salt: salt.to_owned(),
        })
    }

    pub(crate) fn write(&self, value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
        fn hashed<D: Digest>(salt: &str, value: &[u8]) -> Vec<u8> {
            D::new().chain_update(salt).chain_update(value).finalize().to_vec()
        }
        if value.is_empty() {
            return f.write_char('-');
        }
        let (name, hash) = match self.method {
            Method::Md5 => ("MD5", hashed::<Md5>(&self.salt, value)),
            Method::Sha1 => ("SHA1", hashed::<Sha1>(&self.salt, value)),
            Method::Sha224 => ("SHA224", hashed::<Sha224>(&self.salt, value)),
            Method::Sha256 => ("SHA256", hashed::<Sha256>(&self.salt, value)),
            Method::Sha384 => ("SHA384", hashed::<Sha384>(&self.salt, value)),
            Method::Sha512 => ("SHA512", hashed::<Sha512>(&self.salt, value)),
        };
        let salted = if self.salt.is_empty() { "" } else { "S" };
        write!(f, "{{{salted}{name}}}")?;
        f.write_str(&vocabulary::hex::encode(hash))
    }
}

pub(crate) fn write_moment(form: TimeForm, moment: Duration, f: &mut Formatter<'_>) -> fmt::Result {
    let seconds = moment.as_secs();
    let time = calendar::utc(seconds);
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let week_day = i16::from(time.weekday().to_sunday_zero_offset());
    let year_day = time.day_of_year() - 1;
    let (day_name, month_name) = (calendar::weekday_name(time), calendar::month_name(time));
    match form {
        TimeForm::Datetime => {
            let separators = ('/', '/');
            Display::fmt(&LogMoment { seconds, separators }, f)
        }
        TimeForm::Asctime | TimeForm::Locale => write!(
            f,
            "{}%20{}%20{}{day}%20{hour:02}:{minute:02}:{second:02}%20{year}",
            short(day_name),
            short(month_name),
            if day < 10 { "%20" } else { "" }
        ),
        TimeForm::Iso => f.write_str(&calendar::iso(seconds, 'T')),
        TimeForm::Seconds => Display::fmt(&seconds, f),
        TimeForm::Millis => write!(f, "{:03}", moment.subsec_millis()),
        TimeForm::Micros => write!(f, "{:06}", moment.subsec_micros()),
        TimeForm::Nanos => write!(f, "{:09}", moment.subsec_nanos()),
        TimeForm::Day3 => f.write_str(short(day_name)),
        TimeForm::DayName => f.write_str(day_name),
        TimeForm::Month3 => f.write_str(short(month_name)),
        TimeForm::MonthName => f.write_str(month_name),
        TimeForm::Day => write!(f, "{day:02}"),
        TimeForm::Hour => write!(f, "{hour:02}"),
        TimeForm::Hour12 => write!(f, "{:02}", (hour + 11) % 12 + 1),
        TimeForm::YearDay => write!(f, "{:03}", year_day + 1),
        TimeForm::Month => write!(f, "{month:02}"),
        TimeForm::Minute => write!(f, "{minute:02}"),
        TimeForm::Half => f.write_str(if hour < 12 { "AM" } else { "PM" }),
        TimeForm::Second => write!(f, "{second:02}"),
        TimeForm::SundayWeek => write!(f, "{:02}", (year_day + 7 - week_day) / 7),
        TimeForm::WeekDay => Display::fmt(&week_day, f),
        TimeForm::MondayWeek => write!(f, "{:02}", (year_day + 7 - (week_day + 6) % 7) / 7),
        TimeForm::Date => write!(f, "{month:02}/{day:02}/{:02}", year % 100),
        TimeForm::Clock => write!(f, "{hour:02}:{minute:02}:{second:02}"),
        TimeForm::Year2 => write!(f, "{:02}", year % 100),
        TimeForm::Year => write!(f, "{year:04}"),
        TimeForm::Zone => f.write_str("UTC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(form: &str, seconds: u64) -> String {
        struct Shown(TimeForm, Duration);
        impl Display for Shown {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                write_moment(self.0, self.1, f)
            }
        }
        Shown(TimeForm::of(form).unwrap(), Duration::new(seconds, 5_006_075)).to_string()
    }

    #[test]
    fn moments_as_python_writes_them() {
        let new_year = 1_704_067_200 + 13 * 3600;
        for (seconds, expected) in [
            (1_795_190_359, "Fri%20Nov%2020%2015:59:19%202026 46 46 5 03 PM 324"),
            (new_year, "Mon%20Jan%20%201%2013:00:00%202024 00 01 1 01 PM 001"),
            (
                new_year + 6 * 86_400,
                "Sun%20Jan%20%207%2013:00:00%202024 01 01 0 01 PM 007",
            ),
            (
                new_year + 7 * 86_400,
                "Mon%20Jan%20%208%2013:00:00%202024 01 02 1 01 PM 008",
            ),
            (
                new_year + 365 * 86_400,
                "Tue%20Dec%2031%2013:00:00%202024 52 53 2 01 PM 366",
            ),
        ] {
            let all: Vec<String> = ["asctime", "U", "W", "w", "I", "p", "j"]
                .map(|form| shown(form, seconds))
                .into();
            assert_eq!(all.join(" "), expected);
        }
        let fractions = ["s", "ms", "us", "ns"].map(|form| shown(form, 7)).join(" ");
        assert_eq!(fractions, "7 005 005006 005006075");
    }

    #[test]
    fn what_is_no_template() {
        for (text, expected) in [
            ("{nope}", "{nope} is none of those"),
            ("{path.nope}", "{path} has no form \"nope\""),
            ("{method.anonymized}", "{method} has no form"),
            ("{end_time.f}", "{end_time} has no form"),
            ("{path", "every { is followed"),
            ("path}", "every { is followed"),
            ("{}", "{} is none"),
        ] {
            let message = Template::parse(text).unwrap_err().what;
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!(
            Template::parse("{{x}}"),
            Ok(Template(vec![TemplatePart::Text("{x}".into())]))
        );
    }

    proptest! {
        #[test]
        fn any_template_is_judged(text in "\\PC*|[{}a-z_.]*", seconds in 0..4_102_444_800u64) {
            let _ = Template::parse(&text);
            prop_assert_eq!(shown("j", seconds).len(), 3);
            prop_assert_eq!(shown("U", seconds).len(), 2);
        }
    }
}
