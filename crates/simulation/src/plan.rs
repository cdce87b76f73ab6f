//! What a seed has in store: who asks for what and when, and which faults are injected when.
//!
//! Always holds: what destroys data that were safe (a replaced drive, flipped bits) happens to one node
//! only, the unlucky one: more than a minority of the replicas need not survive.

use crate::bugs::Bug;
use crate::config::ClusterConfig;
use crate::dice::Dice;
use crate::disk::DriveFault;
use crate::fault::InjectedFault;
use std::time::Duration;

/// What clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedRequest {
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

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedEvent {
    /// A client asks a node's gateway about a path.
    Client {
        /// Whose gateway.
        node: usize,
        /// Which path.
        path: usize,
        /// What.
        ask: PlannedRequest,
    },
    /// Something goes wrong, or right again.
    InjectedFault(InjectedFault),
}

/// All of it.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// How many nodes.
    pub nodes: usize,
    /// What they are like.
    pub config: ClusterConfig,
    /// What happens when.
    pub events: Vec<(Duration, PlannedEvent)>,
    /// Gateways give writes their times; else clients bring them.
    pub own_times: bool,
    /// Nothing goes wrong but clocks. Then what is acknowledged is not lost to what came before it.
    pub only_clocks: bool,
    /// Nothing goes wrong that a request may fail for.
    pub must_serve: bool,
    /// Whether processes end before the end, so that what was not acknowledged may be forgotten.
    pub interrupts: bool,
}

/// Paths that are asked about: few, so that writes meet.
pub const PATHS: [(&str, &str, &str); 3] = [("AUTH_a", "c", "o"), ("AUTH_b", "c", "o"), ("AUTH_a", "c", "p")];

/// In so many of 100 runs gateways give writes their times, by clocks that are up to a minute off.
const OWN_TIMES: u64 = 25;
/// In so many of 100 runs nodes speak HTTP.
const OVER_BYTES: u64 = 25;
/// In so many of 100 of these, nothing goes wrong but what no request may fail for.
const MUST_SERVE: u64 = 10;
/// In so many of 100 runs drives are watched, and nothing goes wrong but that jobs take long.
const LONG_JOBS: u64 = 2;

impl RunPlan {
    /// What `dice` have in store.
    pub fn new(dice: &Dice, bug: Option<Bug>) -> Self {
        let nodes = 4 + dice.up_to(3);
        let config = ClusterConfig {
            threads: 1 + dice.up_to(3),
            queue: 2 + dice.up_to(8),
            marks: dice.chance(50),
            unlucky: dice.up_to(nodes),
            replicates_every: None,
            over_bytes: false,
            watches_drives: false,
            waits: false,
            bug,
            databases: None,
            whole: false,
        };
        let mut plan = Self {
            nodes,
            config,
            events: vec![],
            own_times: false,
            only_clocks: false,
            must_serve: false,
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
            plan.config.replicates_every = Some(Duration::from_millis(1 + at / passes));
        }
        plan.config.over_bytes = dice.chance(OVER_BYTES) && bug != Some(Bug::TrustsShortAnswers);
        let is_calm = plan.config.over_bytes && dice.chance(MUST_SERVE);
        if is_calm || bug == Some(Bug::SeatsConnections) {
            plan.must_serve(dice, at);
            return plan.in_order();
        }
        if dice.chance(LONG_JOBS) || bug == Some(Bug::TrialsWaitForJobs) {
            plan.add_long_jobs(dice, at);
            return plan.in_order();
        }
        plan.own_times = dice.chance(OWN_TIMES) || bug == Some(Bug::TrustsOwnClock);
        if plan.own_times {
            plan.add_clocks(dice, at);
            plan.only_clocks = dice.chance(60);
        }
        if plan.only_clocks {
            // No request is refused because a drive is busy, and no write lies where the next does not look.
            (plan.config.queue, plan.config.waits) = (200, true);
            return plan.in_order();
        }
        for _ in 0..dice.up_to(6) {
            plan.add_fault(dice, dice.between(0, at + 100), at);
        }
        if dice.chance(15) {
            plan.add(
                dice.between(0, at + 100),
                PlannedEvent::InjectedFault(InjectedFault::NewRing),
            );
        }
        if bug == Some(Bug::SkipsChecksums) {
            plan.add_flipped_bit(dice, at);
        }
        plan.in_order()
    }

    fn in_order(mut self) -> Self {
        self.events.sort_by_key(|(at, _)| *at);
        self
    }

    /// By chance only one run in forty has a bit flipped, and few of these in a body that is read afterwards.
    fn add_flipped_bit(&mut self, dice: &Dice, end: u64) {
        (self.config.marks, self.interrupts) = (false, true);
        let fault = InjectedFault::Drive(self.config.unlucky, DriveFault::FlippedBit);
        self.add(dice.between(0, end + 100), PlannedEvent::InjectedFault(fault));
    }

