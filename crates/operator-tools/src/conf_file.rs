//! One section of a server's configuration, as the tools read it that need a few options only.

use settings::Document;
use settings::interpolate::expand;
use std::path::Path;

/// A section, with the defaults behind it.
pub(crate) struct ConfSection {
    document: Document,
    name: String,
}

impl ConfSection {
    /// Reads it; an error names the file.
    pub(crate) fn read(path: &Path, name: &str) -> Result<Self, String> {
        let document = Document::load(path).map_err(|error| error.to_string())?;
        match document.section(name) {
            Some(_) => Ok(Self {
                document,
                name: name.to_owned(),
            }),
            None => Err(format!("Unable to find {name} config section in {}", path.display())),
        }
    }

    /// A text, or what holds without it.
    pub(crate) fn text(&self, option: &str, default: &str) -> Result<String, String> {
        match self.document.lookup(&self.name, option) {
            Some(found) => expand(&self.document, &self.name, found).map_err(|error| error.to_string()),
            None => Ok(default.to_owned()),
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, option: &str, default: i64) -> Result<i64, String> {
        let text = self.text(option, &default.to_string())?;
        let number = pythonic::int(&text).and_then(|number| i64::try_from(number).ok());
        number.ok_or_else(|| format!("[{}] {option} = {text}: expected a whole number", self.name))
    }

    /// Yes or no.
    pub(crate) fn flag(&self, option: &str, default: &str) -> Result<bool, String> {
        let text = self.text(option, default)?;
        Ok(["true", "1", "yes", "on", "t", "y"].contains(&text.to_ascii_lowercase().as_str()))
    }

    /// The options whose names begin so.
    pub(crate) fn beginning(&self, prefix: &str) -> Result<Vec<String>, String> {
        let section = self.document.section(&self.name);
        let options = section.map_or(&[][..], |section| &section.options);
        let wanted = options.iter().filter(|option| option.name.starts_with(prefix));
        wanted
            .map(|option| expand(&self.document, &self.name, option).map_err(|error| error.to_string()))
            .collect()
    }
}
