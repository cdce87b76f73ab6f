//! The rules of object lock, as tables.

use super::RetentionMode::{Compliance, Governance};
use super::*;
use proptest::prelude::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn retained(mode: RetentionMode, until: u64, set: u64) -> ObjectLock {
    ObjectLock::of_retention(Some(Retention { mode, until }), at(set))
}

fn none(set: u64) -> ObjectLock {
    ObjectLock::of_retention(None, at(set))
}

#[test]
fn who_is_held_up_by_what() {
    let (hold, freed) = (ObjectLock::of_hold(true, at(1)), ObjectLock::of_hold(false, at(2)));
    // At second 100: by all, by those who bypass.
    for (lock, expected) in [
        (ObjectLock::default(), (false, false)),
        (retained(Governance, 101, 1), (true, false)),
        (retained(Governance, 100, 1), (false, false)),
        (retained(Compliance, 101, 1), (true, true)),
        (retained(Compliance, 100, 1), (false, false)),
        (none(1), (false, false)),
        (hold, (true, true)),
        (freed, (false, false)),
        (hold.merged(freed), (false, false)),
        (retained(Governance, 50, 1).merged(hold), (true, true)),
        (retained(Compliance, 101, 1).merged(freed), (true, true)),
    ] {
        let held = (lock.is_held(at(100), false), lock.is_held(at(100), true));
        assert_eq!(held, expected, "{lock:?}");
    }
}

#[test]
fn what_may_become_what() {
    // At second 100: by all, by those who bypass.
    for (old, new, expected) in [
        (ObjectLock::default(), retained(Compliance, 101, 2), (true, true)),
        (retained(Compliance, 150, 1), retained(Compliance, 151, 2), (true, true)),
        (retained(Compliance, 150, 1), retained(Compliance, 150, 2), (true, true)),
        (
            retained(Compliance, 150, 1),
            retained(Compliance, 149, 2),
            (false, false),
        ),
        (
            retained(Compliance, 150, 1),
            retained(Governance, 999, 2),
            (false, false),
        ),
        (retained(Compliance, 150, 1), none(2), (false, false)),
        (retained(Compliance, 100, 1), none(2), (true, true)),
        (retained(Governance, 150, 1), retained(Governance, 151, 2), (true, true)),
        (
            retained(Governance, 150, 1),
            retained(Governance, 149, 2),
            (false, true),
        ),
        (
            retained(Governance, 150, 1),
            retained(Compliance, 200, 2),
            (false, true),
        ),
        (retained(Governance, 150, 1), none(2), (false, true)),
        (
            retained(Governance, 150, 1),
            ObjectLock::of_hold(true, at(2)),
            (true, true),
        ),
    ] {
        let may = |bypasses| old.may_become(&new, at(100), bypasses);
        assert_eq!((may(false), may(true)), expected, "{old:?} {new:?}");
    }
}

#[test]
fn the_last_word_wins_but_not_over_a_longer_compliance() {
    for (a, b, expected) in [
        (
            retained(Governance, 150, 1),
            retained(Governance, 120, 2),
            retained(Governance, 120, 2),
        ),
        (retained(Governance, 150, 1), none(2), none(2)),
        (retained(Compliance, 150, 1), none(2), retained(Compliance, 150, 1)),
        (
            retained(Compliance, 150, 1),
            retained(Governance, 150, 2),
            retained(Compliance, 150, 1),
        ),
        (
            retained(Compliance, 150, 1),
            retained(Compliance, 160, 2),
            retained(Compliance, 160, 2),
        ),
        (
            retained(Compliance, 150, 1),
            retained(Governance, 160, 2),
            retained(Governance, 160, 2),
        ),
    ] {
        assert_eq!(a.merged(b), expected);
        assert_eq!(b.merged(a), expected);
    }
}

