//! A controller's side of a run with several drivers: finds them, compares clocks, divides works, adds up figures.
//!
//! Always holds: no stage begins before all drivers that are left have answered; works of a stage are divided among
//! those; a driver that is lost is reported with when and why, and what it had counted of that stage is left out, as
//! a whole; figures of several drivers are added, and no percentile is averaged.

use super::addresses::{DriverAddress, pinned_to};
use super::channel::{DriverChannel, Frame, parse};
use super::clocks::ClockReading;
use super::greeting::greet;
use super::message::{FromDriver, LONGEST_TO_CONTROLLER, RunOrder, StageOrder, ToDriver, WorkOrder};
use super::replay_pieces;
use super::secret::DriverSecret;
use super::stage_part::{StagePart, merged};
use crate::load::LoadWatch;
use crate::load::share::DriverShare;
use crate::record::RecordFile;
use crate::report::{DriverReport, StageReport, WorkReport};
use crate::workload::Stage;
use crate::workload::replayed_log::ReplayedLog;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// For the beginning of a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// From an order to the beginning of a stage, at least.
const LEAD: Duration = Duration::from_millis(250);
/// How often a driver's part looks whether the run is interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// Lines about drivers that were not shown yet. Clones share them.
#[derive(Clone, Default)]
pub struct DriverNotices(Arc<Mutex<Vec<String>>>);

impl DriverNotices {
    /// Those since this was last asked.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    fn add(&self, line: String) {
        self.0.lock().push(line);
    }
}

/// The drivers of a run.
pub struct DriverFleet {
    world: World,
    drivers: Vec<FleetDriver>,
    notices: DriverNotices,
    begun: Duration,
    record: FleetRecord,
}

struct FleetDriver {
    address: DriverAddress,
    /// Nothing once the driver is lost.
    channel: Option<DriverChannel>,
    clock: ClockReading,
    report: DriverReport,
}

/// What becomes of a driver that is sent a run.
enum Preparation {
    Ready,
    /// It is gone, or hangs: the run may do without it.
    Lost(Fault),
}

/// The record that drivers send. Clones share it.
#[derive(Clone, Default)]
struct FleetRecord(Arc<Mutex<OpenFleetRecord>>);

#[derive(Default)]
struct OpenFleetRecord {
    /// Nothing when no record was asked for.
    file: Option<RecordFile>,
    fault: Option<Fault>,
    waited: Duration,
}

impl FleetRecord {
    /// Adds a piece; false when none was asked for. A file that cannot be written ends the record, and not the load.
    fn append(&self, piece: &[u8]) -> bool {
        let mut open = self.0.lock();
        let Some(file) = &open.file else { return false };
        if open.fault.is_none()
            && let Err(error) = file.append(piece)
        {
            open.fault = Some(file.failed(&error));
        }
        true
    }

    fn add_waited(&self, waited: Duration) {
        let mut open = self.0.lock();
        open.waited = open.waited.saturating_add(waited);
    }

    fn end(&self) -> Result<Duration, Fault> {
        let mut open = self.0.lock();
        open.fault.take().map_or(Ok(open.waited), Err)
    }
}

impl FleetDriver {
    /// Connects, and compares clocks.
    async fn meet(
        world: &World,
        address: &DriverAddress,
        secret: &DriverSecret,
        bound: Duration,
    ) -> Result<Self, Fault> {
        let failed = |why: &dyn std::fmt::Display| Fault::peer(format!("driver {address}: {why}"));
        let connecting = async {
            let stream = world.network.connect(address.host.clone(), address.port).await;
            let stream = stream.map_err(|error| failed(&error))?;
            greet(secret, stream).await.map_err(|error| failed(&error))
        };
        let met = world.timeout(CONNECTING, connecting).await;
        let stream = met.map_err(|late| failed(&late))??;
        let mut channel = DriverChannel::new(world, stream, LONGEST_TO_CONTROLLER);
        let clock = ClockReading::take(world, &mut channel)
            .await
            .map_err(|fault| failed(&fault))?;
        clock.check(bound).map_err(|fault| failed(&fault))?;
        Ok(Self {
            address: address.clone(),
            channel: Some(channel),
            clock,
            report: DriverReport {
                name: address.name.clone(),
                address: address.to_string(),
                clock_offset: clock.offset_millis(),
                round_trip: clock.round_trip.as_secs_f64() * 1e3,
                latest_start: 0.0,
                succeeded: 0,
                failed: 0,
                bytes: 0,
                lost: None,
            },
        })
    }

