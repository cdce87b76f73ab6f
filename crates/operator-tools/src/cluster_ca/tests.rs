//! Folders of authorities, and what a process of a cluster makes of the files.

use super::*;
use clap::Parser;
use peer::{ClusterFiles, ClusterTls, TlsError};
use std::os::unix::fs::PermissionsExt;

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

/// A folder, and the command line.
struct Ca {
    root: tempfile::TempDir,
    world: World,
}

impl Ca {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            world: World::real(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("ca").join(name)
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
            ToolStatus::SUCCESS => Ok(text(out)),
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

#[test]
fn a_key_of_another_authority_signs_nothing() {
    let (ca, other) = (Ca::new(), Ca::new());
    ca.run("make DIR --name lab");
    other.run("make DIR --name lab");
    ca.run("issue DIR --name n --role proxy");
    let (before, bundle) = (ca.read("issued/n.pem"), ca.read("authorities.pem"));
    std::fs::copy(other.path("authority-1.key"), ca.path("authority-1.key")).unwrap();
    for line in [
        "issue DIR --name n --role proxy --replace",
        "issue DIR --name m --role proxy",
        "revoke DIR DIR/issued/n.pem",
        "rotate DIR",
    ] {
        let text = ca.fails(line);
        assert!(
            text.contains("authority-1.key: it is not the key of") && text.contains("restore"),
            "{text}"
        );
    }
    assert_eq!((ca.read("issued/n.pem"), ca.read("authorities.pem")), (before, bundle));
    assert!(!ca.path("issued/m.pem").exists() && !ca.path("authority-1.crl").exists());
}

/// Shows this many seconds since 1970.
struct StoppedClock(u64);

impl world::Clock for StoppedClock {
    fn now(&self) -> vocabulary::Timestamp {
        vocabulary::Timestamp::from_seconds(self.0)
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    fn sleep(&self, _: std::time::Duration) -> world::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn an_authority_that_has_ended_or_not_begun_issues_nothing() {
    const MADE: u64 = 1_800_000_000;
    const DAY: u64 = 24 * 3600;
    let mut ca = Ca::new();
    ca.world.clock = std::sync::Arc::new(StoppedClock(MADE));
    ca.run("make DIR --days 10");
    ca.run("issue DIR --name n --role proxy");
    let before = ca.read("issued/n.pem");
    for (now, expected) in [(MADE + 11 * DAY, "rotate"), (MADE - DAY, "clock")] {
        ca.world.clock = std::sync::Arc::new(StoppedClock(now));
        let text = ca.fails("issue DIR --name n --role proxy --replace");
        assert!(text.contains("authority-1.pem") && text.contains(expected), "{text}");
    }
    assert_eq!(ca.read("issued/n.pem"), before);
}

#[test]
fn a_damaged_file_of_a_node_is_named_and_can_be_replaced() {
    let ca = Ca::new();
    ca.run("make DIR");
    ca.run("issue DIR --name good --role proxy");
    ca.run("issue DIR --name bad --role proxy");
    for damage in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        std::fs::write(ca.path("issued/bad.pem"), damage).unwrap();
        let shown = ca.fails("show DIR");
        assert!(
            shown.contains("good, role proxy") && shown.contains("issued/bad.pem: "),
            "{shown}"
        );
        assert!(shown.contains("--replace"), "{shown}");
        ca.run("issue DIR --name bad --role proxy --replace");
        assert!(ca.run("show DIR").contains("bad, role proxy"));
    }
    // A number that could not be counted to.
    std::fs::copy(ca.path("authority-1.pem"), ca.path("authority-4294967295.pem")).unwrap();
    ca.run("show DIR");
    assert!(ca.try_run("rotate DIR").is_err());
}
