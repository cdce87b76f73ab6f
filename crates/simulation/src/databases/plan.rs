//! What a seed has in store for containers.

use super::history::ContainerVerb;
use super::names::{CONTAINERS, KEYS, NAMES};
use crate::bugs::Bug;
use crate::config::{ClusterConfig, DatabaseConfig};
use crate::dice::Dice;
use crate::disk::DriveFault;
use crate::fault::InjectedFault;
use std::time::Duration;

/// The container that is mostly written to; the other is mostly made and deleted.
const FULL: usize = 0;
/// Milliseconds between two passes of a replicator, about, at least.
const PACE: u64 = 300;
/// In so many of 100 runs a stranger brings databases with triggers of their own.
const FOREIGN: u64 = 25;

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum DatabaseEvent {
    /// A client asks for something, by a node's clock and ways.
    Client {
        node: usize,
        container: usize,
        verb: ContainerVerb,
    },
    /// A client that is no replicator brings a node a database from another.
    Foreign { from: usize, to: usize, container: usize },
    /// Something goes wrong, or right again.
    InjectedFault(InjectedFault),
}

/// All of it.
pub(super) struct DatabasePlan {
    pub(super) nodes: usize,
    pub(super) config: ClusterConfig,
    pub(super) events: Vec<(Duration, DatabaseEvent)>,
    /// A node that clients rarely reach, so that it falls far behind.
    pub(super) shunned: Option<usize>,
    /// What the unlucky node has may be lost for good.
    pub(super) destroys: bool,
}

impl DatabasePlan {
    pub(super) fn new(dice: &Dice, bug: Option<Bug>) -> Self {
        let nodes = 4 + dice.up_to(3);
        let databases = DatabaseConfig {
            per_diff: 1 + dice.up_to(6),
            max_diffs: 1 + dice.up_to(20),
            trust: Duration::from_secs([0, 0, 30][dice.up_to(3)]),
        };
        let config = ClusterConfig {
            threads: 1 + dice.up_to(3),
            queue: 4 + dice.up_to(8),
            marks: false,
            unlucky: dice.up_to(nodes),
            replicates_every: None,
            over_bytes: false,
            watches_drives: false,
            waits: false,
            bug,
            databases: Some(databases),
            whole: false,
        };
        let mut plan = Self {
            nodes,
            config,
            events: vec![],
            shunned: dice.chance(50).then(|| dice.up_to(nodes)),
            destroys: false,
        };
        let asked = 10 + dice.up_to(30);
        let pause = [30, 300, 2_000][dice.up_to(3)];
        let mut at = 0;
        for number in 0..asked {
            at += dice.between(0, pause);
            let event = plan.client(dice, number < 2 * CONTAINERS);
            plan.events.push((Duration::from_millis(at), event));
        }
        if dice.chance(70) {
            let passes = 1 + dice.up_to(6) as u64;
            plan.config.replicates_every = Some(Duration::from_millis(PACE.max(at / passes)));
        }
        for _ in 0..dice.up_to(6) {
            plan.add_fault(dice, dice.between(0, at + 100), at);
        }
        if bug == Some(Bug::SyncsNoJournals) {
            // Few losses of power come while a transaction is half written.
            for _ in 0..16 {
                let fault = InjectedFault::PowerLossAt(dice.up_to(nodes), dice.between(0, 40) as u32);
                plan.add(dice.between(0, at + 100), fault);
            }
        }
        if dice.chance(20) {
            plan.add(dice.between(0, at + 100), InjectedFault::NewRing);
        }
        if dice.chance(30) {
            plan.add(0, InjectedFault::Repeats(20));
        }
        if dice.chance(FOREIGN) || bug == Some(Bug::ObeysForeignSchemas) {
            for _ in 0..1 + dice.up_to(3) {
                let event = plan.foreign(dice);
                plan.events
                    .push((Duration::from_millis(dice.between(0, at + 100)), event));
            }
        }
        plan.events.sort_by_key(|(at, _)| *at);
        plan
    }

    fn foreign(&self, dice: &Dice) -> DatabaseEvent {
        let from = dice.up_to(self.nodes);
        DatabaseEvent::Foreign {
            from,
            to: (from + 1 + dice.up_to(self.nodes - 1)) % self.nodes,
            container: dice.up_to(CONTAINERS),
        }
    }

    fn add(&mut self, millis: u64, fault: InjectedFault) {
        self.events
            .push((Duration::from_millis(millis), DatabaseEvent::InjectedFault(fault)));
    }

    fn client(&self, dice: &Dice, first: bool) -> DatabaseEvent {
        let (name, key) = (dice.up_to(NAMES), dice.up_to(KEYS));
        let container = dice.up_to(CONTAINERS);
        let chance = dice.up_to(20);
        let verb = match (container, chance) {
            _ if first => ContainerVerb::Put { key },
            (FULL, 0..11) => ContainerVerb::Row { name },
            (FULL, 11..17) => ContainerVerb::NoRow { name },
            (_, 0) => ContainerVerb::Row { name },
            (_, 1..3) => ContainerVerb::NoRow { name },
            (_, 3..9) => ContainerVerb::Delete,
            (_, 9..14 | 17) => ContainerVerb::Put { key },
            _ => ContainerVerb::Post { key },
        };
        DatabaseEvent::Client {
            node: dice.up_to(self.nodes),
            container,
            verb,
        }
    }

    fn add_fault(&mut self, dice: &Dice, at: u64, end: u64) {
        let node = dice.up_to(self.nodes);
        let over = at + dice.between(1, end / 2 + 5_000);
        let on_drive = |fault, then| {
            (
                InjectedFault::Drive(node, fault),
                Some(InjectedFault::Drive(node, then)),
            )
        };
        let boots = Some(InjectedFault::Boot(node));
        let (begin, then) = match dice.up_to(18) {
            0 | 1 => (InjectedFault::PowerLoss(node), boots),
            2..6 => (InjectedFault::PowerLossAt(node, dice.between(0, 60) as u32), None),
            6 => (InjectedFault::Kill(node), boots),
            7 => (InjectedFault::Blackout, None),
            8 | 9 => {
                let other = dice.up_to(self.nodes);
                let cut = |cut| InjectedFault::Cut(node, other, cut);
                (cut(true), Some(cut(false)))
            }
            10 | 11 => (InjectedFault::Loss(30), Some(InjectedFault::Loss(0))),
            12 => on_drive(DriveFault::Full(true), DriveFault::Full(false)),
            13 => on_drive(DriveFault::Slow(15_000), DriveFault::Slow(2)),
            14 => on_drive(DriveFault::Pulled(true), DriveFault::Pulled(false)),
            15 => (InjectedFault::Breaks(30), Some(InjectedFault::Breaks(0))),
            16 => {
                // A file that cannot be read counts as damaged.
                self.destroys = true;
                let fault = |percent| InjectedFault::Drive(self.config.unlucky, DriveFault::Failing(percent));
                (fault(1 + dice.up_to(10) as u64), Some(fault(0)))
            }
            _ if dice.chance(50) => {
                let micros = dice.between(0, 10_000_000) as i64 - 5_000_000;
                (InjectedFault::Skew(node, micros), None)
            }
            _ => {
                self.destroys = true;
                (InjectedFault::Drive(self.config.unlucky, DriveFault::Replaced), None)
            }
        };
        self.add(at, begin);
        if let Some(then) = then {
            self.add(over, then);
        }
    }
}