    /// Tells the driver what is replayed, if anything is, and has it open its stores.
    ///
    /// # Errors
    /// It refuses, or answers what was not asked.
    async fn prepare(&mut self, order: &RunOrder, replayed: Option<&ReplayedLog>) -> Result<Preparation, Fault> {
        let failed = |why: &dyn std::fmt::Display| Fault::peer(format!("driver {}: {why}", self.address));
        // A driver that was met just now has its channel.
        let Some(channel) = &mut self.channel else {
            return Ok(Preparation::Lost(Fault::peer("it is lost")));
        };
        let order = RunOrder {
            name: self.address.name.clone(),
            clock_is_ahead: self.clock.ahead(),
            replays: replayed.is_some(),
            ..order.clone()
        };
        channel.sender.send(&ToDriver::Order(Box::new(order))).await;
        for piece in replayed.into_iter().flat_map(replay_pieces::pieces) {
            // What a driver that refuses has said, or that it is gone, is seen below.
            if !channel.sender.send(&ToDriver::Replay(piece)).await {
                break;
            }
        }
        match channel.next_message::<FromDriver>().await {
            Ok(Some(FromDriver::Ready)) => Ok(Preparation::Ready),
            Ok(Some(FromDriver::Refused { why })) => Err(failed(&why)),
            Ok(Some(_)) => Err(failed(&"it did not answer what it was asked")),
            Ok(None) => Ok(Preparation::Lost(Fault::peer("it has ended the connection"))),
            Err(error) => Ok(Preparation::Lost(Fault::peer(error.to_string()))),
        }
    }

    /// Does its part of a stage, unless the driver is lost meanwhile.
    async fn part(
        &mut self,
        world: &World,
        stage: &Stage,
        order: StageOrder,
        begins: Duration,
        watch: &LoadWatch,
        record: &FleetRecord,
    ) -> Result<StagePart, Fault> {
        let gone = |why: &dyn std::fmt::Display| Fault::peer(why.to_string());
        let channel = self.channel.as_mut().ok_or_else(|| gone(&"it is lost"))?;
        let mut part = StagePart::of(stage, &order, begins);
        channel.sender.send(&ToDriver::Stage(order)).await;
        let mut is_stopping = false;
        loop {
            // Pieces of a record may come so often that the pause below never ends.
            if watch.is_stopped() && !is_stopping {
                is_stopping = true;
                channel.sender.send(&ToDriver::Stop).await;
            }
            let frame = tokio::select! {
                frame = channel.next() => frame,
                () = world.clock.sleep(LOOK), if !is_stopping => continue,
            };
            let message = match frame {
                Ok(Some(Frame::Message(text))) => parse(&text).map_err(|error| gone(&error))?,
                Ok(Some(Frame::Record(piece))) if record.append(&piece) => continue,
                Ok(Some(Frame::Record(_))) => return Err(gone(&"a record was not asked for")),
                Ok(None) => return Err(gone(&"the connection has ended")),
                Err(error) => return Err(gone(&error)),
            };
            match message {
                FromDriver::Progress(counts) => {
                    let latencies = counts.latencies().ok_or_else(|| gone(&"its figures cannot be"))?;
                    watch.add(counts.succeeded, counts.failed, counts.bytes);
                    watch.add_recent(&latencies);
                }
                FromDriver::Refused { why } => return Err(gone(&why)),
                FromDriver::StageDone { began, waited } => {
                    record.add_waited(waited);
                    let late = self.clock.ours(began).saturating_sub(part.begins);
                    self.report.latest_start = self.report.latest_start.max(late.as_secs_f64() * 1e3);
                    return part.done().map(|()| part);
                }
                FromDriver::WorkDone(done) => part.work_done(&done)?,
                FromDriver::Counted(counted) => part.count(&counted, world.clock.elapsed())?,
                FromDriver::Clock(_) | FromDriver::Ready | FromDriver::Busy { .. } => {
                    return Err(gone(&"it said what was not due"));
                }
            }
        }
    }

