//! `config`: what a server's configuration says, defaults filled in and values expanded.
//!
//! Compared with `swift-config` in `tests/operator/test_small_tools.py`. OpenStack's program looks in /etc/swift only;
//! here `--swift-dir` may name another place. With `--wsgi` filters and applications must say `use = egg:swift#name`.

use crate::OURS;
use crate::console::{Console, ToolStatus, ToolStop};
use crate::swift_dir::DEFAULT;
use crate::text::shown_lines;
use crate::words::{path, whole};
use clap::Args;
use settings::Document;
use settings::ini::{DEFAULT as DEFAULTS, Section};
use settings::interpolate::expand;
use settings::report::SettingsError;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::Fault;
use world::World;
use world::files::FileKind;

/// Its configuration is named as it is, not as the server of its kind.
const ALONE: &str = "container-reconciler";
/// Its section is in the configuration of object servers, or else in one of its own, which OpenStack deprecates.
const EXPIRER: &str = "object-expirer";

/// The command line of `config`.
#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// A server (object, proxy-server, object-replicator; object.2 for its configuration object-server/2.conf), or the
    /// path of a configuration.
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
    /// Only the Nth configuration of the server; 0 for all, and below that counted from the last but one.
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = whole)]
    pub config_num: i64,
    /// Only sections of this name.
    #[arg(short, long, value_name = "SECTION")]
    pub section: Option<String>,
    /// As servers of requests read it: the pipeline, and what it is made of.
    #[arg(short, long)]
    pub wsgi: bool,
    /// Where the configurations are.
    #[arg(long, value_name = "DIR", default_value = DEFAULT, value_parser = path(), help_heading = OURS)]
    pub swift_dir: PathBuf,
}

/// A section as it is printed.
struct ShownSection {
    name: String,
    options: Vec<(String, String)>,
}

/// Finds and prints them.
pub fn run(arguments: &ConfigArguments, world: &World, console: &mut Console<'_>) -> io::Result<ToolStatus> {
    if arguments.servers.is_empty() {
        console.complain("ERROR: specify type of server or conf_path")?;
        return Ok(ToolStatus::FAILURE);
    }
    let mut files = vec![];
    for server in &arguments.servers {
        files.extend(find(server, arguments, world, console)?);
    }
    let mut status = ToolStatus::SUCCESS;
    for file in files {
        say(console, format_args!("# {}", file.display()))?;
        if let Err(stop) = print(&file, arguments, console) {
            status = stop.end(console)?;
        }
    }
    Ok(status)
}

fn find(
    server: &str,
    arguments: &ConfigArguments,
    world: &World,
    console: &mut Console<'_>,
) -> io::Result<Vec<PathBuf>> {
    if world.files.info(Path::new(server)).is_ok() {
        return Ok(vec![PathBuf::from(server)]);
    }
    let server = server.to_lowercase();
    let (server, named) = server.rsplit_once('.').unwrap_or((&server, ""));
    let first = server.split('-').next().unwrap_or_default();
    let names = if server.contains('-') {
        server.to_owned()
    } else {
        format!("{server}-server")
    };
    let of = |base: &str| {
        let mut found = configurations(base, arguments, world);
        if !named.is_empty() {
            found.retain(|file| file.file_stem().is_some_and(|stem| stem == named));
        }
        found
    };
    let mut found = match server {
        ALONE => of(ALONE),
        EXPIRER => {
            let mut among = of("object-server");
            among.retain(|file| may_tell_expirer(file));
            if among.is_empty() { of(EXPIRER) } else { among }
        }
        _ => of(&format!("{first}-server")),
    };
    if arguments.config_num != 0 {
        let before = before(arguments.config_num, found.len());
        found = found.into_iter().skip(before).take(1).collect();
    }
    if found.is_empty() {
        match arguments.config_num {
            0 => console.say(format_args!("Unable to locate config for {names}"))?,
            number => console.say(format_args!("Unable to locate config number {number} for {names}"))?,
        }
    }
    let own = |file: &PathBuf| {
        let below = file.strip_prefix(&arguments.swift_dir).unwrap_or(file);
        below.to_string_lossy().contains(EXPIRER)
    };
    if found.iter().any(own) {
        console.say(
            "WARNING: object-expirer.conf is deprecated. Move object-expirers' configuration into object-server.conf.",
        )?;
    }
    Ok(found)
}

/// Also one that cannot be read, so that printing it tells why.
fn may_tell_expirer(file: &Path) -> bool {
    Document::load(file).map_or(true, |document| document.section(EXPIRER).is_some())
}

/// How many configurations stand before the Nth of them. Below zero N counts from behind as Python's slices do, where
/// -1 is the last but one: the slice ends before N.
fn before(number: i64, all: usize) -> usize {
    let from_behind = || {
        all.checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?
            .checked_sub(1)
    };
    let before = match number > 0 {
        true => usize::try_from(number - 1).ok(),
        false => from_behind(),
    };
    before.unwrap_or(all)
}

/// `object-server.conf`, `object-server.conf.d`, and what is called so in `object-server`, in order of names.
fn configurations(base: &str, arguments: &ConfigArguments, world: &World) -> Vec<PathBuf> {
    let is = |path: &Path, kind| world.files.info(path).is_ok_and(|info| info.kind == kind);
    let counts = |path: &Path| match path.extension().and_then(|ending| ending.to_str()) {
        Some("conf") => is(path, FileKind::File),
        Some("d") => path.to_string_lossy().ends_with(".conf.d") && is(path, FileKind::Directory),
        _ => false,
    };
    let folder = arguments.swift_dir.join(base);
    let mut found = vec![];
    if let Ok(directory) = world.files.open_directory(&folder) {
        // What cannot be listed holds nothing that could be read.
        let _ = directory.list(&mut |name| found.push(folder.join(name)));
    }
    found.push(arguments.swift_dir.join(format!("{base}.conf")));
    found.push(arguments.swift_dir.join(format!("{base}.conf.d")));
    found.retain(|path| counts(path));
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    found
}

