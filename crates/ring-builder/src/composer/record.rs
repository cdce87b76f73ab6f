//! What a composite file remembers: components in their order, where their builders are, how often it was composed.

use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;
use serde_json::{Number, Serializer, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The form that OpenStack's program writes.
const SERIALIZATION: u32 = 1;

/// A builder as it was when it was composed.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(super) struct ComponentRecord {
    /// Its version.
    pub(super) version: u64,
    /// Its replicas: OpenStack's builders may say 2 as well as 2.0, and so says what is shown of them.
    replicas: Number,
    /// Its id.
    pub(super) id: String,
}

impl ComponentRecord {
    /// What a builder is now.
    pub(super) fn of(version: u64, replicas: f64, id: String) -> ComponentRecord {
        ComponentRecord {
            version,
            replicas: Number::from_f64(replicas).unwrap_or_else(|| 0.into()),
            id,
        }
    }

    /// How many replicas it brings.
    pub(super) fn replicas(&self) -> f64 {
        self.replicas.as_f64().unwrap_or_default()
    }

    /// As Python shows it.
    pub(super) fn shown(&self) -> String {
        let replicas = match self.replicas.is_f64() {
            true => pythonic::float(self.replicas()),
            false => self.replicas.to_string(),
        };
        format!(
            "{{'version': {}, 'replicas': {replicas}, 'id': '{}'}}",
            self.version, self.id
        )
    }
}

/// The file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub(super) struct CompositeRecord {
    /// The components, in the order of their replicas.
    pub(super) components: Vec<ComponentRecord>,
    #[serde(rename = "component_builder_files")]
    files: BTreeMap<String, PathBuf>,
    /// How often it was composed.
    pub(super) version: u64,
}

impl CompositeRecord {
    /// Reads it; none when it is something else.
    pub(super) fn read(bytes: &[u8]) -> Option<CompositeRecord> {
        serde_json::from_slice(bytes).ok()
    }

    /// What is remembered of components and the files of their builders.
    pub(super) fn of(components: Vec<(ComponentRecord, PathBuf)>, version: u64) -> CompositeRecord {
        let file = |(part, file): &(ComponentRecord, PathBuf)| (part.id.clone(), file.clone());
        CompositeRecord {
            files: components.iter().map(file).collect(),
            components: components.into_iter().map(|(part, _)| part).collect(),
            version,
        }
    }

    /// The components' builders, in their order.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let parts = self.components.iter();
        parts.filter_map(|part| self.files.get(&part.id).cloned()).collect()
    }

    fn value(&self) -> Value {
        json!({
            "component_builder_files": self.files,
            "components": self.components.iter().map(|part| json!({
                "id": part.id,
                "replicas": part.replicas,
                "version": part.version,
            })).collect::<Vec<_>>(),
            "version": self.version,
        })
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        let mut out = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b"    "));
        // A value of strings and numbers always serializes, and into UTF-8.
        let _ = self.value().serialize(&mut serializer);
        String::from_utf8(out).unwrap_or_default()
    }

    /// The file at its path.
    pub(super) fn to_json(&self, path: &Path) -> String {
        let mut value = self.value();
        value["saved_path"] = json!(path);
        value["serialization_version"] = SERIALIZATION.into();
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_replicas_are_shown_as_they_were_written() {
        let file =
            br#"{"components": [{"version": 4, "replicas": 2, "id": "b"}, {"version": 5, "replicas": 1.0, "id": "a"}],
            "component_builder_files": {}, "version": 2}"#;
        let record = CompositeRecord::read(file).unwrap();
        let shown = record.shown();
        assert!(
            shown.contains("\"replicas\": 2,") && shown.contains("\"replicas\": 1.0,"),
            "{shown}"
        );
        assert_eq!(record.components[0].shown(), "{'version': 4, 'replicas': 2, 'id': 'b'}");
        assert_eq!(record.components[0].replicas(), 2.0);
    }

    #[test]
    fn what_openstack_wrote_is_read_and_shown() {
        let file = br#"{"components": [{"version": 4, "replicas": 2.0, "id": "b"}, {"version": 5, "replicas": 1.0, "id": "a"}],
            "component_builder_files": {"a": "/x/a.builder", "b": "/x/b.builder"}, "version": 2, "saved_path": "/x/c",
            "serialization_version": 1}"#;
        let record = CompositeRecord::read(file).unwrap();
        assert_eq!(record.files(), [Path::new("/x/b.builder"), Path::new("/x/a.builder")]);
        assert!(
            record
                .shown()
                .starts_with("{\n    \"component_builder_files\": {\n        \"a\": \"/x/a.builder\",")
        );
        assert_eq!(
            CompositeRecord::read(record.to_json(Path::new("/x/c")).as_bytes()),
            Some(record)
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = CompositeRecord::read(&bytes);
        }
    }
}
