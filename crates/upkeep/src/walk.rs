//! The walk over this server's devices: device → partition → suffix → item.
//!
//! A [`WalkJob`] says what there is (devices, the directories on one, the items in a directory) and what is done with
//! an item; [`WalkState`] knows the order and what is left of a pass. A step of a job opens one device, lists some
//! directories of one level, or works on some items at the same time. Every [`WalkJob`] is an [`UpkeepJob`].
//! Always holds: devices come one after the other, and directories depth first, so that what is listed but not worked
//! on is one directory per level; a walk may be stopped between any two steps and goes on there; an item that is not
//! finished is the next that is worked on, or where the job says so waits until all devices have been looked at, and
//! takes turns with the others that wait; a directory that cannot be listed costs its content, not the pass.
//! Deliberately absent: pace (`frame.rs`), positions that outlive the process (`object_auditor/position.rs`). Two jobs
//! go another way: the object-updater has one batch from all devices in work while it reads the next, and the
//! object-replicator takes partitions of all devices in turns.

use crate::{Disks, PassProgress, ReconFile, UpkeepJob, UpkeepStep};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use telemetry::Statsd;
use world::World;

/// A job that walks over devices.
#[async_trait::async_trait]
pub(crate) trait WalkJob: KeepsWalk + Send + Sync + Sized + 'static {
    /// An open device; cheap to clone.
    type Device: Clone + Send + Sync;
    /// A directory that is listed before what is in it comes: a partition, or a suffix.
    type Directory: Send + Sync;
    /// What the walk is for: a database, an object.
    type Item: Send + Sync;
    /// What came of working on an item.
    type Outcome: Send;

    /// Begins a pass: the names of its devices, in order.
    async fn begin(&mut self) -> Vec<String> {
        self.state_mut().disks.names().await
    }

    /// Opens a device, if it is this job's. What goes wrong is logged here.
    async fn open(&mut self, name: String) -> OpenedDevice<Self>;

    /// Directories of a level that are listed in one step.
    fn listed_at_once(&self) -> usize {
        1
    }

    /// What is in these directories.
    async fn list(&mut self, device: &Self::Device, directories: Vec<Self::Directory>) -> DirectoryContents<Self>;

    /// Items that are worked on at the same time.
    fn items_at_once(&self) -> usize {
        1
    }

    /// How many unfinished items wait at the same time until all devices have been looked at, so that none holds up
    /// others; 0 where an unfinished one goes on at once. When so many wait the walk and they have every second step
    /// each. Only items that need no open device may wait.
    fn unfinished_at_once(&self) -> usize {
        0
    }

    /// When each of those that wait has had a turn: the devices, if it is time that they are all looked at anew. The
    /// job knows what still waits.
    async fn begin_again(&mut self) -> Option<Vec<String>> {
        None
    }

    /// Works on an item, beside others.
    async fn work(&self, device: &Self::Device, item: Self::Item) -> WorkedItem<Self>;

    /// Takes down what came of an item, for the pass.
    fn count(&mut self, device: &Self::Device, outcome: Self::Outcome) -> ItemCount;

    /// All of the device has been worked on.
    fn close(&mut self, _device: Self::Device) {}

    /// A step took so long; after the last one of a pass, all devices have been worked on.
    async fn stepped(&mut self, _took: Duration, _is_last: bool) {}

    /// See [`UpkeepJob::figures`].
    fn pass_figures(&self, _pass: &PassProgress) -> Option<(ReconFile, Value)> {
        None
    }
}

/// What opening a device gave.
pub(crate) enum OpenedDevice<J: WalkJob> {
    /// To be walked over, beginning with these directories.
    Here(J::Device, Vec<J::Directory>),
    /// Nothing to do there.
    LeftOut,
    /// It cannot be worked on in this pass, which counts as a failure.
    Failed,
}

/// What listing directories gave.
pub(crate) enum DirectoryContents<J: WalkJob> {
    /// Directories of the level below.
    Directories(Vec<J::Directory>),
    /// Items.
    Items(Vec<J::Item>),
    /// They cannot be listed.
    Failed,
    /// The device is gone, and with it all that is left of it.
    DeviceGone,
}

/// What working on an item gave.
pub(crate) struct WorkedItem<J: WalkJob> {
    /// What came of it.
    pub(crate) outcome: J::Outcome,
    /// What is left of the item: it is worked on again in the next step, or when it is its turn.
    pub(crate) rest: Option<J::Item>,
}

