//! `drive-audit.conf`: what counts as a drive's error, and what is done about it.

use crate::declare::{Options, Scope, options};
use crate::ini::Document;
use crate::interpolate;
use crate::report::SettingsError;
use std::path::PathBuf;

options! {
    /// `[drive-audit]`.
    pub struct DriveAuditSettings {
        /// Where the drives are mounted.
        device_dir: PathBuf = "/srv/node",
        /// How far back the kernel's log counts, in minutes.
        minutes: i64 = "60",
        /// With so many errors in that time a drive has failed.
        error_limit: i64 = "1",
        /// Unmount a drive that has failed, and comment it out of /etc/fstab.
        unmount_failed_device: bool = "True",
        /// Print what is done, too.
        log_to_console: bool = "False",
        /// The files of the kernel's log: *, ? and [!…] stand for characters.
        log_file_pattern: String = "/var/log/kern.*[!.][!g][!z]",
        /// Directory of drive.recon, which the recon filter reads.
        recon_cache_path: PathBuf = "/var/cache/swift",
    }
}

/// The section.
pub const SECTION: &str = "drive-audit";
/// The usual name of the file.
pub const FILE: &str = "drive-audit.conf";
/// How the options begin that say what an error looks like.
pub const PATTERN: &str = "regex_pattern_";
/// What holds without any of these: how a kernel says that a drive has trouble.
pub const USUAL_PATTERNS: [&str; 2] = [r"\berror\b.*\b(sd[a-z]{1,2}\d?)\b", r"\b(sd[a-z]{1,2}\d?)\b.*\berror\b"];

impl DriveAuditSettings {
    /// Reads the section; it must be there.
    pub fn from_document(document: &Document) -> Result<Self, SettingsError> {
        Self::read(&Scope::plain(document, SECTION)?)
    }
}

/// The regular expressions of the section, in its order, each with its option's name.
pub fn patterns(document: &Document) -> Result<Vec<(String, String)>, SettingsError> {
    let section = document.section(SECTION);
    let options = section.map_or(&[][..], |section| &section.options);
    let wanted = options.iter().filter(|option| option.name.starts_with(PATTERN));
    wanted
        .map(|option| Ok((option.name.clone(), interpolate::expand(document, SECTION, option)?)))
        .collect()
}
