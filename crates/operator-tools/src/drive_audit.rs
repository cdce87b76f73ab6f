//! `drive-audit`: looks for errors of drives in the kernel's log, and takes bad ones out of service.
//!
//! Called by cron. A drive with too many errors lately is unmounted and commented out of /etc/fstab, so that the
//! servers answer for it at once and replication puts its content elsewhere; `drive.recon` tells how many errors each
//! has. Compared with `swift-drive-audit` in `tests/operator/test_drive_audit.py`. Here a device that the kernel's list
//! of partitions does not know is passed over, where OpenStack's program ends with a traceback.
//! Always holds: only what is mounted below `device_dir` is unmounted; /etc/fstab is replaced whole or not at all.

mod kernel_log;
mod log_files;
mod mounts;

use crate::conf_file::ConfSection;
use crate::console::{Console, ToolStatus, ToolStop};
use crate::words::path;
use clap::Args;
use durable_fs::write_file_atomically;
use kernel_log::KernelLog;
use mounts::Mounted;
use rustix::fs::Mode;
use serde_json::{Map, Value};
use settings::drive_audit::{self, DriveAuditSettings, SECTION};
use settings::report::SettingsError;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use upkeep::{ReconFile, ReconWriter};
use vocabulary::Fault;
use world::World;

const FSTAB: &str = "/etc/fstab";
/// There is such a directory where systemd is in charge.
const SYSTEMD_RUNS: &str = "/run/systemd/system";
/// No list of mounts is longer.
const LARGEST: u64 = 1 << 20;

/// The command line of `drive-audit`.
#[derive(Debug, Args)]
pub struct DriveAuditArguments {
    /// Its configuration, with a section [drive-audit].
    #[arg(value_name = "CONF_FILE", value_parser = path())]
    pub files: Vec<PathBuf>,
}

/// What the configuration says.
struct Options {
    settings: DriveAuditSettings,
    patterns: Vec<(String, String)>,
}

impl Options {
    fn read(file: &Path) -> Result<Self, Fault> {
        let section = ConfSection::read(file, SECTION)?;
        let words = |error: SettingsError| Fault::caller(error.to_string());
        let settings = DriveAuditSettings::from_document(section.document()).map_err(words)?;
        let patterns = drive_audit::patterns(section.document()).map_err(words)?;
        Ok(Self { settings, patterns })
    }
}

/// Looks, and acts.
pub async fn run(arguments: &DriveAuditArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let Some(file) = arguments.files.first() else {
        return console.fail("Usage: swift-drive-audit CONF_FILE");
    };
    let options = match Options::read(file) {
        Ok(options) => options,
        Err(reason) => {
            console.say(format_args!("Unable to read config file {}", file.display()))?;
            console.complain(reason)?;
            return Ok(ToolStatus::FAILURE);
        }
    };
    let settings = &options.settings;
    let log = match KernelLog::new(&settings.log_file_pattern, settings.minutes, &options.patterns) {
        Ok(log) => log,
        Err(reason) => {
            console.complain(reason)?;
            return Ok(ToolStatus::FAILURE);
        }
    };
    let mounted = mounts::below(world, &options.settings.device_dir)?;
    if mounted.is_empty() {
        alarm(&options, "Error: No devices found!", console)?;
    }
    let files = log.files(world);
    for path in &files.skipped {
        let what = format!("Error: {} is no regular file: skipped", path.display());
        alarm(&options, &what, console)?;
    }
    let errors = match log.errors(&files) {
        Ok(errors) => errors,
        Err(reason) => {
            alarm(&options, &format!("Error: {reason}"), console)?;
            return console.fail(reason);
        }
    };
    let mut failed = ToolStatus::SUCCESS;
    let mut counts: BTreeMap<String, i64> = mounted.iter().map(|mount| (mount.place.clone(), 0)).collect();
    let mut unmounted = 0;
    for (device, count) in errors
        .into_iter()
        .filter(|(_, count)| *count >= options.settings.error_limit)
    {
        for mount in mounted
            .iter()
            .filter(|mount| mount.kernel_name.as_ref() == Some(&device))
        {
            *counts.entry(mount.place.clone()).or_default() += count;
            match take_out(&options, world, mount, count, console) {
                Ok(done) => unmounted += usize::from(done),
                Err(stop) => failed = stop.end(console)?,
            }
        }
    }
    note(&options, world, counts).await;
    if unmounted == 0 {
        tell(&options, "No drives were unmounted", console)?;
    } else if world.files.info(Path::new(SYSTEMD_RUNS)).is_ok() {
        // Else systemd may mount them again: it knows fstab as it read it.
        if let Err(error) = Command::new("systemctl").arg("daemon-reload").status() {
            console.complain(format_args!("cannot call systemctl daemon-reload: {error}"))?;
        }
    }
    Ok(failed)
}

