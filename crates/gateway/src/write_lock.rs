//! Write locks: taken from most of an object's primaries.
//!
//! The first primary is asked alone, and waits in line; a gateway that has its lock asks the others all at once. So of
//! many that want the same lock one gets it at a time, and none holds a part of it that others wait for. Where gateways
//! do not see the same servers, two may each hold a part: both give up soon, and try again after a random while.
//! Silent primaries (`silence.rs`) are not asked, or waited for, while the others are more than half. A wait in line is
//! not counted as silence.
//! Always holds: a lock is taken only where more than half of the primaries have granted it; handoffs do not count.
//! Deliberately absent: what is done under the lock.

use crate::backend::{Question, header, own_context, target};
use crate::nodes::Node;
use crate::route::Route;
use crate::shared::Shared;
use futures_util::future::{Either, join_all, select};
use http::header::RETRY_AFTER;
use peer::message::LockObject;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_OBJECT_EXISTS};
use request_pipeline::{LockName, LockRefusal, ObjectStanding, WriteLocks, object_lock_in};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use vocabulary::object_lock::ObjectLock;
use vocabulary::{EntityPath, Timestamp};

/// How long the first primary lets a request wait in line; long enough for a hundred writers before it.
const WAIT_IN_LINE: Duration = Duration::from_secs(8);
/// How long the others do: their locks are free, but for one that has been given up a moment ago.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(1);
/// How often a lock is tried for of which another gateway has a part.
const ATTEMPTS: u64 = 4;
/// How many connections to a worker that leaves (SIGUSR1) are tried, each of which it closes with its answer, before
/// the server counts as one without an answer: gateways that went on to another first primary would cross those that
/// did not.
const LEFT_CONNECTIONS: u64 = 8;
/// The longest pause between attempts, in milliseconds, for each attempt made.
const PAUSE: u64 = 100;

/// The locks of a gateway.
pub(crate) struct GatewayLocks(pub(crate) Arc<Shared>);

/// What one primary answers.
enum LockAnswer {
    Granted(ObjectStanding),
    Held,
    Unknown,
    Nothing,
}

#[async_trait::async_trait]
impl WriteLocks for GatewayLocks {
    async fn take(&self, name: &LockName, lease: Duration) -> Result<ObjectStanding, LockRefusal> {
        let route = self.route(name).ok_or(LockRefusal::Unavailable)?;
        for attempt in 1..=ATTEMPTS {
            let (answers, first_was_held) = self.ask_primaries(&route, name, lease).await;
            let outcome = outcome(&answers, route.replicas());
            if outcome.is_err() && !first_was_held {
                self.give_back_to(&route, name).await;
            }
            if outcome != Err(LockRefusal::Held) || first_was_held || attempt == ATTEMPTS {
                return outcome;
            }
            let mut dice = [0; 8];
            self.0.world.random.fill(&mut dice);
            let pause = u64::from_le_bytes(dice) % (PAUSE * attempt);
            self.0.world.clock.sleep(Duration::from_millis(pause)).await;
        }
        Err(LockRefusal::Held)
    }

    fn give_back(&self, name: LockName) {
        let Some(route) = self.route(&name) else { return };
        let locks = Self(self.0.clone());
        self.0
            .world
            .spawn(async move { locks.give_back_to(&route, &name).await });
    }
}

impl GatewayLocks {
    fn route(&self, name: &LockName) -> Option<Route> {
        let EntityPath {
            account,
            container: Some(container),
            object: Some(object),
        } = &name.entity
        else {
            return None;
        };
        self.0.rings.object_route(name.policy, account, container, object)
    }

