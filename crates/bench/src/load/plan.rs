//! Which operation a worker does next, and on which names.
//!
//! Always holds: over many draws operations have their ratios; a worker of a work that goes through its names draws
//! each of its pairs of container and object once, then nothing.

use super::script_part::{ObjectTurn, ScriptPart};
use super::share::DriverShare;
use crate::workload::detail::ByteSpan;
use crate::workload::selector::{Selector, Span};
use crate::workload::{Division, Work, WorkEnd, WorkOperation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Positions that all workers of a work share: of each operation's containers and of its objects. Of several drivers
/// each takes every so-manieth position.
pub struct Positions {
    taken: Vec<[AtomicU64; 2]>,
    /// Of a work whose operations are known one by one.
    script: Option<ScriptPart>,
    part: u64,
    parts: u64,
}

impl Positions {
    /// All at their beginning, of a work that has one driver.
    pub fn of(work: &Work) -> Arc<Self> {
        Self::of_share(work, &DriverShare::whole(work))
    }

    /// All at their beginning.
    pub fn of_share(work: &Work, share: &DriverShare) -> Arc<Self> {
        Arc::new(Self {
            taken: work.operations.iter().map(|_| Default::default()).collect(),
            script: work.script.as_ref().map(|script| ScriptPart::of(work, script, share)),
            part: share.part.into(),
            parts: share.parts.max(1).into(),
        })
    }

    /// The next position of an operation's containers (0) or objects (1).
    fn take(&self, operation: usize, which: usize) -> Option<u64> {
        let taken = self.taken.get(operation)?[which].fetch_add(1, Ordering::Relaxed);
        Some(self.dealt(taken))
    }

    /// The next step of a work's script.
    fn step(&self, work: &Work) -> Option<Planned> {
        let (script, part) = work.script.as_ref().zip(self.script.as_ref())?;
        let (step, after) = part.next(script)?;
        Some(Planned {
            operation: step.operation.into(),
            container: step.container.into(),
            object: step.object.into(),
            size: step.size,
            range: step.is_range.then(|| ByteSpan {
                first: 0,
                last: step.size.saturating_sub(1),
            }),
            copy: 0,
            at: script.is_timed.then(|| Duration::from_micros(step.at)),
            is_absent: step.is_absent,
            after,
        })
    }

    /// Completes when an operation may begin: those on its object that it has to wait for are done. The turn is to be
    /// held until the operation has ended; there is none where no order is kept.
    pub async fn turn(&self, planned: &Planned) -> Option<ObjectTurn<'_>> {
        match &self.script {
            Some(script) => script.turn(planned.object, planned.after).await,
            None => None,
        }
    }

    /// Of positions that drivers take in turn, this one's after so many.
    fn dealt(&self, taken: u64) -> u64 {
        taken.saturating_mul(self.parts).saturating_add(self.part)
    }
}

/// What a worker is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// The operation's place in its work.
    pub operation: usize,
    /// Number of the container.
    pub container: u64,
    /// Number of the object; 0 for operations on containers.
    pub object: u64,
    /// Bytes of the body that is sent.
    pub size: u64,
    /// Bytes that are read, where not all are.
    pub range: Option<ByteSpan>,
    /// Number of the copy that is made.
    pub copy: u64,
    /// When it is due, after the start of the work; nothing where that is no matter of the operation.
    pub at: Option<Duration>,
    /// There is no such object.
    pub is_absent: bool,
    /// How many operations on its object are done before it begins.
    pub after: u32,
}

/// Draws for one worker.
pub struct Planner {
    work: Arc<Work>,
    /// This worker's part of each operation's names; none where there are more workers than names.
    parts: Vec<Option<Part>>,
    shared: Arc<Positions>,
    dice: fastrand::Rng,
    /// Of a work that goes through its names: how many pairs this worker has drawn.
    enumerated: u64,
}