    fn lose(&mut self, when: &str, why: &Fault) -> String {
        self.channel = None;
        self.report.lost = Some(format!("{when}: {why}"));
        format!("driver {} is lost, {when}: {why}", self.address)
    }
}

impl DriverFleet {
    /// Connects to all drivers and compares clocks, which may be so far apart.
    pub async fn gather(
        world: &World,
        addresses: &[DriverAddress],
        secret: &DriverSecret,
        bound: Duration,
    ) -> Result<Self, Fault> {
        let meeting = addresses
            .iter()
            .map(|address| FleetDriver::meet(world, address, secret, bound));
        Ok(Self {
            world: world.clone(),
            drivers: futures_util::future::try_join_all(meeting).await?,
            notices: DriverNotices::default(),
            begun: world.clock.elapsed(),
            record: FleetRecord::default(),
        })
    }

    /// Has all drivers open their stores, for a run that replays a log or none. One that is gone or hangs meanwhile, as
    /// while a long log is sent, is lost as it would be in a stage.
    ///
    /// # Errors
    /// A driver refuses, or all are lost: nothing has been made then.
    pub async fn prepare(&mut self, order: &RunOrder, replayed: Option<&ReplayedLog>) -> Result<(), Fault> {
        let preparing = self.drivers.iter_mut().map(|driver| driver.prepare(order, replayed));
        let prepared = futures_util::future::try_join_all(preparing).await?;
        let mut lost = vec![];
        for (driver, preparation) in self.drivers.iter_mut().zip(prepared) {
            if let Preparation::Lost(why) = preparation {
                lost.push(driver.lose("before the run began", &why));
            }
        }
        if lost.len() == self.drivers.len() {
            return Err(Fault::peer(lost.join("; ")));
        }
        lost.into_iter().for_each(|line| self.notices.add(line));
        Ok(())
    }

    /// What is to be said of each driver.
    pub fn reports(&self) -> Vec<DriverReport> {
        self.drivers.iter().map(|driver| driver.report.clone()).collect()
    }

    /// A line for each driver on its clock.
    pub fn clock_lines(&self) -> Vec<String> {
        let line = |driver: &FleetDriver| format!("driver {}: clock {}", driver.address, driver.clock);
        self.drivers.iter().map(line).collect()
    }

    /// Lines about drivers that are lost, as soon as they are.
    pub fn notices(&self) -> DriverNotices {
        self.notices.clone()
    }

    /// Has rows that drivers send go to a file.
    pub fn record(&mut self, file: &RecordFile) {
        self.record.0.lock().file = Some(file.clone());
    }

    /// Ends the run on all drivers that are left: how long their threads waited for the record.
    pub async fn dismiss(self) -> Result<Duration, Fault> {
        let channels = self.drivers.into_iter().filter_map(|driver| driver.channel);
        futures_util::future::join_all(channels.map(|channel| channel.close(&self.world))).await;
        self.record.end()
    }

