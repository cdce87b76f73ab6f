//! What runs the stages of a workload: this process, or several drivers.

use crate::arguments::FleetArguments;
use crate::content::Contents;
use crate::drivers::addresses::{check_pins, drivers, drivers_of_file};
use crate::drivers::fleet::{DriverFleet, DriverNotices};
use crate::drivers::message::RunOrder;
use crate::drivers::secret::DriverSecret;
use crate::load::share::DriverShare;
use crate::load::{LoadOptions, LoadPart, LoadWatch, run_part};
use crate::record::{RecordFile, Recording};
use crate::report::{DriverReport, StageReport, WorkReport};
use crate::store::Store;
use crate::workload::{Stage, Work, Workload};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// A file with drivers that is longer is refused.
const LONGEST_FILE: u64 = 1 << 20;

/// What runs stages.
pub enum StageRunner {
    /// This process.
    Here(LocalRunner),
    /// Several drivers.
    Drivers(Box<DriverFleet>),
}

/// This process, with its stores.
pub struct LocalRunner {
    /// By stage, then by work.
    stores: Vec<Vec<Store>>,
    contents: Arc<Contents>,
    options: LoadOptions,
    /// The file of every operation, if there is one.
    record: Option<(RecordFile, Recording)>,
}

impl StageRunner {
    /// This process, with the stores of all works.
    pub fn here(stores: Vec<Vec<Store>>, options: LoadOptions) -> Self {
        Self::Here(LocalRunner {
            stores,
            contents: Arc::new(Contents::new()),
            options,
            record: None,
        })
    }

    /// Has every operation recorded in a file.
    pub fn record(&mut self, world: &World, file: &RecordFile) -> Result<(), Fault> {
        match self {
            Self::Drivers(fleet) => fleet.record(file),
            Self::Here(runner) => {
                let to = file.clone();
                let sink = Box::new(move |member: Vec<u8>| to.append(&member));
                runner.record = Some((file.clone(), Recording::begin(world, "", 0, sink)?));
            }
        }
        Ok(())
    }

    /// The drivers that the command line names, ready to begin; nothing where it names none.
    pub async fn fleet(
        arguments: &FleetArguments,
        world: &World,
        workload: &Workload,
        order: &RunOrder,
    ) -> Result<Option<Self>, Fault> {
        let named = match &arguments.drivers_file {
            None if arguments.drivers.is_empty() => return Ok(None),
            None => drivers(arguments.drivers.iter().map(String::as_str))?,
            Some(path) => {
                let wrong = |why: &dyn std::fmt::Display| Fault::caller(format!("{}: {why}", path.display()));
                let bytes = world.files.read(path, LONGEST_FILE).map_err(|error| wrong(&error))?;
                let text = String::from_utf8(bytes).map_err(|_| wrong(&"expected text in UTF-8"))?;
                drivers_of_file(&text).map_err(|fault| wrong(&fault))?
            }
        };
        check_pins(&named, workload)?;
        let secret = arguments.secret_file.as_ref();
        let secret = secret.ok_or_else(|| Fault::caller("--drivers: expected --secret-file FILE beside it"))?;
        let secret = DriverSecret::read(world, secret)?;
        let mut fleet = DriverFleet::gather(world, &named, &secret, arguments.clock_bound).await?;
        fleet.prepare(order, workload.replayed.as_ref()).await?;
        Ok(Some(Self::Drivers(Box::new(fleet))))
    }

    /// What is to be said before the first stage.
    pub fn lines_before(&self) -> Vec<String> {
        match self {
            Self::Here(_) => vec![],
            Self::Drivers(fleet) => fleet.clock_lines(),
        }
    }

    /// Lines about drivers that are lost, as soon as they are.
    pub fn notices(&self) -> DriverNotices {
        match self {
            Self::Here(_) => DriverNotices::default(),
            Self::Drivers(fleet) => fleet.notices(),
        }
    }

    /// What is to be said of each driver.
    pub fn driver_reports(&self) -> Vec<DriverReport> {
        match self {
            Self::Here(_) => vec![],
            Self::Drivers(fleet) => fleet.reports(),
        }
    }

    /// Ends the run on all drivers, and the record: how long threads of the load waited for it.
    pub async fn dismiss(self) -> Result<Duration, Fault> {
        match self {
            Self::Drivers(fleet) => fleet.dismiss().await,
            Self::Here(runner) => match runner.record {
                Some((file, recording)) => recording.finish().await.map_err(|error| file.failed(&error)),
                None => Ok(Duration::ZERO),
            },
        }
    }

    /// Runs the works of stage `at` side by side.
    pub async fn run_stage(
        &mut self,
        world: &World,
        at: usize,
        stage: &Stage,
        watch: &Arc<LoadWatch>,
    ) -> Result<StageReport, Fault> {
        match self {
            Self::Here(runner) => runner.run_stage(world, at, stage, watch).await,
            Self::Drivers(fleet) => fleet.run_stage(at, stage, watch).await,
        }
    }
}

impl LocalRunner {
    async fn run_stage(
        &self,
        world: &World,
        at: usize,
        stage: &Stage,
        watch: &Arc<LoadWatch>,
    ) -> Result<StageReport, Fault> {
        let begun = world.clock.elapsed();
        let works: Vec<Arc<Work>> = stage.works.iter().cloned().map(Arc::new).collect();
        let running = works.iter().zip(&self.stores[at]).map(|(work, store)| {
            let recorder = self.record.as_ref().map(|(_, recording)| recording.recorder());
            let part = LoadPart {
                share: DriverShare::whole(work),
                records: recorder.map(|recorder| (recorder, stage.name.clone())),
            };
            run_part(
                world,
                work,
                part,
                store.clone(),
                self.contents.clone(),
                watch.clone(),
                &self.options,
            )
        });
        let results = futures_util::future::try_join_all(running).await?;
        Ok(StageReport {
            name: stage.name.clone(),
            works: works
                .iter()
                .zip(&results)
                .map(|(work, result)| WorkReport::of(work, result))
                .collect(),
            lasted: world.clock.elapsed().saturating_sub(begun).as_secs_f64(),
            ..StageReport::default()
        })
    }
}
