//! The `martlet` command: wiring, start-up and shutdown. Alone reads the environment.
//!
//! | question | file |
//! |---|---|
//! | what can be said on the command line | `cli.rs`; in which forms: `optparse.rs` |
//! | a whole cluster in one process | `up.rs`, its first start `first_start.rs` |
//! | one server of a cluster | `server.rs` |
//! | its two processes: what stays, what serves | `overseer.rs`, `worker.rs` |
//! | under which name the program was called | `program.rs` |
//! | from configuration to a gateway | `proxy.rs` |
//! | from configuration to storage services | `storage.rs` |
//! | from configuration to upkeep | `upkeep.rs`; what has a gateway of its own: `upkeep/through_gateway.rs` |
//! | figures for Prometheus | `metrics.rs` |
//! | ring files | `rings.rs`, `ring_file.rs` |
//! | the operator's ring commands | `ring_tools.rs` |
//! | certificates | `tls.rs`; those of a cluster: `cluster_tls.rs` |
//! | threads, privileges, signals | `process.rs` |
//! | who goes first when processors are scarce | `priority.rs` |
//! | the tools an operator calls | `tools.rs` |
//! | logs | `logging.rs` |
//! | why a start failed | `failure.rs` |
//! | what a request allocates (`make allocations`) | `allocations.rs` |

mod addresses;
#[cfg(feature = "count-allocations")]
mod allocations;
mod cli;
mod cluster_tls;
mod failure;
mod first_start;
mod logging;
mod metrics;
mod optparse;
mod overseer;
mod passed_on;
mod priority;
mod process;
mod program;
mod proxy;
mod recon_door;
mod ring_file;
mod ring_ports;
mod ring_tools;
mod rings;
mod server;
mod service_manager;
mod storage;
mod tls;
mod tools;
mod up;
mod upkeep;
mod worker;

#[cfg(not(feature = "count-allocations"))]
use allocator::Allocator;
use cli::{Cli, Command};
use failure::CommandFailure;
use listing_server::Kind;
use std::io::Write;
use std::process::ExitCode;

#[cfg(not(feature = "count-allocations"))]
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;
#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    let code = run();
    telemetry::log_output::flush(process::LAST_LINES);
    code
}

fn run() -> ExitCode {
    #[cfg(feature = "count-allocations")]
    allocations::report_on_request();
    // Each thread's first allocation would make a page of 2 MiB resident, and there are many threads. It is no matter
    // where the kernel has no such pages.
    let _ = nix::sys::prctl::set_thp_disable(true);
    let result = match Cli::from_args(std::env::args_os()).command {
        Command::Up(up) => up::run(&up),
        Command::ProxyServer(server) => server::proxy(&server),
        Command::AccountServer(server) => server::account(&server),
        Command::ContainerServer(server) => server::container(&server),
        Command::ObjectServer(server) => server::object(&server),
        Command::AccountAuditor(upkeep) => upkeep::account_auditor(&upkeep),
        Command::ContainerAuditor(upkeep) => upkeep::container_auditor(&upkeep),
        Command::ObjectAuditor(line) => upkeep::object_auditor(&line),
        Command::AccountReplicator(line) => upkeep::database_replicator(Kind::Account, &line),
        Command::ContainerReplicator(line) => upkeep::database_replicator(Kind::Container, &line),
        Command::ObjectUpdater(upkeep) => upkeep::object_updater(&upkeep),
        Command::ObjectReplicator(line) => upkeep::object_replicator(&line),
        Command::ContainerUpdater(upkeep) => upkeep::container_updater(&upkeep),
        Command::AccountReaper(upkeep) => upkeep::account_reaper(&upkeep),
        Command::ContainerLifecycle(upkeep) => upkeep::container_lifecycle(&upkeep),
        Command::ContainerNotifier(upkeep) => upkeep::container_notifier(&upkeep),
        Command::ContainerSync(upkeep) => upkeep::container_sync(&upkeep),
        Command::ContainerReconciler(upkeep) => upkeep::container_reconciler(&upkeep),
        Command::ObjectExpirer(expirer) => upkeep::object_expirer(&expirer),
        Command::RingBuilder(line) => return ring_tools::ring_builder("ring-builder", &line),
        Command::RingComposer(line) => return ring_tools::ring_composer(&line),
        Command::RingBuilderSafe(line) => return ring_tools::ring_builder("ring-builder-safe", &line),
        Command::Recon(line) => tools::recon(&line),
        Command::DispersionPopulate(line) => tools::dispersion_populate(&line),
        Command::Bench(line) => tools::bench(&line),
        Command::Advise(line) => tools::advise(&line),
        Command::DispersionReport(line) => tools::dispersion_report(&line),
        Command::FormSignature(line) => tools::form_signature(&line),
        Command::GetNodes(line) => tools::get_nodes(&line),
        Command::ObjectInfo(line) => tools::object_info(&line),
        Command::DriveAudit(line) => tools::drive_audit(&line),
        Command::ReconCron(line) => tools::recon_cron(&line),
        Command::ReconcilerEnqueue(line) => tools::reconciler_enqueue(&line),
        Command::Config(line) => tools::config(&line),
        Command::Oldies(line) => tools::oldies(&line),
        Command::Orphans(line) => tools::orphans(&line),
        Command::AccountInfo(line) => tools::account_info(&line),
        Command::ContainerInfo(line) => tools::container_info(&line),
        Command::Keys(line) => tools::keys(&line),
        Command::ClusterCa(line) => tools::cluster_ca(&line),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // It has said why.
        Err(CommandFailure::Worker(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(CommandFailure::Tool(status)) => ExitCode::from(status),
        Err(failure) => {
            telemetry::log_output::flush(process::LAST_LINES);
            // Where that cannot be said the status still tells.
            let _ = writeln!(std::io::stderr(), "martlet: {failure}");
            ExitCode::FAILURE
        }
    }
}
