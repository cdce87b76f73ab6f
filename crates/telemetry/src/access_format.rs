//! The proxy's line about a request, in OpenStack's default format or in the operator's (`log_msg_template`).
//!
//! ```text
//! client_ip remote_addr end_time.datetime method path protocol status_int referer user_agent
//! auth_token bytes_recvd bytes_sent client_etag transaction_id headers request_time source log_info
//! start_time end_time policy_index access_user_id
//! ```
//!
//! Always holds: one line; in the default format twenty-two fields, no spaces within one.
//! One difference from OpenStack, on purpose: it encodes the bytes of headers beyond ASCII twice over
//! (`ü` becomes `%C3%83%C2%BC`); here they are encoded once (`%C3%BC`).

use crate::access::AccessLine;
use crate::fields::{Count, LogMoment, Nanoseconds, PolicyField, QuotedField};
use crate::template::{Plain, Telling, Template, TemplatePart, Time, write_moment};
use http::HeaderName;
use http::header::{ETAG, REFERER, USER_AGENT};
use std::fmt::{self, Display, Formatter, Write};

impl Display for AccessLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(template) = &self.style.template {
            return Display::fmt(&Templated(self, template), f);
        }
        let ended = LogMoment {
            seconds: self.end.as_secs(),
            separators: ('/', '/'),
        };
        write!(
            f,
            "{} {} {ended} {} ",
            QuotedField(self.client()),
            QuotedField(self.remote.as_bytes()),
            QuotedField(self.method.as_bytes()),
        )?;
        self.write_path(f)?;
        let header = |name: &HeaderName| QuotedField(self.headers.get(name).map_or(b"", |v| v.as_bytes()));
        write!(
            f,
            " {} {} {} {} ",
            self.protocol,
            self.status,
            header(&REFERER),
            header(&USER_AGENT)
        )?;
        self.write_token(f)?;
        write!(
            f,
            " {} {} {} {} ",
            Count(self.received),
            Count(self.sent),
            header(&ETAG),
            QuotedField(self.transaction_id.as_bytes())
        )?;
        self.write_headers(f)?;
        write!(
            f,
            " {:.4} {} {} {} {} {} {}",
            self.end.saturating_sub(self.start).as_secs_f64(),
            QuotedField(self.source.as_bytes()),
            QuotedField(self.info.as_bytes()),
            Nanoseconds(self.start),
            Nanoseconds(self.end),
            PolicyField(self.policy),
            QuotedField(self.user.as_bytes()),
        )
    }
}

/// A line in a template's format.
struct Templated<'a>(&'a AccessLine<'a>, &'a Template);

impl Display for Templated<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(line, Template(parts)) = self;
        for part in parts {
            match part {
                TemplatePart::Text(text) => f.write_str(text)?,
                TemplatePart::Plain(field) => plain(*field, line, f)?,
                TemplatePart::Telling(field, true) => line.style.anonymizer.write(&telling(*field, line), f)?,
                TemplatePart::Telling(Telling::Path, false) => line.write_path(f)?,
                TemplatePart::Telling(field, false) => Display::fmt(&QuotedField(&telling(*field, line)), f)?,
                TemplatePart::Time(time, form) => {
                    let moment = match time {
                        Time::Start => line.start,
                        Time::End => line.end,
                    };
                    match form {
                        None => Display::fmt(&Nanoseconds(moment), f)?,
                        Some(form) => write_moment(*form, moment, f)?,
                    }
                }
            }
        }
        Ok(())
    }
}

fn plain(field: Plain, line: &AccessLine<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    match field {
        Plain::Method => Display::fmt(&QuotedField(line.method.as_bytes()), f),
        Plain::Protocol => f.write_str(line.protocol),
        Plain::Status => Display::fmt(&line.status, f),
        Plain::Token => line.write_token(f),
        Plain::Received => Display::fmt(&Count(line.received), f),
        Plain::Sent => Display::fmt(&Count(line.sent), f),
        Plain::Transaction => Display::fmt(&QuotedField(line.transaction_id.as_bytes()), f),
        Plain::Took => write!(f, "{:.4}", line.end.saturating_sub(line.start).as_secs_f64()),
        Plain::Source => Display::fmt(&QuotedField(line.source.as_bytes()), f),
        Plain::Info => Display::fmt(&QuotedField(line.info.as_bytes()), f),
        Plain::FirstByte => match line.first_byte {
            Some(after) => Display::fmt(&after.as_secs_f64(), f),
            None => f.write_char('-'),
        },
        Plain::Policy => Display::fmt(&PolicyField(line.policy), f),
        Plain::Pid => Display::fmt(&std::process::id(), f),
        Plain::WireStatus => Display::fmt(&line.wire_status, f),
        Plain::User => Display::fmt(&QuotedField(line.user.as_bytes()), f),
    }
}

/// A field's own bytes; none when it has no value.
fn telling(field: Telling, line: &AccessLine<'_>) -> Vec<u8> {
    let header = |name: &str| {
        line.headers
            .get(name)
            .map_or(Vec::new(), |value| value.as_bytes().to_vec())
    };
    match field {
        Telling::Client => line.client().to_vec(),
        Telling::Remote => line.remote.as_bytes().to_vec(),
        Telling::Domain => domain(&header("host")).to_vec(),
        Telling::Path => line.path_and_query().into_bytes(),
        Telling::Referer => header("referer"),
        Telling::Agent => header("user-agent"),
        Telling::Etag => header("etag"),
        Telling::Headers => line.header_lines(),
        Telling::Account => vocabulary::names::quote(line.entity().account).into_bytes(),
        Telling::Container => vocabulary::names::quote(line.entity().container).into_bytes(),
        Telling::Object => vocabulary::names::quote(line.entity().object).into_bytes(),
    }
}

/// Without the port.
fn domain(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !host.ends_with(b"]") => host.get(..colon).unwrap_or_default(),
        _ => host,
    }
}
