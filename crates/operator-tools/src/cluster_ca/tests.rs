//! Folders of authorities, and what a process of a cluster makes of the files.

use super::*;
use clap::Parser;
use peer::{ClusterFiles, ClusterTls, TlsError};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::{BoxFuture, Clock};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: ClusterCaArguments,
}

#[test]
fn a_folder_may_be_named_from_here() {
    // Tests run in the folder of their crate.
    let here = tempfile::tempdir_in(".").unwrap();
    let name = Path::new(here.path().file_name().unwrap());
    let world = World::real();
    assert!(CaFolder::make(&world, &name.join("ca")).unwrap().lock().is_ok());
}

/// Stands at these seconds since 1970.
struct SetClock(u64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(self.0)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A folder, and the command line.
struct Ca {
    root: tempfile::TempDir,
    /// Its name.
    folder: String,
    world: World,
}

impl Ca {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            folder: "ca".to_owned(),
            world: World::real(),
        }
    }

    fn set_clock(&mut self, seconds: u64) {
        self.world.clock = Arc::new(SetClock(seconds));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(&self.folder).join(name)
    }

    /// Runs a command line, `DIR` in place of the folder; what it says when it succeeds or fails.
    fn try_run(&self, line: &str) -> Result<String, String> {
        let dir = self.path("");
        let words = line.split_whitespace().map(|word| match word {
            "DIR" => dir.display().to_string(),
            word => word.replace("DIR/", &dir.display().to_string()),
        });
        let line = Line::try_parse_from(["cluster-ca".to_owned()].into_iter().chain(words));
        let line = line.map_err(|error| error.to_string())?;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            shows_progress: false,
        };
        let status = run(&line.arguments, &self.world, &mut console).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        match status {
            ToolStatus::SUCCESS => Ok(text(out) + &text(err)),
            _ => Err(text(out) + &text(err)),
        }
    }

    fn run(&self, line: &str) -> String {
        self.try_run(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn fails(&self, line: &str) -> String {
        self.try_run(line).expect_err(line)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
    }

    /// As a node takes its files.
    fn tls(&self, certificate: &str, authorities: &str) -> Result<ClusterTls, TlsError> {
        ClusterTls::new(
            self.world.clock.clone(),
            ClusterFiles {
                certificate: certificate.as_bytes(),
                key: certificate.as_bytes(),
                authorities: authorities.as_bytes(),
            },
        )
    }
}

#[test]
fn what_is_issued_can_be_used() {
    let ca = Ca::new();
    let output = ca.run("make DIR --name lab");
    assert!(
        output.contains("authorities.pem, for every node: cluster_tls_ca_file"),
        "{output}"
    );
    let output = ca.run("issue DIR --name node1 --role object --role container,upkeep --address 10.0.0.1,fd00::1");
    assert!(
        output.contains("node1.pem, certificate and key for container,object,upkeep until"),
        "{output}"
    );
    let tls = ca
        .tls(&ca.read("issued/node1.pem"), &ca.read("authorities.pem"))
        .unwrap();
    assert_eq!(tls.roles().to_string(), "container,object,upkeep");
    let private = ["authority-1.key", "issued/node1.pem"].map(|name| ca.mode(name));
    let public = ["authority-1.pem", "authorities.pem"].map(|name| ca.mode(name));
    assert_eq!((private, public), ([0o600; 2], [0o644; 2]));
    assert!(ca.read("issued/node1.pem").contains("PRIVATE KEY"));
    assert!(!ca.read("authorities.pem").contains("PRIVATE KEY"));
    let shown = ca.run("show DIR");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].contains("authority \"lab authority 1\", until "), "{shown}");
    let node = "node1, role container,object,upkeep, node1 10.0.0.1 fd00::1, by \"lab authority 1\", until ";
    assert!(lines[1].contains(node) && lines[1].ends_with(" (365 days)"), "{shown}");
    assert!(!shown.contains("PRIVATE"), "{shown}");
}