/// What an item adds to the figures of the pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ItemCount {
    /// Dealt with, for good.
    pub(crate) done: u64,
    /// Left for a later pass.
    pub(crate) failed: u64,
    /// The device is gone, and with it all that is left of it.
    pub(crate) device_gone: bool,
}

impl ItemCount {
    /// One item was dealt with.
    pub(crate) const DONE: Self = Self::of(1, 0);
    /// One item is left for a later pass.
    pub(crate) const FAILED: Self = Self::of(0, 1);

    /// So many were dealt with, and so many are left.
    pub(crate) const fn of(done: u64, failed: u64) -> Self {
        Self {
            done,
            failed,
            device_gone: false,
        }
    }
}

const FAILED: UpkeepStep = UpkeepStep::Did { done: 0, failed: 1 };

/// Has a walk, in its field `state`: see [`keeps_walk`].
pub(crate) trait KeepsWalk: Sized {
    /// What is kept between steps.
    fn state(&self) -> &WalkState<Self>
    where
        Self: WalkJob;

    /// The same, to be changed.
    fn state_mut(&mut self) -> &mut WalkState<Self>
    where
        Self: WalkJob;
}

/// Implements [`KeepsWalk`] for jobs.
macro_rules! keeps_walk {
    ($job:ty) => {
        impl crate::walk::KeepsWalk for $job {
            fn state(&self) -> &crate::walk::WalkState<Self> {
                &self.state
            }

            fn state_mut(&mut self) -> &mut crate::walk::WalkState<Self> {
                &mut self.state
            }
        }
    };
}
pub(crate) use keeps_walk;

/// What every walk has.
pub(crate) struct WalkState<J: WalkJob> {
    /// The daemon, as in `[object-auditor]`.
    pub(crate) daemon: &'static str,
    /// The devices that are walked over.
    pub(crate) disks: Disks,
    /// Takes the job's metrics.
    pub(crate) statsd: Statsd,
    /// How long the step should take at least, beside the pace: see [`UpkeepJob::due`].
    pub(crate) due: Duration,
    /// `None` between passes.
    walk: Option<DeviceWalk<J>>,
}

impl<J: WalkJob> WalkState<J> {
    /// Of `daemon`, over the devices of `disks`, from the beginning.
    pub(crate) fn new(daemon: &'static str, disks: Disks) -> Self {
        Self {
            daemon,
            disks,
            statsd: Statsd::default(),
            due: Duration::ZERO,
            walk: None,
        }
    }

    /// The outside that the devices are part of.
    pub(crate) fn world(&self) -> &World {
        self.disks.world()
    }
}

/// What is left of a pass.
struct DeviceWalk<J: WalkJob> {
    devices: VecDeque<String>,
    device: Option<J::Device>,
    /// Directories that are not listed yet, the deepest level last.
    levels: Vec<VecDeque<J::Directory>>,
    items: VecDeque<J::Item>,
    /// Unfinished items, the one whose turn is next in front.
    waiting: VecDeque<(J::Device, J::Item)>,
    /// The last step was a turn of those.
    was_turn: bool,
    /// Turns that are left of a round of theirs, if one has begun since all devices were looked at.
    round: Option<usize>,
}

#[async_trait::async_trait]
impl<J: WalkJob> UpkeepJob for J {
    fn name(&self) -> &'static str {
        self.state().daemon
    }

    async fn step(&mut self) -> UpkeepStep {
        let clock = self.state().world().clock.clone();
        let began = clock.elapsed();
        let mut walk = match self.state_mut().walk.take() {
            Some(walk) => walk,
            None => DeviceWalk::over(self.begin().await),
        };
        let step = walk.advance(self).await;
        let is_last = step == UpkeepStep::PassOver;
        if !is_last {
            self.state_mut().walk = Some(walk);
        }
        self.stepped(clock.elapsed().saturating_sub(began), is_last).await;
        step
    }

    fn due(&mut self) -> Duration {
        std::mem::take(&mut self.state_mut().due)
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.state_mut().statsd = statsd;
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        self.pass_figures(pass)
    }
}

impl<J: WalkJob> DeviceWalk<J> {
    fn over(devices: Vec<String>) -> Self {
        Self {
            devices: devices.into(),
            device: None,
            levels: vec![],
            items: VecDeque::new(),
            waiting: VecDeque::new(),
            was_turn: false,
            round: None,
        }
    }

