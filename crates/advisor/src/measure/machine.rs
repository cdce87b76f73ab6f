//! Whether a plan can be measured here: this machine has what it asks for and measures nothing else meanwhile, and its
//! limits let enough requests through.
//!
//! Always holds: what is missing is named before anything runs, with what would be enough.

use super::outcome;
use super::plan::{CONTAINERS, MeasurePlan, PIECE_ROOM};
use crate::fit::known_limits::KnownLimits;
use crate::fit::points::Configuration;
use crate::model::estimate::readable;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use vocabulary::Fault;
use world::World;

/// A name that is no file: it goes with the process that holds it, however that ends.
const NAME: &str = "martlet-advise-measure";

/// Requests that a run answers at least: fewer say nothing of throughput, and less of p99.
const FEWEST_REQUESTS: f64 = 10.0;

/// What no other measurement of this machine has while this lives.
pub struct OnlyMeasurement {
    _name: UnixListener,
}

/// Two measurements slow each other, and neither could tell: a second one is refused rather than made to wait.
pub fn only_measurement() -> Result<OnlyMeasurement, Fault> {
    let name = SocketAddr::from_abstract_name(NAME);
    match name.and_then(|name| UnixListener::bind_addr(&name)) {
        Ok(name) => Ok(OnlyMeasurement { _name: name }),
        Err(error) => Err(Fault::caller(format!(
            "another measurement goes on here{} ({error}): two on one machine slow each other, and neither can tell: wait \
             until it has ended",
            holder().map_or(String::new(), |pid| format!(", of process {pid}"))
        ))),
    }
}

/// The process that holds the name.
fn holder() -> Option<i32> {
    let name = SocketAddr::from_abstract_name(NAME).ok()?;
    let other = UnixStream::connect_addr(&name).ok()?;
    let process = rustix::net::sockopt::socket_peercred(&other).ok()?;
    Some(process.pid.as_raw_nonzero().get())
}

/// An error where this machine cannot be what the plan asks for; a note where it can be the limit itself.
pub fn check(world: &World, plan: &MeasurePlan, processors: usize, is_limited: bool) -> Result<Option<String>, Fault> {
    room(world, plan)?;
    match is_limited {
        true => enough_requests(plan).and_then(|()| processor_note(plan, processors)),
        false => Ok(None),
    }
}

/// Drives, networks and the balancer bear so many requests that a run has a few.
fn enough_requests(plan: &MeasurePlan) -> Result<(), Fault> {
    let known = KnownLimits {
        devices: outcome::device_limits(plan),
        write_share: 1.0 - plan.reads,
        pieces: f64::from(plan.replicas),
    };
    let least = |all: &[u32]| f64::from(all.iter().copied().min().unwrap_or(1));
    for size in &plan.sizes {
        let configuration = Configuration {
            gateways: least(&plan.gateways),
            storage_nodes: least(&plan.storage_nodes),
            size: *size as f64,
            workers: 1.0,
        };
        let Some(bound) = known.bound(configuration) else {
            continue;
        };
        let seconds = (FEWEST_REQUESTS * bound.seconds).ceil();
        if f64::from(plan.seconds) < seconds {
            return Err(Fault::caller(format!(
                "seconds: {}: {} bear at most {} requests/s of {size} bytes, and a run of less than {FEWEST_REQUESTS} says \
                 nothing: expected {seconds} or more, smaller objects, or larger limits",
                plan.seconds,
                bound.resource.name(),
                readable(1.0 / bound.seconds)
            )));
        }
    }
    Ok(())
}

/// Objects of all sizes fit into the folder.
fn room(world: &World, plan: &MeasurePlan) -> Result<(), Fault> {
    let found = world.files.space(&plan.folder);
    let free = found.map_err(|error| Fault::caller(format!("folder: {}: {error}", plan.folder.display())))?;
    let each: f64 = plan.sizes.iter().map(|size| *size as f64 + PIECE_ROOM).sum();
    let needed = each * f64::from(plan.objects * CONTAINERS) * f64::from(plan.replicas);
    match needed <= free.available as f64 {
        true => Ok(()),
        false => Err(Fault::caller(format!(
            "folder: {} has {:.0} MB free, and {} objects in each of {CONTAINERS} containers of all sizes take {:.0} MB in {} \
             replicas: expected fewer or smaller objects, or a folder with more room",
            plan.folder.display(),
            free.available as f64 / 1e6,
            plan.objects,
            needed / 1e6,
            plan.replicas
        ))),
    }
}

