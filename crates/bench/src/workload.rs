//! What is to be done to a store: stages one after the other, in each of them works side by side, in each work a number
//! of workers that draw operations by their ratios.
//!
//! The words are COSBench's, whose workloads are read as they are (`workload/cosbench.rs`); workloads in the format of
//! this program (`workload/own_format.rs`) and named ones (`workload/named.rs`) become the same.
//! Always holds: ratios of a work add up to 100; a work with operations of its own says when it ends; selectors are
//! not empty.

pub mod cosbench;
pub mod detail;
pub mod masked;
pub mod mistake;
pub mod named;
pub mod own_format;
pub mod parameters;
pub mod replayed_log;
pub mod script;
pub mod selector;
pub mod size;
pub mod xml;

use crate::workload::detail::OperationDetail;
use crate::workload::own_format::observation::ObservationPlan;
use crate::workload::own_format::replayed::ReplaySource;
use crate::workload::parameters::Parameters;
use crate::workload::replayed_log::ReplayedLog;
use crate::workload::script::OperationScript;
use crate::workload::selector::Selector;
use crate::workload::size::Sizes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What it is called; part of file names of results.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// One after the other.
    pub stages: Vec<Stage>,
    /// What is to happen beside the load.
    pub observation: ObservationPlan,
    /// The log that its stages are the replay of.
    pub replay: Option<ReplaySource>,
    /// What that log says, once it was read.
    pub replayed: Option<ReplayedLog>,
}

/// Works that run side by side. A stage ends with the last of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// `main`, for example; need not be unique.
    pub name: String,
    /// How long nothing happens after it.
    pub closure_delay: Duration,
    /// It ends when devices are so full, from 0 to 1, by the figures of the workload's servers.
    pub full: Option<f64>,
    /// Side by side.
    pub works: Vec<Work>,
}

/// Workers that all do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Unique in its stage.
    pub name: String,
    /// Which shape its operations have.
    pub kind: WorkKind,
    /// How many requests are under way at a time.
    pub workers: u32,
    /// Length of the steps in which figures over time are kept.
    pub interval: Duration,
    /// What each worker has for itself.
    pub division: Division,
    /// When it ends.
    pub end: WorkEnd,
    /// From the start: requests that are not counted.
    pub ramp_up: Duration,
    /// After the end: requests that are not counted.
    pub ramp_down: Duration,
    /// Failures in a million operations beyond which the work has failed.
    pub accepted_failures: u32,
    /// The one driver that does it; all share it otherwise.
    pub driver: Option<String>,
    /// When requests begin.
    pub arrivals: Arrivals,
    /// What is done.
    pub operations: Vec<WorkOperation>,
    /// The operations one by one, where they are not drawn.
    pub script: Option<OperationScript>,
    /// How a token is had.
    pub auth: Endpoint,
    /// Where the operations go.
    pub storage: Endpoint,
}

/// What a work is for. All but the normal one go through all names of their
/// operation once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Operations by their ratios.
    Normal,
    /// Makes containers.
    Init,
    /// Makes objects.
    Prepare,
    /// Deletes objects.
    Cleanup,
    /// Deletes containers.
    Dispose,
    /// Waits.
    Delay,
}

impl WorkKind {
    /// All of them, with their names in workloads.
    pub const ALL: [(&'static str, WorkKind); 6] = [
        ("normal", WorkKind::Normal),
        ("init", WorkKind::Init),
        ("prepare", WorkKind::Prepare),
        ("cleanup", WorkKind::Cleanup),
        ("dispose", WorkKind::Dispose),
        ("delay", WorkKind::Delay),
    ];

    /// Its name in workloads.
    pub fn name(self) -> &'static str {
        // Every kind is in the list.
        Self::ALL
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("normal", |(name, _)| name)
    }
}

/// How names are divided among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// Each worker has all.
    None,
    /// Each worker has containers of its own.
    Container,
    /// Each worker has objects of its own, in all containers.
    Object,
}

impl Division {
    /// All of them, with their names in workloads.
    pub const ALL: [(&'static str, Division); 3] = [
        ("none", Division::None),
        ("container", Division::Container),
        ("object", Division::Object),
    ];
}

/// When a work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkEnd {
    /// So long after the ramp-up.
    After(Duration),
    /// With so many operations, of all workers together.
    Operations(u64),
    /// With so many bytes of bodies, of all workers together.
    Bytes(u64),
    /// Once every name was used.
    Enumerated,
}

