//! `notification-targets.conf`: the webhooks that notifications of buckets may go to.
//!
//! A section for each target, whose name is what ARNs of clients say (`arn:martlet:sqs::NAME:webhook`). The gateways
//! learn from it which names there are, container-notifier where each is.
//! Always holds: a name has letters, digits, `_` and `-` alone; an address is one of HTTP; no secret is printed, nor is
//! an address, whose query may be one.
//! Deliberately absent: reading the file, deliveries.

use crate::declare::{Options, Scope, options};
use crate::ini::{DEFAULT, Document};
use crate::kinds::Secret;
use crate::report::SettingsError;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The file's name below `swift_dir`.
pub const FILE: &str = "notification-targets.conf";
/// Of a target.
const OPTIONS: [&str; 3] = ["url", "secret", "accounts"];
/// Letters of a name.
const LONGEST_NAME: usize = 64;

options! {
    /// `[DEFAULT]`.
    pub struct NotificationTargetsFile {
        /// Seconds after which the file is read again if it has changed.
        mtime_check_interval: Duration = "60",
    }
}

options! {
    /// A target, in the section of its name.
    pub struct NotificationTargetSettings {
        /// Where events are posted: http:// or https://, with a path and a query if need be.
        url: String = "",
        /// Signs what is posted, in the header X-Martlet-Signature; nothing is signed without one.
        secret: Secret = "",
        /// Accounts, separated by commas, whose buckets may send events there; all when empty.
        accounts: Vec<String> = "",
    }
}

impl NotificationTargetSettings {
    /// Whether buckets of this account may send events there.
    pub fn serves(&self, account: &str) -> bool {
        self.accounts.is_empty() || self.accounts.iter().any(|own| own == account)
    }
}

/// All targets, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct NotificationTargets {
    /// By name.
    pub targets: BTreeMap<String, NotificationTargetSettings>,
    /// How often the file is looked at again.
    pub check_interval: Duration,
}

impl Default for NotificationTargets {
    /// None, where there is no file.
    fn default() -> Self {
        Self {
            targets: BTreeMap::new(),
            check_interval: NotificationTargetsFile::default().mtime_check_interval,
        }
    }
}

impl NotificationTargets {
    /// Reads the file's text.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let document = Document::parse(path, text)?;
        let defaults = Scope::plain(&document, DEFAULT)?;
        let mut targets = BTreeMap::new();
        for section in document.sections.iter().filter(|section| section.name != DEFAULT) {
            // A slip in `accounts` would let the buckets of all accounts send there, one in `secret` sign nothing.
            let mut names = section.options.iter().map(|option| option.name.as_str());
            if let Some(slip) = names.find(|name| !OPTIONS.contains(name)) {
                let known = "url, secret or accounts instead of this option";
                return Err(wrong(path, &section.name, slip, known));
            }
            let scope = Scope::plain(&document, &section.name)?;
            let settings = NotificationTargetSettings::read(&scope)?;
            if !is_name(&section.name) {
                let names = "a section whose name has 1 to 64 letters of A to Z, a to z, 0 to 9, _ and -";
                return Err(wrong(path, &section.name, "url", names));
            }
            if !is_address(&settings.url) {
                let addresses = "http://HOST:PORT/PATH or https://HOST:PORT/PATH";
                return Err(wrong(path, &section.name, "url", addresses));
            }
            targets.insert(section.name.clone(), settings);
        }
        Ok(Self {
            targets,
            check_interval: NotificationTargetsFile::read(&defaults)?.mtime_check_interval,
        })
    }
}

/// An error about a target, without what its option says: the query of an address is often a secret.
fn wrong(path: &Path, section: &str, option: &str, expected: &str) -> SettingsError {
    SettingsError::Value {
        file: path.to_owned(),
        section: section.into(),
        option: option.into(),
        value: "(not shown)".into(),
        expected: expected.into(),
    }
}

/// As ARNs may have it.
fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_fine)
}

fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let is_host = |rest: &str| !rest.is_empty() && !rest.starts_with(['/', '?', ':']);
    rest.is_some_and(|rest| is_host(rest) && !rest.contains(|letter: char| letter <= ' ' || letter == '@'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<NotificationTargets, SettingsError> {
        NotificationTargets::parse(Path::new(FILE), text)
    }

    #[test]
    fn targets_have_addresses_and_secrets() {
        let text = "[DEFAULT]\nmtime_check_interval = 5\n[billing-2]\nurl = https://hooks.example/s3?x=1\n\
                    secret = 9ff3\naccounts = AUTH_a, AUTH_b\n[plain]\nurl = http://10.0.0.1:8080\n";
        let read = parse(text).unwrap();
        assert_eq!(read.check_interval, Duration::from_secs(5));
        let names: Vec<&str> = read.targets.keys().map(String::as_str).collect();
        assert_eq!(names, ["billing-2", "plain"]);
        assert_eq!(read.targets["billing-2"].url, "https://hooks.example/s3?x=1");
        assert_eq!(read.targets["billing-2"].secret.0, "9ff3");
        assert_eq!(read.targets["billing-2"].accounts, ["AUTH_a", "AUTH_b"]);
        assert!(!format!("{read:?}").contains("9ff3"));
    }

    #[test]
    fn an_address_is_in_no_error() {
        for text in [
            "[a]\nurl = http://user:hidden@host/\n",
            "[a]\nurl = https//host/?token=hidden\n",
            "[a b]\nurl = http://host/?token=hidden\n",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                !error.contains("hidden") && error.contains("notification-targets.conf [a"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_cannot_be_a_target_is_refused() {
        for text in [
            "[a]\n",
            "[a]\nurl = ftp://x\n",
            "[a]\nurl = http://\n",
            "[a]\nurl = http:///x\n",
            "[a]\nurl = http://user:password@host/\n",
            "[a b]\nurl = http://x\n",
            "[a:b]\nurl = http://x\n",
            "[a]\nurl = http://x\nacounts = AUTH_a\n",
            "[a]\nurl = http://x\nsecrt = 9ff3\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("").unwrap(), NotificationTargets::default());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
