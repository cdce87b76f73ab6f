//! What a seed has in store: who asks for what and when, and which misfortunes come when.
//!
//! Always holds: what destroys data that were safe (a replaced drive, flipped bits) happens to one node
//! only, the unlucky one: more than a minority of the replicas need not survive.

use crate::bugs::Bug;
use crate::cluster::Manner;
use crate::dice::Dice;
use crate::disk::Fault;
use std::time::Duration;

/// What clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// To write a body of so many bytes, cut short or not.
    Put {
        /// At least.
        size: usize,
        /// The client vanishes in the middle.
        cut_short: bool,
    },
    /// To write metadata.
    Post,
    /// To delete.
    Delete,
    /// To read.
    Get {
        /// With `X-Newest`.
        newest: bool,
    },
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfortune {
    /// A node loses its power now.
    PowerLoss(usize),
    /// A node loses its power after so many steps of its drive.
    PowerLossAt(usize, u32),
    /// All nodes lose their power at once.
    Blackout,
    /// A node's process is killed.
    Kill(usize),
    /// A node begins again.
    Boot(usize),
    /// The way from one node to another is cut, or mended.
    Cut(usize, usize, bool),
    /// So many of 100 answers get lost.
    Loss(u64),
    /// So many of 100 calls come twice.
    Repeats(u64),
    /// So many of 100 pieces of bodies are the last that comes.
    Breaks(u64),
    /// Something about a node's drive.
    Drive(usize, Fault),
    /// Objects belong elsewhere from now on.
    NewRing,
    /// A node's clock is off by so many microseconds.
    Skew(usize, i64),
}

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A client asks a node's gateway about a path.
    Client {
        /// Whose gateway.
        node: usize,
        /// Which path.
        path: usize,
        /// What.
        ask: Ask,
    },
    /// Something goes wrong, or right again.
    Misfortune(Misfortune),
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many nodes.
    pub nodes: usize,
    /// What they are like.
    pub manner: Manner,
    /// What happens when.
    pub events: Vec<(Duration, Event)>,
    /// Whether lives end before the end, so that what was promised to nobody may be forgotten.
    pub interrupts: bool,
}

/// Paths that are asked about: few, so that writes meet.
pub const PATHS: [(&str, &str, &str); 3] = [("AUTH_a", "c", "o"), ("AUTH_b", "c", "o"), ("AUTH_a", "c", "p")];

impl Plan {
    /// What `dice` have in store.
    pub fn new(dice: &Dice, bug: Option<Bug>) -> Self {
        let nodes = 4 + dice.up_to(3);
        let manner = Manner {
            threads: 1 + dice.up_to(3),
            queue: 2 + dice.up_to(8),
            marks: dice.chance(50),
            unlucky: dice.up_to(nodes),
            replicates_every: None,
            bug,
            databases: None,
        };
        let mut plan = Self {
            nodes,
            manner,
            events: vec![],
            interrupts: false,
        };
        let asked = 6 + dice.up_to(14);
        let pause = [20, 300, 3_000][dice.up_to(3)];
        let mut at = 0;
        for _ in 0..asked {
            at += dice.between(0, pause);
            plan.add_client(dice, at);
        }
        if dice.chance(60) {
            let passes = 1 + dice.up_to(5) as u64;
            plan.manner.replicates_every = Some(Duration::from_millis(1 + at / passes));
        }
        for _ in 0..dice.up_to(6) {
            plan.add_misfortune(dice, dice.between(0, at + 100), at);
        }
        if dice.chance(15) {
            plan.add(dice.between(0, at + 100), Event::Misfortune(Misfortune::NewRing));
        }
        plan.events.sort_by_key(|(at, _)| *at);
        plan
    }

    fn add(&mut self, millis: u64, event: Event) {
        self.events.push((Duration::from_millis(millis), event));
    }

    fn add_client(&mut self, dice: &Dice, at: u64) {
        let ask = match dice.up_to(20) {
            0..9 => Ask::Put {
                size: [0, 700, 700, 3_000, 3_000, 3_000, 3_000, 66_000][dice.up_to(8)],
                cut_short: dice.chance(8),
            },
            9..11 => Ask::Post,
            11..14 => Ask::Delete,
            _ => Ask::Get {
                newest: dice.chance(30),
            },
        };
        let event = Event::Client {
            node: dice.up_to(self.nodes),
            path: dice.up_to(PATHS.len()),
            ask,
        };
        self.add(at, event);
    }

    fn add_misfortune(&mut self, dice: &Dice, at: u64, end: u64) {
        let node = dice.up_to(self.nodes);
        let over = at + dice.between(1, end / 2 + 5_000);
        let mut bad = |begin, then: Option<Misfortune>| {
            self.events.push((Duration::from_millis(at), Event::Misfortune(begin)));
            if let Some(then) = then {
                self.events.push((Duration::from_millis(over), Event::Misfortune(then)));
            }
        };
        let on_drive = |fault, then| (Misfortune::Drive(node, fault), Some(Misfortune::Drive(node, then)));
        let boots = Some(Misfortune::Boot(node));
        let (begin, then) = match dice.up_to(18) {
            0 | 1 => (Misfortune::PowerLoss(node), boots),
            2..5 => (Misfortune::PowerLossAt(node, dice.between(0, 60) as u32), None),
            5 => (Misfortune::Kill(node), boots),
            6 => (Misfortune::Blackout, None),
            7 | 8 => {
                let other = dice.up_to(self.nodes);
                (
                    Misfortune::Cut(node, other, true),
                    Some(Misfortune::Cut(node, other, false)),
                )
            }
            9 => (Misfortune::Loss(30), Some(Misfortune::Loss(0))),
            10 => on_drive(Fault::Failing(20), Fault::Failing(0)),
            11 => (
                Misfortune::Drive(node, Fault::FailingSyncs(1 + dice.up_to(3) as u32)),
                None,
            ),
            12 => on_drive(Fault::Full(true), Fault::Full(false)),
            13 => on_drive(Fault::Slow(15_000), Fault::Slow(2)),
            14 => on_drive(Fault::Pulled(true), Fault::Pulled(false)),
            15 | 16 => (Misfortune::Breaks(30), Some(Misfortune::Breaks(0))),
            _ if dice.chance(50) => (
                Misfortune::Skew(node, dice.between(0, 10_000_000) as i64 - 5_000_000),
                None,
            ),
            _ if self.manner.marks => (Misfortune::Drive(self.manner.unlucky, Fault::Replaced), None),
            _ => (Misfortune::Drive(self.manner.unlucky, Fault::FlippedBit), None),
        };
        bad(begin, then);
        self.interrupts |= !matches!(begin, Misfortune::Skew(..) | Misfortune::Cut(..) | Misfortune::Loss(_));
    }
}