/// Whether a drive was unmounted.
fn take_out(
    options: &Options,
    world: &World,
    mount: &Mounted,
    count: i64,
    console: &mut Console<'_>,
) -> Result<bool, ToolStop> {
    let place = &mount.place;
    if !options.settings.unmount_failed_device {
        tell(
            options,
            &format!("Detected {place} with {count} errors (Device not unmounted)"),
            console,
        )?;
        return Ok(false);
    }
    tell(options, &format!("Unmounting {place} with {count} errors"), console)?;
    let ended = Command::new("umount").arg("-fl").arg(place).status();
    // A drive that does not let go is not to come back with the next boot either; umount itself has said why.
    if let Err(error) = ended {
        console.complain(format_args!("cannot call umount: {error}"))?;
    }
    tell(options, &format!("Commenting out {place} from {FSTAB}"), console)?;
    comment_out(world, place)?;
    Ok(true)
}

/// Makes the line of a place in /etc/fstab a comment.
fn comment_out(world: &World, place: &str) -> Result<(), Fault> {
    let path = Path::new(FSTAB);
    let fail = |error: &dyn std::fmt::Display| Fault::device(format!("cannot comment {place} out of {FSTAB}: {error}"));
    let before = world.files.read(path, LARGEST).map_err(|error| fail(&error))?;
    let after = commented(&before, place);
    if after == before {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mode = rustix::fs::stat(path).map_err(|error| fail(&error))?.st_mode;
    write_file_atomically(world, directory, "fstab", &after).map_err(|error| fail(&error))?;
    rustix::fs::chmod(path, Mode::from_raw_mode(mode & 0o7777)).map_err(|error| fail(&error))
}

fn commented(fstab: &[u8], place: &str) -> Vec<u8> {
    let lines = fstab.split_inclusive(|byte| *byte == b'\n');
    let mut out = Vec::with_capacity(fstab.len() + 1);
    for line in lines {
        let text = String::from_utf8_lossy(line);
        let mut fields = text.split_whitespace().skip(1);
        // Without a type of file system behind it a line mounts nothing.
        if !text.starts_with('#') && fields.next() == Some(place) && fields.next().is_some() {
            out.push(b'#');
        }
        out.extend_from_slice(line);
    }
    out
}

/// The counts by place, and their sum, in `drive.recon`.
async fn note(options: &Options, world: &World, counts: BTreeMap<String, i64>) {
    let sum: i64 = counts.values().fold(0, |sum, count| sum.saturating_add(*count));
    let mut figures: Map<String, Value> = counts.into_iter().map(|(place, count)| (place, count.into())).collect();
    figures.insert("drive_audit_errors".into(), sum.into());
    let recon = ReconWriter::new(world.clone(), &options.settings.recon_cache_path);
    recon.note(ReconFile::Drive, Value::Object(figures)).await;
}

/// What makes an audit useless, or leaves something out of it.
fn alarm(options: &Options, what: &str, console: &mut Console<'_>) -> io::Result<()> {
    match options.settings.log_to_console {
        true => tell(options, what, console),
        false => {
            tracing::error!("{what}");
            Ok(())
        }
    }
}

fn tell(options: &Options, what: &str, console: &mut Console<'_>) -> io::Result<()> {
    match options.settings.log_to_console {
        true => console.complain(format_args!("drive-audit: {what}")),
        false => {
            tracing::info!("{what}");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_of_the_place_becomes_a_comment() {
        let before = b"/dev/sdb1 /srv/node/sdb1 xfs x 0 0\n# /srv/node/sdb1\n/dev/sdb2 /srv/node/sdb12 xfs x\n/dev/sdb1 /srv/node/sdb1\n\xff /srv/node/sdb1 xfs";
        let after = b"#/dev/sdb1 /srv/node/sdb1 xfs x 0 0\n# /srv/node/sdb1\n/dev/sdb2 /srv/node/sdb12 xfs x\n/dev/sdb1 /srv/node/sdb1\n#\xff /srv/node/sdb1 xfs";
        assert_eq!(commented(before, "/srv/node/sdb1"), after);
        assert_eq!(commented(after, "/srv/node/sdb1"), after);
    }
}
