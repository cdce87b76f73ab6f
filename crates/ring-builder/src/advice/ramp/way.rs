//! The way from the weights devices have to those they get, in steps that are tried out.
//!
//! How far a step may go is reckoned from the shares that weights ask for; then the step is taken on a copy of the
//! builder, by the same rebalance that will take it on the ring, and what moves is counted there. A step that moves too
//! much is made smaller. Always holds: no step moves more than was allowed, or there are none; each is what a rebalance
//! with [`SEED`] does.

use placement::{BuilderError, RingBuilder};
use vocabulary::Fault;

/// What rebalances are to be done with, so that they move what was counted.
pub(super) const SEED: u64 = 1;
/// A plan with more steps than this is of no use.
const MOST_STEPS: usize = 1_000;
/// How often a step is made smaller.
const TRIES: usize = 12;
/// By how much smaller than what would fit, each time.
const CAUTION: f64 = 0.97;
/// What one rebalance leaves, because of each partition one replica moves, is a step more when it is more than this
/// part.
const WORTH_A_STEP: f64 = 0.01;

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// How much of the way to the wished weights is gone, from 0 to 1.
    pub(super) factor: f64,
    /// The devices' weights.
    pub(super) weights: Vec<f64>,
    /// Replicas of partitions that move.
    pub(super) moved: u64,
}

/// A way.
pub(super) struct RampPath {
    /// The devices.
    pub(super) ids: Vec<u32>,
    /// Weights before the first step, as far as partitions have followed them.
    pub(super) from: Vec<f64>,
    pub(super) to: Vec<f64>,
    /// Weight of the other devices.
    pub(super) others: f64,
    /// Replicas of partitions in all.
    pub(super) cells: f64,
    pub(super) partitions: f64,
    /// How many replicas of partitions may move in a step.
    pub(super) most: u64,
}

impl RampPath {
    /// Lays out the steps. `now` is the time in seconds since 1970.
    pub(super) fn steps(&self, builder: &RingBuilder, now: i64) -> Result<Vec<Step>, Fault> {
        if self.others <= 0.0 {
            return Err(Fault::caller(
                "there are no other devices to move partitions from or to",
            ));
        }
        let least = self.moved(&self.from, &self.to) / self.most as f64;
        let too_many = |count: f64| {
            Err(Fault::caller(format!(
                "that would be {count:.0} steps or more: allow more to move"
            )))
        };
        if least > MOST_STEPS as f64 {
            return too_many(least);
        }
        let (mut steps, mut factor, mut pace): (Vec<Step>, f64, f64) = (Vec::new(), 0.0, 1.0);
        let mut ring = builder.clone();
        while factor < 1.0 {
            let (step, after) = self.step(&ring, factor, &mut pace, now)?;
            ring = after;
            let before = self.weights(factor);
            factor = step.factor;
            // The next one goes on from where nothing moved; the last one has the weights wished for.
            if step.moved > 0 || (factor >= 1.0 && step.weights != before) {
                steps.push(step);
            }
            while factor >= 1.0 && steps.len() < MOST_STEPS {
                let (step, after) = self.rest(&ring, now)?;
                if step.moved as f64 <= self.partitions * WORTH_A_STEP {
                    break;
                }
                steps.push(step);
                ring = after;
            }
            if steps.len() >= MOST_STEPS {
                return too_many(steps.len() as f64);
            }
        }
        Ok(steps)
    }

    /// The next step, and the ring after it. `pace` is how much of what the last step moved had been reckoned.
    fn step(&self, ring: &RingBuilder, done: f64, pace: &mut f64, now: i64) -> Result<(Step, RingBuilder), Fault> {
        let (begin, mut moved) = (self.weights(done), 0);
        for _ in 0..TRIES {
            let factor = self.farthest(done, self.most as f64 * *pace);
            let (step, after) = self.take(ring, factor, now)?;
            // Overload and dispersion move more than shares tell.
            let reckoned = self.moved(&begin, &step.weights);
            let measured = reckoned / step.moved.max(1) as f64;
            if step.moved <= self.most {
                *pace = measured.clamp(*pace / 2.0, 1.0);
                return Ok((step, after));
            }
            moved = step.moved;
            *pace = measured.min(*pace) * CAUTION;
        }
        Err(self.too_much(moved))
    }

