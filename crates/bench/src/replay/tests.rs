use super::expand;
use crate::workload::{OperationKind, WorkEnd, Workload, own_format};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use world::World;

/// A line of a log; times are in seconds.
fn line(start: f64, request: &str, status: u16, received: &str, sent: &str) -> String {
    format!(
        "127.0.0.1 127.0.0.1 24/Nov/2026/13/39/28 {request} HTTP/1.1 {status} - agent token {received} {sent} - tx1 - \
         0.1 - - {start:.9} {:.9} 0 -\n",
        start + 0.1
    )
}

fn log() -> String {
    [
        // Lines stand in the order in which requests ended.
        line(101.0, "GET /v1/A/c/read", 200, "-", "700"),
        line(100.0, "PUT /v1/A/c", 202, "-", "-"),
        line(100.5, "GET /v1/A/c?format=json", 200, "-", "99"),
        line(102.0, "GET /v1/A/c/range", 206, "-", "10"),
        line(102.1, "GET /v1/A/c/range", 206, "-", "30"),
        line(103.0, "PUT /v1/A/c/new", 201, "5000", "-"),
        line(103.5, "GET /v1/A/c/new", 200, "-", "5000"),
        line(104.0, "DELETE /v1/A/c/new", 204, "-", "-"),
        line(104.5, "GET /v1/A/c/new", 404, "-", "70"),
        // The same names of another account.
        line(105.0, "HEAD /v1/B/c/read", 200, "-", "-"),
        line(105.5, "HEAD /v1/B/c/never", 404, "-", "-"),
        line(106.0, "PUT /v1/B/c/large", 201, "6000000000", "-"),
        line(106.5, "GET /v1/B/c/large-before", 200, "-", "6000000000"),
        line(107.0, "GET /v1/A/c/new", 200, "-", "5000"),
        line(107.1, "GET /v1/A/c/read", 404, "-", "70"),
        line(107.2, "GET /v1/A", 200, "-", "70"),
        line(107.3, "GET /v1/A/c/read", 401, "-", "70"),
        line(107.4, "COPY /v1/A/c/read", 201, "-", "-"),
        line(107.5, "GET /bucket/key", 200, "-", "70"),
        "serving on 127.0.0.1:8080\n".to_owned(),
    ]
    .concat()
}

fn expanded(log: &[u8], speed: &str) -> Result<Workload, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, log).unwrap();
    expanded_of(&path, speed)
}

fn expanded_of(path: &Path, speed: &str) -> Result<Workload, String> {
    let text = format!(
        "[storage]\ntype = 'none'\n[replay]\nlog = '{}'\nspeed = {speed}",
        path.display()
    );
    expand(&World::real(), own_format::parse(&text).unwrap()).map_err(|fault| fault.to_string())
}

#[test]
fn a_log_becomes_stages() {
    let workload = expanded(log().as_bytes(), "2").unwrap();
    let works: Vec<_> = workload.stages.iter().map(|stage| &stage.works[0]).collect();
    let [init, prepare, main, cleanup, dispose] = works[..] else {
        panic!("{works:?}")
    };
    for work in [init, dispose] {
        assert_eq!(work.operations[0].containers.numbers.span().count(), 2);
    }
    let made: Vec<_> = prepare.script.as_ref().unwrap().steps.iter().collect();
    let made: Vec<_> = made
        .iter()
        .map(|step| (step.container, step.size, step.operation))
        .collect();
    assert_eq!(made, [(1, 700, 0), (1, 30, 0), (2, 0, 0), (2, 6_000_000_000, 1)]);
    assert_eq!(prepare.operations[1].detail.part_size, Some(1 << 30));
    // `never` alone was not there at any time.
    assert_eq!(cleanup.script.as_ref().unwrap().steps.len(), 6);
    assert!(cleanup.operations[0].detail.removes_parts, "one has parts");

    let script = main.script.as_ref().unwrap();
    assert_eq!(
        (main.end, script.is_timed, script.length()),
        (WorkEnd::Enumerated, true, Duration::from_millis(3250))
    );
    let kind = |step: &crate::workload::script::ScriptStep| main.operations[usize::from(step.operation)].kind;
    let done: Vec<_> = script
        .steps
        .iter()
        .map(|step| (step.at / 1000, kind(step), step.size))
        .collect();
    use OperationKind::{Delete, Head, List, MakeContainer, Read, Write};
    assert_eq!(
        done,
        [
            (0, MakeContainer, 0),
            (250, List, 0),
            (500, Read, 700),
            (1000, Read, 10),
            (1050, Read, 30),
            (1500, Write, 5000),
            (1750, Read, 5000),
            (2000, Delete, 0),
            (2250, Read, 70),
            (2500, Head, 0),
            (2750, Head, 0),
            (3000, Write, 6_000_000_000),
            (3250, Read, 6_000_000_000),
        ]
    );
    let absent: Vec<_> = script
        .steps
        .iter()
        .filter(|step| step.is_absent)
        .map(|step| step.at / 1000)
        .collect();
    let ranges: Vec<_> = script
        .steps
        .iter()
        .filter(|step| step.is_range)
        .map(|step| step.size)
        .collect();
    assert_eq!((absent, ranges), (vec![2250, 2750], vec![10, 30]));
    assert_eq!(main.operations.iter().map(|one| one.ratio).sum::<u32>(), 100);
    let description = &workload.description;
    assert!(
        description.contains("13 requests of ") && description.contains(", which took 6.5 s, 2 times as fast"),
        "{description}"
    );
    let left_out = "left out: 1 (404 of objects that should be there), 1 (COPY to objects), 1 (not lines of an access \
                    log), 1 (not of Swift's API), 1 (of objects that should be gone), 1 (status 401), 1 (to accounts)";
    assert!(description.ends_with(left_out), "{description}");
}

#[test]
fn a_compressed_log_is_the_same() {
    let mut encoder = GzEncoder::new(vec![], Compression::fast());
    encoder.write_all(log().as_bytes()).unwrap();
    let (plain, packed) = (
        expanded(log().as_bytes(), "'max'"),
        expanded(&encoder.finish().unwrap(), "'max'"),
    );
    let (plain, packed) = (plain.unwrap().stages, packed.unwrap().stages);
    assert_eq!(plain, packed);
    assert!(!plain[2].works[0].script.as_ref().unwrap().is_timed);
}

#[test]
fn logs_without_requests_are_refused() {
    let refused = expanded(b"nonsense\n\n", "1").unwrap_err();
    assert!(
        refused.ends_with("access.log: nothing in it can be replayed; left out: 2 (not lines of an access log)"),
        "{refused}"
    );
    let refused = expanded_of(Path::new("/nowhere/access.log"), "1").unwrap_err();
    assert!(refused.starts_with("/nowhere/access.log: "), "{refused}");
}
