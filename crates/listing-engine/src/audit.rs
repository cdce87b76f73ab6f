//! Looking for damage in a database before a request meets it.
//!
//! Always holds: a database whose pages do not hang together is quarantined like one that fails in use;
//! counters that contradict each other are reported and left, for replication compares rows, not them.
//! Deliberately absent: comparing the counters with the rows, which would read all of them.

use crate::{Broker, Error, Info, Kind};
use vocabulary::Timestamp;

/// Seconds by which a time may be ahead of this machine's clock: more than clocks differ by that anybody looks after.
const MOST_AHEAD: u64 = 24 * 60 * 60;

/// Which time of its own is from far ahead, if one is (bits that a drive changed, a gateway's wrong clock): it wins
/// against every write until then, here and on each replica that takes it over.
fn far_ahead(info: &Info, now: Timestamp) -> Option<String> {
    let times = [
        ("put_timestamp", info.put_timestamp),
        ("delete_timestamp", info.delete_timestamp),
    ];
    let ahead = |time: Timestamp| time.seconds().saturating_sub(now.seconds());
    let (name, time) = times.into_iter().find(|(_, time)| ahead(*time) > MOST_AHEAD)?;
    Some(format!(
        "its {name} {} is {} days ahead of this machine's clock; if the clock is right, creations and deletions before \
         that time have no effect",
        time.internal(),
        ahead(time) / MOST_AHEAD,
    ))
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audit {
    /// It has been deleted, or is not there.
    Deleted,
    /// Nothing is wrong with it.
    Sound(Box<Info>),
    /// It can be read, and contradicts itself.
    Contradicts(String),
}

impl Broker {
    /// Looks the database over, at the time `now`.
    ///
    /// # Errors
    /// [`Error::Quarantined`] when it is damaged.
    pub fn audit(&self, now: Timestamp) -> Result<Audit, Error> {
        let far_ahead = far_ahead(&self.info()?, now);
        let audited = match self.is_deleted()? {
            true => Audit::Deleted,
            false => self.audit_contents()?,
        };
        match (audited, far_ahead) {
            (Audit::Deleted | Audit::Sound(_), Some(why)) => Ok(Audit::Contradicts(why)),
            (audited, _) => Ok(audited),
        }
    }

    fn audit_contents(&self) -> Result<Audit, Error> {
        self.with(|database| database.check_pages())?;
        let info = self.info()?;
        match self.location().kind() {
            Kind::Account => self.check_counters(info),
            Kind::Container => Ok(Audit::Sound(Box::new(info))),
        }
    }

    /// An account's totals are the sums over its policies.
    fn check_counters(&self, info: Info) -> Result<Audit, Error> {
        let stats = self.policy_stats()?;
        let sums = stats.iter().fold((0, 0, 0), |(containers, objects, bytes), stat| {
            (
                containers + stat.container_count,
                objects + stat.object_count,
                bytes + stat.bytes_used,
            )
        });
        let pairs = [
            ("container_count", info.container_count, sums.0),
            ("object_count", info.object_count, sums.1),
            ("bytes_used", info.bytes_used, sums.2),
        ];
        match pairs.into_iter().find(|(_, total, sum)| total != sum) {
            None => Ok(Audit::Sound(Box::new(info))),
            Some((what, total, sum)) => Ok(Audit::Contradicts(format!(
                "The total {what} for the account {} ({total}) does not match the sum of {what} \
                 across policies ({sum})",
                info.account
            ))),
        }
    }
}
