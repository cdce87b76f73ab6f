//! Which of two replicas of a container has the right policy: one decision table.
//!
//! | | the right one |
//! |---|---|
//! | one is deleted | the other |
//! | both are deleted | the one whose status changed last |
//! | one was deleted and created again | that one |
//! | both were, and one of them before the last deletion | the other |
//! | else | the one that is older in its present state |
//!
//! Observed in OpenStack Swift: two of its replicas, or one of its and one of ours, choose alike, so
//! they agree after one exchange. Between two moments that are the same the smaller index wins.

use crate::wire::Summary;
use std::cmp::Ordering;
use vocabulary::{PolicyIndex, Timestamp};

#[derive(Clone, Copy)]
struct Claim {
    policy: PolicyIndex,
    changed: Timestamp,
    put: Timestamp,
    delete: Timestamp,
    deleted: bool,
    again: bool,
}

impl Claim {
    fn of(summary: &Summary) -> Option<Self> {
        let claim = summary.claim?;
        let (put, delete) = (summary.put_timestamp, summary.delete_timestamp);
        Some(Self {
            policy: claim.policy,
            changed: claim.status_changed_at,
            put,
            delete,
            deleted: delete > put && claim.count == 0,
            again: put > delete && delete > Timestamp::ZERO,
        })
    }
}

/// The policy that `here` should take over from `there`, if it has the wrong one.
pub fn better_policy(here: &Summary, there: &Summary) -> Option<PolicyIndex> {
    let (here, there) = (Claim::of(here)?, Claim::of(there)?);
    let wrong = here.policy != there.policy && order(&here, &there) == Ordering::Greater;
    wrong.then_some(there.policy)
}

/// The right one is the lesser.
fn order(a: &Claim, b: &Claim) -> Ordering {
    let by_index = a.policy.0.cmp(&b.policy.0);
    match (a.deleted, b.deleted) {
        (false, true) => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (true, true) => return b.changed.cmp(&a.changed).then(by_index),
        (false, false) => {}
    }
    match (a.again, b.again) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        (true, true) => {
            let last = a.delete.max(b.delete);
            match (a.put < last, b.put < last) {
                (true, _) => return Ordering::Greater,
                (false, true) => return Ordering::Less,
                (false, false) => {}
            }
        }
        (false, false) => {}
    }
    a.changed.cmp(&b.changed).then(by_index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PolicyClaim;

    fn summary(policy: u32, put: u64, delete: u64, changed: u64, count: u64) -> Summary {
        let t = |n: u64| match n {
            0 => Timestamp::ZERO,
            n => Timestamp::from_seconds(1_700_000_000 + n),
        };
        Summary {
            id: String::new(),
            hash: String::new(),
            max_row: -1,
            created_at: t(1),
            put_timestamp: t(put),
            delete_timestamp: t(delete),
            metadata: String::new(),
            claim: Some(PolicyClaim {
                policy: PolicyIndex(policy),
                status_changed_at: t(changed),
                count,
            }),
            point: -1,
            shard_max_row: None,
        }
    }

    #[test]
    fn one_row_per_decision_and_both_sides_agree() {
        // (put, delete, status changed, objects) of policy 0 and of policy 1 → the right policy
        let table = [
            ((1, 0, 1, 0), (2, 0, 2, 0), 0),
            ((2, 0, 2, 0), (1, 0, 1, 5), 1),
            ((1, 2, 2, 0), (1, 0, 1, 0), 1),
            ((1, 2, 2, 3), (2, 0, 2, 0), 0),
            ((1, 2, 2, 0), (1, 3, 3, 0), 1),
            ((3, 2, 3, 0), (1, 0, 1, 0), 0),
            ((3, 2, 3, 0), (5, 4, 5, 0), 1),
            ((5, 2, 5, 0), (6, 4, 6, 0), 0),
            ((1, 0, 1, 0), (1, 0, 1, 0), 0),
        ];
        for (a, b, right) in table {
            let zero = summary(0, a.0, a.1, a.2, a.3);
            let one = summary(1, b.0, b.1, b.2, b.3);
            let zero_takes = better_policy(&zero, &one);
            let one_takes = better_policy(&one, &zero);
            let expected = match right {
                0 => (None, Some(PolicyIndex(0))),
                _ => (Some(PolicyIndex(1)), None),
            };
            assert_eq!((zero_takes, one_takes), expected, "{a:?} {b:?}");
        }
        assert_eq!(better_policy(&summary(1, 1, 0, 1, 0), &summary(1, 9, 0, 9, 0)), None);
    }
}
