//! Which part of a work a process has, where several drivers do it together.
//!
//! Workers are numbered through all drivers, so that names are divided among them as one process would divide them;
//! positions that all workers share are dealt out in turn.
//! Always holds: each worker, each operation and each byte of a work's end is one driver's; a driver has a part only
//! if it has a worker; rates add up to the work's rate.

use crate::workload::{Arrivals, Work, WorkEnd};
use serde::{Deserialize, Serialize};

/// A part of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverShare {
    /// The number of its first worker.
    pub first: u32,
    /// How many it has.
    pub workers: u32,
    /// Its place among the parts, from 0 on.
    pub part: u32,
    /// Parts of the work.
    pub parts: u32,
}

impl DriverShare {
    /// All of a work.
    pub fn whole(work: &Work) -> Self {
        Self {
            first: 0,
            workers: work.workers,
            part: 0,
            parts: 1,
        }
    }

    /// A work among so many drivers: the first ones have one worker more where they do not come out even; those beyond
    /// the number of workers have nothing.
    pub fn divide(work: &Work, drivers: usize) -> Vec<Option<Self>> {
        let parts = u32::try_from(drivers).unwrap_or(u32::MAX).min(work.workers).max(1);
        let (each, more) = (work.workers / parts, work.workers % parts);
        let one = |part: u32| Self {
            first: part * each + part.min(more),
            workers: each + u32::from(part < more),
            part,
            parts,
        };
        (0..drivers)
            .map(|at| u32::try_from(at).ok().filter(|part| *part < parts).map(one))
            .collect()
    }

    /// Whether it can be a part of this work.
    pub fn fits(&self, work: &Work) -> bool {
        let last = self.first.checked_add(self.workers);
        self.part < self.parts && self.workers > 0 && last.is_some_and(|last| last <= work.workers)
    }

    /// The work with the end and the rate of this part.
    pub fn of(&self, work: &Work) -> Work {
        let whole = u64::from(work.workers.max(1));
        let cut = |total: u64| {
            let up_to = |workers: u32| u128::from(total) * u128::from(workers) / u128::from(whole);
            // Parts of a number that fits.
            (up_to(self.first + self.workers) - up_to(self.first)) as u64
        };
        let rate = |rate: f64| rate * f64::from(self.workers) / whole as f64;
        let mut work = work.clone();
        work.end = match work.end {
            WorkEnd::Operations(total) => WorkEnd::Operations(cut(total)),
            WorkEnd::Bytes(total) => WorkEnd::Bytes(cut(total)),
            other => other,
        };
        work.arrivals = match work.arrivals {
            Arrivals::AsAnswered => Arrivals::AsAnswered,
            Arrivals::Constant(all) => Arrivals::Constant(rate(all)),
            Arrivals::Poisson(all) => Arrivals::Poisson(rate(all)),
        };
        work
    }
}

#[cfg(test)]
mod tests {
    use super::DriverShare;
    use crate::load::plan::{Planner, Positions};
    use crate::workload::{Arrivals, Work, WorkEnd, cosbench};
    use std::sync::Arc;

    fn work(text: &str) -> Work {
        let text = format!("<workload name='w'><workflow><workstage name='s'>{text}</workstage></workflow></workload>");
        cosbench::parse(&text).unwrap().stages[0].works[0].clone()
    }

    /// What all drivers draw together.
    fn drawn(work: &Work, drivers: usize) -> Vec<(u64, u64)> {
        let shares = DriverShare::divide(work, drivers).into_iter().flatten();
        let mut all: Vec<_> = shares
            .flat_map(|share| {
                let part = Arc::new(share.of(work));
                let positions = Positions::of_share(&part, &share);
                let workers = share.first..share.first + share.workers;
                workers.flat_map(move |worker| {
                    let mut planner = Planner::new(part.clone(), worker, positions.clone(), 1);
                    std::iter::from_fn(move || planner.draw()).collect::<Vec<_>>()
                })
            })
            .map(|planned| (planned.container, planned.object))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn drivers_go_through_all_names_once_together() {
        for config in ["containers=r(1,3);objects=r(1,50)", "containers=s(1,3);objects=s(1,50)"] {
            for workers in [1, 2, 7, 60] {
                let work = work(&format!(
                    "<work type='prepare' workers='{workers}' config='{config};sizes=c(1)KB'/>"
                ));
                let expected: Vec<(u64, u64)> = (1..=3).flat_map(|one| (1..=50).map(move |two| (one, two))).collect();
                for drivers in [1, 2, 3, 5] {
                    assert_eq!(drawn(&work, drivers), expected, "{config} {workers} {drivers}");
                }
            }
        }
    }

    #[test]
    fn ends_and_rates_add_up() {
        let mut work = work(
            "<work workers='10' totalOps='1003'>\
             <operation type='read' ratio='100' config='containers=u(1,2);objects=u(1,5)'/></work>",
        );
        work.arrivals = Arrivals::Poisson(77.0);
        let shares: Vec<DriverShare> = DriverShare::divide(&work, 3).into_iter().flatten().collect();
        let workers: Vec<_> = shares.iter().map(|share| (share.first, share.workers)).collect();
        assert_eq!(workers, [(0, 4), (4, 3), (7, 3)]);
        let (mut operations, mut rate) = (0, 0.0);
        for share in &shares {
            assert!(share.fits(&work));
            let part = share.of(&work);
            let (WorkEnd::Operations(some), Arrivals::Poisson(part)) = (part.end, part.arrivals) else {
                panic!("{part:?}")
            };
            operations += some;
            rate += part;
        }
        assert_eq!((operations, (rate * 1e6).round()), (1003, 77e6));
        assert_eq!(DriverShare::divide(&work, 1), [Some(DriverShare::whole(&work))]);
        let many = DriverShare::divide(&work, 12);
        assert_eq!(many.iter().flatten().map(|share| share.workers).sum::<u32>(), 10);
        assert_eq!((many[9].is_some(), many[10], many[11]), (true, None, None));
    }
}
