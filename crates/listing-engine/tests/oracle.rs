//! The same done by OpenStack Swift's brokers and by ours, and each on the other's files.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is test code")]

#[path = "support/openstack.rs"]
mod openstack;
mod support;

use listing_engine::{Broker, Entry, Kind, ListQuery, Metadata, ObjectRow, Row};
use openstack::{Dice, OraclePython};
use serde_json::{Value, json};
use std::path::Path;
use support::{container, create, fill, location, new_database, object, t};
use vocabulary::{PolicyIndex, Timestamp};

struct Oracle(OraclePython);

impl Oracle {
    fn start() -> Option<Self> {
        OraclePython::start(env!("CARGO_MANIFEST_DIR"), "oracle.py", &[]).map(Self)
    }

    fn ask(&mut self, command: &str, broker: &Path, kind: Kind, more: Value) -> Value {
        let mut request = json!({"command": command, "kind": kind.word(), "path": broker.to_str().unwrap()});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        self.0.ask(&request)
    }
}

/// Names and times that brokers may be given.
trait DatabaseDice {
    fn word(&mut self, most: u64) -> String;
    fn time(&mut self) -> Timestamp;
    fn maybe_time(&mut self) -> Option<Timestamp>;
}

impl DatabaseDice for Dice {
    fn word(&mut self, most: u64) -> String {
        let letters = ["a", "b", "/", "-", "ö", "\0", "z", "𝄞", "'", " "];
        (0..self.below(most + 1)).map(|_| self.pick(&letters)).collect()
    }

    fn time(&mut self) -> Timestamp {
        let time = Timestamp::from_ticks(170_000_000_000_000 + self.below(12) * 1_000).unwrap();
        time.with_offset(if self.below(8) == 0 { self.below(3) } else { 0 })
    }

    fn maybe_time(&mut self) -> Option<Timestamp> {
        (self.below(3) == 0).then(|| self.time().with_offset(0))
    }
}

/// Applies one random operation to ours and returns the call that does the same to OpenStack's.
fn operate(dice: &mut Dice, ours: &Broker) -> Value {
    let container_db = ours.location().kind() == Kind::Container;
    let moment = dice.time();
    match dice.below(20) {
        0 => {
            ours.delete(moment).unwrap();
            json!(["delete_db", moment.internal()])
        }
        1 => {
            ours.update_put_timestamp(moment).unwrap();
            json!(["update_put_timestamp", moment.internal()])
        }
        2 => {
            ours.update_status_changed_at(moment).unwrap();
            json!(["update_status_changed_at", moment.internal()])
        }
        3 | 4 => {
            let name = dice.pick(&["X-Meta-A", "X-Meta-B", "X-Ü", "X-Container-Sysmeta-Shard-Root"]);
            let value = dice.pick(&["", "v", "ö\"\\\n𝄞"]);
            let mut update = Metadata::default();
            update.set(name, value, moment);
            ours.update_metadata(&update).unwrap();
            json!(["update_metadata", {name: [value, moment.internal()]}])
        }
        5 if container_db => {
            let policy = dice.below(3) as u32;
            ours.set_policy(PolicyIndex(policy), moment).unwrap();
            json!(["set_storage_policy_index", policy, moment.internal()])
        }
        6 => {
            ours.merge_pending().unwrap();
            json!(["settle"])
        }
        _ if container_db => put_object(dice, ours, moment),
        _ => put_container(dice, ours, moment),
    }
}

fn put_object(dice: &mut Dice, ours: &Broker, moment: Timestamp) -> Value {
    let name = format!("o{}", dice.below(4));
    let policy = PolicyIndex(dice.below(2) as u32);
    let row = match dice.below(4) {
        0 => ObjectRow::deleted(name, moment, policy),
        _ => ObjectRow {
            size: dice.below(100),
            content_type: dice
                .pick(&["a", "b; c = \"d\"", "a;swift_bytes=9", "b ;x;swift_bytes=7;y"])
                .into(),
            etag: format!("e{}", dice.below(100)),
            policy,
            content_type_timestamp: dice.maybe_time(),
            meta_timestamp: dice.maybe_time(),
            ..object(&name, moment)
        },
    };
    ours.commit_batch(&[Row::Object(row.clone())]).unwrap();
    let time = |t: Option<Timestamp>| t.map(Timestamp::internal);
    json!([
        "put_object",
        row.name,
        row.timestamp.internal(),
        row.size,
        row.content_type,
        row.etag,
        u8::from(row.deleted),
        row.policy.0,
        time(row.content_type_timestamp),
        time(row.meta_timestamp),
    ])
}

fn put_container(dice: &mut Dice, ours: &Broker, moment: Timestamp) -> Value {
    let delete = match dice.below(2) {
        0 => Timestamp::ZERO,
        _ => dice.time(),
    };
    let count = dice.below(3) * dice.below(2);
    let mut row = container(&format!("c{}", dice.below(4)), moment, delete, count);
    row.policy = PolicyIndex(dice.below(2) as u32);
    ours.commit_batch(&[Row::Container(row.clone())]).unwrap();
    let spell = |t: Timestamp| if t == Timestamp::ZERO { "0".into() } else { t.internal() };
    let (put, delete) = (spell(row.put_timestamp), spell(row.delete_timestamp));
    json!([
        "put_container",
        row.name,
        put,
        delete,
        row.object_count,
        row.bytes_used,
        row.policy.0
    ])
}

