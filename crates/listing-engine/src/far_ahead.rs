//! Times in a database's own figures that no working clock gives.
//!
//! A put or delete time from far ahead (bits that a drive changed, a hostile peer) would win against every write until
//! then: the database is gone on each replica that takes it over, and no later creation brings it back. So such times
//! stay where they are: replicas neither send them nor take them over, and an audit names them. A server whose
//! own clock is far behind takes nothing over until that is set, as every pass of replication says it again.
//! Deliberately absent: times of rows, which are their writers'; copies of whole databases, which bring theirs.

use crate::Info;
use crate::wire::Summary;
use vocabulary::Timestamp;

impl Summary {
    /// What of it is said and believed by a clock that shows `now`; times from far ahead become "never".
    pub fn without_far_ahead(mut self, now: Timestamp) -> Self {
        for time in [&mut self.put_timestamp, &mut self.delete_timestamp] {
            if time.is_far_ahead(now) {
                *time = Timestamp::ZERO;
            }
        }
        self
    }
}

/// What is wrong with the times in `info`, as an audit at `now` says it.
pub(crate) fn complaint(info: &Info, now: Timestamp) -> Option<String> {
    let times = [
        ("put_timestamp", info.put_timestamp),
        ("delete_timestamp", info.delete_timestamp),
    ];
    let (name, time) = times.into_iter().find(|(_, time)| time.is_far_ahead(now))?;
    Some(format!(
        "its {name} {} is {} days ahead of this machine's clock; where other replicas have a sound one, move this \
         directory out of the way and replication brings it back",
        time.internal(),
        (time.seconds() - now.seconds()) / 86_400,
    ))
}
