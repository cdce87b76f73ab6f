//! OpenStack's own files load: its samples and its all-in-one configuration.
//!
//! They are not kept here. Set `MARTLET_SWIFT_SDIST` to an unpacked `swift-2.38.3` to run.

use settings::{AccountConf, ContainerConf, Document, ObjectConf, ProxyConf, SettingsError, SwiftConf, Warning};
use std::path::{Path, PathBuf};

fn sdist() -> Option<PathBuf> {
    let path = std::env::var_os("MARTLET_SWIFT_SDIST").map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped: MARTLET_SWIFT_SDIST is not set");
    }
    path
}

fn warnings(path: &Path, app: &str) -> Result<Vec<Warning>, SettingsError> {
    match app {
        "proxy" => ProxyConf::load(path).map(|c| c.warnings),
        "object" => ObjectConf::load(path).map(|c| c.warnings),
        "container" => ContainerConf::load(path).map(|c| c.warnings),
        "account" => AccountConf::load(path).map(|c| c.warnings),
        _ => SwiftConf::load(path).map(|c| c.warnings),
    }
}

#[test]
fn server_configurations_load_with_named_warnings() {
    let Some(sdist) = sdist() else { return };
    let mut files: Vec<(PathBuf, &str)> = Vec::new();
    for app in ["proxy", "object", "container", "account"] {
        files.push((sdist.join(format!("etc/{app}-server.conf-sample")), app));
        if app != "proxy" {
            let saio = |n| sdist.join(format!("doc/saio/swift/{app}-server/{n}.conf"));
            files.extend((1..=4).map(|n| (saio(n), app)));
        }
    }
    files.push((sdist.join("doc/saio/swift/proxy-server.conf"), "proxy"));
    files.push((sdist.join("etc/swift.conf-sample"), "swift"));
    files.push((sdist.join("doc/saio/swift/swift.conf"), "swift"));
    for (path, app) in files {
        for warning in warnings(&path, app).unwrap_or_else(|e| panic!("{e}")) {
            eprintln!("{warning}");
            assert!(!warning.message.contains("OpenStack Swift 2.38"), "{warning}");
            assert!(warning.message.contains(&path.display().to_string()), "{warning}");
        }
    }
}

#[test]
fn every_sample_is_readable() {
    let Some(sdist) = sdist() else { return };
    let mut read = 0;
    for entry in std::fs::read_dir(sdist.join("etc")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // rsync and rsyslog have formats of their own.
        if name.ends_with(".conf-sample") && !name.starts_with("rsync") && !name.contains("rsyslog") {
            Document::load(&path).unwrap_or_else(|e| panic!("{e}"));
            read += 1;
        }
    }
    assert!(read > 10);
}

/// Uncomments every option of a sample: no name in it may be unknown here.
#[test]
fn every_option_of_the_samples_is_known() {
    let Some(sdist) = sdist() else { return };
    let dir = tempfile::tempdir().unwrap();
    for app in ["object", "container", "account", "proxy", "swift"] {
        let suffix = if app == "swift" { "" } else { "-server" };
        let text = std::fs::read_to_string(sdist.join(format!("etc/{app}{suffix}.conf-sample"))).unwrap();
        let names = options_of_served_sections(&text);
        assert!(names.len() > 10, "{app}");
        let document = Document::load(&sdist.join(format!("etc/{app}{suffix}.conf-sample"))).unwrap();
        for (section, name) in names {
            if document.lookup(&section, &name).is_some() || document.section(&section).is_none() {
                continue;
            }
            let path = dir.path().join(format!("{app}.conf"));
            let header = format!("[{section}]\n");
            let set = match section.starts_with("storage-policy") || app == "swift" || section == "DEFAULT" {
                true => format!("{header}{name} =\n"),
                false => format!("{header}set {name} =\n"),
            };
            std::fs::write(&path, text.replacen(&header, &set, 1)).unwrap();
            let messages: Vec<String> = match warnings(&path, app) {
                Ok(warnings) => warnings.iter().map(ToString::to_string).collect(),
                // Empty is no value for most kinds; being refused as a value shows the name is known.
                Err(SettingsError::Value { option, .. }) if option == name => continue,
                Err(e) => panic!("{section} {name}: {e}"),
            };
            assert!(!messages.iter().any(|m| m.contains("is not an option")), "{messages:?}");
        }
    }
}

/// Commented options of the sections that a server reads.
fn options_of_served_sections(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let plain = line.trim_start_matches("# ").trim_start_matches('#');
        if let Some(name) = plain.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.into();
        }
        let Some((name, _)) = plain.split_once(" =").filter(|_| line.starts_with('#')) else {
            continue;
        };
        let name = name.strip_prefix("set ").unwrap_or(name);
        let served = [
            "DEFAULT",
            "app:",
            "swift-",
            "filter:cache",
            "filter:proxy-logging",
            "filter:gatekeeper",
        ];
        let is_name = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if is_name && served.iter().any(|s| section.starts_with(s)) {
            found.push((section.clone(), name.into()));
        }
    }
    found
}
