//! What faults do to a cluster, and how all is well again.

use crate::bugs::Bug;
use crate::cluster::SimCluster;
use crate::disk::DriveFault;
use crate::executor::OUTSIDE;
use crate::fault::InjectedFault;
use crate::history::Violation;
use crate::topology::{DRIVE, Topology};

impl SimCluster {
    /// Files of objects that have got their names on any node.
    pub(crate) fn published(&self) -> u64 {
        self.nodes.iter().map(|node| node.files.published()).sum()
    }

    /// All processes end at once, and begin again.
    pub(crate) fn end_all(&mut self, with_power: bool) -> Result<(), Violation> {
        (0..self.nodes.len()).for_each(|number| self.end(number, with_power));
        (0..self.nodes.len()).try_for_each(|number| self.begin(number))
    }

    /// Injects a fault, or ends one.
    pub(crate) fn inject(&mut self, fault: InjectedFault) -> Result<(), Violation> {
        self.trace.note(format!("{fault:?}"));
        match fault {
            InjectedFault::PowerLoss(number) => self.end(number, true),
            InjectedFault::PowerLossAt(number, steps) => self.nodes[number].files.lose_power_after(steps),
            InjectedFault::Kill(number) => self.end(number, false),
            InjectedFault::Boot(number) => self.begin(number)?,
            InjectedFault::Blackout => self.end_all(true)?,
            InjectedFault::KillAll => self.end_all(false)?,
            InjectedFault::EndAllAtChange { with_power } => self.ends_at_change = Some(with_power),
            InjectedFault::Cut(from, to, cut) => self.net.cut(from, to, cut),
            InjectedFault::Loss(percent) => self.net.lose(percent),
            InjectedFault::Repeats(percent) => self.net.repeat(percent),
            InjectedFault::Breaks(percent) => self.net.break_off(percent),
            InjectedFault::Drive(number, fault) => {
                let happened = self.nodes[number].files.inject(DRIVE, fault);
                self.bit_flipped |= happened && fault == DriveFault::FlippedBit;
            }
            InjectedFault::NewRing => {
                let Topology {
                    objects,
                    changed,
                    listings,
                    changed_listings,
                    ..
                } = &*self.topology;
                let (of_objects, of_listings) = match (self.config.databases, self.config.whole) {
                    (_, true) => (true, true),
                    (databases, false) => (databases.is_none(), databases.is_some()),
                };
                if of_objects {
                    objects.store(changed.clone());
                }
                if of_listings {
                    listings.store(changed_listings.clone());
                }
            }
            InjectedFault::IdleConnections(from) => self.sit_idle(from, OUTSIDE),
            InjectedFault::Skew(number, micros) => self.nodes[number].clock.skew(micros),
        }
        Ok(())
    }

    /// All is well again, after everything began anew once more.
    pub(crate) fn heal(&mut self) -> Result<(), Violation> {
        self.net.heal();
        (self.replicates, self.ends_at_change) = (false, None);
        // A boot has the auditor send rows again, which would hide that nothing else did.
        let with_power = self.dice.chance(70) && self.config.bug != Some(Bug::ForgetsIntents);
        self.trace.note("all is well".into());
        let well = [
            DriveFault::Failing(0),
            DriveFault::FailingSyncs(0),
            DriveFault::Full(false),
            DriveFault::Slow(2),
            DriveFault::Pulled(false),
        ];
        for number in 0..self.nodes.len() {
            self.end(number, with_power);
            for fault in well {
                self.nodes[number].files.inject(DRIVE, fault);
            }
        }
        for number in 0..self.nodes.len() {
            self.nodes[number].files.close_all();
            self.begin(number)?;
        }
        Ok(())
    }
}