struct Part {
    containers: Selector,
    objects: Option<Selector>,
    /// What was drawn of ranges.
    positions: [u64; 2],
    sizes: u64,
}

impl Planner {
    /// For worker `worker` of a work, from 0 on.
    pub fn new(work: Arc<Work>, worker: u32, shared: Arc<Positions>, seed: u64) -> Self {
        let parts = work
            .operations
            .iter()
            .map(|operation| part(operation, worker, work.workers))
            .collect();
        Self {
            work,
            parts,
            shared,
            dice: fastrand::Rng::with_seed(seed),
            enumerated: 0,
        }
    }

    /// What comes next; nothing when this worker has nothing more to do.
    pub fn draw(&mut self) -> Option<Planned> {
        if self.work.script.is_some() {
            return self.shared.step(&self.work);
        }
        let operation = self.pick()?;
        let work = self.work.clone();
        let described = work.operations.get(operation)?;
        let part = self.parts.get_mut(operation)?.as_mut()?;
        let (container, object) = match work.end {
            WorkEnd::Enumerated => {
                let position = match shares(described) {
                    true => self.shared.take(operation, 0)?,
                    false => self.enumerated,
                };
                self.enumerated += 1;
                let (containers, objects) = (
                    part.containers.span(),
                    part.objects.as_ref().map_or(ONE, Selector::span),
                );
                let all = containers.count().saturating_mul(objects.count());
                (position < all).then_some(())?;
                (
                    containers.at(position / objects.count()),
                    objects.at(position % objects.count()),
                )
            }
            _ => {
                let shared = &self.shared;
                let mut next = |selector: &Selector, which: usize| {
                    let position = match selector {
                        Selector::Sequential(_) => shared.take(operation, which).unwrap_or_default(),
                        _ => {
                            part.positions[which] += 1;
                            part.positions[which] - 1
                        }
                    };
                    selector.draw(&mut self.dice, position)
                };
                let container = next(&part.containers, 0);
                (container, part.objects.as_ref().map_or(0, |objects| next(objects, 1)))
            }
        };
        let size = described
            .sizes
            .as_ref()
            .map_or(0, |sizes| sizes.draw(&mut self.dice, part.sizes));
        let range = described.detail.range.as_ref();
        let range = range.map(|range| range.draw(&mut self.dice, part.sizes));
        let copies = described.detail.copies.as_ref();
        let copy = copies.map_or(0, |copies| copies.numbers.draw(&mut self.dice, part.sizes));
        part.sizes += 1;
        Some(Planned {
            operation,
            container,
            object,
            size,
            range,
            copy,
            at: None,
            is_absent: false,
            after: 0,
        })
    }

    /// An operation by the ratios.
    fn pick(&mut self) -> Option<usize> {
        if self.work.operations.len() < 2 {
            return Some(0);
        }
        let mut mark = self.dice.u32(0..100);
        self.work.operations.iter().position(|operation| {
            let is_it = mark < operation.ratio;
            mark = mark.saturating_sub(operation.ratio);
            is_it
        })
    }
}

const ONE: Span = Span { first: 0, last: 0 };

/// Whether all workers go through the names together.
fn shares(operation: &WorkOperation) -> bool {
    let is_shared = |selector: &Selector| matches!(selector, Selector::Sequential(_));
    is_shared(&operation.containers.numbers)
        || operation
            .objects
            .as_ref()
            .is_some_and(|names| is_shared(&names.numbers))
}

