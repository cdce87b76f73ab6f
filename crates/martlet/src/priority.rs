//! Which process goes first when processors and disks are scarce: `nice_priority`, `ionice_class`, `ionice_priority`.
//!
//! Always holds: a process takes its place before it starts a thread, since threads have what the one has that starts
//! them; a place it may not have costs a line in the log, as with OpenStack's, and nothing else; what is not configured
//! never favours a process over what it was started with.

use nix::unistd::Pid;
use rustix::process::{getpriority_process, setpriority_process};
use settings::server::ServerCommon;
use settings::{IoPriority, Niceness};
use std::process::{Command, Stdio};

/// Of the object-auditor, unless the configuration says otherwise. It takes the most time of all upkeep, and reads
/// without a lock. What works under locks that requests wait for, as replicators and updaters do, is as nice as they
/// are: a nice thread that loses its processor keeps its lock meanwhile, and on a busy machine clients waited for it
/// half a second.
pub const AUDITOR: Niceness = Niceness(10);

/// Puts the configuration in force for this process.
pub fn take(common: &ServerCommon) {
    if let Some(Niceness(number)) = common.nice_priority {
        match setpriority_process(None, number) {
            Ok(()) => tracing::debug!("nice_priority: this process is as nice as {number}"),
            Err(error) => tracing::warn!("nice_priority = {number} cannot be had: {error}; nothing is changed"),
        }
    }
    take_io_priority(common);
}

/// For background work: at least as nice as `own`, if the configuration does not say how nice.
pub fn make_room(common: &ServerCommon, Niceness(own): Niceness) {
    let is_less = getpriority_process(None).is_ok_and(|now| now < own);
    if common.nice_priority.is_none()
        && is_less
        && let Err(error) = setpriority_process(None, own)
    {
        tracing::debug!("this process cannot be as nice as {own}: {error}");
    }
}

/// By the program `ionice`: no safe Rust reaches the system call.
fn take_io_priority(common: &ServerCommon) {
    let Some(class) = common.ionice_class else {
        if common.ionice_priority.is_some() {
            tracing::warn!("ionice_priority means nothing without ionice_class; nothing is changed");
        }
        return;
    };
    let IoPriority(level) = common.ionice_priority.unwrap_or(IoPriority(0));
    let ran = Command::new("ionice")
        .args(["-c", &class.number().to_string(), "-n", &level.to_string()])
        .args(["-p", &Pid::this().to_string()])
        .stdin(Stdio::null())
        .output();
    let refused = match ran {
        Ok(output) if output.status.success() => {
            tracing::debug!("ionice_class: this process is of class {class:?}, priority {level}");
            return;
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("cannot run `ionice` of util-linux: {error}"),
    };
    tracing::warn!("ionice_class and ionice_priority cannot be had: {refused}; disks serve the process as before");
}
