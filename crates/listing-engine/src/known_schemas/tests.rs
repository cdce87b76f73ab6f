//! Which schemas are known; what OpenStack makes of them is in `tests/oracle.rs`.

use super::*;

fn standing(kind: Kind, sql: &str) -> SchemaStanding {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(sql).unwrap();
    examine(kind, &connection).unwrap()
}

fn only(source: &'static str, leave_out: &[&str]) -> String {
    let kept = statements(source).filter(|text| {
        !leave_out
            .iter()
            .any(|name| text.split_ascii_whitespace().nth(2) == Some(name))
    });
    kept.map(|text| format!("{text};\n")).collect()
}

#[test]
fn the_releases_are_known_and_go_together() {
    let (container, account) = (Kind::Container, Kind::Account);
    let policies = [
        "policy_stat",
        "container_info",
        "container_stat",
        "container_stat_update",
        "object_insert_policy_stat",
        "object_delete_policy_stat",
    ];
    let shards = ["shard_range", "shard_range_update"];
    let unique = ["object", "ix_object_deleted_name"];
    let before_policies = only(CONTAINER, &[&policies[..], &shards[..]].concat()) + &only(CONTAINER_1_13, &[]);
    let released_first = only(CONTAINER_1_2, &[])
        + &only(CONTAINER, &[&unique[..], &policies[..], &shards[..]].concat())
        + &only(CONTAINER_1_13, &[]);
    let ps = ["policy_stat", "container_insert_ps", "container_delete_ps"];
    let rows = ["container", "ix_container_deleted_name"];
    for (kind, sql, expected) in [
        (container, CONTAINER.to_owned(), SchemaStanding::Current),
        (container, only(CONTAINER, &shards), SchemaStanding::Current),
        (container, CONTAINER.to_owned() + "ANALYZE;", SchemaStanding::Current),
        (
            container,
            CONTAINER.to_owned() + "create index by_size on object (size, name);",
            SchemaStanding::Current,
        ),
        (
            container,
            only(CONTAINER_1_2, &[]) + &only(CONTAINER, &unique),
            SchemaStanding::Older,
        ),
        (container, before_policies.clone(), SchemaStanding::Older),
        (
            container,
            before_policies.replace("metadata TEXT DEFAULT '',", ""),
            SchemaStanding::Older,
        ),
        (container, released_first, SchemaStanding::Older),
        (account, ACCOUNT.to_owned(), SchemaStanding::Current),
        (
            account,
            only(ACCOUNT, &ps) + &only(ACCOUNT_2_1, &[]),
            SchemaStanding::Older,
        ),
        (account, only(ACCOUNT, &ps), SchemaStanding::Older),
        (account, only(ACCOUNT, &ps[1..]), SchemaStanding::Older),
        (
            account,
            only(ACCOUNT_1_2, &[]) + &only(ACCOUNT, &rows),
            SchemaStanding::Older,
        ),
    ] {
        assert_eq!(standing(kind, &sql), expected, "{sql}");
    }
}

#[test]
fn added_columns_are_known_in_any_order() {
    let base = CONTAINER.replace(
        ",\n                reported INTEGER DEFAULT 0,\n                tombstones INTEGER DEFAULT -1",
        "",
    );
    assert_ne!(base, CONTAINER);
    let add = |column| format!("ALTER TABLE shard_range ADD COLUMN {column};");
    let (reported, tombstones) = (add("reported INTEGER DEFAULT 0"), add("tombstones INTEGER DEFAULT -1"));
    for more in [
        "",
        &reported,
        &tombstones,
        &(reported.clone() + &tombstones),
        &(tombstones.clone() + &reported),
    ] {
        assert_eq!(
            standing(Kind::Container, &format!("{base}{more}")),
            SchemaStanding::Older,
            "{more}"
        );
    }
    let other = format!("{base}{}", add("reported INTEGER DEFAULT 1"));
    assert!(matches!(standing(Kind::Container, &other), SchemaStanding::Foreign(_)));
}

#[test]
fn all_else_is_foreign() {
    let change = |from: &str, to: &str| {
        let changed = CONTAINER.replace(from, to);
        assert_ne!(changed, CONTAINER, "{from}");
        changed
    };
    let with_index = |index: &str| format!("{CONTAINER}CREATE {index};");
    let foreign = [
        String::new(),
        ACCOUNT.to_owned(),
        only(CONTAINER, &["object_delete_policy_stat"]),
        only(CONTAINER, &["shard_range_update"]),
        only(CONTAINER, &["ix_object_deleted_name"]),
        format!("{CONTAINER}CREATE TABLE more (x);"),
        format!("{CONTAINER}CREATE VIEW more AS SELECT 1;"),
        format!("{CONTAINER}CREATE TRIGGER more AFTER INSERT ON object BEGIN SELECT 1; END;"),
        format!("{CONTAINER}ALTER TABLE container_info ADD COLUMN more TEXT;"),
        "PRAGMA encoding = 'UTF-16';".to_owned() + CONTAINER,
        change(
            "object_count + (1 - new.deleted)",
            "object_count + (1 -  - new.deleted)",
        ),
        change(
            "'UPDATE not allowed; DELETE and INSERT'",
            "'UPDATE not allowed;  DELETE and INSERT'",
        ),
        change("metadata TEXT DEFAULT ''", "metadata TEXT DEFAULT ' '"),
        change(
            "hash = chexor(hash, new.name, new.created_at);",
            "hash = chexor(hash, new.name, new.created_at);
            DELETE FROM object WHERE name = 'victim';",
        ),
        with_index("UNIQUE INDEX i ON object (name)"),
        with_index("INDEX i ON object (name) WHERE deleted = 0"),
        with_index("INDEX i ON object (name || size)"),
        with_index("INDEX i ON object (abs(size))"),
        with_index("INDEX i ON object (name COLLATE NOCASE)"),
    ];
    for sql in &foreign {
        assert!(
            matches!(standing(Kind::Container, sql), SchemaStanding::Foreign(_)),
            "{sql}"
        );
    }
    let foreign = standing(Kind::Container, &foreign[7]);
    assert!(
        matches!(&foreign, SchemaStanding::Foreign(why) if why.contains("trigger \"more\"")),
        "{foreign:?}"
    );
}

/// What `sqlite_master` says of a statement's name is compared, too.
#[test]
fn a_known_statement_under_another_name_is_foreign() {
    let disguised = format!(
        "{CONTAINER}PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET name = 'other' WHERE name = 'object_update';"
    );
    assert!(matches!(
        standing(Kind::Container, &disguised),
        SchemaStanding::Foreign(_)
    ));
}