    /// What each primary answers, and whether the first of them has granted the lock to another.
    async fn ask_primaries(&self, route: &Route, name: &LockName, lease: Duration) -> (Vec<LockAnswer>, bool) {
        let mut answers = Vec::with_capacity(route.replicas());
        let asked = self.to_ask(route, name, lease);
        let to_spare = AtomicUsize::new(asked.len().saturating_sub(majority(route.replicas())));
        let ask = |node, patience| self.ask_unless_silent(route, node, name, (lease, patience), &to_spare);
        let mut primaries = asked.into_iter();
        for node in primaries.by_ref() {
            let answer = ask(node, WAIT_IN_LINE).await;
            let is_first = matches!(answer, LockAnswer::Granted(_) | LockAnswer::Held);
            let is_held = matches!(answer, LockAnswer::Held);
            answers.push(answer);
            if is_held {
                return (answers, true);
            }
            if is_first {
                break;
            }
        }
        let others = primaries.map(|node| ask(node, WAIT_FOR_OTHERS));
        answers.extend(join_all(others).await);
        (answers, false)
    }

    /// The primaries that are asked: those that are not silent if they may make a majority, else all.
    fn to_ask<'a>(&self, route: &'a Route, name: &LockName, lease: Duration) -> Vec<&'a Node> {
        let call = |node: &Node| question(name, lease, WAIT_IN_LINE).call(route, node);
        let primaries = route.primaries.iter();
        let mut asked: Vec<&Node> = primaries
            .filter(|node| !self.0.is_silent(node, || call(node)))
            .collect();
        if asked.len() < majority(route.replicas()) {
            asked = route.primaries.iter().collect();
        }
        asked
    }

    /// One that is silent while it is asked is not waited for, as long as there are primaries `to_spare`.
    async fn ask_unless_silent(
        &self,
        route: &Route,
        node: &Node,
        name: &LockName,
        times: (Duration, Duration),
        to_spare: &AtomicUsize,
    ) -> LockAnswer {
        let silence = async {
            self.0.silence.becomes_silent(node).await;
            let spared = to_spare.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            if spared.is_err() {
                std::future::pending::<()>().await;
            }
        };
        match select(pin!(self.ask(route, node, name, times)), pin!(silence)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => LockAnswer::Nothing,
        }
    }

    async fn ask(
        &self,
        route: &Route,
        node: &Node,
        name: &LockName,
        (lease, patience): (Duration, Duration),
    ) -> LockAnswer {
        if self.0.suppression.is_suppressed(node) {
            return LockAnswer::Nothing;
        }
        let limit = patience + self.0.options.node_timeout;
        let mut asked = 0;
        let response = loop {
            let call = question(name, lease, patience).call(route, node);
            let Some(response) = self.0.ask_patiently(node, call, limit).await else {
                return LockAnswer::Nothing;
            };
            asked += 1;
            let is_leaving = response.status() == 503 && response.headers().contains_key(RETRY_AFTER);
            if !is_leaving || asked > LEFT_CONNECTIONS {
                break response;
            }
        };
        let headers = response.headers();
        match response.status().as_u16() {
            status @ (200 | 201) => LockAnswer::Granted(ObjectStanding {
                timestamp: header(headers, X_BACKEND_TIMESTAMP.as_str()).and_then(|text| text.parse().ok()),
                is_there: headers.get(X_OBJECT_EXISTS).is_some_and(|value| value == "true"),
                was_kept: status == 200,
                lock: object_lock_in(headers),
            }),
            409 => LockAnswer::Held,
            405 | 501 => LockAnswer::Unknown,
            _ => LockAnswer::Nothing,
        }
    }

    async fn give_back_to(&self, route: &Route, name: &LockName) {
        let limit = self.0.options.node_timeout;
        let asked = route.primaries.iter().map(|node| async move {
            let call = question(name, Duration::ZERO, Duration::ZERO).call(route, node);
            // A server that does not hear of it lets the lease end.
            drop(self.0.ask(node, call, limit).await);
        });
        join_all(asked).await;
    }
}

fn question(name: &LockName, lease: Duration, patience: Duration) -> Question {
    let message = LockObject {
        policy: name.policy.into(),
        write_lock: Some(name.value.clone()),
        lease: lease.as_secs().into(),
        patience: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX).into(),
        ..LockObject::new(target(Arc::new(name.entity.clone())))
    };
    Question::new(own_context(&name.trans_id), message)
}

