//! The tools an operator calls: each is a function of `operator-tools` on this machine and this terminal.

use crate::cluster_tls::peers_of_tool;
use crate::failure::CommandFailure;
use crate::process::StopSignals;
use operator_tools::console::{Console, ToolStatus, run};
use operator_tools::{
    cluster_ca, config, database_info, dispersion, drive_audit, form_signature, get_nodes, keys, object_info, oldies,
    orphans, recon, recon_cron, reconciler_enqueue,
};
use peer::Peers;
use std::io;
use std::path::Path;
use world::World;

/// `martlet form-signature`.
pub fn form_signature(line: &form_signature::FormSignatureArguments) -> Result<(), CommandFailure> {
    tool(|console| form_signature::run(line, &World::real(), console))
}

/// `martlet object-info`.
pub fn object_info(line: &object_info::ObjectInfoArguments) -> Result<(), CommandFailure> {
    tool(|console| object_info::run(line, &World::real(), console))
}

/// `martlet account-info`.
pub fn account_info(line: &database_info::DatabaseInfoArguments) -> Result<(), CommandFailure> {
    tool(|console| database_info::run_account(line, &World::real(), console))
}

/// `martlet container-info`.
pub fn container_info(line: &database_info::ContainerArguments) -> Result<(), CommandFailure> {
    tool(|console| database_info::run_container(line, &World::real(), console))
}

/// `martlet cluster-ca`.
pub fn cluster_ca(line: &cluster_ca::ClusterCaArguments) -> Result<(), CommandFailure> {
    tool(|console| cluster_ca::run(line, &World::real(), console))
}

/// `martlet keys`.
pub fn keys(line: &keys::KeysArguments) -> Result<(), CommandFailure> {
    let runtime = runtime()?;
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    tool(|console| runtime.block_on(keys::run(line, environment, &World::real(), console)))
}

/// `martlet recon`.
pub fn recon(line: &recon::ReconArguments) -> Result<(), CommandFailure> {
    let (runtime, peers) = (runtime()?, peers(line.cluster_tls.as_deref())?);
    tool(|console| runtime.block_on(recon::run(line, &peers, console)))
}

/// `martlet dispersion-populate`.
pub fn dispersion_populate(line: &dispersion::PopulateArguments) -> Result<(), CommandFailure> {
    let runtime = runtime()?;
    tool(|console| runtime.block_on(dispersion::populate(line, &World::real(), console)))
}

/// `martlet dispersion-report`.
pub fn dispersion_report(line: &dispersion::ReportArguments) -> Result<(), CommandFailure> {
    let (runtime, peers) = (runtime()?, peers(line.cluster_tls.as_deref())?);
    tool(|console| runtime.block_on(dispersion::report(line, &peers, console)))
}

/// `martlet bench`. Ctrl-C and SIGTERM end the load, not the report.
pub fn bench(line: &bench::arguments::BenchArguments) -> Result<(), CommandFailure> {
    interruptible(async |console, stop| bench::command::run(line, &World::real(), console, stop.came()).await)
}

/// `martlet advise`.
pub fn advise(line: &advisor::arguments::AdviseArguments) -> Result<(), CommandFailure> {
    if let Some(line) = line.measurement() {
        return interruptible(async |console, stop| {
            advisor::measure::run(line, &World::real(), console, stop.came()).await
        });
    }
    if let Some(line) = line.look() {
        let (runtime, peers) = (runtime()?, peers(line.cluster_tls.as_deref())?);
        let own = crate::addresses::of("0.0.0.0");
        return tool(|console| runtime.block_on(advisor::look::run(line, &peers, own, console)));
    }
    tool(|console| advisor::command::run(line, &World::real(), console))
}

/// Runs a tool that Ctrl-C or SIGTERM ends in order, which may take long; the second one ends it at once.
fn interruptible(
    work: impl AsyncFnOnce(&mut Console<'_>, StopSignals) -> io::Result<ToolStatus>,
) -> Result<(), CommandFailure> {
    let runtime = runtime()?;
    let (first, both) = runtime.block_on(async { (StopSignals::listen(), StopSignals::listen()) });
    let (first, both) = (first?, both?);
    tool(|console| {
        runtime.block_on(async {
            tokio::select! {
                done = work(&mut *console, first) => return done,
                () = both.came_twice() => {}
            }
            console.complain("interrupted twice: nothing more is waited for, reported or deleted")?;
            Ok(ToolStatus::FAILURE)
        })
    })
}

/// For tools that speak to servers.
fn runtime() -> Result<tokio::runtime::Runtime, CommandFailure> {
    let made = tokio::runtime::Builder::new_current_thread().enable_all().build();
    made.map_err(CommandFailure::io("start", Path::new("the runtime")))
}

/// For tools that speak to storage servers.
fn peers(conf: Option<&Path>) -> Result<Peers, CommandFailure> {
    peers_of_tool(&World::real(), conf)
}

/// `martlet get-nodes`.
pub fn get_nodes(line: &get_nodes::GetNodesArguments) -> Result<(), CommandFailure> {
    tool(|console| get_nodes::run(line, &World::real(), console))
}

/// `martlet oldies`.
pub fn oldies(line: &oldies::OldiesArguments) -> Result<(), CommandFailure> {
    tool(|console| oldies::run(line, &World::real(), console))
}

/// `martlet orphans`.
pub fn orphans(line: &orphans::OrphansArguments) -> Result<(), CommandFailure> {
    tool(|console| orphans::run(line, &World::real(), console))
}

/// `martlet config`.
pub fn config(line: &config::ConfigArguments) -> Result<(), CommandFailure> {
    tool(|console| config::run(line, &World::real(), console))
}

/// `martlet drive-audit`.
pub fn drive_audit(line: &drive_audit::DriveAuditArguments) -> Result<(), CommandFailure> {
    telemetry::log::start(settings::LogLevel::Info, None);
    let runtime = runtime()?;
    tool(|console| runtime.block_on(drive_audit::run(line, &World::real(), console)))
}

/// `martlet recon-cron`.
pub fn recon_cron(line: &recon_cron::ReconCronArguments) -> Result<(), CommandFailure> {
    telemetry::log::start(settings::LogLevel::Warning, None);
    let runtime = runtime()?;
    tool(|console| runtime.block_on(recon_cron::run(line, &World::real(), console)))
}

/// `martlet reconciler-enqueue`.
pub fn reconciler_enqueue(line: &reconciler_enqueue::ReconcilerEnqueueArguments) -> Result<(), CommandFailure> {
    let (runtime, peers) = (runtime()?, peers(line.cluster_tls.as_deref())?);
    tool(|console| runtime.block_on(reconciler_enqueue::run(line, &peers, console)))
}

fn tool(work: impl FnOnce(&mut Console<'_>) -> io::Result<ToolStatus>) -> Result<(), CommandFailure> {
    match run(work) {
        ToolStatus::SUCCESS => Ok(()),
        ToolStatus(status) => Err(CommandFailure::Tool(status)),
    }
}