    /// What is left when all weights are as wished.
    fn rest(&self, ring: &RingBuilder, now: i64) -> Result<(Step, RingBuilder), Fault> {
        let (step, after) = self.take(ring, 1.0, now)?;
        if step.moved > self.most {
            return Err(self.too_much(step.moved));
        }
        Ok((step, after))
    }

    fn too_much(&self, moved: u64) -> Fault {
        Fault::caller(format!(
            "the smallest step moves {moved} replicas of partitions and {} are allowed: other changes wait in the builder \
             (rebalance first), or allow more to move",
            self.most
        ))
    }

    /// The ring after a step that was laid out for it.
    pub(super) fn taken(&self, ring: &RingBuilder, step: &Step, now: i64) -> Result<RingBuilder, Fault> {
        let mut after = ring.clone();
        for (id, weight) in self.ids.iter().zip(&step.weights) {
            after.set_weight(*id, *weight).map_err(refused)?;
        }
        after.pretend_min_part_hours_passed();
        after.rebalance(SEED, now).map_err(refused)?;
        Ok(after)
    }

    /// Sets the weights and rebalances.
    fn take(&self, ring: &RingBuilder, factor: f64, now: i64) -> Result<(Step, RingBuilder), Fault> {
        let weights = self.weights(factor);
        let planned = Step {
            factor,
            weights,
            moved: 0,
        };
        let after = self.taken(ring, &planned, now)?;
        let moved = moves(ring, &after);
        let weights = planned.weights;
        let step = Step { factor, weights, moved };
        Ok((step, after))
    }

    /// The weights at a point of the way, as they are said on a command line.
    fn weights(&self, factor: f64) -> Vec<f64> {
        if factor >= 1.0 {
            return self.to.clone();
        }
        let pairs = self.from.iter().zip(&self.to);
        pairs.map(|(from, to)| rounded(from + (to - from) * factor)).collect()
    }