/// What two databases with the same history share.
fn comparable(mut dump: Value) -> Value {
    for own in ["id", "created_at"] {
        dump["stat"].as_object_mut().unwrap().remove(own);
    }
    dump
}

#[test]
fn the_same_history_makes_the_same_database() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut dice = Dice::new();
    for case in 0..30 {
        for kind in [Kind::Container, Kind::Account] {
            let (our_device, their_device) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let ours = create(our_device.path(), kind);
            let theirs = location(their_device.path(), kind).db_file();
            oracle.ask("create", &theirs, kind, json!({}));
            let operations: Vec<Value> = (0..dice.below(40)).map(|_| operate(&mut dice, &ours)).collect();
            oracle.ask("apply", &theirs, kind, json!({"operations": operations}));
            let expected = comparable(oracle.ask("dump", &theirs, kind, json!({})));
            let (deleted, empty) = (ours.is_deleted().unwrap(), ours.is_empty().unwrap());
            let seen = comparable(oracle.ask("dump", &ours.location().db_file(), kind, json!({})));
            assert_eq!(seen, expected, "case {case} {kind:?}: {}", json!(operations));
            assert_eq!(json!([deleted, empty]), json!([expected["deleted"], expected["empty"]]));
        }
    }
}

#[test]
fn each_goes_on_with_the_others_files() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut dice = Dice::new();
    for kind in [Kind::Container, Kind::Account] {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = location(second.path(), kind);
        oracle.ask("create", &place.db_file(), kind, json!({}));
        // Ours on a database that OpenStack made, against OpenStack on one that we made, turn by turn.
        let on_theirs = Broker::open(place).unwrap();
        let on_ours = create(first.path(), kind);
        for turn in 0..12 {
            let operations: Vec<Value> = (0..6).map(|_| operate(&mut dice, &on_theirs)).collect();
            oracle.ask(
                "apply",
                &on_ours.location().db_file(),
                kind,
                json!({"operations": operations}),
            );
            let seen = oracle.ask("dump", &on_theirs.location().db_file(), kind, json!({}));
            let expected = oracle.ask("dump", &on_ours.location().db_file(), kind, json!({}));
            assert_eq!(
                comparable(seen),
                comparable(expected),
                "turn {turn} {kind:?} {}",
                json!(operations)
            );
            assert_eq!(on_ours.info().unwrap().hash, on_theirs.info().unwrap().hash);
        }
    }
}

#[test]
fn older_schemas_are_migrated_to_the_same_state() {
    let Some(mut oracle) = Oracle::start() else { return };
    for (kind, variants) in [(Kind::Container, 3), (Kind::Account, 2)] {
        for extra in 0..variants {
            let (our_device, their_device) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let place = location(our_device.path(), kind);
            let theirs = location(their_device.path(), kind).db_file();
            for path in [&place.db_file(), &theirs] {
                oracle.ask("create_old", path, kind, json!({"extra": extra}));
            }
            let ours = Broker::open(place).unwrap();
            let mut dice = Dice::new();
            let operations: Vec<Value> = (0..40).map(|_| operate(&mut dice, &ours)).collect();
            oracle.ask("apply", &theirs, kind, json!({"operations": operations}));
            ours.merge_pending().unwrap();
            let seen = comparable(oracle.ask("dump", &ours.location().db_file(), kind, json!({})));
            let expected = comparable(oracle.ask("dump", &theirs, kind, json!({})));
            assert_eq!(seen["rows"], expected["rows"], "{kind:?} {extra}");
            assert_eq!(seen["stat"], expected["stat"], "{kind:?} {extra}");
            assert_eq!(seen["policies"], expected["policies"], "{kind:?} {extra}");
        }
    }
}