    /// Runs stage `at` on all drivers that are left.
    pub async fn run_stage(&mut self, at: usize, stage: &Stage, watch: &LoadWatch) -> Result<StageReport, Fault> {
        let begun = self.world.clock.elapsed();
        self.call_roll(stage).await;
        if self.drivers.iter().all(|driver| driver.channel.is_none()) {
            return Err(Fault::peer(format!("{}: no driver is left", stage.name)));
        }
        let mut orders = self.divide(stage);
        let longest = self.drivers.iter().map(|driver| driver.clock.round_trip).max();
        let begins = self.world.clock.elapsed() + LEAD.max(longest.unwrap_or_default() * 4);
        let (world, notices, start) = (self.world.clone(), self.notices.clone(), self.begun);
        let record = self.record.clone();
        let running = self.drivers.iter_mut().enumerate().map(|(number, driver)| {
            let works = std::mem::take(&mut orders[number]);
            let order = StageOrder {
                stage: at,
                works,
                begins: driver.clock.theirs(begins),
            };
            let (world, notices, record) = (&world, &notices, &record);
            async move {
                if order.works.is_empty() {
                    return None;
                }
                match driver.part(world, stage, order, begins, watch, record).await {
                    Ok(part) => {
                        part.tell(&mut driver.report);
                        Some(part)
                    }
                    Err(why) => {
                        let after = world.clock.elapsed().saturating_sub(start).as_secs_f64();
                        let when = format!("in stage {}, {after:.1} s after the run began", stage.name);
                        notices.add(driver.lose(&when, &why));
                        None
                    }
                }
            }
        });
        let parts = futures_util::future::join_all(running).await;
        let parts: Vec<StagePart> = parts.into_iter().flatten().collect();
        Ok(StageReport {
            name: stage.name.clone(),
            works: stage
                .works
                .iter()
                .enumerate()
                .map(|(at, work)| WorkReport::of(work, &merged(work, at, &parts)))
                .collect(),
            lasted: self.world.clock.elapsed().saturating_sub(begun).as_secs_f64(),
            ..StageReport::default()
        })
    }

    /// Asks all drivers for the time: who does not answer is lost.
    async fn call_roll(&mut self, stage: &Stage) {
        let world = self.world.clone();
        let asking = self.drivers.iter_mut().map(|driver| {
            let world = &world;
            async move {
                match &mut driver.channel {
                    Some(channel) => Some(ClockReading::take(world, channel).await),
                    None => None,
                }
            }
        });
        let answers = futures_util::future::join_all(asking).await;
        for (driver, answer) in self.drivers.iter_mut().zip(answers) {
            match answer {
                Some(Ok(clock)) => driver.clock = clock,
                Some(Err(why)) => {
                    let notice = driver.lose(&format!("before stage {}", stage.name), &why);
                    self.notices.add(notice);
                }
                None => {}
            }
        }
    }

    /// What each driver has of a stage.
    fn divide(&self, stage: &Stage) -> Vec<Vec<WorkOrder>> {
        let addresses: Vec<DriverAddress> = self.drivers.iter().map(|driver| driver.address.clone()).collect();
        let is_left = |number: usize| self.drivers[number].channel.is_some();
        let left: Vec<usize> = (0..self.drivers.len()).filter(|number| is_left(*number)).collect();
        let mut orders = vec![vec![]; self.drivers.len()];
        for (at, work) in stage.works.iter().enumerate() {
            let doing: Vec<usize> = match &work.driver {
                Some(name) => pinned_to(&addresses, name)
                    .filter(|number| is_left(*number))
                    .into_iter()
                    .collect(),
                None => left.clone(),
            };
            if doing.is_empty() {
                let (stage, work) = (&stage.name, &work.name);
                self.notices.add(format!(
                    "{stage} / {work} is left out: the driver that it is pinned to is lost"
                ));
            }
            for (number, share) in doing.iter().zip(DriverShare::divide(work, doing.len())) {
                orders[*number].extend(share.map(|share| WorkOrder {
                    work: at,
                    workers: work.workers,
                    share,
                    end: work.end,
                    arrivals: work.arrivals,
                    ramp_up: work.ramp_up,
                    ramp_down: work.ramp_down,
                }));
            }
        }
        orders
    }
}
