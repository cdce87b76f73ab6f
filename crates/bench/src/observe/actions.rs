//! Commands at set times within a stage.
//!
//! Always holds: commands run one after the other, in the order of their times; each that was begun and can be undone
//! is undone by the end of the stage, the last one first, even if it failed itself.

use super::command::run_command;
use crate::report::observed::{ActionReport, ColdReport};
use crate::workload::Stage;
use crate::workload::own_format::observation::{ObservationPlan, TimedAction};
use std::time::Duration;
use tokio::sync::watch::Receiver;
use vocabulary::Fault;
use world::World;

/// Commands of a stage, some of them run already.
pub(super) struct Actions<'a> {
    world: &'a World,
    /// When the stage began, by the world's clock.
    begun: Duration,
    all: Vec<(TimedAction, ActionReport)>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Run,
    Undo,
}

impl<'a> Actions<'a> {
    /// Those of a stage.
    pub fn of_stage(plan: &ObservationPlan, world: &'a World, stage: &Stage, begun: Duration) -> Self {
        let mine = plan
            .actions
            .iter()
            .filter(|one| one.stage.as_deref() == Some(&stage.name));
        Self {
            world,
            begun,
            all: mine.map(|one| (one.clone(), ActionReport::named(&one.name))).collect(),
        }
    }

    /// What is due next, and when after the start of the stage.
    fn due(&self) -> Option<(Duration, Step, usize)> {
        let steps = self.all.iter().enumerate().filter_map(|(at, (action, report))| {
            match (report.begun, report.undone, action.until) {
                (None, _, _) => Some((action.at, Step::Run, at)),
                (Some(_), None, Some(until)) => Some((until, Step::Undo, at)),
                _ => None,
            }
        });
        steps.min()
    }

    /// Runs commands when they are due, until the stage is over; one that runs then is waited for.
    pub async fn run(&mut self, mut is_over: Receiver<bool>) {
        while let Some((time, step, at)) = self.due() {
            let now = self.world.clock.elapsed().saturating_sub(self.begun);
            let is_stopped = tokio::select! {
                biased;
                _ = is_over.wait_for(|is_over| *is_over) => true,
                () = self.world.clock.sleep(time.saturating_sub(now)) => false,
            };
            if is_stopped {
                return;
            }
            self.take(step, at).await;
        }
    }

    async fn take(&mut self, step: Step, at: usize) {
        let (world, begun) = (self.world, self.begun);
        let now = || world.clock.elapsed().saturating_sub(begun).as_secs_f64();
        let (action, report) = &mut self.all[at];
        let words = match step {
            Step::Run => {
                report.begun = Some(now());
                &action.run
            }
            Step::Undo => {
                report.undone = Some(now());
                &action.undo
            }
        };
        let end = run_command(world, words, action.patience).await;
        report.output += &end.output;
        let lasted = match step {
            Step::Run => &mut report.ended,
            Step::Undo => &mut report.undo_ended,
        };
        *lasted = Some(now());
        if let Some(why) = end.failure {
            let what = if step == Step::Run { "" } else { "undo: " };
            report.failures.push(format!("{what}{}: {why}", words.join(" ")));
        }
    }

    /// Undoes all that was begun and is not undone.
    pub async fn undo_all(&mut self) {
        let mut left: Vec<usize> = (0..self.all.len())
            .filter(|at| {
                let (action, report) = &self.all[*at];
                report.begun.is_some() && report.undone.is_none() && !action.undo.is_empty()
            })
            .collect();
        left.sort_by(|one, other| {
            self.all[*other]
                .1
                .begun
                .unwrap_or(0.0)
                .total_cmp(&self.all[*one].1.begun.unwrap_or(0.0))
        });
        for at in left {
            self.take(Step::Undo, at).await;
        }
    }

    /// What came of them.
    pub fn reports(self) -> Vec<ActionReport> {
        let one = |(_, mut report): (TimedAction, ActionReport)| {
            if report.begun.is_none() {
                report
                    .failures
                    .push("not run: its stage was over before its time".to_owned());
            }
            report
        };
        self.all.into_iter().map(one).collect()
    }
}

/// Runs the command that makes the store cold, if that is to be done before this stage. One that fails ends the run:
/// what follows would be called cold and not be it.
pub(super) async fn cold_start(
    plan: &ObservationPlan,
    world: &World,
    stage: &Stage,
) -> Result<Option<ColdReport>, Fault> {
    let cold = plan
        .cold
        .as_ref()
        .filter(|cold| cold.stage.as_deref() == Some(&stage.name));
    let Some(cold) = cold else { return Ok(None) };
    let end = run_command(world, &cold.run, cold.patience).await;
    match end.failure {
        None => Ok(Some(ColdReport {
            command: cold.run.join(" "),
            output: end.output,
        })),
        Some(why) => Err(Fault::caller(format!(
            "stage {} is not run, as it would not be cold: {}: {why} {}",
            stage.name,
            cold.run.join(" "),
            end.output.trim()
        ))),
    }
}