/// As a release made it, as OpenStack's brokers have migrated it, and as ours have then: none of them is foreign.
#[test]
fn what_openstack_makes_and_migrates_is_no_foreign_schema() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mores = |kind| match kind {
        Kind::Container => vec!["", "shards"],
        Kind::Account => vec!["", "policies"],
    };
    for (kind, variants) in [(Kind::Container, 3), (Kind::Account, 2)] {
        for (extra, first, more) in (0..variants).flat_map(|extra| {
            let both = [false, true].into_iter();
            both.flat_map(move |first| mores(kind).into_iter().map(move |more| (extra, first, more)))
        }) {
            let device = tempfile::tempdir().unwrap();
            let (place, label) = (
                location(device.path(), kind),
                format!("{kind:?} {extra} {first} {more}"),
            );
            let file = place.db_file();
            let make = json!({"extra": extra, "first": first, "more": more});
            oracle.ask("create_old", &file, kind, make.clone());
            let ours = Broker::open(place.clone()).expect(&label);
            assert_eq!(
                oracle.ask("dump", &file, kind, json!({}))["rows"]
                    .as_array()
                    .unwrap()
                    .len(),
                5,
                "{label}"
            );
            oracle.ask("migrate", &file, kind, json!({"shards": more == "shards"}));
            drop(ours);
            Broker::open(place.clone()).expect(&label).info().expect(&label);
            std::fs::remove_dir_all(place.hash_dir()).unwrap();
            oracle.ask("create_old", &file, kind, make);
            oracle.ask("migrate", &file, kind, json!({"shards": more == "shards"}));
            let theirs = Broker::open(place).expect(&label);
            assert_eq!(theirs.rows_since(-1, 10).unwrap().len(), 6, "{label}");
        }
        let device = tempfile::tempdir().unwrap();
        let place = location(device.path(), kind);
        oracle.ask("create", &place.db_file(), kind, json!({}));
        Broker::open(place.clone()).unwrap();
        oracle.ask("migrate", &place.db_file(), kind, json!({"shards": true}));
        Broker::open(place).unwrap().info().unwrap();
    }
}

fn any_query(dice: &mut Dice) -> ListQuery {
    let optional = |dice: &mut Dice| {
        if dice.below(2) == 0 {
            String::new()
        } else {
            dice.word(4)
        }
    };
    ListQuery {
        limit: [1, 2, 3, 0, 10_000, 10_000][dice.below(6) as usize],
        marker: optional(dice),
        end_marker: optional(dice),
        prefix: dice.word(1),
        delimiter: dice.pick(&["", "/", "/", "-", "--", "a", "/-", "ö", "\0"]).into(),
        path: (dice.below(4) == 0).then(|| dice.word(2)),
        reverse: dice.below(2) == 0,
        reserved: dice.below(3) == 0,
        ..ListQuery::default()
    }
}

fn spelled(query: &ListQuery) -> Value {
    json!({
        "limit": query.limit, "marker": query.marker, "end_marker": query.end_marker, "prefix": query.prefix,
        "delimiter": query.delimiter, "path": query.path, "reverse": query.reverse, "reserved": query.reserved,
    })
}

fn listed(broker: &Broker, query: &ListQuery) -> Value {
    let mut found = Vec::new();
    match broker.location().kind() {
        Kind::Account => broker
            .list_containers(query, |entry| {
                found.push(match entry {
                    Entry::Shared(prefix) => json!([prefix, true]),
                    Entry::Item(c) => json!([c.name, false, c.object_count, c.bytes_used, c.put_timestamp.internal()]),
                });
            })
            .unwrap(),
        Kind::Container => broker
            .list_objects(query, |entry| {
                found.push(match entry {
                    Entry::Shared(prefix) => json!([prefix, true]),
                    Entry::Item(o) => {
                        json!([o.name, false, o.timestamp.internal(), o.size, o.content_type, o.etag])
                    }
                });
            })
            .unwrap(),
    }
    json!(found)
}

#[test]
fn listings_are_openstacks_for_awkward_names() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut dice = Dice::new();
    for round in 0..6 {
        let names: Vec<String> = (0..80).map(|_| dice.word(6)).filter(|name| !name.is_empty()).collect();
        for kind in [Kind::Container, Kind::Account] {
            let device = tempfile::tempdir().unwrap();
            let broker = create(device.path(), kind);
            fill(&broker, &names);
            let queries: Vec<ListQuery> = (0..400)
                .map(|_| any_query(&mut dice))
                .filter(|query| kind == Kind::Container || query.path.is_none())
                .collect();
            let spelled: Vec<Value> = queries.iter().map(spelled).collect();
            let answers = oracle.ask("list", &broker.location().db_file(), kind, json!({"queries": spelled}));
            for (query, expected) in queries.iter().zip(answers.as_array().unwrap()) {
                assert_eq!(&listed(&broker, query), expected, "round {round} {kind:?} {query:?}");
            }
        }
    }
}

#[test]
fn a_new_database_has_openstacks_schema() {
    let Some(mut oracle) = Oracle::start() else { return };
    for kind in [Kind::Container, Kind::Account] {
        let (our_device, their_device) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = location(our_device.path(), kind);
        Broker::create(place.clone(), &new_database(kind)).unwrap();
        let theirs = location(their_device.path(), kind).db_file();
        oracle.ask("create", &theirs, kind, json!({}));
        let schema = |path: &Path| -> Vec<Option<String>> {
            let connection = rusqlite::Connection::open(path).unwrap();
            let mut statement = connection
                .prepare("SELECT sql FROM sqlite_master ORDER BY name")
                .unwrap();
            statement
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap()
        };
        assert_eq!(schema(&place.db_file()), schema(&theirs));
        let seen = comparable(oracle.ask("dump", &place.db_file(), kind, json!({})));
        assert_eq!(seen, comparable(oracle.ask("dump", &theirs, kind, json!({}))));
    }
    assert_eq!(t("1700000000"), support::at(0));
}
