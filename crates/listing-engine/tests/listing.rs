//! Listings against the naive model, for both schemas, and how long a large one takes.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::{Broker, Entry, Kind, ListQuery, Row};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Instant;
use support::{at, create, fill, naive, names, object};
use vocabulary::{PolicyIndex, Timestamp};

fn word(letters: &'static str, most: usize) -> impl Strategy<Value = String> {
    let letters: Vec<char> = letters.chars().collect();
    proptest::collection::vec(proptest::sample::select(letters), 0..=most).prop_map(String::from_iter)
}

fn any_query() -> impl Strategy<Value = ListQuery> {
    let delimiters = ["", "", "/", "/", "-", "--", "a", "/-", "ö"];
    (
        prop_oneof![Just(1usize), Just(2), Just(3), Just(10_000), Just(0)],
        prop_oneof![Just(String::new()), word("ab/-ö\0z", 4)],
        prop_oneof![Just(String::new()), word("ab/-ö\0z", 4)],
        word("ab/-ö\0z", 2),
        proptest::sample::select(delimiters.to_vec()),
        proptest::option::weighted(0.3, word("ab/", 3)),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(limit, marker, end_marker, prefix, delimiter, path, reverse, reserved)| ListQuery {
                limit,
                marker,
                end_marker,
                prefix,
                delimiter: delimiter.into(),
                path,
                reverse,
                reserved,
                ..ListQuery::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn equals_the_naive_listing(
        mut stored in proptest::collection::btree_set(word("ab/-ö\0z", 6), 0..80),
        queries in proptest::collection::vec(any_query(), 60),
    ) {
        stored.remove("");
        // One prefix so full that the walk has to seek behind it.
        stored.extend((0..60).map(|i| format!("a/{i:02}")));
        let device = tempfile::tempdir().unwrap();
        for kind in [Kind::Container, Kind::Account] {
            let broker = create(device.path(), kind);
            fill(&broker, &stored);
            for query in &queries {
                prop_assert_eq!(names(&broker, query).unwrap(), naive(&stored, query), "{:?}", query);
            }
        }
    }
}

#[test]
fn policies_and_deleted_rows_are_chosen() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    let mut other = object("other", at(1));
    other.policy = PolicyIndex(1);
    let gone = listing_engine::ObjectRow::deleted("gone", at(2), PolicyIndex(0));
    let rows = [object("gone", at(1)), object("here", at(1)), other, gone].map(Row::Object);
    broker.commit_batch(&rows).unwrap();
    let list = |policy, deleted| {
        let query = ListQuery {
            policy,
            deleted,
            ..ListQuery::default()
        };
        names(&broker, &query).unwrap().join(" ")
    };
    use listing_engine::Deleted::{Hide, Show};
    assert_eq!(list(Some(PolicyIndex(0)), Hide), "here");
    assert_eq!(list(Some(PolicyIndex(1)), Hide), "other");
    assert_eq!(list(None, Hide), "here other");
    assert_eq!(list(Some(PolicyIndex(0)), Show), "gone here");
}

/// A full page of a large container must stay a matter of milliseconds, and a shared prefix must
/// not cost its size. The bounds are loose: they catch a lost index, not a slow machine.
#[test]
fn a_page_of_a_hundred_thousand_is_quick() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    let rows: Vec<Row> = (0..100_000)
        .map(|i| Row::Object(object(&format!("{}/{i:08}", i % 4), at(1))))
        .collect();
    for batch in rows.chunks(10_000) {
        broker.commit_batch(batch).unwrap();
    }
    let time = |query: &ListQuery, expected: usize| {
        let mut best = f64::MAX;
        for _ in 0..3 {
            let began = Instant::now();
            let mut count = 0;
            broker
                .list_objects(query, |entry| count += usize::from(!matches!(entry, Entry::Shared(""))))
                .unwrap();
            best = best.min(began.elapsed().as_secs_f64() * 1e3);
            assert_eq!(count, expected);
        }
        best
    };
    let page = ListQuery {
        marker: "1/".into(),
        ..ListQuery::default()
    };
    let shared = ListQuery {
        delimiter: "/".into(),
        ..ListQuery::default()
    };
    let (page, shared) = (time(&page, 10_000), time(&shared, 4));
    println!("10,000 of 100,000 names: {page:.1} ms; 4 shared prefixes over 100,000: {shared:.2} ms");
    assert!(page < 1_000.0 && shared < 100.0, "{page} ms, {shared} ms");
}

#[test]
fn every_page_follows_the_one_before() {
    let device = tempfile::tempdir().unwrap();
    let broker: Broker = create(device.path(), Kind::Container);
    let all: BTreeSet<String> = (0..250).map(|i| format!("{}x{i}", ["a", "ö", "𝄞"][i % 3])).collect();
    fill(&broker, &all);
    for reverse in [false, true] {
        let mut query = ListQuery {
            limit: 7,
            reverse,
            ..ListQuery::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = names(&broker, &query).unwrap();
            let Some(last) = page.last() else { break };
            query.marker = last.clone();
            seen.extend(page);
        }
        let mut expected: Vec<String> = all.iter().cloned().collect();
        if reverse {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    assert_eq!(Timestamp::ZERO, broker.info().unwrap().delete_timestamp);
}