fn print(file: &Path, arguments: &ConfigArguments, console: &mut Console<'_>) -> Result<(), ToolStop> {
    let document = Document::load(file).map_err(unfit)?;
    let sections = match arguments.wsgi {
        true => pipeline(&document, file)?,
        false => all(&document)?,
    };
    for section in sections {
        if arguments.section.as_ref().is_some_and(|wanted| *wanted != section.name) {
            continue;
        }
        say(console, format_args!("[{}]", section.name))?;
        for (name, value) in &section.options {
            say(console, format_args!("{name} = {value}"))?;
        }
        console.say("")?;
    }
    if !arguments.wsgi && arguments.section.is_none() {
        console.say("# log_name = None")?;
        say(console, format_args!("# __file__ = {}", file.display()))?;
    }
    Ok(console.say("")?)
}

/// Values may have several lines; no other control character of a file is printed.
fn say(console: &mut Console<'_>, line: impl Display) -> io::Result<()> {
    console.say(shown_lines(&line.to_string()))
}

fn unfit(error: SettingsError) -> Fault {
    Fault::caller(error.to_string())
}

/// Each section with the defaults it does not set.
fn all(document: &Document) -> Result<Vec<ShownSection>, Fault> {
    let named = document.sections.iter().filter(|section| section.name != DEFAULTS);
    named
        .map(|section| {
            let mut options = defaults(document, &section.name)?;
            for option in &section.options {
                let value = expand(document, &section.name, option).map_err(unfit)?;
                set(&mut options, &option.name, value);
            }
            Ok(ShownSection {
                name: section.name.clone(),
                options,
            })
        })
        .collect()
}

fn defaults(document: &Document, section: &str) -> Result<Vec<(String, String)>, Fault> {
    let of = document.section(DEFAULTS).map_or(&[][..], |defaults| &defaults.options);
    of.iter()
        .map(|option| {
            let value = expand(document, section, option).map_err(unfit)?;
            Ok((option.name.clone(), value))
        })
        .collect()
}

fn set(options: &mut Vec<(String, String)>, name: &str, value: String) {
    match options.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => options.push((name.to_owned(), value)),
    }
}

/// The pipeline, or the application where there is none, as the server puts them together.
fn pipeline(document: &Document, file: &Path) -> Result<Vec<ShownSection>, Fault> {
    let Some(main) = document.section("pipeline:main") else {
        let (application, _) = part(document, file, "app", "main")?;
        return Ok(vec![application]);
    };
    let line = main
        .get("pipeline")
        .ok_or_else(|| Fault::caller("[pipeline:main] has no pipeline"))?;
    let line = expand(document, &main.name, line).map_err(unfit)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let (last, filters) = words
        .split_last()
        .ok_or_else(|| Fault::caller("[pipeline:main] has an empty pipeline"))?;
    let mut parts = vec![];
    for filter in filters {
        parts.push(part(document, file, "filter", filter)?);
    }
    parts.push(part(document, file, "app", last)?);
    let names: Vec<&str> = parts.iter().map(|(_, name)| name.as_str()).collect();
    let mut options = begin(document, file, main)?;
    options.push(("__name__".into(), "main".into()));
    options.push(("pipeline".into(), names.join(" ")));
    let first = ShownSection {
        name: "pipeline:main".into(),
        options,
    };
    Ok([first]
        .into_iter()
        .chain(parts.into_iter().map(|(part, _)| part))
        .collect())
}

/// The options that every part gets.
fn begin(document: &Document, file: &Path, section: &Section) -> Result<Vec<(String, String)>, Fault> {
    let file = std::path::absolute(file).map_err(|error| Fault::caller(error.to_string()))?;
    // A directory of files is where it is itself.
    let here = if file.is_dir() {
        Some(file.as_path())
    } else {
        file.parent()
    };
    let here = here.unwrap_or(&file).display().to_string();
    let mut options = vec![
        ("here".to_owned(), here),
        ("__file__".to_owned(), file.display().to_string()),
    ];
    options.extend(defaults(document, &section.name)?);
    Ok(options)
}

/// A filter or an application of the pipeline, and its name in OpenStack's egg.
fn part(document: &Document, file: &Path, kind: &str, name: &str) -> Result<(ShownSection, String), Fault> {
    let section = document.section(&format!("{kind}:{name}")).ok_or_else(|| {
        Fault::caller(format!(
            "No section '{name}' (prefixed by '{kind}') found in config {}",
            file.display()
        ))
    })?;
    let mut options = begin(document, file, section)?;
    let (mut own, mut egg) = (vec![], None);
    for option in &section.options {
        let value = expand(document, &section.name, option).map_err(unfit)?;
        match option.name.strip_prefix("set ") {
            Some(name) => set(&mut options, name.trim(), value),
            None if option.name == "use" => egg = value.rsplit_once('#').map(|(_, name)| name.to_owned()),
            None => own.push((option.name.clone(), value)),
        }
    }
    options.push(("__name__".into(), name.to_owned()));
    own.into_iter()
        .for_each(|(name, value)| set(&mut options, &name, value));
    let egg = egg.ok_or_else(|| Fault::caller(format!("[{}] does not say use = egg:swift#…", section.name)))?;
    let kind = if kind == "app" { "application" } else { kind };
    let name = format!("{kind}:{name}");
    Ok((ShownSection { name, options }, egg))
}