#[test]
fn what_cannot_be_read_holds() {
    for (retention, hold) in [
        (Some(&b"GOVERNANCE;x;1"[..]), None),
        (Some(b"FOREVER;1;1".as_slice()), None),
        (Some(b"".as_slice()), None),
        (Some(b"GOVERNANCE;1;1;1".as_slice()), None),
        (None, Some(&b"MAYBE;1"[..])),
        (None, Some(b"\xff".as_slice())),
    ] {
        let lock = ObjectLock::read(retention, hold);
        assert!(lock.is_held(at(100), true), "{retention:?} {hold:?}");
        let freed = lock.merged(ObjectLock::of_hold(false, at(1)));
        assert!(!freed.is_held(at(100), true));
    }
}

#[test]
fn defaults_end_at_the_same_time_of_a_later_day() {
    let second = |text: &str| calendar::parse_iso(text, 59).unwrap().0;
    let now = at(second("2024-02-29T10:00:00"));
    for (text, expected) in [
        ("Enabled;GOVERNANCE;1D", Some("2024-03-01T10:00:00")),
        ("Enabled;COMPLIANCE;1Y", Some("2025-03-01T10:00:00")),
        ("Enabled;COMPLIANCE;4Y", Some("2028-02-29T10:00:00")),
        ("Enabled;COMPLIANCE;100Y", Some("2124-02-29T10:00:00")),
        ("Enabled", None),
    ] {
        let lock: BucketLock = text.parse().unwrap();
        assert_eq!(lock.to_string(), text);
        let until = lock.default.map(|default| default.from(now).until);
        assert_eq!(until, expected.map(second), "{text}");
    }
    for bad in [
        "",
        "Disabled",
        "Enabled;GOVERNANCE",
        "Enabled;GOVERNANCE;0D",
        "Enabled;GOVERNANCE;101Y",
        "Enabled;X;1D",
    ] {
        assert_eq!(bad.parse::<BucketLock>(), Err(NoBucketLock), "{bad}");
    }
}

#[test]
fn containers_of_a_bucket() {
    for (container, bucket) in [
        ("b", "b"),
        ("\0versions\0b", "b"),
        ("b+segments", "b"),
        ("\0versions\0b+segments", "b"),
        ("\0other\0b", "\0other\0b"),
    ] {
        assert_eq!(bucket_of(container), bucket);
    }
}

fn any_lock() -> impl Strategy<Value = ObjectLock> {
    let mode = prop_oneof![Just(Governance), Just(Compliance)];
    let retention = (mode, 1_u64..9).prop_map(|(mode, until)| Retention { mode, until });
    let retention = (proptest::option::of(retention), 1_u64..9).prop_map(|(value, set)| SetAt { value, at: at(set) });
    let hold = (any::<bool>(), 1_u64..9).prop_map(|(value, set)| SetAt { value, at: at(set) });
    (proptest::option::of(retention), proptest::option::of(hold))
        .prop_map(|(retention, hold)| ObjectLock { retention, hold })
}

proptest! {
    #[test]
    fn merging_has_no_order(a in any_lock(), b in any_lock()) {
        prop_assert_eq!(a.merged(b), b.merged(a));
        prop_assert_eq!(a.merged(a), a);
        prop_assert_eq!(a.merged(b).merged(b), a.merged(b));
    }

    #[test]
    fn no_merge_ends_a_compliance(a in any_lock(), b in any_lock(), now in 0_u64..9) {
        let until = |lock: &ObjectLock| lock.active(at(now)).map_or(0, |retention| retention.until);
        if a.is_in_compliance(at(now)) {
            prop_assert!(until(&a.merged(b)) >= until(&a));
        }
    }

    #[test]
    fn locks_are_read_back(lock in any_lock()) {
        let (retention, hold) = (lock.stored_retention(), lock.stored_hold());
        let bytes = |text: &Option<String>| text.clone().map(String::into_bytes);
        prop_assert_eq!(ObjectLock::read(bytes(&retention).as_deref(), bytes(&hold).as_deref()), lock);
    }

    #[test]
    fn any_text_is_read(retention in any::<Vec<u8>>(), hold in any::<Vec<u8>>(), bucket in any::<String>()) {
        let _ = ObjectLock::read(Some(&retention), Some(&hold));
        let _ = bucket.parse::<BucketLock>();
    }
}
