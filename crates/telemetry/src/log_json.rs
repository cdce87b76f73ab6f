//! Events as JSON: one object on a line of standard error (`log_json = true`).
//!
//! `{"time":…,"level":"WARN","name":"object-server","message":…,"context":{"txn":…},"fields":{"device":"sdb1"}}`; lines
//! about requests have their text as the message and `"kind":"request"`. A message does not begin with the name again.
//! Always holds: a line is one valid JSON object, whatever names are in it; names of clients stand in values only.

use crate::log::{REQUESTS, filter};
use crate::log_output;
use crate::own_name::without_own_name;
use serde_json::{Map, Value};
use settings::LogLevel;
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts logging as JSON to standard error, at `level` and above, with `name` in each line; only the first call
/// counts.
pub fn start(level: LogLevel, name: String) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter(level))
        .with_writer(log_output::standard_error)
        .log_internal_errors(false)
        .with_ansi(false)
        .fmt_fields(JsonFields)
        .event_format(JsonLines { name })
        .finish();
    // A second start (in tests) keeps the first one's settings.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// What an event or a span says.
#[derive(Default)]
struct Recorded(Map<String, Value>);

impl Visit for Recorded {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}

/// Keeps the fields of a span as JSON objects, one after the other.
struct JsonFields;

impl<'writer> FormatFields<'writer> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut recorded = Recorded::default();
        fields.record(&mut recorded);
        write!(writer, "{}", Value::Object(recorded.0))
    }
}

struct JsonLines {
    name: String,
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut recorded = Recorded::default();
        event.record(&mut recorded);
        let mut line = Map::new();
        line.insert("time".into(), time.into());
        line.insert("level".into(), event.metadata().level().as_str().into());
        line.insert("name".into(), self.name.as_str().into());
        if event.metadata().target() == REQUESTS {
            line.insert("kind".into(), "request".into());
        }
        let message = match recorded.0.remove("message").unwrap_or_default() {
            Value::String(text) => without_own_name(&text, &self.name).into(),
            other => other,
        };
        line.insert("message".into(), message);
        let mut around = Map::new();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<N>>() else {
                continue;
            };
            for object in serde_json::Deserializer::from_str(&fields.fields).into_iter::<Map<String, Value>>() {
                around.extend(object.unwrap_or_default());
            }
        }
        for (name, members) in [("context", around), ("fields", recorded.0)] {
            if !members.is_empty() {
                line.insert(name.into(), members.into());
            }
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::io;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_line_is_an_object() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(filter(LogLevel::Info))
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(JsonFields)
            .event_format(JsonLines {
                name: "object-server".into(),
            })
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("request", txn = "tx1", later = tracing::field::Empty);
            let _entered = span.enter();
            span.record("later", 7);
            tracing::warn!(device = "sdb1", errors = 3, "device \"is\"\n{}", "slow");
            tracing::debug!("not shown");
            tracing::info!(target: REQUESTS, "{}", "1.2.3.4 - GET /");
            tracing::info!("{}: a pass", "object-server");
        });
        let text = String::from_utf8(kept.0.lock().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        let mut first = lines[0].clone();
        let time = first["time"].take();
        assert!(
            time.as_str()
                .is_some_and(|time| time.starts_with("20") && time.ends_with('Z')),
            "{text}"
        );
        let expected = serde_json::json!({
            "time": null, "level": "WARN", "name": "object-server", "message": "device \"is\"\nslow",
            "context": {"txn": "tx1", "later": 7}, "fields": {"device": "sdb1", "errors": 3}
        });
        assert_eq!(first, expected);
        assert_eq!(lines[1]["kind"], "request");
        assert_eq!(lines[1]["message"], "1.2.3.4 - GET /");
        assert_eq!(lines[2]["message"], "a pass");
    }
}