    /// Jobs that take longer than a drive may hang, which they are not to be taken for.
    fn add_long_jobs(&mut self, dice: &Dice, end: u64) {
        (self.config.watches_drives, self.interrupts) = (true, true);
        let mut last = end;
        for _ in 0..1 + dice.up_to(3) {
            let (at, seconds) = (dice.between(0, end + 1), dice.between(45, 200));
            let long = InjectedFault::Drive(dice.up_to(self.nodes), DriveFault::LongJob(seconds));
            self.add(at, PlannedEvent::InjectedFault(long));
            last = last.max(at + 1_000 * seconds);
        }
        // Nothing more, but the jobs come to their end.
        self.add(last, PlannedEvent::InjectedFault(InjectedFault::Repeats(0)));
    }

    /// Something that must not keep clients from being served.
    fn must_serve(&mut self, dice: &Dice, end: u64) {
        self.must_serve = true;
        // No request is refused because a drive is busy.
        (self.config.over_bytes, self.config.queue) = (true, 200);
        for _ in 0..1 + dice.up_to(2) {
            let idle = InjectedFault::IdleConnections(dice.up_to(self.nodes));
            self.add(dice.between(0, end + 1), PlannedEvent::InjectedFault(idle));
        }
    }

    /// Clocks that are off from the beginning, and clocks that jump.
    fn add_clocks(&mut self, dice: &Dice, end: u64) {
        let most = [1, 10, 60][dice.up_to(3)] * 1_000_000;
        let skew = |node| InjectedFault::Skew(node, dice.between(0, 2 * most) as i64 - most as i64);
        for node in 0..self.nodes {
            self.add(0, PlannedEvent::InjectedFault(skew(node)));
        }
        for _ in 0..dice.up_to(4) {
            let (at, node) = (dice.between(0, end + 1), dice.up_to(self.nodes));
            self.add(at, PlannedEvent::InjectedFault(skew(node)));
        }
    }

    fn add(&mut self, millis: u64, event: PlannedEvent) {
        self.events.push((Duration::from_millis(millis), event));
    }

    fn add_client(&mut self, dice: &Dice, at: u64) {
        let ask = match dice.up_to(20) {
            0..9 => PlannedRequest::Put {
                size: [0, 700, 700, 3_000, 3_000, 3_000, 3_000, 66_000][dice.up_to(8)],
                cut_short: dice.chance(8),
            },
            9..11 => PlannedRequest::Post,
            11..14 => PlannedRequest::Delete,
            _ => PlannedRequest::Get {
                newest: dice.chance(30),
            },
        };
        let event = PlannedEvent::Client {
            node: dice.up_to(self.nodes),
            path: dice.up_to(PATHS.len()),
            ask,
        };
        self.add(at, event);
    }

    fn add_fault(&mut self, dice: &Dice, at: u64, end: u64) {
        let node = dice.up_to(self.nodes);
        let over = at + dice.between(1, end / 2 + 5_000);
        let mut bad = |begin, then: Option<InjectedFault>| {
            self.events
                .push((Duration::from_millis(at), PlannedEvent::InjectedFault(begin)));
            if let Some(then) = then {
                self.events
                    .push((Duration::from_millis(over), PlannedEvent::InjectedFault(then)));
            }
        };
        let on_drive = |fault, then| {
            (
                InjectedFault::Drive(node, fault),
                Some(InjectedFault::Drive(node, then)),
            )
        };
        let boots = Some(InjectedFault::Boot(node));
        let (begin, then) = match dice.up_to(18) {
            0 | 1 => (InjectedFault::PowerLoss(node), boots),
            2..5 => (InjectedFault::PowerLossAt(node, dice.between(0, 60) as u32), None),
            5 => (InjectedFault::Kill(node), boots),
            6 => (InjectedFault::Blackout, None),
            7 | 8 => {
                let other = dice.up_to(self.nodes);
                (
                    InjectedFault::Cut(node, other, true),
                    Some(InjectedFault::Cut(node, other, false)),
                )
            }
            9 => (InjectedFault::Loss(30), Some(InjectedFault::Loss(0))),
            10 => on_drive(DriveFault::Failing(20), DriveFault::Failing(0)),
            11 => (
                InjectedFault::Drive(node, DriveFault::FailingSyncs(1 + dice.up_to(3) as u32)),
                None,
            ),
            12 => on_drive(DriveFault::Full(true), DriveFault::Full(false)),
            13 => on_drive(DriveFault::Slow(15_000), DriveFault::Slow(2)),
            14 => on_drive(DriveFault::Pulled(true), DriveFault::Pulled(false)),
            15 | 16 => (InjectedFault::Breaks(30), Some(InjectedFault::Breaks(0))),
            _ if dice.chance(50) => (
                InjectedFault::Skew(node, dice.between(0, 10_000_000) as i64 - 5_000_000),
                None,
            ),
            _ if self.config.marks => (InjectedFault::Drive(self.config.unlucky, DriveFault::Replaced), None),
            _ => (InjectedFault::Drive(self.config.unlucky, DriveFault::FlippedBit), None),
        };
        bad(begin, then);
        self.interrupts |= !matches!(
            begin,
            InjectedFault::Skew(..) | InjectedFault::Cut(..) | InjectedFault::Loss(_)
        );
    }
}
