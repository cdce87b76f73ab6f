//! The bodies that report on many requests at once: of bulk uploads and deletions, of the deletion of a large
//! object with its segments, and of a large object's PUT with a heartbeat.
//!
//! Comes in: numbers and texts by name, and a list of what went wrong. Goes out: plain text, JSON or XML.
//! Always holds: what clients sent is escaped in XML and JSON; the fields of plain text and XML are in
//! the order of their names, those of JSON as they were added, the errors last, as in OpenStack Swift.

use crate::listings::listing_accept::{Form, InvalidAccept, choose};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use vocabulary::markup;

/// The form that an `Accept` header asks for; plain text where it asks for nothing that there is.
pub fn form_of(accept: Option<&[u8]>) -> Form {
    match choose(accept.unwrap_or(b"text/plain")) {
        Ok(Some(form)) => form,
        Ok(None) | Err(InvalidAccept) => Form::Plain,
    }
}

/// What became of many requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    fields: Vec<(Cow<'static, str>, Value)>,
    /// What it was, and what was wrong with it.
    pub errors: Vec<(String, String)>,
}

impl Report {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field (`Number Deleted`), or sets it again.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.fields.push((name, value)),
        }
    }

    /// With one more field.
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Its text; `root` is the outermost element of XML.
    pub fn print(&self, form: Form, root: &str) -> String {
        match form {
            Form::Plain => self.plain(),
            Form::Json => self.json(),
            Form::Xml | Form::TextXml => self.xml(root),
        }
    }

    fn sorted(&self) -> Vec<(&str, String)> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut fields: Vec<_> = self
            .fields
            .iter()
            .map(|(name, value)| (name.as_ref(), text(value)))
            .collect();
        fields.sort_unstable();
        fields
    }

    fn plain(&self) -> String {
        let mut out = String::new();
        for (name, value) in self.sorted() {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(out, "{name}: {value}");
        }
        out.push_str("Errors:\n");
        for (name, problem) in &self.errors {
            let _ = writeln!(out, "{name}, {problem}");
        }
        out
    }

    fn json(&self) -> String {
        let fields = self
            .fields
            .iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.clone()));
        let mut all: serde_json::Map<String, Value> = fields.collect();
        let errors = self
            .errors
            .iter()
            .map(|(name, problem)| Value::from(vec![name.as_str(), problem]));
        all.insert("Errors".into(), errors.collect());
        pythonic::json(&Value::Object(all))
    }

    fn xml(&self, root: &str) -> String {
        let mut out = format!("<{root}>\n");
        for (name, value) in self.sorted() {
            let tag = name.to_ascii_lowercase().replace(' ', "_");
            let _ = writeln!(out, "<{tag}>{}</{tag}>", markup::text(&value));
        }
        out.push_str("<errors>\n");
        for (name, problem) in &self.errors {
            let (name, problem) = (markup::text(name), markup::text(problem));
            let _ = writeln!(out, "<object><name>{name}</name><status>{problem}</status></object>");
        }
        let _ = write!(out, "</errors>\n</{root}>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report() -> Report {
        let mut report = Report::new()
            .with("Response Status", "400 Bad Request")
            .with("Response Body", "a <b> & \"c\"\nx ü")
            .with("Number Deleted", 2)
            .with("Number Not Found", 7);
        report.set("Number Not Found", 0);
        report.errors = vec![
            ("/c/ü <o>&\"\r\n".into(), "404 Not Found".into()),
            ("b, c".into(), "x".into()),
        ];
        report
    }

    /// What OpenStack Swift made of the same fields; it does not escape carriage returns in XML.
    #[test]
    fn as_openstack_prints() {
        assert_eq!(
            report().print(Form::Plain, "delete"),
            "Number Deleted: 2\nNumber Not Found: 0\nResponse Body: a <b> & \"c\"\nx ü\n\
             Response Status: 400 Bad Request\nErrors:\n/c/ü <o>&\"\r\n, 404 Not Found\nb, c, x\n"
        );
        assert_eq!(
            report().print(Form::Json, "delete"),
            "{\"Response Status\": \"400 Bad Request\", \"Response Body\": \"a <b> & \\\"c\\\"\\nx \\u00fc\", \
             \"Number Deleted\": 2, \"Number Not Found\": 0, \
             \"Errors\": [[\"/c/\\u00fc <o>&\\\"\\r\\n\", \"404 Not Found\"], [\"b, c\", \"x\"]]}"
        );
        for form in [Form::Xml, Form::TextXml] {
            assert_eq!(
                report().print(form, "delete"),
                "<delete>\n<number_deleted>2</number_deleted>\n<number_not_found>0</number_not_found>\n\
                 <response_body>a &lt;b&gt; &amp; \"c\"\nx ü</response_body>\n\
                 <response_status>400 Bad Request</response_status>\n<errors>\n\
                 <object><name>/c/ü &lt;o&gt;&amp;\"&#13;\n</name><status>404 Not Found</status></object>\n\
                 <object><name>b, c</name><status>x</status></object>\n</errors>\n</delete>\n"
            );
        }
    }

    #[test]
    fn anything_unknown_is_plain() {
        assert_eq!(form_of(None), Form::Plain);
        assert_eq!(form_of(Some(b"application/json")), Form::Json);
        assert_eq!(form_of(Some(b"image/png")), Form::Plain);
        assert_eq!(form_of(Some(b"rubbish")), Form::Plain);
    }

    proptest! {
        #[test]
        fn whatever_went_wrong_is_readable(name in any::<String>(), problem in any::<String>()) {
            let mut report = Report::new();
            report.errors.push((name.clone(), problem.clone()));
            let read: Value = serde_json::from_str(&report.print(Form::Json, "delete")).unwrap();
            prop_assert_eq!(&read["Errors"][0][0], name.as_str());
            prop_assert_eq!(report.print(Form::Xml, "x").matches("<object>").count(), 1);
        }
    }
}
