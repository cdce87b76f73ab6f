//! Which files of a hash directory win and which go: OpenStack Swift's answers, and ours.

#![allow(clippy::unwrap_used)] // a test says so by failing

use object_engine::rules::{FileName, choose, reclaimable};
use vocabulary::Timestamp;

#[derive(serde::Deserialize)]
struct Case {
    files: Vec<String>,
    kept: Vec<String>,
    data_file: Option<String>,
    meta_file: Option<String>,
    ctype_file: Option<String>,
    ts_file: Option<String>,
}

#[test]
fn every_set_of_files_means_what_it_means_to_openstack() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/table.json")).unwrap();
    let horizon = Timestamp::from_seconds(2_000_000_000);
    let mut wrong = vec![];
    for case in &cases {
        let known: Vec<(&String, FileName)> = case
            .files
            .iter()
            .filter_map(|name| Some((name, name.parse().ok()?)))
            .collect();
        let parsed: Vec<FileName> = known.iter().map(|(_, file)| *file).collect();
        let choice = choose(&parsed);
        let mut gone = choice.obsolete.clone();
        gone.extend(reclaimable(&parsed, &choice, horizon));
        let gone: Vec<&String> = gone.into_iter().map(|at| known[at].0).collect();
        let mut kept: Vec<&String> = case.files.iter().filter(|name| !gone.contains(name)).collect();
        kept.sort();
        let named = |at: Option<usize>| at.map(|at| known[at].0.clone());
        let same = kept == case.kept.iter().collect::<Vec<_>>()
            && named(choice.data) == case.data_file
            && named(choice.meta) == case.meta_file
            && named(choice.content_type) == case.ctype_file
            && named(choice.tombstone) == case.ts_file;
        if !same {
            wrong.push(format!(
                "{:?}\n  kept {kept:?}, should be {:?}\n  chosen {:?} {:?} {:?} {:?}, should be {:?} {:?} {:?} {:?}",
                case.files,
                case.kept,
                named(choice.data),
                named(choice.meta),
                named(choice.content_type),
                named(choice.tombstone),
                case.data_file,
                case.meta_file,
                case.ctype_file,
                case.ts_file,
            ));
        }
    }
    assert!(cases.len() > 500, "the golden file is incomplete");
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}