    async fn advance(&mut self, job: &mut J) -> UpkeepStep {
        while self.levels.last().is_some_and(VecDeque::is_empty) {
            self.levels.pop();
        }
        let is_looked_over = self.device.is_none() && self.devices.is_empty() && !self.waiting.is_empty();
        if is_looked_over && self.round.unwrap_or_default() == 0 {
            if self.round.take().is_some()
                && let Some(devices) = job.begin_again().await
            {
                self.devices = devices.into();
                return UpkeepStep::LOOKED;
            }
            self.round = Some(self.waiting.len());
        }
        let are_many = self.waiting.len() >= job.unfinished_at_once() && !self.was_turn;
        let turn = match is_looked_over || are_many {
            true => self.waiting.pop_front(),
            false => None,
        };
        self.was_turn = turn.is_some();
        if let Some((device, item)) = turn {
            self.round = self.round.map(|turns| turns.saturating_sub(1));
            return self.work(job, &device, vec![item]).await;
        }
        let Some(device) = self.device.clone() else {
            return self.next_device(job).await;
        };
        if !self.items.is_empty() {
            let count = job.items_at_once().clamp(1, self.items.len());
            let items = self.items.drain(..count).collect();
            return self.work(job, &device, items).await;
        }
        let Some(level) = self.levels.last_mut() else {
            return self.next_device(job).await;
        };
        let count = job.listed_at_once().clamp(1, level.len());
        let directories = level.drain(..count).collect();
        match job.list(&device, directories).await {
            DirectoryContents::Directories(found) => self.levels.push(found.into()),
            DirectoryContents::Items(found) => self.items = found.into(),
            DirectoryContents::Failed => return FAILED,
            DirectoryContents::DeviceGone => {
                self.leave_device();
                return FAILED;
            }
        }
        UpkeepStep::LOOKED
    }

    async fn next_device(&mut self, job: &mut J) -> UpkeepStep {
        if let Some(device) = self.device.take() {
            job.close(device);
        }
        let Some(name) = self.devices.pop_front() else {
            return match self.waiting.is_empty() {
                true => UpkeepStep::PassOver,
                false => UpkeepStep::LOOKED,
            };
        };
        match job.open(name).await {
            OpenedDevice::Here(device, directories) => {
                self.device = Some(device);
                self.levels = vec![directories.into()];
            }
            OpenedDevice::LeftOut => {}
            OpenedDevice::Failed => return FAILED,
        }
        UpkeepStep::LOOKED
    }

    async fn work(&mut self, job: &mut J, device: &J::Device, items: Vec<J::Item>) -> UpkeepStep {
        let shared = &*job;
        let work = items.into_iter().map(|item| shared.work(device, item));
        let worked = join_all(work).await;
        let (mut done, mut failed, mut unfinished) = (0, 0, vec![]);
        for WorkedItem { outcome, rest } in worked {
            let counted = job.count(device, outcome);
            done += counted.done;
            failed += counted.failed;
            unfinished.extend(rest);
            if counted.device_gone {
                unfinished.clear();
                self.leave_device();
            }
        }
        let room = job.unfinished_at_once().saturating_sub(self.waiting.len());
        let at_once = unfinished.split_off(room.min(unfinished.len()));
        self.waiting
            .extend(unfinished.into_iter().map(|item| (device.clone(), item)));
        for item in at_once.into_iter().rev() {
            self.items.push_front(item);
        }
        UpkeepStep::Did { done, failed }
    }

