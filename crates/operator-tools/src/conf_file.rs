//! One section of a configuration, as the tools read it that need a few options only.

use settings::Document;
use settings::interpolate::expand;
use std::path::Path;
use vocabulary::Fault;

/// A section, with the defaults behind it.
pub(crate) struct ConfSection {
    document: Document,
    name: String,
}

impl ConfSection {
    /// Reads it; an error names the file.
    pub(crate) fn read(path: &Path, name: &str) -> Result<Self, Fault> {
        let document = Document::load(path).map_err(|error| Fault::caller(error.to_string()))?;
        match document.section(name) {
            Some(_) => Ok(Self {
                document,
                name: name.to_owned(),
            }),
            None => Err(Fault::caller(format!(
                "Unable to find {name} config section in {}",
                path.display()
            ))),
        }
    }

    /// A text, or what holds without it.
    pub(crate) fn text(&self, option: &str, default: &str) -> Result<String, Fault> {
        match self.document.lookup(&self.name, option) {
            Some(found) => expand(&self.document, &self.name, found).map_err(|error| Fault::caller(error.to_string())),
            None => Ok(default.to_owned()),
        }
    }

    /// The file it stands in.
    pub(crate) fn document(&self) -> &Document {
        &self.document
    }
}
