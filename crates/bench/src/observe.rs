//! What happens beside the load, on the same axis of time: commands at set times, and figures of the servers.
//!
//! | question | file |
//! |---|---|
//! | what a workload says about it | `workload/own_format/observation.rs` |
//! | when commands run, and that they are undone | `observe/actions.rs` |
//! | how one command runs | `observe/command.rs` |
//! | what servers are asked | `observe/servers.rs` |
//! | writing until devices are so full | `observe/filling.rs` |
//! | what is reported | `report/observed.rs` |
//!
//! Always holds: the load is never changed by it, but for a stage that is to end with devices as full as was asked; a
//! server that cannot be asked is a count in the report, and a command that fails is a line in it. A command that was
//! begun is undone before the stage is over, however that ends.

mod actions;
mod command;
mod filling;
mod servers;

use crate::load::LoadWatch;
use crate::report::StageReport;
use crate::report::observed::StageObservations;
use crate::workload::Stage;
use crate::workload::own_format::observation::ObservationPlan;
use actions::{Actions, cold_start};
use filling::Filling;
use servers::Servers;
use vocabulary::Fault;
use world::World;

/// Runs a stage, and what its workload says is to happen meanwhile; the stage's report has all of it.
pub async fn around(
    plan: &ObservationPlan,
    world: &World,
    stage: &Stage,
    watch: &LoadWatch,
    running: impl Future<Output = Result<StageReport, Fault>>,
) -> Result<StageReport, Fault> {
    let cold = cold_start(plan, world, stage).await?;
    let filling = match stage.full {
        Some(share) => Some(Filling::begin(world, &plan.servers, watch, share).await?),
        None => None,
    };
    let (begun, begun_at) = (world.clock.elapsed(), world.clock.now().as_f64());
    let mut actions = Actions::of_stage(plan, world, stage, begun);
    let mut servers = Servers::new(&plan.servers, world, begun);
    let (end, is_over) = tokio::sync::watch::channel(false);
    let load = async {
        let finished = running.await;
        // Both that listen go on until the end.
        let _ = end.send(true);
        finished
    };
    let filled = async {
        match filling {
            Some(filling) => Some(filling.run(is_over.clone()).await),
            None => None,
        }
    };
    let beside = futures_util::future::join(actions.run(is_over.clone()), servers.ask_until(is_over.clone()));
    let (finished, _, filled) = futures_util::join!(load, beside, filled);
    actions.undo_all().await;
    let mut report = finished?;
    report.begun = begun_at;
    let actions = actions.reports();
    report.observed = StageObservations::new(cold, actions, servers.reports(&report), &report);
    report.observed.filling = filled;
    Ok(report)
}
