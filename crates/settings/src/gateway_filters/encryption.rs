//! The options of `keymaster` and `encryption`: the root secrets, and which of them encrypts new data.
//!
//! Besides `encryption_root_secret` there may be any number of `encryption_root_secret_<id>`. All of it
//! may stand in a file of its own instead ([`KeymasterOptions::keymaster_config_path`]).
//! Always holds: the active secret is among the secrets; a secret has at least 32 bytes, appears neither in
//! [`fmt::Debug`] nor in messages, and is overwritten in memory when dropped.

use crate::declare::{Options, Scope, options};
use crate::ini::Document;
use crate::kinds::OptionValue;
use crate::report::SettingsError;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Bytes that a root secret must have.
const LEAST: usize = 32;
const SECRET: &str = "encryption_root_secret";
/// The section of a keymaster's own file.
const SECTION: &str = "keymaster";

options! {
    /// `[filter:encryption]`.
    pub struct EncryptionSettings {
        /// Store new objects and metadata in the clear; what is encrypted already stays readable.
        disable_encryption: bool = "false",
    }
}

options! {
    /// `[filter:keymaster]`, or the `[keymaster]` section of the file that it names.
    pub struct KeymasterOptions {
        /// Version of the metadata that is written: 1 is read by every Swift, 2 by Swift 2.21 and later, 3 by
        /// Swift 2.26 and later.
        meta_version_to_write: MetaVersion = "2",
        /// Root secret of all keys; encryption_root_secret_NAME declares further ones. Never change or remove one
        /// that has been in use.
        encryption_root_secret: Option<RootSecret> = "",
        /// NAME of the root secret that encrypts new data; the one without a name when empty.
        active_root_secret_id: Option<String> = "",
        /// A file whose [keymaster] section has the options instead.
        keymaster_config_path: Option<PathBuf> = "",
    }
}

/// `meta_version_to_write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetaVersion(pub u8);

impl OptionValue for MetaVersion {
    const EXPECTS: &'static str = "1, 2 or 3";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|version| (1..=3).contains(version)).map(Self)
    }
}

/// What all keys are derived from.
#[derive(Clone, PartialEq, Eq)]
pub struct RootSecret(Zeroizing<Vec<u8>>);

impl RootSecret {
    /// The secret itself.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for RootSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootSecret(not shown)")
    }
}

/// As OpenStack reads it: the last character may say more than belongs to a byte, as in the secret of its samples.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

impl OptionValue for RootSecret {
    const EXPECTS: &'static str = "the base64 of at least 32 random bytes";

    fn parse(text: &str) -> Option<Self> {
        let secret = Zeroizing::new(LENIENT.decode(text.trim()).ok()?);
        (secret.len() >= LEAST).then_some(Self(secret))
    }
}

/// All of a keymaster's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct KeymasterSettings {
    /// Version of the metadata that is written: 1, 2 or 3.
    pub version: u8,
    /// The name of the secret for new data; absent for the one that has none.
    pub active: Option<String>,
    /// Names and secrets.
    pub secrets: Vec<(Option<String>, RootSecret)>,
}

impl KeymasterSettings {
    /// Reads the filter's options, or the file that they name.
    pub fn read(scope: &Scope) -> Result<Self, SettingsError> {
        match KeymasterOptions::read(scope)?.keymaster_config_path {
            Some(path) => Self::read(&elsewhere(scope, &path)?),
            None => Self::read_here(scope),
        }
    }

    fn read_here(scope: &Scope) -> Result<Self, SettingsError> {
        let options = KeymasterOptions::read(scope)?;
        let mut secrets: Vec<_> = options
            .encryption_root_secret
            .map(|secret| (None, secret))
            .into_iter()
            .collect();
        for (name, _) in scope.iter() {
            if let Some(id) = secret_id(name) {
                if id.is_empty() {
                    return Err(scope.wrong(name, "a name after encryption_root_secret_"));
                }
                secrets.push((Some(id.to_owned()), scope.value(name, "")?));
            }
        }
        let active = options.active_root_secret_id;
        if secrets.iter().all(|(id, _)| *id != active) {
            return Err(SettingsError::MissingOption {
                file: scope.file.clone(),
                section: scope.section.clone(),
                option: active
                    .as_ref()
                    .map_or_else(|| SECRET.into(), |id| format!("{SECRET}_{id}")),
                remedy: "it is the active root secret: make one with `openssl rand -base64 32`, and keep it".into(),
            });
        }
        Ok(Self {
            version: options.meta_version_to_write.0,
            active,
            secrets,
        })
    }

