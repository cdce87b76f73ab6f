//! `recon-cron`: counts the listing updates that wait on this node's devices, for the recon filter to tell.
//!
//! Called by cron every few minutes; counting takes long where many wait, so that a lock keeps two from counting at
//! once. Compared with `swift-recon-cron` in `tests/operator/test_small_tools.py`.
//! Always holds: devices are only listed; figures that could not be written end it with a failure, where OpenStack's
//! program logs a line and ends well.

use crate::conf_file::ConfSection;
use crate::console::{Console, ToolStatus};
use crate::words::path;
use clap::Args;
use serde_json::{Map, json};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use upkeep::{ReconFile, ReconWriter};
use vocabulary::Fault;
use world::World;
use world::files::{File, Purpose};

/// How long another one is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The command line of `recon-cron`.
#[derive(Debug, Args)]
pub struct ReconCronArguments {
    /// The object server's configuration, with a [filter:recon].
    #[arg(value_name = "CONF_FILE", value_parser = path())]
    pub files: Vec<PathBuf>,
}

/// Counts, and notes it in `object.recon`.
pub async fn run(arguments: &ReconCronArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let Some(file) = arguments.files.first() else {
        console.say("Usage: swift-recon-cron CONF_FILE")?;
        return console.fail("ex: swift-recon-cron /etc/swift/object-server.conf");
    };
    let read = || -> Result<[String; 3], Fault> {
        let section = ConfSection::read(file, "filter:recon")?;
        Ok([
            section.text("devices", "/srv/node")?,
            section.text("recon_cache_path", "/var/cache/swift")?,
            section.text("recon_lock_path", "/var/lock")?,
        ])
    };
    let [devices, cache, locks] = match read() {
        Ok(options) => options,
        Err(reason) => {
            console.complain(reason)?;
            return Ok(ToolStatus::FAILURE);
        }
    };
    let lock = Path::new(&locks).join("swift-recon-object-cron");
    let _lock = match take(world, &lock) {
        Ok(lock) => lock,
        Err(error) => {
            let lock = lock.join(".lock");
            return console.fail(format_args!(
                "Exception during recon-cron while accessing devices: {error}: {}",
                lock.display()
            ));
        }
    };
    let pending = match count(world, Path::new(&devices)) {
        Ok(pending) => pending,
        // Too small a number would be believed.
        Err(reason) => {
            return console.fail(format_args!(
                "Exception during recon-cron while accessing devices: {reason}"
            ));
        }
    };
    let figures = Map::from_iter([
        ("async_pending".to_owned(), json!(pending)),
        ("async_pending_last".to_owned(), json!(world.clock.now().as_f64())),
    ]);
    let recon = ReconWriter::new(world.clone(), cache);
    match recon.try_note(ReconFile::Object, figures).await {
        Ok(()) => Ok(ToolStatus::SUCCESS),
        Err(reason) => {
            console.complain(reason)?;
            Ok(ToolStatus::FAILURE)
        }
    }
}

/// The lock is that of OpenStack's program. A directory for it is made, and those above it.
fn take(world: &World, folder: &Path) -> io::Result<Box<dyn File>> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| world.files.info(folder).is_err())
        .collect();
    for folder in missing.into_iter().rev() {
        match world.files.make_directory(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let file = world.files.open(&folder.join(".lock"), Purpose::Lock)?;
    file.lock(PATIENCE).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => io::Error::other(format!("{} seconds", PATIENCE.as_secs())),
        _ => error,
    })?;
    Ok(file)
}

/// What is in the directories of `async_pending` and `async_pending-N` of every device. What cannot be listed is an
/// error that names it, but for what is no directory or has just gone.
fn count(world: &World, devices: &Path) -> Result<usize, Fault> {
    let listed = |folder: &Path| -> io::Result<Vec<OsString>> {
        let mut names = vec![];
        let directory = world.files.open_directory(folder)?;
        directory.list(&mut |name| names.push(name.to_owned()))?;
        Ok(names)
    };
    let described = |folder: &Path, error: &io::Error| Fault::device(format!("{error}: {}", folder.display()));
    let below = |folder: &Path| match listed(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => Ok(vec![]),
        other => other.map_err(|error| described(folder, &error)),
    };
    let mut count = 0;
    let names = listed(devices).map_err(|error| described(devices, &error))?;
    for device in names.iter().map(|name| devices.join(name)) {
        for place in below(&device)? {
            let text = place.to_string_lossy();
            if text == "async_pending" || text.starts_with("async_pending-") {
                let place = device.join(&place);
                for suffix in below(&place)? {
                    count += below(&place.join(suffix))?.len();
                }
            }
        }
    }
    Ok(count)
}
