//! What a seed has in store for a whole cluster.

use crate::bugs::Bug;
use crate::config::{ClusterConfig, DatabaseConfig};
use crate::dice::Dice;
use crate::disk::DriveFault;
use crate::fault::InjectedFault;
use std::time::Duration;

/// Containers with objects, and names in each.
pub(super) const CONTAINERS: usize = 2;
pub(super) const NAMES: usize = 4;
/// The container that comes and goes, and never has objects.
pub(super) const FLEETING: usize = CONTAINERS;
/// Time for the first containers to be made before anything goes wrong.
const PREPARED: u64 = 8_000;
/// How often all nodes end in the runs that look for what is lost by that.
const INTERRUPTIONS: usize = 6;
/// How all of them end: without their power, and with it.
const ENDS: [InjectedFault; 4] = [
    InjectedFault::KillAll,
    InjectedFault::EndAllAtChange { with_power: false },
    InjectedFault::Blackout,
    InjectedFault::EndAllAtChange { with_power: true },
];

/// What clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeRequest {
    /// To write an object, which expires after so many seconds.
    Put { name: usize, expires: Option<u64> },
    /// To delete an object.
    Delete { name: usize },
    /// To make a container of a policy.
    MakeContainer { policy: usize },
    /// To delete a container.
    DeleteContainer,
}

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum WholeEvent {
    /// A client asks a node's gateway for something.
    Client {
        node: usize,
        container: usize,
        ask: WholeRequest,
    },
    /// Something goes wrong, or right again.
    InjectedFault(InjectedFault),
}

/// All of it.
pub(super) struct WholePlan {
    pub(super) nodes: usize,
    pub(super) config: ClusterConfig,
    pub(super) events: Vec<(Duration, WholeEvent)>,
}

impl WholePlan {
    pub(super) fn new(dice: &Dice, bug: Option<Bug>) -> Self {
        let nodes = 4 + dice.up_to(3);
        let databases = DatabaseConfig {
            per_diff: 1 + dice.up_to(6),
            max_diffs: 1 + dice.up_to(20),
            trust: Duration::ZERO,
        };
        let config = ClusterConfig {
            threads: 1 + dice.up_to(3),
            queue: 8 + dice.up_to(8),
            marks: dice.chance(50),
            unlucky: dice.up_to(nodes),
            replicates_every: dice.chance(60).then(|| Duration::from_millis(dice.between(800, 5_000))),
            over_bytes: false,
            watches_drives: false,
            waits: false,
            bug,
            databases: Some(databases),
            whole: true,
        };
        let mut plan = Self {
            nodes,
            config,
            events: vec![],
        };
        // What has expired in the wrong policy stays listed there until it may be reclaimed: one of the two in a run.
        let mixes_policies = dice.chance(40) || bug == Some(Bug::MovesNothing);
        plan.make_containers(dice, mixes_policies);
        // After a boot the auditor goes by clocks, and by the last minute before: where rows may be lost with the
        // power, clocks are right, and all is over within that.
        let rows_are_lost = dice.chance(50);
        let pause = [100, 1_000, if rows_are_lost { 300 } else { 4_000 }][dice.up_to(3)];
        let mut at = PREPARED;
        for _ in 0..8 + dice.up_to(16) {
            at += dice.between(0, pause);
            let event = plan.client(dice, !mixes_policies);
            plan.events.push((Duration::from_millis(at), event));
        }
        for _ in 0..dice.up_to(6) {
            plan.add_fault(dice, dice.between(PREPARED, at + 100), at, rows_are_lost);
        }
        match bug {
            // A later write has a row of its own: the last requests are those to end.
            Some(Bug::ForgetsIntents) => plan.interrupt_all(dice, INTERRUPTIONS, &ENDS[1..2]),
            Some(Bug::ForgetsLateRows) => plan.interrupt_all(dice, INTERRUPTIONS, &ENDS[3..]),
            _ if rows_are_lost && dice.chance(50) => plan.interrupt_all(dice, 1 + dice.up_to(2), &ENDS),
            _ => {}
        }
        if dice.chance(15) {
            plan.add(dice.between(PREPARED, at + 100), InjectedFault::NewRing);
        }
        if dice.chance(25) {
            plan.add(0, InjectedFault::Repeats(20));
        }
        plan.events.sort_by_key(|(at, _)| *at);
        plan
    }