    /// Whether an option of the section is understood without being in the table.
    pub fn is_free_form(name: &str) -> bool {
        secret_id(name).is_some()
    }
}

fn secret_id(name: &str) -> Option<&str> {
    name.strip_prefix(SECRET)?.strip_prefix('_')
}

/// The options in the keymaster's own file, which must then not stand here as well.
fn elsewhere(scope: &Scope, path: &Path) -> Result<Scope, SettingsError> {
    let doubled = |name: &str| name == SECRET || name == "active_root_secret_id" || secret_id(name).is_some();
    if let Some((name, _)) = scope.iter().find(|(name, _)| doubled(name)) {
        return Err(scope.wrong(name, "nothing here, because keymaster_config_path is set"));
    }
    let document = Document::load(path)?;
    if document.section(SECTION).is_none() {
        return Err(SettingsError::MissingSection {
            file: path.to_owned(),
            section: SECTION.into(),
            remedy: "keymaster_config_path names this file: put the root secrets there".into(),
        });
    }
    let mut found = Scope::plain(&document, SECTION)?;
    found.forget("keymaster_config_path");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "cnJycnJycnJycnJycnJycnJycnJycnJycnJycnJycnI=";
    const TWO: &str = "c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=";

    fn read(text: &str) -> Result<KeymasterSettings, SettingsError> {
        let text = format!("[filter:keymaster]\nuse = egg:swift#keymaster\n{text}");
        let document = Document::parse(Path::new("p.conf"), &text).unwrap();
        KeymasterSettings::read(&Scope::paste(&document, "filter:keymaster").unwrap())
    }

    #[test]
    fn secrets_have_names() {
        let settings = read(&format!(
            "encryption_root_secret = {ONE}\nencryption_root_secret_New_2 = {TWO}\nactive_root_secret_id = New_2\n"
        ))
        .unwrap();
        let ids: Vec<_> = settings.secrets.iter().map(|(id, _)| id.as_deref()).collect();
        assert_eq!(ids, [None, Some("New_2")]);
        assert_eq!((settings.active.as_deref(), settings.version), (Some("New_2"), 2));
        assert_eq!(settings.secrets[1].1.bytes(), [b's'; 32]);
        assert!(!format!("{settings:?}").contains("115, 115"));
    }

    #[test]
    fn the_secret_of_openstacks_samples_is_one() {
        let settings = read("encryption_root_secret = changeme/changeme/changeme/changeme/change/=\n").unwrap();
        assert_eq!(settings.secrets[0].1.bytes().len(), 32);
    }

    #[test]
    fn refusals_show_no_secret() {
        for (text, expected) in [
            (String::new(), "does not set encryption_root_secret;"),
            (
                format!("encryption_root_secret_a = {ONE}"),
                "does not set encryption_root_secret;",
            ),
            (
                format!("encryption_root_secret = {ONE}\nactive_root_secret_id = b"),
                "does not set encryption_root_secret_b;",
            ),
            (
                "encryption_root_secret = c2hvcnQ=".into(),
                "(not shown): expected the base64",
            ),
            (
                format!("encryption_root_secret_a = {ONE}x"),
                "(not shown): expected the base64",
            ),
            (format!("encryption_root_secret_ = {ONE}"), "a name after"),
            (
                format!("encryption_root_secret = {ONE}\nmeta_version_to_write = 4"),
                "expected 1, 2 or 3",
            ),
            (
                format!("encryption_root_secret = {ONE}\nkeymaster_config_path = /nonexistent/k"),
                "because keymaster_config_path is set",
            ),
            (
                "keymaster_config_path = /nonexistent/k".into(),
                "cannot read /nonexistent/k",
            ),
        ] {
            let message = read(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("cnJy") && !message.contains("c2hv"), "{message}");
        }
    }

    #[test]
    fn a_file_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keymaster.conf");
        let write = |text: String| std::fs::write(&path, text).unwrap();
        let option = format!("keymaster_config_path = {}\n", path.display());
        write(format!(
            "[keymaster]\n{option}encryption_root_secret = {TWO}\nmeta_version_to_write = 3\n"
        ));
        let settings = read(&option).unwrap();
        assert_eq!((settings.version, settings.secrets.len()), (3, 1));
        write("[other]\n".into());
        let message = read(&option).unwrap_err().to_string();
        assert!(message.contains("no section [keymaster]"), "{message}");
    }
}
