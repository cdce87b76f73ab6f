//! Times of deletions.

use super::*;

#[test]
fn deletions_are_recent_and_older_than_what_comes_after() {
    let at = Timestamp::from_seconds;
    assert_eq!(deletion_time(at(5), at(100_000)), at(96_400));
    assert_eq!(deletion_time(at(99_999), at(100_000)), at(99_999).next_tick());
    assert_eq!(deletion_time(at(5), at(6)), at(5).next_tick());
}
