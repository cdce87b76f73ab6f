//! How many cells of the table each device gets: by weight, but never more than one per partition.

/// Whole shares of `replicas` × `partitions` cells, in the order of the weights. They add up
/// exactly; neighbours are rounded together, so a zone listed in one piece is right as well.
///
/// At least `replicas` weights must be above zero.
pub(super) fn quotas(weights: &[f64], replicas: usize, partitions: u64) -> Vec<u64> {
    let total = replicas as u64 * partitions;
    let shares = shares(weights, total as f64, partitions as f64);
    let mut upto = 0.0;
    let mut given = 0;
    let mut quotas: Vec<u64> = shares
        .iter()
        .map(|share| {
            upto += share;
            let until = ((upto + 0.5).floor() as u64).clamp(given, total);
            let quota = until - given;
            given = until;
            quota
        })
        .collect();
    settle(&mut quotas, weights, total, partitions);
    quotas
}

/// Exact shares; what a device cannot take goes to the others by their weight.
fn shares(weights: &[f64], total: f64, most: f64) -> Vec<f64> {
    let mut full = vec![false; weights.len()];
    loop {
        let filled = full.iter().filter(|&&full| full).count() as f64 * most;
        let open: f64 = weights
            .iter()
            .zip(&full)
            .filter(|(_, full)| !**full)
            .map(|(weight, _)| weight)
            .sum();
        let share = |weight: f64| {
            if open > 0.0 {
                (total - filled).max(0.0) * (weight / open)
            } else {
                0.0
            }
        };
        let over: Vec<usize> = (0..weights.len())
            .filter(|&place| !full[place] && share(weights[place]) > most)
            .collect();
        if over.is_empty() {
            let shares = weights.iter().zip(&full);
            return shares
                .map(|(&weight, &full)| if full { most } else { share(weight) })
                .collect();
        }
        over.into_iter().for_each(|place| full[place] = true);
    }
}

/// Corrects what rounding of floats may have left: too much on one device, or a sum that is off.
fn settle(quotas: &mut [u64], weights: &[f64], total: u64, most: u64) {
    quotas.iter_mut().for_each(|quota| *quota = (*quota).min(most));
    let mut missing = total - quotas.iter().sum::<u64>().min(total);
    for (quota, &weight) in quotas.iter_mut().zip(weights) {
        if weight > 0.0 {
            let room = missing.min(most - *quota);
            *quota += room;
            missing -= room;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quotas;
    use proptest::prelude::*;

    #[test]
    fn equal_weights_give_equal_shares() {
        assert_eq!(quotas(&[1.0; 4], 3, 1024), [768; 4]);
        assert_eq!(quotas(&[100.0, 0.0, 100.0, 200.0], 1, 16), [4, 0, 4, 8]);
    }

    #[test]
    fn a_heavy_device_takes_each_partition_once_and_the_others_the_rest() {
        assert_eq!(quotas(&[1000.0, 1.0, 1.0], 2, 16), [16, 8, 8]);
        assert_eq!(quotas(&[5.0, 1e-9, 3.0], 3, 8), [8, 8, 8]);
    }

    proptest! {
        #[test]
        fn they_add_up_and_none_is_over(
            weights in proptest::collection::vec(prop_oneof![Just(0.0), 1e-3..1e6], 1..50),
            replicas in 1usize..5,
            power in 0u32..16,
        ) {
            let weighted = weights.iter().filter(|weight| **weight > 0.0).count();
            prop_assume!(weighted >= replicas);
            let partitions = 1u64 << power;
            let quotas = quotas(&weights, replicas, partitions);
            prop_assert_eq!(quotas.iter().sum::<u64>(), replicas as u64 * partitions);
            for (quota, weight) in quotas.iter().zip(&weights) {
                prop_assert!(*quota <= partitions);
                prop_assert!(*weight > 0.0 || *quota == 0);
            }
        }
    }
}