#[test]
fn nothing_is_overwritten_unasked() {
    let ca = Ca::new();
    ca.run("make DIR");
    let key = ca.read("authority-1.key");
    assert!(ca.fails("make DIR").contains("holds an authority already"));
    ca.run("issue DIR --name n --role proxy");
    let before = ca.read("issued/n.pem");
    assert!(ca.fails("issue DIR --name n --role proxy").contains("--replace"));
    assert_eq!(
        (ca.read("authority-1.key"), ca.read("issued/n.pem")),
        (key, before.clone())
    );
    ca.run("issue DIR --name n --role proxy --replace");
    assert_ne!(ca.read("issued/n.pem"), before);
    assert_eq!(ca.mode("issued/n.pem"), 0o600);
    // A key that was left behind, perhaps by a crash.
    std::fs::write(ca.path("authority-2.key"), "x").unwrap();
    assert!(
        ca.fails("rotate DIR")
            .contains("authority-2.key exists and is not overwritten")
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let ca = Ca::new();
    assert!(
        ca.fails("issue DIR --name n --role proxy")
            .contains("no authority's folder")
    );
    ca.run("make DIR");
    for (line, expected) in [
        ("issue DIR --name n", "--role"),
        ("issue DIR --name n --role admin", "\"admin\" is no role"),
        ("issue DIR --name ../n --role proxy", "expected a host name"),
        ("issue DIR --name .n --role proxy", "expected a host name"),
        ("issue DIR --name n --role object --address 10.0.0", "invalid"),
        ("issue DIR --name n --role proxy --days 0", "--days"),
        ("drop DIR", "there is none to drop"),
        ("show DIR/nothing", "cannot read"),
    ] {
        let error = ca.fails(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let output = ca.run("issue DIR --name n --role object");
    assert!(output.contains("without --address"), "{output}");
    std::fs::write(ca.path("authority-1.key"), "-----BEGIN PRIVATE KEY-----\nAAAA\n").unwrap();
    let error = ca.fails("issue DIR --name m --role proxy");
    assert!(
        error.ends_with("authority-1.key: it is no private key in PEM\n"),
        "{error}"
    );
}

#[test]
fn an_authority_is_exchanged_for_another() {
    let ca = Ca::new();
    ca.run("make DIR");
    ca.run("issue DIR --name n --role object --address 10.0.0.1");
    let (old, alone) = (ca.read("issued/n.pem"), ca.read("authorities.pem"));
    let output = ca.run("rotate DIR");
    assert!(output.contains("next: 1."), "{output}");
    let both = ca.read("authorities.pem");
    assert!(ca.tls(&old, &both).is_ok());
    assert!(ca.fails("rotate DIR").contains("end that exchange first"));
    let error = ca.fails("drop DIR");
    assert!(error.contains("issued/n.pem; issue them again"), "{error}");
    ca.run("issue DIR --name n --role object --address 10.0.0.1 --replace");
    let new = ca.read("issued/n.pem");
    assert!(ca.tls(&new, &both).is_ok());
    assert!(matches!(ca.tls(&new, &alone), Err(TlsError::NotVouchedFor(_))));
    assert_eq!(ca.run("show DIR").lines().count(), 3);
    ca.run("drop DIR");
    let newest = ca.read("authorities.pem");
    assert_eq!(newest, ca.read("authority-2.pem"));
    assert!(ca.tls(&new, &newest).is_ok());
    assert!(matches!(ca.tls(&old, &newest), Err(TlsError::NotVouchedFor(_))));
    // And so on.
    ca.run("rotate DIR");
    assert!(ca.read("authorities.pem").starts_with(&newest));
    assert!(ca.run("show DIR").contains("cluster authority 3"));
}

#[test]
fn a_certificate_ends_with_its_authority() {
    let ca = Ca::new();
    ca.run("make DIR --days 20");
    let output = ca.run("issue DIR --name n --role proxy");
    assert!(output.contains("ends with its authority"), "{output}");
    assert!(ca.run("show DIR").lines().all(|line| line.ends_with("days)")));
    assert!(ca.try_run("show DIR --within 19").is_ok());
    assert!(ca.fails("show DIR --within 21").contains("n, role proxy"));
    let one = ca.run("show DIR/issued/n.pem DIR/authorities.pem");
    assert_eq!(one.lines().count(), 2, "{one}");
}

#[test]
fn a_certificate_is_revoked_for_good() {
    let ca = Ca::new();
    ca.run("make DIR");
    for name in ["n", "m"] {
        ca.run(&format!("issue DIR --name {name} --role object --address 10.0.0.1"));
    }
    let (stolen, other) = (ca.read("issued/n.pem"), ca.read("issued/m.pem"));
    let output = ca.run("issue DIR --name n --role object --address 10.0.0.1 --replace");
    let kept = output
        .lines()
        .find_map(|line| line.strip_prefix("note: kept ")?.split_once(','));
    let (kept, _) = kept.unwrap_or_else(|| panic!("{output}"));
    let kept_text = std::fs::read_to_string(kept).unwrap();
    assert!(
        stolen.starts_with(&kept_text) && !kept_text.contains("PRIVATE"),
        "{kept_text}"
    );
    let current = ca.read("issued/n.pem");
    let check = |texts: [(&str, bool); 3]| {
        let bundle = ca.read("authorities.pem");
        for (text, is_good) in texts {
            let taken = ca.tls(text, &bundle);
            assert_eq!(taken.is_ok(), is_good, "{:?}", taken.err());
        }
    };
    check([(&stolen, true), (&other, true), (&current, true)]);
    let output = ca.run(&format!("revoke DIR {kept}"));
    assert!(
        output.starts_with("revoked ") && output.contains(": n, serial "),
        "{output}"
    );
    check([(&stolen, false), (&other, true), (&current, true)]);
    assert!(
        ca.run(&format!("revoke DIR {kept}"))
            .contains("has been revoked before")
    );
    ca.run("revoke DIR DIR/issued/m.pem");
    check([(&stolen, false), (&other, false), (&current, true)]);
    // Lists outlast an exchange, until their authority is dropped.
    ca.run("rotate DIR");
    check([(&stolen, false), (&other, false), (&current, true)]);
    ca.run("issue DIR --name n --role object --address 10.0.0.1 --replace");
    assert!(ca.fails("drop DIR").contains("m.pem"));
    ca.run("drop DIR --force");
    check([(&stolen, false), (&other, false), (&current, false)]);
    assert_eq!(ca.read("authorities.pem"), ca.read("authority-2.pem"));
    let error = ca.fails("revoke DIR DIR/issued/m.pem");
    assert!(error.contains("not issued by an authority that is trusted"), "{error}");
    assert!(ca.fails("revoke DIR DIR/none.pem").contains("cannot read"));
    // Beside one that can be revoked, those of dropped authorities are named and left.
    let output = ca.run(&format!("revoke DIR {kept} DIR/issued/n.pem"));
    assert!(
        output.contains(&format!("note: {kept}: not issued by an authority that is trusted")),
        "{output}"
    );
    let is_revoked = |line: &str| line.starts_with("revoked ") && line.contains("issued/n.pem: n, serial ");
    assert!(output.lines().any(is_revoked), "{output}");
    assert!(ca.tls(&ca.read("issued/n.pem"), &ca.read("authorities.pem")).is_err());
}

/// Copies a file of another folder over this one's, as a restore of the wrong backup does.
fn restore(from: &Ca, to: &Ca, name: &str) {
    std::fs::copy(from.path(name), to.path(name)).unwrap();
}

/// All files below a folder with their contents.
fn all_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(all_files(&path)),
            false => found.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_key_that_is_not_its_certificates_signs_nothing() {
    let [ca, other] = [Ca::new(), Ca::new()];
    for folder in [&ca, &other] {
        folder.run("make DIR");
        folder.run("issue DIR --name n --role proxy");
    }
    let key = ca.read("authority-1.key");
    restore(&other, &ca, "authority-1.key");
    let before = all_files(&ca.path(""));
    let (key_path, certificate_path) = (ca.path("authority-1.key"), ca.path("authority-1.pem"));
    let expected = format!(
        "{} is not the key of {}; restore the one made with it\n",
        key_path.display(),
        certificate_path.display()
    );
    for line in [
        "issue DIR --name n --role proxy --replace",
        "issue DIR --name m --role proxy",
        "revoke DIR DIR/issued/n.pem",
        "rotate DIR",
    ] {
        assert_eq!(ca.fails(line), expected, "{line}");
        assert_eq!(all_files(&ca.path("")), before, "{line}");
    }
    // Key and certificate of another folder belong together, and no node trusts them.
    restore(&other, &ca, "authority-1.pem");
    let error = ca.fails("issue DIR --name n --role proxy --replace");
    let expected = "authority-1.pem: authorities.pem holds another certificate of this name; restore the one there\n";
    assert!(error.ends_with(expected), "{error}");
    std::fs::copy(ca.path("authorities.pem"), ca.path("authority-1.pem")).unwrap();
    std::fs::write(ca.path("authority-1.key"), key).unwrap();
    ca.run("issue DIR --name n --role proxy --replace");
    assert!(ca.tls(&ca.read("issued/n.pem"), &ca.read("authorities.pem")).is_ok());
}

#[test]
fn an_authority_out_of_force_issues_nothing() {
    const DAY: u64 = 24 * 3600;
    /// 2026-11-28.
    const MADE: u64 = 20_785 * DAY;
    let mut ca = Ca::new();
    ca.set_clock(MADE);
    ca.run("make DIR --days 10");
    ca.run("issue DIR --name n --role proxy");
    let before = all_files(&ca.path(""));
    let (dir, path) = (ca.path(""), ca.path("authority-1.pem"));
    let (dir, path) = (dir.display(), path.display());
    let ended = format!("{path} ended on 2026-12-08; `martlet cluster-ca rotate {dir}` makes another authority\n");
    let begins = format!(
        "{path} begins at 2026-11-27T23:00:00 UTC, and now it is 2026-11-27T22:59:59: check this machine's clock\n"
    );
    for (now, expected) in [
        (MADE - 3601, &begins),
        (MADE + 10 * DAY, &ended),
        (MADE + 400 * DAY, &ended),
    ] {
        ca.set_clock(now);
        for line in [
            "issue DIR --name n --role proxy --replace",
            "issue DIR --name m --role proxy",
        ] {
            assert_eq!(&ca.fails(line), expected, "{line}");
            assert_eq!(all_files(&ca.path("")), before, "{line}");
        }
    }
    ca.run("rotate DIR");
    ca.run("issue DIR --name n --role proxy --replace");
    ca.set_clock(MADE + 10 * DAY - 1);
    assert!(
        ca.fails("issue DIR --name m --role proxy")
            .contains("authority-2.pem begins at ")
    );
}

#[test]
fn an_authority_issues_from_its_first_second_to_its_last() {
    let mut ca = Ca::new();
    ca.set_clock(1_795_824_000);
    ca.run("make DIR --days 1");
    for now in [1_795_824_000 - 3600, 1_795_824_000 + 24 * 3600 - 1] {
        ca.set_clock(now);
        ca.run("issue DIR --name n --role proxy --replace");
        assert!(ca.tls(&ca.read("issued/n.pem"), &ca.read("authorities.pem")).is_ok());
    }
}

#[test]
fn a_nodes_damaged_file_is_replaced_and_hides_no_other() {
    let ca = Ca::new();
    ca.run("make DIR");
    for name in ["m", "n", "o"] {
        ca.run(&format!("issue DIR --name {name} --role proxy"));
    }
    let (path, dir) = (ca.path("issued/n.pem"), ca.path(""));
    let half = ca.read("issued/n.pem").as_bytes()[..200].to_vec();
    for (at, damage) in [&b""[..], b"nonsense", b"\xff\xfe", &half].into_iter().enumerate() {
        std::fs::write(&path, damage).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let shown = ca.fails("show DIR");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 4, "{shown}");
        assert!(
            lines[1].contains("m, role proxy") && lines[2].contains("o, role proxy"),
            "{shown}"
        );
        let remedy = format!(
            "; `martlet cluster-ca issue {} --name n … --replace` makes another one",
            dir.display()
        );
        let (place, end) = (format!("{}: ", path.display()), remedy.as_str());
        assert!(lines[3].starts_with(&place) && lines[3].ends_with(end), "{shown}");
        assert!(ca.fails("issue DIR --name n --role proxy").contains("--replace"));
        let output = ca.run("issue DIR --name n --role proxy --replace");
        let kept = format!("replaced/n.damaged-{}", at + 1);
        let note = format!("note: kept {}, the file before, as it was: ", ca.path(&kept).display());
        assert!(output.contains(&note), "{output}");
        assert_eq!(std::fs::read(ca.path(&kept)).unwrap(), damage);
        assert_eq!(ca.mode(&kept), 0o600);
        assert!(ca.tls(&ca.read("issued/n.pem"), &ca.read("authorities.pem")).is_ok());
        assert_eq!(ca.run("show DIR").lines().count(), 4);
    }
}

#[test]
fn an_exchange_ends_only_when_damaged_files_are_replaced() {
    let ca = Ca::new();
    ca.run("make DIR");
    for name in ["m", "n"] {
        ca.run(&format!("issue DIR --name {name} --role proxy"));
    }
    std::fs::write(ca.path("issued/n.pem"), "").unwrap();
    ca.run("rotate DIR");
    let error = ca.fails("drop DIR");
    assert!(
        error.contains("m.pem; ") && error.contains("n.pem: there is no certificate in it; issue them again"),
        "{error}"
    );
    ca.run("issue DIR --name m --role proxy --replace");
    assert!(!ca.fails("drop DIR").contains("m.pem"));
    ca.run("issue DIR --name n --role proxy --replace");
    ca.run("drop DIR");
    std::fs::write(ca.path("issued/n.pem"), "").unwrap();
    ca.run("rotate DIR");
    ca.run("drop DIR --force");
}

#[test]
fn a_certificate_is_kept_whatever_ends_its_lines() {
    let ca = Ca::new();
    ca.run("make DIR");
    ca.run("issue DIR --name n --role proxy");
    // As an editor leaves it.
    let text = ca.read("issued/n.pem").replace('\n', "\r\n");
    std::fs::write(ca.path("issued/n.pem"), &text).unwrap();
    let output = ca.run("issue DIR --name n --role proxy --replace");
    assert!(output.contains("the certificate before, without its key"), "{output}");
    let [(kept, content)] = all_files(&ca.path("replaced")).try_into().unwrap();
    assert!(!String::from_utf8(content).unwrap().contains("PRIVATE"));
    assert!(
        ca.run(&format!("revoke DIR {}", kept.display()))
            .starts_with("revoked ")
    );
}

#[test]
fn authorities_are_those_that_are_there() {
    let ca = Ca::new();
    ca.run("make DIR");
    let certificate = ca.read("authority-1.pem");
    // Of another cluster, and not trusted.
    let other = Ca::new();
    other.run("make DIR --name other");
    std::fs::copy(other.path("authority-1.pem"), ca.path("authority-4294967295.pem")).unwrap();
    for name in [
        "authority-01.pem",
        "authority-+1.pem",
        "authority-0.pem",
        "authority-99999999999.pem",
    ] {
        std::fs::write(ca.path(name), &certificate).unwrap();
    }
    let began = std::time::Instant::now();
    assert_eq!(ca.run("show DIR").lines().count(), 1);
    ca.run("rotate DIR");
    assert!(ca.path("authority-2.pem").exists());
    assert!(began.elapsed() < Duration::from_secs(60));
    // A copy of one that is trusted leaves no number for the next.
    ca.run("drop DIR");
    std::fs::copy(ca.path("authority-2.pem"), ca.path("authority-4294967295.pem")).unwrap();
    std::fs::copy(ca.path("authority-2.key"), ca.path("authority-4294967295.key")).unwrap();
    std::fs::remove_file(ca.path("authority-2.pem")).unwrap();
    assert!(
        ca.fails("rotate DIR")
            .contains("authority-4294967295.pem has the greatest number")
    );
}

#[test]
fn a_key_that_others_may_read_is_named() {
    let ca = Ca::new();
    ca.run("make DIR");
    let key = ca.path("authority-1.key");
    let warning = format!(
        "warning: others than its owner may read or change {0}: chmod 600 {0}\n",
        key.display()
    );
    for (mode, is_named) in [
        (0o600, false),
        (0o400, false),
        (0o640, true),
        (0o604, true),
        (0o620, true),
    ] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        for line in [
            "issue DIR --name n --role proxy --replace",
            "revoke DIR DIR/issued/n.pem",
            "drop DIR",
        ] {
            let output = ca.try_run(line).unwrap_or_else(|error| error);
            assert_eq!(output.contains(&warning), is_named, "{mode:o} {line}: {output}");
        }
        assert!(!ca.run("show DIR").contains("warning"));
    }
    assert!(ca.run("rotate DIR").ends_with(&warning));
}

#[test]
fn what_could_command_a_terminal_is_spelled() {
    let mut ca = Ca::new();
    ca.folder = "no\u{1b}[31mdir".to_owned();
    let lines = [
        "show DIR",
        "drop DIR",
        "make DIR",
        "issue DIR --name n --role proxy",
        "show DIR",
        "rotate DIR",
    ];
    for line in lines {
        let output = ca.try_run(line).unwrap_or_else(|error| error);
        assert!(
            output.contains("no\\x1b[31mdir") && !output.contains('\u{1b}'),
            "{output}"
        );
    }
}
