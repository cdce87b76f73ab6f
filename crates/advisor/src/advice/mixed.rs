//! Nodes that are gateways and storage at once, beside nodes that only store.
//!
//! A node's share of pieces is its share of all weights. A mixed node's processors serve both roles, so it answers more
//! slowly; which pieces are acknowledged first is a race of exponential times.
//! Always holds: shares add up to one; acknowledgements of mixed nodes are at most those that are waited for.

use super::subject::AdviceSubject;
use serde::Serialize;

/// What mixed nodes do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedAdvice {
    /// How many there are.
    pub nodes: u32,
    /// Of all pieces, the share that they hold.
    pub share_of_pieces: f64,
    /// Of the acknowledgements that a write waits for, how many come from them.
    pub acknowledgements: f64,
    /// How many are waited for.
    pub waited: u32,
    /// How much slower one answers than a node that only stores.
    pub slowdown: f64,
    /// Days until they are full; none where nothing is written.
    pub days_to_full: Option<f64>,
    /// Days until the others are.
    pub others_days_to_full: Option<f64>,
    /// The weight, relative to the others', at which they fill together with the others and answer no more often than
    /// their processors allow.
    pub fair_weight: f64,
}

/// How many of the first `waited` of `mixed` and `other` pieces are mixed ones, when a mixed one is `slower` as slow.
pub fn first_acknowledgements(mixed: u32, other: u32, waited: u32, slower: f64) -> f64 {
    if waited == 0 || mixed + other == 0 {
        return 0.0;
    }
    let (fast, slow) = (f64::from(other), f64::from(mixed) / slower);
    let is_mixed = slow / (fast + slow);
    let next = |mixed, other| first_acknowledgements(mixed, other, waited - 1, slower);
    let after_mixed = if mixed > 0 {
        is_mixed * (1.0 + next(mixed - 1, other))
    } else {
        0.0
    };
    let after_other = if other > 0 {
        (1.0 - is_mixed) * next(mixed, other - 1)
    } else {
        0.0
    };
    after_mixed + after_other
}

/// What is to be said of mixed nodes: bytes on a node, and how fast bytes come in.
pub fn mixed(subject: &AdviceSubject<'_>, nodes: u32, weight: f64, room: f64) -> Option<MixedAdvice> {
    let all = subject.model.storage.count;
    if nodes == 0 || nodes > all {
        return None;
    }
    let (mixed, others) = (f64::from(nodes) * weight, f64::from(all - nodes));
    let share = mixed / (mixed + others);
    let protection = subject.model.protection;
    let pieces = protection.pieces();
    // Each piece is on a mixed node with the probability of its share.
    let chance = |count: u32| {
        let sets = (0..count).fold(1.0, |sets, taken| {
            sets * f64::from(pieces - taken) / f64::from(taken + 1)
        });
        sets * share.powi(count as i32) * (1.0 - share).powi((pieces - count) as i32)
    };
    let slowdown = slowdown(subject, nodes);
    let waited = protection.write_quorum();
    let acknowledgements = (0..=pieces)
        .map(|count| chance(count) * first_acknowledgements(count, pieces - count, waited, slowdown))
        .sum();
    let incoming = subject.requests * subject.mix.writes * subject.mix.mean_size() * protection.overhead();
    let days = |nodes: f64, share: f64| {
        let a_day = incoming * share * 86_400.0;
        (a_day > 0.0 && nodes > 0.0).then(|| nodes * room / a_day)
    };
    Some(MixedAdvice {
        nodes,
        share_of_pieces: share,
        acknowledgements,
        waited,
        slowdown,
        days_to_full: days(f64::from(nodes), share),
        others_days_to_full: days(others, 1.0 - share),
        fair_weight: (1.0 / slowdown).clamp(0.05, 1.0),
    })
}

/// How much longer a storage request takes on a node whose processors also serve its part of the gateways' work.
fn slowdown(subject: &AdviceSubject<'_>, nodes: u32) -> f64 {
    use crate::model::limits::{Resource, demands};
    use crate::model::rates::Bound;
    let all = demands(&subject.model, subject.mix, subject.rates, Bound::Likely);
    let seconds = |resource| {
        let found = all.iter().find(|demand| demand.resource == resource);
        found.map_or(0.0, |demand| demand.seconds)
    };
    let cores = subject.model.storage.cores;
    let count = f64::from(subject.model.storage.count);
    let stored = subject.requests * seconds(Resource::StorageProcessor) / (cores * count);
    let served = subject.requests * seconds(Resource::GatewayProcessor) / (cores * f64::from(nodes));
    let idle = |busy: f64| (1.0 - busy).max(0.02);
    idle(stored) / idle(stored + served)
}

#[cfg(test)]
mod tests {
    use super::first_acknowledgements;

    #[test]
    fn a_race_of_equals_is_won_in_proportion() {
        assert!((first_acknowledgements(1, 2, 2, 1.0) - 2.0 / 3.0).abs() < 1e-12);
        assert!((first_acknowledgements(3, 0, 2, 5.0) - 2.0).abs() < 1e-12);
        assert!(first_acknowledgements(0, 3, 2, 5.0).abs() < 1e-12);
        // Drawn: one mixed piece that is four times as slow as two others is seldom among the first two.
        let mut random = fastrand::Rng::with_seed(2);
        let draws = 100_000;
        let among_first = |random: &mut fastrand::Rng| {
            let mut time = |mean: f64| -mean * (1.0 - random.f64()).ln();
            let (mixed, one, other) = (time(4.0), time(1.0), time(1.0));
            mixed < one || mixed < other
        };
        let seen = (0..draws).filter(|_| among_first(&mut random)).count() as f64 / f64::from(draws);
        assert!((first_acknowledgements(1, 2, 2, 4.0) - seen).abs() < 0.01);
    }
}
