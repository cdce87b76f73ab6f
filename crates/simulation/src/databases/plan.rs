//! What a seed has in store for containers.

use super::Databases;
use super::history::{CONTAINERS, KEYS, NAMES, Verb};
use crate::bugs::Bug;
use crate::cluster::Manner;
use crate::dice::Dice;
use crate::disk::Fault;
use crate::plan::Misfortune;
use std::time::Duration;

/// The container that is mostly written to; the other is mostly made and deleted.
const FULL: usize = 0;
/// Milliseconds between two passes of a replicator, about, at least.
const PACE: u64 = 300;

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A client asks for something, by a node's clock and ways.
    Client { node: usize, container: usize, verb: Verb },
    /// Something goes wrong, or right again.
    Misfortune(Misfortune),
}

/// All of it.
pub(super) struct Plan {
    pub(super) nodes: usize,
    pub(super) manner: Manner,
    pub(super) events: Vec<(Duration, Event)>,
    /// A node that clients rarely reach, so that it falls far behind.
    pub(super) shunned: Option<usize>,
    /// What the unlucky node has may be lost for good.
    pub(super) destroys: bool,
}

impl Plan {
    pub(super) fn new(dice: &Dice, bug: Option<Bug>) -> Self {
        let nodes = 4 + dice.up_to(3);
        let databases = Databases {
            per_diff: 1 + dice.up_to(6),
            max_diffs: 1 + dice.up_to(20),
            trust: Duration::from_secs([0, 0, 30][dice.up_to(3)]),
        };
        let manner = Manner {
            threads: 1 + dice.up_to(3),
            queue: 4 + dice.up_to(8),
            marks: false,
            unlucky: dice.up_to(nodes),
            replicates_every: None,
            bug,
            databases: Some(databases),
        };
        let mut plan = Self {
            nodes,
            manner,
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
            plan.manner.replicates_every = Some(Duration::from_millis(PACE.max(at / passes)));
        }
        for _ in 0..dice.up_to(6) {
            plan.add_misfortune(dice, dice.between(0, at + 100), at);
        }
        if dice.chance(20) {
            plan.add(dice.between(0, at + 100), Misfortune::NewRing);
        }
        if dice.chance(30) {
            plan.add(0, Misfortune::Repeats(20));
        }
        plan.events.sort_by_key(|(at, _)| *at);
        plan
    }

    fn add(&mut self, millis: u64, misfortune: Misfortune) {
        self.events
            .push((Duration::from_millis(millis), Event::Misfortune(misfortune)));
    }

    fn client(&self, dice: &Dice, first: bool) -> Event {
        let (name, key) = (dice.up_to(NAMES), dice.up_to(KEYS));
        let container = dice.up_to(CONTAINERS);
        let chance = dice.up_to(20);
        let verb = match (container, chance) {
            _ if first => Verb::Put { key },
            (FULL, 0..11) => Verb::Row { name },
            (FULL, 11..17) => Verb::NoRow { name },
            (_, 0) => Verb::Row { name },
            (_, 1..3) => Verb::NoRow { name },
            (_, 3..9) => Verb::Delete,
            (_, 9..14 | 17) => Verb::Put { key },
            _ => Verb::Post { key },
        };
        Event::Client {
            node: dice.up_to(self.nodes),
            container,
            verb,
        }
    }

    fn add_misfortune(&mut self, dice: &Dice, at: u64, end: u64) {
        let node = dice.up_to(self.nodes);
        let over = at + dice.between(1, end / 2 + 5_000);
        let on_drive = |fault, then| (Misfortune::Drive(node, fault), Some(Misfortune::Drive(node, then)));
        let boots = Some(Misfortune::Boot(node));
        let (begin, then) = match dice.up_to(17) {
            0 | 1 => (Misfortune::PowerLoss(node), boots),
            2..6 => (Misfortune::PowerLossAt(node, dice.between(0, 60) as u32), None),
            6 => (Misfortune::Kill(node), boots),
            7 => (Misfortune::Blackout, None),
            8 | 9 => {
                let other = dice.up_to(self.nodes);
                let cut = |cut| Misfortune::Cut(node, other, cut);
                (cut(true), Some(cut(false)))
            }
            10 | 11 => (Misfortune::Loss(30), Some(Misfortune::Loss(0))),
            12 => on_drive(Fault::Full(true), Fault::Full(false)),
            13 => on_drive(Fault::Slow(15_000), Fault::Slow(2)),
            14 => on_drive(Fault::Pulled(true), Fault::Pulled(false)),
            15 => (Misfortune::Breaks(30), Some(Misfortune::Breaks(0))),
            _ if dice.chance(50) => {
                let micros = dice.between(0, 10_000_000) as i64 - 5_000_000;
                (Misfortune::Skew(node, micros), None)
            }
            _ => {
                self.destroys = true;
                (Misfortune::Drive(self.manner.unlucky, Fault::Replaced), None)
            }
        };
        self.add(at, begin);
        if let Some(then) = then {
            self.add(over, then);
        }
    }
}
