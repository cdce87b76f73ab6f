//! The program as it was called: under which name, with what, where its log and its output go.
//!
//! Always holds: called as `swift-…` without `verbose` it behaves as OpenStack's programs do: it logs to the
//! system's log and, once it works, lets go of its standard output, for whose end `swift-init` waits. Called as
//! `martlet …` it logs to standard error, under the name of its command unless `log_name` says otherwise.

use crate::failure::CommandFailure;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};
use settings::server::ServerCommon;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use telemetry::log::SystemLog;
use world::{Datagrams, World};

/// Names of links begin with this.
const LINK_PREFIX: &str = "swift-";

/// How this process was called.
#[derive(Debug, Clone)]
pub struct Program {
    /// All of it, the name first.
    pub arguments: Vec<OsString>,
    /// `object-server`, when it was called by the name of that.
    link: Option<String>,
    /// Whether it reports on its output what it does.
    verbose: bool,
}

impl Program {
    /// This process.
    pub fn called() -> Self {
        Self::from(std::env::args_os().collect::<Vec<_>>())
    }

    /// Where the program lies: what is there now is not necessarily what runs.
    pub fn path(&self) -> PathBuf {
        let name = self.arguments.first().map(Path::new).unwrap_or(Path::new("martlet"));
        if name.components().count() > 1 {
            return std::path::absolute(name).unwrap_or_else(|_| name.to_owned());
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
            .unwrap_or_else(|| Path::new(RUNNING).to_owned())
    }

    /// Starts logging where that name logs.
    pub fn start_logging(&self, common: &ServerCommon) {
        if common.log_json && !self.is_quiet() {
            return telemetry::log_json::start(common.log_level, self.log_name(common));
        }
        match self.is_quiet().then(|| self.system_log(common)).flatten() {
            Some(log) => telemetry::log::start_in(log, common.log_level),
            None => telemetry::log::start(common.log_level, Some(self.log_name(common))),
        }
    }

    fn system_log(&self, common: &ServerCommon) -> Option<SystemLog> {
        let network = World::real().network;
        let socket: std::io::Result<Box<dyn Datagrams>> = match &common.log_udp_host {
            Some(host) => network.datagrams(host, common.log_udp_port),
            None => network.local_datagrams(&common.log_address),
        };
        Some(SystemLog {
            socket: socket.ok()?,
            facility: common.log_facility,
            name: self.log_name(common),
        })
    }

    /// Whose lines they are: `log_name`, or what this program was called to be where that says nothing.
    fn log_name(&self, common: &ServerCommon) -> String {
        let called = || {
            self.link
                .clone()
                .or_else(|| command(&self.arguments).map(str::to_owned))
        };
        match common.log_name == ServerCommon::default().log_name {
            true => called().unwrap_or_else(|| common.log_name.clone()),
            false => common.log_name.clone(),
        }
    }

    /// Closes the output once the process works: a parent that waits for its end goes on. Output that is no pipe
    /// keeps no parent waiting, and stays.
    pub fn let_go_of_output(&self) -> Result<(), CommandFailure> {
        if !self.is_quiet() {
            return Ok(());
        }
        if is_pipe(1) {
            dup2_stdout(nowhere()?).map_err(redirect)?;
        }
        self.let_go_of_errors()
    }

    /// The same for standard error alone.
    pub fn let_go_of_errors(&self) -> Result<(), CommandFailure> {
        if self.is_quiet() && is_pipe(2) {
            dup2_stderr(nowhere()?).map_err(redirect)?;
        }
        Ok(())
    }

    /// Whether it was called by the name of a link.
    pub fn is_link(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it is to behave as a daemon of OpenStack's.
    pub fn is_quiet(&self) -> bool {
        self.link.is_some() && !self.verbose
    }
}

impl From<Vec<OsString>> for Program {
    fn from(arguments: Vec<OsString>) -> Self {
        Self {
            link: link(&arguments).map(str::to_owned),
            verbose: arguments
                .iter()
                .any(|argument| VERBOSE.iter().any(|word| argument == word)),
            arguments,
        }
    }
}

/// How one says so, `swift-init` without dashes.
const VERBOSE: [&str; 3] = ["-v", "--verbose", "verbose"];

/// The build that runs, wherever it lies or lay.
pub const RUNNING: &str = "/proc/self/exe";

/// `swift-object-server` → `object-server`.
pub fn link(arguments: &[OsString]) -> Option<&str> {
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    name.strip_prefix(LINK_PREFIX)
}

/// `martlet object-server CONF` → `object-server`.
fn command(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    words.find(|word| !word.starts_with('-'))
}

/// From now on nothing comes from standard input.
pub fn let_go_of_input() -> Result<(), CommandFailure> {
    dup2_stdin(nowhere()?.as_fd()).map_err(redirect)
}

fn nowhere() -> Result<File, CommandFailure> {
    let path = Path::new("/dev/null");
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(CommandFailure::io("open", path))
}

fn is_pipe(descriptor: u8) -> bool {
    std::fs::metadata(format!("/proc/self/fd/{descriptor}")).is_ok_and(|data| data.file_type().is_fifo())
}

/// For `map_err`.
pub fn redirect(error: nix::errno::Errno) -> CommandFailure {
    CommandFailure::io("redirect", Path::new("a standard stream"))(error.into())
}