    /// In some runs two clients want different policies at the same time.
    fn make_containers(&mut self, dice: &Dice, mixes_policies: bool) {
        for container in 0..CONTAINERS {
            let policy = dice.up_to(2);
            let mut policies = vec![policy];
            if mixes_policies {
                policies.push(1 - policy);
            }
            for policy in policies {
                let (node, ask) = (dice.up_to(self.nodes), WholeRequest::MakeContainer { policy });
                let event = WholeEvent::Client { node, container, ask };
                self.events.push((Duration::from_millis(dice.between(0, 4)), event));
            }
        }
    }

    fn add(&mut self, millis: u64, fault: InjectedFault) {
        self.events
            .push((Duration::from_millis(millis), WholeEvent::InjectedFault(fault)));
    }

    /// All nodes end in the middle of a request: they have the object, and no container has its row.
    fn interrupt_all(&mut self, dice: &Dice, times: usize, ends: &[InjectedFault]) {
        let is_write = |(at, event): &(Duration, WholeEvent)| match event {
            WholeEvent::Client {
                ask: WholeRequest::Put { .. } | WholeRequest::Delete { .. },
                ..
            } => Some(*at),
            _ => None,
        };
        let mut writes: Vec<Duration> = self.events.iter().filter_map(is_write).collect();
        for _ in 0..times {
            let last = writes.len().saturating_sub(1 + dice.up_to(2));
            if last >= writes.len() {
                return;
            }
            let fault = ends[dice.up_to(ends.len())];
            // What waits for a change is there before it.
            let later = match fault {
                InjectedFault::EndAllAtChange { .. } => 0,
                _ => dice.between(0, 20_000),
            };
            let at = writes.remove(last) + Duration::from_micros(later);
            self.events.push((at, WholeEvent::InjectedFault(fault)));
        }
    }

    fn client(&self, dice: &Dice, may_expire: bool) -> WholeEvent {
        let name = dice.up_to(NAMES);
        let expires = (may_expire && dice.chance(40)).then(|| dice.between(1, 40));
        let (container, ask) = match dice.up_to(20) {
            0..12 => (dice.up_to(CONTAINERS), WholeRequest::Put { name, expires }),
            12..17 => (dice.up_to(CONTAINERS), WholeRequest::Delete { name }),
            17..19 => (FLEETING, WholeRequest::MakeContainer { policy: dice.up_to(2) }),
            _ => (FLEETING, WholeRequest::DeleteContainer),
        };
        let node = dice.up_to(self.nodes);
        WholeEvent::Client { node, container, ask }
    }

    fn add_fault(&mut self, dice: &Dice, at: u64, end: u64, rows_are_lost: bool) {
        let node = dice.up_to(self.nodes);
        let over = at + dice.between(1, end / 2 + 5_000);
        let on_drive = |fault, then| {
            (
                InjectedFault::Drive(node, fault),
                Some(InjectedFault::Drive(node, then)),
            )
        };
        let boots = Some(InjectedFault::Boot(node));
        let (begin, then) = match dice.up_to(14) {
            0 | 1 => (InjectedFault::Kill(node), boots),
            2..5 => (InjectedFault::PowerLoss(node), boots),
            5..8 => {
                let other = dice.up_to(self.nodes);
                let cut = |cut| InjectedFault::Cut(node, other, cut);
                (cut(true), Some(cut(false)))
            }
            8 => (InjectedFault::Loss(30), Some(InjectedFault::Loss(0))),
            9 => on_drive(DriveFault::Full(true), DriveFault::Full(false)),
            10 => on_drive(DriveFault::Slow(15_000), DriveFault::Slow(2)),
            11 => on_drive(DriveFault::Pulled(true), DriveFault::Pulled(false)),
            12 => (InjectedFault::Breaks(30), Some(InjectedFault::Breaks(0))),
            _ if rows_are_lost => (InjectedFault::PowerLossAt(node, dice.between(0, 200) as u32), None),
            _ => {
                let micros = dice.between(0, 10_000_000) as i64 - 5_000_000;
                (InjectedFault::Skew(node, micros), None)
            }
        };
        self.add(at, begin);
        if let Some(then) = then {
            self.add(over, then);
        }
    }
}
