//! `cargo xtask test`: the programs of the workspace's unit and integration tests, several at a time.
//!
//! `cargo test` runs them one after the other, and many of them wait. Examples in comments are not run: there are
//! none that could be. Always holds: a program runs in the folder of its package, as Cargo has it; its output is shown
//! whole, by itself; one that does not end is killed; and each that failed is named at the end with the command that
//! runs it again.

use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Packages whose tests take longest: they begin first, so that nothing waits for one of them alone.
const LONG: [&str; 3] = ["simulation", "features", "upkeep"];

/// What no program takes, on a slow machine either.
const PATIENCE: Duration = Duration::from_secs(1500);

/// One program of tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    package: String,
    /// The target's name, and what `cargo test` calls it by.
    target: (String, &'static str),
    executable: PathBuf,
    folder: PathBuf,
}

impl fmt::Display for Program {
    /// The command that runs it alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, kind) = &self.target;
        match *kind {
            "--lib" => write!(f, "cargo test -p {} --lib", self.package),
            kind => write!(f, "cargo test -p {} {kind} {name}", self.package),
        }
    }
}

/// Builds all programs of tests below `root` and runs them. Whether all have passed.
pub fn run(root: &Path) -> Result<bool, String> {
    let mut programs = built(root)?;
    programs.sort_by_key(|program| {
        LONG.iter()
            .position(|long| *long == program.package)
            .unwrap_or(LONG.len())
    });
    let count = programs.len();
    // One more than there are processors, as each waits for something at times.
    let at_once = thread::available_parallelism().map_or(2, usize::from) + 1;
    let failed = run_all(programs, at_once, PATIENCE)?;
    println!("{} of {count} test programs passed", count - failed.len());
    // Where OpenStack's code is, without which some tests ask it nothing.
    let settings: String = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("MARTLET_"))
        .map(|(name, value)| format!("{name}={value} "))
        .collect();
    for program in &failed {
        println!("failed: {settings}{program}");
    }
    Ok(failed.is_empty())
}

fn built(root: &Path) -> Result<Vec<Program>, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["test", "--workspace", "--locked", "--no-run", "--message-format=json"])
        .current_dir(root)
        .stderr(Stdio::inherit());
    // What Cargo has set for this program: build scripts that look at it would run again, and what they build.
    for (name, _) in std::env::vars_os() {
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_ours {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let rendered = |line| {
        Some(
            serde_json::from_str::<Value>(line).ok()?["message"]["rendered"]
                .as_str()?
                .to_owned(),
        )
    };
    messages.lines().filter_map(rendered).for_each(|text| print!("{text}"));
    let programs: Vec<_> = messages.lines().filter_map(program).collect();
    match (output.status.success(), programs.is_empty()) {
        (true, false) => Ok(programs),
        (true, true) => Err("cargo test --no-run names no program".to_owned()),
        (false, _) => Err("cargo test --no-run failed".to_owned()),
    }
}

/// The program that a message of Cargo is about, if it is about one.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let kind = match message["target"]["kind"][0].as_str()? {
        "test" => "--test",
        "bin" => "--bin",
        "bench" => "--bench",
        "example" => "--example",
        _ => "--lib",
    };
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Program {
        package: folder.file_name()?.to_str()?.to_owned(),
        target: (message["target"]["name"].as_str()?.to_owned(), kind),
        executable: message["executable"].as_str()?.into(),
        folder,
    })
}

/// Those that failed.
fn run_all(programs: Vec<Program>, at_once: usize, patience: Duration) -> Result<Vec<Program>, String> {
    let waiting = Mutex::new(programs.into_iter());
    let next = || waiting.lock().ok()?.next();
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(program) = next() {
            println!("     Running {program}");
            let ended = finished(&program, patience);
            let Ok(mut failed) = failed.lock() else { return };
            match ended {
                Ok(output) => println!("       Ended {program}\n{output}"),
                Err((why, output)) => {
                    println!("       Ended {program}\n{output}error: {why}: {program}\n");
                    failed.push(program);
                }
            }
        }
    };
    thread::scope(|threads| (0..at_once).for_each(|_| drop(threads.spawn(work))));
    failed.into_inner().map_err(|error| error.to_string())
}

/// All that it has printed; where it has not passed, why, and that.
fn finished(program: &Program, patience: Duration) -> Result<String, (String, String)> {
    // A file: a pipe would stay open as long as anything that the program has left behind.
    let place = std::env::temp_dir().join(format!(
        "martlet-test-{}-{:?}",
        std::process::id(),
        thread::current().id()
    ));
    let ended = run_into(&place, program, patience);
    let output = std::fs::read(&place).unwrap_or_default();
    // What is left is small, and in a folder that is cleared.
    let _ = std::fs::remove_file(&place);
    let output = String::from_utf8_lossy(&output).into_owned();
    match ended {
        Ok(()) => Ok(output),
        Err(why) => Err((why, output)),
    }
}

/// Why it has not passed.
fn run_into(place: &Path, program: &Program, patience: Duration) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let file = File::create(place).map_err(text)?;
    let mut command = Command::new(&program.executable);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(text)?)
        .stderr(file);
    let (mut child, began) = (command.spawn().map_err(text)?, Instant::now());
    loop {
        match child.try_wait().map_err(text)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if began.elapsed() > patience => {
                child.kill().and_then(|()| child.wait()).map_err(text)?;
                return Err(format!("killed after {} seconds", patience.as_secs()));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(executable: &str) -> Program {
        Program {
            package: "world".to_owned(),
            target: (executable.to_owned(), "--test"),
            executable: executable.into(),
            folder: "/".into(),
        }
    }

    fn failed(executables: &[&str], patience: Duration) -> Vec<String> {
        let programs = executables.iter().map(|executable| at(executable)).collect();
        let failed = run_all(programs, 2, patience).unwrap();
        failed.into_iter().map(|program| program.to_string()).collect()
    }

    #[test]
    fn programs_that_fail_are_named() {
        let found = failed(&["/bin/true", "/bin/false", "/bin/true"], PATIENCE);
        assert_eq!(found, ["cargo test -p world --test /bin/false"]);
        let found = failed(&["/bin/none-of-this-name", "/bin/true"], PATIENCE);
        assert_eq!(found, ["cargo test -p world --test /bin/none-of-this-name"]);
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let place = std::env::temp_dir().join(format!("martlet-program-{}", std::process::id()));
        // Written by another process: a program that this one has open for writing could not be run.
        let script = r#"printf '#!/bin/sh\necho begun\nexec sleep 600\n' > "$0" && chmod +x "$0""#;
        let written = Command::new("sh").arg("-c").arg(script).arg(&place).status();
        assert!(written.unwrap().success());
        let ended = finished(&at(place.to_str().unwrap()), Duration::from_secs(1));
        std::fs::remove_file(&place).unwrap();
        assert_eq!(ended, Err(("killed after 1 seconds".to_owned(), "begun\n".to_owned())));
    }

    #[test]
    fn programs_are_those_that_cargo_builds_for_tests() {
        let message = |is_test| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/crates/world/Cargo.toml","profile":{{"test":{is_test}}},
                "target":{{"kind":["lib"],"name":"world"}},"executable":"/a/target/debug/deps/world-1"}}"#
            )
            .replace('\n', "")
        };
        assert_eq!(program(&message(false)), None);
        let found = program(&message(true)).unwrap();
        assert_eq!(found.to_string(), "cargo test -p world --lib");
        assert_eq!(
            (found.folder, found.executable),
            ("/a/crates/world".into(), "/a/target/debug/deps/world-1".into())
        );
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
