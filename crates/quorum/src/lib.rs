//! What N replies mean: decision tables without I/O.
//!
//! Comes in: the status codes that a write or a read got from the nodes of a ring. Goes out: how
//! many are enough, whether to wait for more, and which reply speaks for all.
//! Always holds: no decision depends on the order of the replies, except that of equal ones the
//! first is named.
//! Deliberately absent: who was asked, time-outs, bodies.
//! Source: Swift's `doc/source/overview_architecture.rst` and its proxies' answers.

/// How many of `replicas` nodes must have done a write before it is acknowledged: half of them,
/// rounded up. Swift's rule; two of three, but also two of four and one of two.
pub fn size(replicas: usize) -> usize {
    replicas.div_ceil(2)
}

/// Classes that may decide, in the order in which they are looked at.
const CLASSES: [u16; 4] = [100, 200, 300, 400];

fn in_class(statuses: &[u16], class: u16) -> impl Iterator<Item = u16> {
    statuses
        .iter()
        .copied()
        .filter(move |s| (class..class + 100).contains(s))
}

/// Whether some class below 500 has `quorum` replies: further ones cannot change the client's
/// status, only the number of replicas.
pub fn is_reached(statuses: &[u16], quorum: usize) -> bool {
    CLASSES
        .iter()
        .any(|class| in_class(statuses, *class).count() >= quorum.max(1))
}

/// Which reply speaks for all: in the first class with `quorum` replies the highest status.
/// `None` means that the nodes do not agree: 503.
pub fn best(statuses: &[u16], quorum: usize) -> Option<usize> {
    let class = CLASSES
        .into_iter()
        .find(|class| in_class(statuses, *class).count() >= quorum.max(1))?;
    let status = in_class(statuses, class).max()?;
    statuses.iter().position(|s| *s == status)
}

/// [`best`], and when the nodes do not agree once more with each status of `from` read as `to`: a
/// DELETE that found nothing on one node (404) has the same effect as one that deleted (204).
/// Answers with the status and the reply that carries it.
pub fn best_reading_as(statuses: &[u16], quorum: usize, from: u16, to: u16) -> Option<(u16, usize)> {
    if let Some(index) = best(statuses, quorum) {
        return Some((statuses[index], index));
    }
    let read: Vec<u16> = statuses.iter().map(|s| if *s == from { to } else { *s }).collect();
    let index = best(&read, quorum)?;
    Some((read[index], index))
}

/// Whether `quorum` can still be reached with so many nodes `alive`.
pub fn is_possible(alive: usize, quorum: usize) -> bool {
    alive >= quorum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_swifts() {
        assert_eq!((1..=7).map(size).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn one_row_per_decision() {
        for (statuses, expected) in [
            (&[201, 201, 201][..], Some(201)),
            (&[201, 503, 201], Some(201)),
            (&[201, 503, 503], None),
            (&[202, 201, 503], Some(202)),
            (&[404, 404, 201], Some(404)),
            (&[404, 204, 503], None),
            (&[409, 409, 201], Some(409)),
            (&[412, 404, 503], Some(412)),
            (&[507, 507, 507], None),
            (&[304, 304, 404], Some(304)),
            (&[100, 100, 507], Some(100)),
            (&[], None),
        ] {
            let found = best(statuses, 2).map(|index| statuses[index]);
            assert_eq!(found, expected, "{statuses:?}");
            assert_eq!(is_reached(statuses, 2), expected.is_some(), "{statuses:?}");
        }
        assert_eq!(best_reading_as(&[404, 204, 503], 2, 404, 204), Some((204, 0)));
        assert_eq!(best_reading_as(&[404, 404, 204], 2, 404, 204), Some((404, 0)));
        assert_eq!(best_reading_as(&[404, 503, 503], 2, 404, 204), None);
    }

    /// Every combination of three replies: what is acknowledged as done was done by a quorum, and
    /// the order of the replies does not matter.
    #[test]
    fn exhaustively_for_three_replicas() {
        let words = [100, 201, 202, 204, 304, 404, 409, 412, 499, 500, 503, 507];
        for a in words {
            for b in words {
                for c in words {
                    let statuses = [a, b, c];
                    let done = statuses.iter().filter(|s| (200..300).contains(*s)).count();
                    let status = best(&statuses, size(3)).map(|i| statuses[i]);
                    assert_eq!(
                        status.is_some_and(|s| (200..300).contains(&s)),
                        done >= 2,
                        "{statuses:?}"
                    );
                    assert!(status.is_none_or(|s| s < 500), "{statuses:?}");
                    for other in [[b, c, a], [c, a, b], [c, b, a]] {
                        assert_eq!(best(&other, size(3)).map(|i| other[i]), status, "{statuses:?}");
                    }
                }
            }
        }
    }
}
