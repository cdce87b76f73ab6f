//! Where events go: standard error or the system's log, one line each.
//!
//! `2026-11-20T12:23:46.123456Z object-server:  INFO request{txn=tx…}: message field=value`; lines about requests
//! ([`access`], [`storage`]) stand after time and name as they are. The system's log adds the time by itself; a line
//! that it cannot take is lost. A tool's lines have no name. A message that begins with the name that already stands
//! before it, as those of daemons do, is written without it ([`own_name`]).
//! The time on a line is the machine's own and decides nothing.
//! Always holds: a log that cannot be written keeps nothing from going on.

use crate::access::AccessLine;
use crate::log_output;
use crate::own_name::NamedFields;
use crate::storage::StorageLine;
use settings::{LogFacility, LogLevel};
use std::{fmt, io};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use world::Datagrams;

/// Target of lines that carry their own format.
pub(crate) const REQUESTS: &str = "requests";

/// Starts logging at `level` and above to standard error, each line with `name` (none for a tool); only the first call
/// counts.
pub fn start(level: LogLevel, name: Option<String>) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter(level))
        .with_writer(log_output::standard_error)
        .log_internal_errors(false)
        .with_ansi(false)
        .fmt_fields(NamedFields::of(name.as_deref()))
        .event_format(Lines::timed(name))
        .finish();
    // A second start (in tests) keeps the first one's settings.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// The system's log, and under which name lines appear in it.
pub struct SystemLog {
    /// The way there.
    pub socket: Box<dyn Datagrams>,
    /// The kind of program this is.
    pub facility: LogFacility,
    /// Its name.
    pub name: String,
}

/// As [`start`], but into the system's log.
pub fn start_in(log: SystemLog, level: LogLevel) {
    let fields = NamedFields::of(Some(&log.name));
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter(level))
        .with_writer(log)
        .log_internal_errors(false)
        .with_ansi(false)
        .fmt_fields(fields)
        .event_format(Lines {
            events: Format::default().with_target(false).with_ansi(false).without_time(),
            time: (),
            timed: false,
        })
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
}

impl<'a> MakeWriter<'a> for SystemLog {
    type Writer = SystemLogLine<'a>;

    fn make_writer(&'a self) -> SystemLogLine<'a> {
        self.line(Level::INFO)
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> SystemLogLine<'a> {
        self.line(*event.level())
    }
}

impl SystemLog {
    fn line(&self, level: Level) -> SystemLogLine<'_> {
        // syslog's numbers; its priorities are 8 × facility + severity.
        let severity = match level {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        let priority = u32::from(self.facility.0) * 8 + severity;
        SystemLogLine {
            log: self,
            line: format!("<{priority}>{}: ", self.name).into_bytes(),
        }
    }
}

/// One line on its way into the system's log; sent when it is dropped.
pub struct SystemLogLine<'a> {
    log: &'a SystemLog,
    line: Vec<u8>,
}

impl io::Write for SystemLogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SystemLogLine<'_> {
    fn drop(&mut self) {
        self.log.socket.send(self.line.trim_ascii_end());
    }
}

/// Logs a request to the proxy. Where the line does not name its transaction, it stands behind it.
pub fn access(line: &AccessLine<'_>) {
    match &line.style.template {
        Some(template) if !template.names_transaction() => {
            tracing::info!(target: REQUESTS, "{line} (txn: {})", line.transaction_id);
        }
        _ => tracing::info!(target: REQUESTS, "{line}"),
    }
}

/// Logs a request to a storage server; what replicators ask of each other is for those who look for faults.
pub fn storage(line: &StorageLine<'_>, is_replication: bool) {
    match is_replication {
        true => tracing::debug!(target: REQUESTS, "{line}"),
        false => tracing::info!(target: REQUESTS, "{line}"),
    }
}

/// Whether [`storage`] writes such lines at all; spares collecting what they need.
pub fn logs_requests(is_replication: bool) -> bool {
    match is_replication {
        true => tracing::enabled!(target: REQUESTS, Level::DEBUG),
        false => tracing::enabled!(target: REQUESTS, Level::INFO),
    }
}

pub(crate) fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info | LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error | LogLevel::Critical => LevelFilter::ERROR,
    }
}