fn part(operation: &WorkOperation, worker: u32, workers: u32) -> Option<Part> {
    let cut = |selector: &Selector| selector.part(u64::from(worker), u64::from(workers));
    let (containers, objects) = (
        &operation.containers.numbers,
        operation.objects.as_ref().map(|names| &names.numbers),
    );
    let (containers, objects) = match operation.division {
        Division::Container => (cut(containers)?, objects.cloned()),
        Division::Object => (
            containers.clone(),
            objects.map(cut).map_or(Some(None), |part| part.map(Some))?,
        ),
        Division::None => (containers.clone(), objects.cloned()),
    };
    Some(Part {
        containers,
        objects,
        positions: [0; 2],
        sizes: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::{Planner, Positions};
    use crate::workload::{Work, cosbench};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn work(text: &str) -> Arc<Work> {
        let text = format!("<workload name='w'><workflow><workstage name='s'>{text}</workstage></workflow></workload>");
        Arc::new(cosbench::parse(&text).unwrap().stages[0].works[0].clone())
    }

    fn drawn_by_all(work: &Arc<Work>) -> Vec<(u64, u64)> {
        let positions = Positions::of(work);
        let planners =
            (0..work.workers).map(|worker| Planner::new(work.clone(), worker, positions.clone(), worker.into()));
        let drawn = planners.flat_map(|mut planner| std::iter::from_fn(move || planner.draw()));
        drawn.map(|planned| (planned.container, planned.object)).collect()
    }

    #[test]
    fn special_works_go_through_all_pairs_once() {
        for config in ["containers=r(1,3);objects=r(1,50)", "containers=s(1,3);objects=s(1,50)"] {
            for workers in [1, 4, 60] {
                let work = work(&format!(
                    "<work type='prepare' workers='{workers}' config='{config};sizes=c(1)KB'/>"
                ));
                let drawn = drawn_by_all(&work);
                let unique: BTreeSet<_> = drawn.iter().copied().collect();
                assert_eq!((drawn.len(), unique.len()), (150, 150), "{config} {workers}");
            }
        }
        let containers = drawn_by_all(&work("<work type='init' workers='5' config='containers=r(1,32)'/>"));
        assert_eq!(containers.len(), 32);
    }

    /// The mix and the sizes against what was asked for, by Pearson's test at one in a million.
    #[test]
    fn ratios_and_sizes_are_kept() {
        let work = work(
            "<work workers='1' totalOps='1'>\
             <operation type='read' ratio='80' config='containers=u(1,32);objects=u(1,50)'/>\
             <operation type='write' ratio='15' config='containers=u(1,9);objects=u(1,50);sizes=h(1|1|10,2|2|20,3|3|70)KB'/>\
             <operation type='delete' ratio='5' config='containers=u(1,32);objects=u(1,50)'/></work>",
        );
        let mut planner = Planner::new(work.clone(), 0, Positions::of(&work), 17);
        let (mut kinds, mut sizes) = ([0.0; 3], [0.0; 3]);
        for _ in 0..100_000 {
            let planned = planner.draw().unwrap();
            kinds[planned.operation] += 1.0;
            if planned.operation == 1 {
                sizes[planned.size as usize / 1000 - 1] += 1.0;
            }
        }
        let deviation = |found: [f64; 3], shares: [f64; 3]| -> f64 {
            let total: f64 = found.iter().sum();
            found
                .iter()
                .zip(shares)
                .map(|(found, share)| (found - total * share).powi(2) / (total * share))
                .sum()
        };
        // The quantile of chi squared with two degrees of freedom at 1 - 1e-6.
        assert!(deviation(kinds, [0.8, 0.15, 0.05]) < 27.6, "{kinds:?}");
        assert!(deviation(sizes, [0.1, 0.2, 0.7]) < 27.6, "{sizes:?}");
    }

    #[test]
    fn divided_names_are_disjoint() {
        let work = work(
            "<work workers='4' totalOps='1' division='object'>\
             <operation type='read' ratio='100' config='containers=u(1,8);objects=u(1,1000)'/></work>",
        );
        for worker in 0..4 {
            let mut planner = Planner::new(work.clone(), worker, Positions::of(&work), 1);
            let (least, most) = (u64::from(worker) * 250 + 1, u64::from(worker) * 250 + 250);
            for _ in 0..1000 {
                let planned = planner.draw().unwrap();
                assert!((least..=most).contains(&planned.object) && (1..=8).contains(&planned.container));
            }
        }
    }
}