/// More than half.
fn majority(replicas: usize) -> usize {
    replicas / 2 + 1
}

/// The newest of what enough primaries have, or why they are not enough.
fn outcome(answers: &[LockAnswer], replicas: usize) -> Result<ObjectStanding, LockRefusal> {
    let granted: Vec<&ObjectStanding> = answers
        .iter()
        .filter_map(|answer| match answer {
            LockAnswer::Granted(standing) => Some(standing),
            _ => None,
        })
        .collect();
    let majority = majority(replicas);
    if granted.len() < majority {
        return Err(match answers {
            answers if answers.iter().any(|answer| matches!(answer, LockAnswer::Held)) => LockRefusal::Held,
            answers if answers.iter().any(|answer| matches!(answer, LockAnswer::Unknown)) => LockRefusal::Unknown,
            _ => LockRefusal::Unavailable,
        });
    }
    let newest = granted
        .iter()
        .max_by_key(|standing| standing.timestamp.unwrap_or(Timestamp::ZERO));
    Ok(ObjectStanding {
        was_kept: granted.iter().filter(|standing| standing.was_kept).count() >= majority,
        lock: granted
            .iter()
            .fold(ObjectLock::default(), |lock, standing| lock.merged(standing.lock)),
        ..newest.map(|newest| **newest).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(seconds: u64, is_there: bool) -> LockAnswer {
        LockAnswer::Granted(ObjectStanding {
            timestamp: Some(Timestamp::from_seconds(seconds)),
            is_there,
            ..ObjectStanding::default()
        })
    }

    #[test]
    fn what_one_of_them_knows_of_a_lock_counts() {
        let at = Timestamp::from_seconds;
        let lock = ObjectLock::of_hold(true, at(1));
        let knows = LockAnswer::Granted(ObjectStanding {
            lock,
            ..ObjectStanding::default()
        });
        assert_eq!(
            outcome(&[granted(2, true), knows, granted(2, true)], 3).unwrap().lock,
            lock
        );
    }

    #[test]
    fn most_of_the_primaries_decide_and_the_newest_of_them_counts() {
        let standing = outcome(&[granted(1, true), granted(2, false), LockAnswer::Nothing], 3).unwrap();
        assert_eq!(
            (standing.timestamp, standing.is_there),
            (Some(Timestamp::from_seconds(2)), false)
        );
        let standing = outcome(&[granted(1, false), granted(2, true), granted(0, false)], 3).unwrap();
        assert!(standing.is_there);
        for (answers, replicas, refusal) in [
            (
                vec![granted(1, true), LockAnswer::Nothing, LockAnswer::Nothing],
                3,
                LockRefusal::Unavailable,
            ),
            (
                vec![granted(1, true), LockAnswer::Held, LockAnswer::Nothing],
                3,
                LockRefusal::Held,
            ),
            (
                vec![LockAnswer::Unknown, LockAnswer::Unknown, LockAnswer::Nothing],
                3,
                LockRefusal::Unknown,
            ),
            (vec![granted(1, true), LockAnswer::Nothing], 2, LockRefusal::Unavailable),
            (
                vec![granted(1, true), granted(1, true), LockAnswer::Held, LockAnswer::Held],
                4,
                LockRefusal::Held,
            ),
        ] {
            assert_eq!(outcome(&answers, replicas), Err(refusal));
        }
        assert!(outcome(&[granted(1, true)], 1).is_ok());
    }

    #[test]
    fn a_lock_was_kept_where_most_have_kept_it() {
        let kept = || {
            LockAnswer::Granted(ObjectStanding {
                was_kept: true,
                ..ObjectStanding::default()
            })
        };
        assert!(outcome(&[kept(), kept(), granted(1, true)], 3).unwrap().was_kept);
        assert!(
            !outcome(&[kept(), granted(1, true), granted(1, true)], 3)
                .unwrap()
                .was_kept
        );
    }
}