struct Lines<T> {
    events: Format<Full, T>,
    time: T,
    /// `()` is a time that writes nothing, the space after it would remain.
    timed: bool,
}

/// The time, and behind it whose line it is.
#[derive(Clone)]
struct TimeAndName(Option<String>);

impl FormatTime for TimeAndName {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        SystemTime.format_time(writer)?;
        match &self.0 {
            Some(name) => write!(writer, " {name}:"),
            None => Ok(()),
        }
    }
}

impl Lines<TimeAndName> {
    /// With the time and a name before each.
    fn timed(name: Option<String>) -> Self {
        let time = TimeAndName(name);
        Self {
            events: Format::default()
                .with_target(false)
                .with_ansi(false)
                .with_timer(time.clone()),
            time,
            timed: true,
        }
    }
}

impl<S, N, T> FormatEvent<S, N> for Lines<T>
where
    T: FormatTime,
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = OneLine { writer, ended: false };
        let mut writer = Writer::new(&mut line);
        if event.metadata().target() != REQUESTS {
            self.events.format_event(context, writer, event)?;
            return line.end();
        }
        if self.timed {
            self.time.format_time(&mut writer)?;
            writer.write_char(' ')?;
        }
        let mut text = RequestText {
            line: &mut line,
            written: Ok(()),
        };
        event.record(&mut text);
        text.written?;
        line.end()
    }
}

/// Writes the text of a line about a request, piece by piece as it is made; tracing's own formatter passes it on
/// character by character, looking for what [`OneLine`] replaces anyway.
struct RequestText<'l, 'w> {
    line: &'l mut OneLine<'w>,
    written: fmt::Result,
}

impl Visit for RequestText<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" && self.written.is_ok() {
            self.written = fmt::Write::write_fmt(self.line, format_args!("{value:?}"));
        }
    }
}

/// Takes an event for one line whatever names are in it: line ends and other control characters become `#012` and its
/// like, as in OpenStack's logs, so that the name of a file cannot forge log lines.
struct OneLine<'w> {
    writer: Writer<'w>,
    /// A line end came last: that of the event, unless something follows.
    ended: bool,
}

impl OneLine<'_> {
    fn end(&mut self) -> fmt::Result {
        self.writer.write_char('\n')
    }
}

impl fmt::Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while !rest.is_empty() {
            if std::mem::take(&mut self.ended) {
                self.writer.write_str("#012")?;
            }
            let strange = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
            let plain = rest.bytes().position(|byte| strange(&byte)).unwrap_or(rest.len());
            self.writer.write_str(&rest[..plain])?;
            match rest.as_bytes().get(plain) {
                None => break,
                Some(b'\n') => self.ended = true,
                Some(other) => write!(self.writer, "#{other:03o}")?,
            }
            rest = &rest[plain + 1..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use captured::Captured;

    /// A writer that keeps what is written.
    mod captured {
        use std::io;
        use std::sync::{Arc, Mutex};

        #[derive(Clone, Default)]
        pub struct Captured(pub Arc<Mutex<Vec<u8>>>);

        impl io::Write for Captured {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    }

    #[test]
    fn events_and_request_lines() {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(filter(LogLevel::Notice))
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(NamedFields::of(Some("object-server")))
            .event_format(Lines::timed(Some("object-server".to_owned())))
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("request", txn = "tx1");
            let _entered = span.enter();
            tracing::warn!(device = "sdb1", "device is slow");
            tracing::debug!("not shown");
            tracing::warn!("a\nname\r\u{7f}\n\n");
            tracing::info!(target: REQUESTS, "{}", "1.2.3.4 - GET /");
            tracing::info!("{}: a pass", "object-server");
        });
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[3].ends_with("Z object-server:  INFO request{txn=\"tx1\"}: a pass"),
            "{text}"
        );
        assert!(
            lines[0].contains("Z object-server:  WARN request{txn=\"tx1\"}: device is slow device=\"sdb1\""),
            "{text}"
        );
        assert!(lines[1].ends_with(" a#012name#015\\x7f#012#012"), "{text}");
        let (time, rest) = lines[2].split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{text}");
        assert_eq!(rest, "object-server: 1.2.3.4 - GET /");
    }
}
