//! One declaration per option: the [`options!`] macro and what it produces.
//!
//! A declaration is a struct field with its help as doc comment and its default as the text an
//! operator would write. From it come the typed field, the table of [`OptionDecl`], the default value,
//! the parser and (in `sample.rs`) the sample file and the reference page.
//! Always holds: every default parses as its kind (tested for every table).

use crate::ini::{DEFAULT, Document};
use crate::interpolate;
use crate::kinds::OptionValue;
use crate::report::SettingsError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is known about one option without a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionDecl {
    /// As spelled in the file.
    pub name: &'static str,
    /// What a value looks like, for messages and the reference.
    pub expects: &'static str,
    /// What holds when the file does not say; empty for "nothing".
    pub default: &'static str,
    /// One or more sentences.
    pub help: &'static str,
}

/// A struct made by [`options!`].
pub trait Options: Sized {
    /// All its options, in order of declaration.
    const TABLE: &'static [OptionDecl];

    /// Reads every option from a scope.
    fn read(scope: &Scope) -> Result<Self, SettingsError>;
}

/// Declares a struct of options. `name: Kind = "default"` with the help as doc comment.
macro_rules! options {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $help:literal])+ $field:ident : $kind:ty = $default:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $kind,)+
        }

        impl $crate::declare::Options for $name {
            const TABLE: &'static [$crate::declare::OptionDecl] = &[
                $($crate::declare::OptionDecl {
                    name: stringify!($field),
                    expects: <$kind as $crate::kinds::OptionValue>::EXPECTS,
                    default: $default,
                    help: concat!($($help),+),
                },)+
            ];

            fn read(scope: &$crate::declare::Scope) -> Result<Self, $crate::report::SettingsError> {
                Ok(Self { $($field: scope.value(stringify!($field), $default)?,)+ })
            }
        }

        impl Default for $name {
            fn default() -> Self {
                let scope = $crate::declare::Scope::empty();
                // Every default of every table is parsed by a test.
                <Self as $crate::declare::Options>::read(&scope).expect("declared defaults parse")
            }
        }
    };
}
pub(crate) use options;

/// The options in force in one section, expanded, each with the section that said it.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The file or directory, for messages.
    pub file: PathBuf,
    /// The section, for messages about options that are missing.
    pub section: String,
    values: BTreeMap<String, Found>,
}

#[derive(Debug, Clone)]
struct Found {
    value: String,
    section: String,
    file: PathBuf,
}

impl Scope {
    /// No options at all: everything has its default.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The section over `[DEFAULT]`, as daemons and `swift.conf` are read.
    pub fn plain(document: &Document, section: &str) -> Result<Self, SettingsError> {
        let mut scope = Self::named(document, section);
        scope.overlay(document, DEFAULT, |name| Some(name))?;
        scope.overlay(document, section, |name| Some(name))?;
        Ok(scope)
    }

    /// An app or filter as PasteDeploy reads it: what `[DEFAULT]` sets wins, unless the section says
    /// `set name = value`.
    pub fn paste(document: &Document, section: &str) -> Result<Self, SettingsError> {
        let mut scope = Self::named(document, section);
        scope.overlay(document, section, |name| (!is_set(name)).then_some(name))?;
        scope.overlay(document, DEFAULT, |name| Some(name))?;
        scope.overlay(document, section, set_name)?;
        Ok(scope)
    }

    /// This scope with a further section on top, for per-policy overrides.
    pub fn with_section(&self, document: &Document, section: &str) -> Result<Self, SettingsError> {
        let mut scope = self.clone();
        scope.overlay(document, section, |name| Some(name))?;
        Ok(scope)
    }

    /// This scope on top of another: options of this one win.
    pub fn over(&self, below: Scope) -> Self {
        let mut values = below.values;
        values.extend(self.values.clone());
        Self { values, ..self.clone() }
    }

    fn named(document: &Document, section: &str) -> Self {
        Self {
            file: document.path.clone(),
            section: section.into(),
            values: BTreeMap::new(),
        }
    }

    fn overlay(
        &mut self,
        document: &Document,
        section: &str,
        name_of: impl Fn(&str) -> Option<&str>,
    ) -> Result<(), SettingsError> {
        for option in document.section(section).map_or(&[][..], |s| &s.options) {
            if let Some(name) = name_of(&option.name) {
                let found = Found {
                    value: interpolate::expand(document, section, option)?,
                    section: section.into(),
                    file: option.file.clone(),
                };
                self.values.insert(name.into(), found);
            }
        }
        Ok(())
    }

    /// The text in force, if any section says it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|found| found.value.as_str())
    }

    /// Takes an option out, as if no section said it.
    pub(crate) fn forget(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// All options in force, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, found)| (name.as_str(), found.value.as_str()))
    }

    /// The value of its kind, or the default's.
    pub fn value<T: OptionValue>(&self, name: &str, default: &str) -> Result<T, SettingsError> {
        let text = self.text(name).unwrap_or(default);
        T::parse(text).ok_or_else(|| self.wrong(name, T::EXPECTS))
    }

    /// The error for a value that is not what it should be.
    pub fn wrong(&self, name: &str, expected: &str) -> SettingsError {
        let found = self.values.get(name);
        SettingsError::Value {
            file: found.map_or(self.file.as_path(), |f| Path::new(&f.file)).to_owned(),
            section: found.map_or(&self.section, |f| &f.section).clone(),
            option: name.into(),
            value: found.map_or("", |f| &f.value).into(),
            expected: expected.into(),
        }
    }
}

fn is_set(name: &str) -> bool {
    set_name(name).is_some()
}

fn set_name(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("set ").or_else(|| name.strip_prefix("set\t"))?;
    Some(rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(Path::new("x.conf"), text).unwrap()
    }

    #[test]
    fn default_wins_in_paste_sections_unless_set() {
        let text = "[DEFAULT]\na=d\nb=d\n[app:x]\na=l\nset b=l\nc=l\nset d = l\n";
        let scope = Scope::paste(&document(text), "app:x").unwrap();
        let all: Vec<_> = scope.iter().collect();
        assert_eq!(all, [("a", "d"), ("b", "l"), ("c", "l"), ("d", "l")]);
        let scope = Scope::plain(&document(text), "app:x").unwrap();
        assert_eq!(scope.text("a"), Some("l"));
    }

    #[test]
    fn wrong_values_name_everything() {
        let scope = Scope::plain(&document("[DEFAULT]\nbind_port = abc\n[s]\n"), "s").unwrap();
        let message = scope.value::<u16>("bind_port", "1").unwrap_err().to_string();
        assert_eq!(
            message,
            "x.conf [DEFAULT] bind_port = \"abc\": expected a port number from 0 to 65535"
        );
    }
}