/// When requests begin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Closed loop: a worker's next one once its last has ended.
    AsAnswered,
    /// Open loop: so many a second, at equal distances, whatever the store does.
    Constant(f64),
    /// Open loop: so many a second on average, independent of each other, as those of many users are.
    Poisson(f64),
}

/// An authentication or a storage of a workload: its type and its parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Endpoint {
    /// `swift`, for example.
    pub kind: String,
    /// As the workload says.
    pub parameters: Parameters,
}

/// One of the operations of a work.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkOperation {
    /// Unique in its work.
    pub id: String,
    /// What is done.
    pub kind: OperationKind,
    /// Of a hundred operations.
    pub ratio: u32,
    /// Division of this operation's names.
    pub division: Division,
    /// To which containers.
    pub containers: NumberedNames,
    /// To which objects; none for operations on containers.
    pub objects: Option<NumberedNames>,
    /// How long the bodies are; of operations that send one.
    pub sizes: Option<Sizes>,
    /// Bodies are sent without their length.
    pub chunked: bool,
    /// What bodies are made of.
    pub content: BodyContent,
    /// Bodies carry a checksum, and are compared with it when read.
    pub hash_check: bool,
    /// Containers are made or deleted along the way (`createContainer`, `deleteContainer`).
    pub with_container: bool,
    /// Files whose content is sent, in their order.
    pub files: Option<std::path::PathBuf>,
    /// Ranges, parts, copies, conditions, versions.
    pub detail: OperationDetail,
}

/// What bodies are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyContent {
    /// Cannot be compressed, and is found nowhere twice.
    Random,
    /// Zeros.
    Zero,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// Reads an object.
    Read,
    /// Writes an object.
    Write,
    /// Writes an object with the content of a file.
    FileWrite,
    /// Deletes an object.
    Delete,
    /// Lists a container.
    List,
    /// Asks for an object's metadata.
    Head,
    /// Changes an object's metadata.
    Post,
    /// Copies an object within the store.
    Copy,
    /// Makes a container.
    MakeContainer,
    /// Deletes a container.
    DeleteContainer,
}

impl OperationKind {
    /// Those that a workload may name, with their names.
    pub const NAMED: [(&'static str, OperationKind); 8] = [
        ("read", OperationKind::Read),
        ("write", OperationKind::Write),
        ("filewrite", OperationKind::FileWrite),
        ("delete", OperationKind::Delete),
        ("list", OperationKind::List),
        ("head", OperationKind::Head),
        ("post", OperationKind::Post),
        ("copy", OperationKind::Copy),
    ];

    /// As reports call it: COSBench names operations of special works after these.
    pub fn name(self) -> &'static str {
        match self {
            Self::MakeContainer => "init",
            Self::DeleteContainer => "dispose",
            named => Self::NAMED
                .iter()
                .find(|(_, kind)| *kind == named)
                .map_or("read", |(name, _)| name),
        }
    }

    /// Whether it brings a body to the store.
    pub fn sends_body(self) -> bool {
        matches!(self, Self::Write | Self::FileWrite)
    }
}

/// Names with a number in them: `prefix` number `suffix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedNames {
    /// Before the number.
    pub prefix: String,
    /// Which numbers.
    pub numbers: Selector,
    /// After the number.
    pub suffix: String,
}

impl WorkOperation {
    /// What is drawn, in one line: `80% containers=u(1,4) objects=u(1,10) sizes=c(2)KB`.
    pub fn drawn(&self) -> String {
        let mut text = format!("{}% containers={}", self.ratio, self.containers.numbers);
        if let Some(objects) = &self.objects {
            text += &format!(" objects={}", objects.numbers);
        }
        if let Some(sizes) = &self.sizes {
            text += &format!(" sizes={sizes}");
        }
        text
    }
}

impl NumberedNames {
    /// The name with this number.
    pub fn name(&self, number: u64) -> String {
        format!("{}{number}{}", self.prefix, self.suffix)
    }
}