    /// The farthest point of the way at which no more should have moved. What a device should hold only grows, or only
    /// shrinks, on the way, and so what has moved only grows.
    fn farthest(&self, done: f64, most: f64) -> f64 {
        let begin = self.weights(done);
        if self.moved(&begin, &self.to) <= most {
            return 1.0;
        }
        let (mut low, mut high) = (done, 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            match self.moved(&begin, &self.weights(middle)) <= most {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// How many replicas of partitions should move from one set of weights to another.
    fn moved(&self, before: &[f64], after: &[f64]) -> f64 {
        let (had, get) = (self.shares(before), self.shares(after));
        let gains = had.iter().zip(&get).map(|(had, get)| (get - had).max(0.0)).sum::<f64>();
        gains.max(had.iter().zip(&get).map(|(had, get)| (had - get).max(0.0)).sum())
    }

    /// What each device should hold, and the others together: no device holds a partition twice.
    fn shares(&self, weights: &[f64]) -> Vec<f64> {
        let total = weights.iter().sum::<f64>() + self.others;
        let own = weights
            .iter()
            .map(|weight| (self.cells * weight / total).min(self.partitions));
        let mut shares: Vec<f64> = own.collect();
        shares.push(self.cells - shares.iter().sum::<f64>());
        shares
    }
}

fn refused(error: BuilderError) -> Fault {
    Fault::caller(error.to_string())
}

/// A weight in six digits.
fn rounded(weight: f64) -> f64 {
    format!("{weight:.5e}").parse().unwrap_or(weight)
}

/// How many replicas of partitions are where they were not.
fn moves(before: &RingBuilder, after: &RingBuilder) -> u64 {
    let cells: u64 = after.assignments().iter().map(|row| row.len() as u64).sum();
    let stayed = in_place(before, after).into_iter().zip(0..);
    cells
        - stayed
            .map(|(count, replicas): (u64, u64)| count * replicas)
            .sum::<u64>()
}

/// For each number of replicas, the partitions of which so many are where they were.
pub(super) fn in_place(before: &RingBuilder, after: &RingBuilder) -> Vec<u64> {
    let (old, new) = (before.assignments(), after.assignments());
    let mut counts = vec![0; new.len() + 1];
    let mut there: Vec<u32> = Vec::with_capacity(old.len());
    for partition in 0..new.first().map_or(0, Vec::len) {
        there.clear();
        there.extend(old.iter().filter_map(|row| row.get(partition)));
        let mut stayed = 0;
        for device in new.iter().filter_map(|row| row.get(partition)) {
            if let Some(at) = there.iter().position(|it| it == device) {
                there.swap_remove(at);
                stayed += 1;
            }
        }
        counts[stayed] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::Device;
    use proptest::prelude::*;

    /// Devices in five zones with these weights, placed.
    fn ring(weights: &[f64]) -> RingBuilder {
        let mut builder = RingBuilder::new(8, 3.0, 1).unwrap();
        for (number, weight) in weights.iter().enumerate() {
            let device = Device {
                zone: number as u32 % 5,
                ip: "10.0.0.1".to_owned(),
                device: format!("d{number}"),
                weight: *weight,
                ..Device::default()
            };
            builder.add(device).unwrap();
        }
        builder.rebalance(1, 0).unwrap();
        builder
    }

    /// The first devices of a ring get other weights.
    fn way(from: &[f64], to: &[f64], others: f64, most: u64) -> RampPath {
        RampPath {
            ids: (0..from.len() as u32).collect(),
            from: from.to_vec(),
            to: to.to_vec(),
            others,
            cells: 3.0 * 256.0,
            partitions: 256.0,
            most,
        }
    }

    #[test]
    fn a_step_moves_no_more_than_is_allowed() {
        let builder = ring(&[[0.0; 2].as_slice(), &[100.0; 8]].concat());
        let steps = way(&[0.0; 2], &[100.0; 2], 800.0, 25).steps(&builder, 0).unwrap();
        // Two of ten equal devices hold a fifth: about 153 replicas, 25 of them in a step.
        let moved: u64 = steps.iter().map(|step| step.moved).sum();
        assert!(
            (150..=156).contains(&moved) && (7..=9).contains(&steps.len()),
            "{steps:?}"
        );
        assert!(steps.iter().all(|step| step.moved <= 25));
        assert_eq!(steps.last().unwrap().weights, [100.0; 2]);
    }

    #[test]
    fn devices_that_take_from_each_other_move_too() {
        let builder = ring(&[50.0, 150.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]);
        let steps = way(&[50.0, 150.0], &[100.0; 2], 600.0, 20).steps(&builder, 0).unwrap();
        assert!(
            steps.len() > 1 && steps.iter().map(|step| step.moved).sum::<u64>() >= 48,
            "{steps:?}"
        );
    }

    #[test]
    fn devices_that_go_end_with_nothing() {
        let builder = ring(&[100.0; 10]);
        let steps = way(&[100.0; 2], &[0.0; 2], 800.0, 1000).steps(&builder, 0).unwrap();
        // Of partitions that both hold, one replica moves at a time.
        assert!(
            steps.len() <= 2 && steps.iter().all(|step| step.weights == [0.0; 2]),
            "{steps:?}"
        );
        // A few more, so that replicas stay apart.
        let moved: u64 = steps.iter().map(|step| step.moved).sum();
        let held = builder.parts_of(0).unwrap() + builder.parts_of(1).unwrap();
        assert!((held..held + 10).contains(&moved), "{steps:?}");
    }

    #[test]
    fn what_waits_in_the_builder_is_no_part_of_the_way() {
        let mut builder = ring(&[100.0; 10]);
        builder.remove(9).unwrap();
        let refused = way(&[100.0; 2], &[0.0; 2], 800.0, 20)
            .steps(&builder, 0)
            .unwrap_err()
            .what;
        assert!(refused.contains("rebalance first"), "{refused}");
        assert!(way(&[0.0; 2], &[1.0; 2], 0.0, 20).steps(&builder, 0).is_err());
    }

    #[test]
    fn small_weights_keep_their_digits() {
        assert_eq!(
            [0.012_345_678, 16_000.0, 2_008.841_9].map(rounded),
            [0.012_345_7, 16_000.0, 2_008.84]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_way_ends_where_it_should(from in 0.0..1e3f64, to in 0.0..1e3f64, most in 20..500u64) {
            let builder = ring(&[from, from, 100.0, 200.0, 300.0, 100.0, 200.0, 300.0]);
            let steps = way(&[from; 2], &[to; 2], 1200.0, most).steps(&builder, 0).unwrap();
            prop_assert!(steps.iter().all(|step| step.moved <= most));
            if let Some(last) = steps.last() {
                prop_assert_eq!(&last.weights, &[to; 2]);
            }
        }
    }
}