/// No node may use more processors than there are; all of them together may, as long as not all are busy.
fn processor_note(plan: &MeasurePlan, processors: usize) -> Result<Option<String>, Fault> {
    let there = processors as f64;
    for (section, limits) in [("gateway", plan.gateway), ("storage", plan.storage)] {
        if limits.processors > there {
            return Err(Fault::caller(format!(
                "{section}: processors = {}, and this machine gives {there}: no limit would be that of such a node: expected \
                 {there} or fewer (processors in [{section}] goes before what its kind has), or a larger machine",
                limits.processors
            )));
        }
    }
    let most = |all: &[u32]| f64::from(all.iter().copied().max().unwrap_or(1));
    let (gateways, nodes) = (most(&plan.gateways), most(&plan.storage_nodes));
    let all = gateways * plan.gateway.processors + nodes * plan.storage.processors;
    Ok((all > there).then(|| {
        format!(
            "note: the limits of {gateways} gateways and {nodes} storage nodes are {} processors together, and this machine \
             gives {there}: where all of them are busy it is the limit, and such a run is refused",
            readable(all)
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::{check, holder, only_measurement};
    use crate::inventory::PurchaseInventory;
    use crate::measure::plan::MeasurePlan;
    use world::World;

    fn plan(objects: u32, processors: f64) -> MeasurePlan {
        let folder = std::env::temp_dir();
        let text = format!(
            "gateways = [1]\nstorage_nodes = [1, 4]\nsizes = [1000000000]\nworkers = [8]\nobjects = {objects}\nfolder = \
             {folder:?}\n[gateway]\nprocessors = 0.5\n[storage]\nprocessors = {processors}\n"
        );
        MeasurePlan::read(&text, |_| PurchaseInventory::read("")).unwrap()
    }

    #[test]
    fn what_a_machine_lacks_is_named() {
        let world = World::real();
        let found = |objects, processors| check(&world, &plan(objects, processors), 2, true);
        // A petabyte and more.
        let why = found(100_000, 0.1).unwrap_err().what;
        assert!(
            why.starts_with("folder: ") && why.contains("1200009830 MB in 3 replicas"),
            "{why}"
        );
        let little = MeasurePlan {
            sizes: vec![4096],
            ..plan(1, 0.1)
        };
        assert_eq!(check(&world, &little, 2, true).unwrap(), None);
        let many = MeasurePlan {
            sizes: vec![4096],
            ..plan(1, 2.5)
        };
        let why = check(&world, &many, 2, true).unwrap_err().what;
        assert!(
            why.contains("storage: processors = 2.5, and this machine gives 2"),
            "{why}"
        );
        assert_eq!(check(&world, &many, 2, false).unwrap(), None);
        let note = check(&world, &many, 4, true).unwrap().unwrap();
        assert!(note.contains("are 10.5 processors together"), "{note}");
    }

    #[test]
    fn limits_that_let_hardly_a_request_through_are_named() {
        let slow = MeasurePlan {
            sizes: vec![1_000_000],
            balancer: Some(1e6),
            seconds: 9,
            ..plan(1, 0.1)
        };
        let why = check(&World::real(), &slow, 2, true).unwrap_err().what;
        let expected = "seconds: 9: balancers bear at most 1.00 requests/s of 1000000 bytes";
        assert!(why.contains(expected) && why.contains("expected 10 or more"), "{why}");
        let longer = MeasurePlan { seconds: 10, ..slow };
        assert!(check(&World::real(), &longer, 2, true).is_ok());
        let short = MeasurePlan { seconds: 2, ..longer };
        assert!(check(&World::real(), &short, 2, false).is_ok(), "nothing is limited");
    }

    #[test]
    fn one_measurement_goes_on_at_a_time() {
        // Another program may measure while this test runs.
        let Ok(only) = only_measurement() else { return };
        let why = only_measurement().map(|_| ()).unwrap_err().what;
        let own = format!("of process {}", std::process::id());
        assert!(
            why.contains("another measurement goes on here") && why.contains(&own),
            "{why}"
        );
        drop(only);
        assert_ne!(holder(), Some(std::process::id() as i32));
    }
}