    /// Nothing more of this device in this pass.
    fn leave_device(&mut self) {
        self.levels.clear();
        self.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two devices with two partitions of two suffixes, which have an item each; the items of the first partition need
    /// two steps. Device `gone` loses its second partition.
    struct Recording {
        state: WalkState<Self>,
        log: Vec<String>,
    }

    keeps_walk!(Recording);

    #[async_trait::async_trait]
    impl WalkJob for Recording {
        type Device = String;
        type Directory = String;
        type Item = (String, bool);
        type Outcome = String;

        async fn begin(&mut self) -> Vec<String> {
            ["sda", "not-mine", "gone", "broken"].map(String::from).to_vec()
        }

        async fn open(&mut self, name: String) -> OpenedDevice<Self> {
            match name.as_str() {
                "not-mine" => OpenedDevice::LeftOut,
                "broken" => OpenedDevice::Failed,
                _ => OpenedDevice::Here(name, vec!["0".into(), "1".into()]),
            }
        }

        async fn list(&mut self, device: &String, directories: Vec<String>) -> DirectoryContents<Self> {
            let directory = directories.concat();
            self.log.push(format!("{device}/{directory}"));
            match (device.as_str(), directory.as_str()) {
                ("gone", "1") => DirectoryContents::DeviceGone,
                ("sda", "1") => DirectoryContents::Failed,
                (_, partition) if !partition.contains('/') => {
                    DirectoryContents::Directories(vec![format!("{partition}/a"), format!("{partition}/b")])
                }
                (_, suffix) => DirectoryContents::Items(vec![(suffix.to_owned(), suffix == "0/a")]),
            }
        }

        async fn work(&self, _: &String, (item, needs_more): (String, bool)) -> WorkedItem<Self> {
            WorkedItem {
                rest: needs_more.then(|| (item.clone(), false)),
                outcome: item,
            }
        }

        fn count(&mut self, _: &String, outcome: String) -> ItemCount {
            self.log.push(outcome);
            ItemCount::DONE
        }

        fn close(&mut self, device: String) {
            self.log.push(format!("-{device}"));
        }
    }

    #[tokio::test]
    async fn directories_come_depth_first_and_an_unfinished_item_goes_on() {
        let mut job = Recording {
            state: WalkState::new("recording", Disks::new(World::real(), "/nowhere", false)),
            log: vec![],
        };
        let (mut done, mut failed) = (0, 0);
        while let UpkeepStep::Did { done: d, failed: f } = job.step().await {
            (done, failed) = (done + d, failed + f);
        }
        let expected = "sda/0 sda/0/a 0/a 0/a sda/0/b 0/b sda/1 -sda \
                        gone/0 gone/0/a 0/a 0/a gone/0/b 0/b gone/1 -gone";
        assert_eq!(job.log.join(" "), expected);
        assert_eq!((done, failed), (6, 3));
        assert!(job.state.walk.is_none(), "the next step begins anew");
    }

    type Steps = (&'static str, u32);

    /// Two devices with partitions of items that need so many steps.
    struct TakingTurns {
        state: WalkState<Self>,
        at_once: usize,
        /// Of a device that comes new once no item but those that wait is left.
        late: Vec<Steps>,
        log: Vec<String>,
    }

    keeps_walk!(TakingTurns);

    #[async_trait::async_trait]
    impl WalkJob for TakingTurns {
        type Device = ();
        type Directory = Vec<Steps>;
        type Item = Steps;
        type Outcome = &'static str;

        async fn begin(&mut self) -> Vec<String> {
            vec!["sda".into(), "sdb".into()]
        }

        async fn begin_again(&mut self) -> Option<Vec<String>> {
            (!self.late.is_empty()).then(|| vec!["late".into()])
        }

        async fn open(&mut self, name: String) -> OpenedDevice<Self> {
            let partitions = match name.as_str() {
                "sda" => vec![vec![("a", 3), ("b", 2)], vec![("c", 1), ("d", 3)]],
                "sdb" => vec![vec![("e", 1)]],
                _ => vec![std::mem::take(&mut self.late)],
            };
            OpenedDevice::Here((), partitions)
        }

        async fn list(&mut self, (): &(), directories: Vec<Self::Directory>) -> DirectoryContents<Self> {
            DirectoryContents::Items(directories.concat())
        }

        fn unfinished_at_once(&self) -> usize {
            self.at_once
        }

        async fn work(&self, (): &(), (item, steps): Self::Item) -> WorkedItem<Self> {
            WorkedItem {
                outcome: item,
                rest: (steps > 1).then(|| (item, steps - 1)),
            }
        }

        fn count(&mut self, (): &(), outcome: &'static str) -> ItemCount {
            self.log.push(outcome.to_owned());
            ItemCount::DONE
        }

        fn close(&mut self, (): ()) {
            self.log.push("-".into());
        }
    }

    #[tokio::test]
    async fn unfinished_items_take_turns_where_the_job_says_so() {
        for (at_once, late, expected) in [
            (0, vec![], "a a a b b c d d d - e -"),
            (9, vec![], "a b c d - e - a b d a d"),
            (9, vec![("f", 1), ("g", 2)], "a b c d - e - a b d f g - a d g"),
            // With two that wait the walk has every second step: here the listing of the second partition is one.
            (2, vec![], "a b a b c d a - e - d d"),
        ] {
            let mut job = TakingTurns {
                state: WalkState::new("turns", Disks::new(World::real(), "/nowhere", false)),
                at_once,
                late,
                log: vec![],
            };
            while job.step().await != UpkeepStep::PassOver {}
            assert_eq!(job.log.join(" "), expected, "{at_once}");
        }
    }
}
