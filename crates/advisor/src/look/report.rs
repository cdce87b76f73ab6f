//! What a look has found, as text and as JSON.

use super::ClusterSight;
use super::arguments::LookArguments;
use super::capacity::{CapacityOutlook, outlook, used};
use super::causes::{LookCause, NAMED, RULES};
use super::papers::SeenFigures;
use super::ramp::{RampAdvice, ramps};
use super::servers::ServerSight;
use ring_builder::size::shown as bytes;
use serde::Serialize;
use std::fmt::Write;
use world::World;

/// Steps of a ramp that a terminal shows.
const SHOWN_STEPS: usize = 6;

/// A look.
#[derive(Debug, Serialize)]
pub(super) struct LookReport {
    /// How long it took.
    pub seconds: f64,
    /// Servers that were asked, and that answered everything.
    pub asked: usize,
    pub answered: usize,
    /// What is gained most for its cost first.
    pub causes: Vec<LookCause>,
    /// How many there were before --top.
    pub found: usize,
    pub capacity: Vec<CapacityOutlook>,
    pub ramps: Vec<RampAdvice>,
    /// What could not be seen.
    pub unseen: Vec<String>,
    /// For a later look's --before.
    pub seen: SeenFigures,
    #[serde(skip)]
    max_move: f64,
}

impl LookReport {
    pub fn of(
        sight: &ClusterSight,
        mut causes: Vec<LookCause>,
        arguments: &LookArguments,
        world: &World,
        seconds: f64,
    ) -> Self {
        let found = causes.len();
        causes.truncate(usize::from(arguments.top));
        let gateways = sight.gateways.iter().filter(|one| one.conf.is_none());
        let silent = gateways.clone().filter(|one| one.silence.is_some()).count()
            + sight.servers.iter().filter(|one| one.silence.is_some()).count();
        let inside = if sight.is_one_process() { sight.servers.len() } else { 0 };
        let (asked, silent) = (
            gateways.count() + sight.servers.len() - inside,
            silent.saturating_sub(inside),
        );
        let (size, in_use) = used(sight);
        Self {
            seconds,
            asked,
            answered: asked - silent,
            causes,
            found,
            capacity: outlook(sight, arguments),
            ramps: ramps(world, sight, arguments),
            unseen: unseen(sight, arguments),
            seen: SeenFigures {
                at: sight.at,
                size,
                used: in_use,
                pending: super::causes::all_pending(sight),
            },
            max_move: arguments.max_move,
        }
    }

    pub fn text(&self, explain: bool) -> String {
        let mut text = format!(
            "Looked at {} servers in {:.1} s; {} answered everything.\n",
            self.asked, self.seconds, self.answered
        );
        if self.causes.is_empty() {
            text += "\nNothing was found that is worth a change.\n";
        }
        for (number, cause) in self.causes.iter().enumerate() {
            add_cause(&mut text, number + 1, cause, explain.then_some(self.max_move));
        }
        if self.found > self.causes.len() {
            let _ = writeln!(
                text,
                "\n{} more causes: --top {}",
                self.found - self.causes.len(),
                self.found.min(50)
            );
        }
        self.add_capacity(&mut text);
        self.ramps.iter().for_each(|ramp| add_ramp(&mut text, ramp));
        if !self.unseen.is_empty() {
            text += "\nNot seen:\n";
        }
        for line in &self.unseen {
            let _ = writeln!(text, "  {}", plain(line));
        }
        if explain {
            self.add_rules(&mut text);
        }
        text
    }

    fn add_capacity(&self, text: &mut String) {
        for one in &self.capacity {
            let _ = writeln!(
                text,
                "\ncapacity of {}: {} of {} in use; {} until {} is as full as --fill says",
                one.ring,
                bytes(one.used),
                bytes(one.size),
                bytes((one.usable - one.used).max(0.0)),
                one.first
            );
            let _ = match (one.days, one.growth) {
                (Some(days), Some(growth)) => writeln!(
                    text,
                    "  ends in {days:.0} days, with {} more a day ({})",
                    bytes(growth.max(0.0)),
                    one.growth_from
                ),
                (Some(_), None) => writeln!(text, "  is at its end now"),
                (None, Some(_)) => writeln!(text, "  does not end: nothing more is stored ({})", one.growth_from),
                (None, None) => writeln!(text, "  growth is {}", one.growth_from),
            };
        }
    }

    /// How ranks come about.
    fn add_rules(&self, text: &mut String) {
        let rules: Vec<&str> = RULES.iter().map(|(what, _)| *what).collect();
        let _ = writeln!(
            text,
            "\nRank is points for an hour. Points: 1000 for the share of objects that may be lost any day, 300 for the share of\n\
             servers or requests that fail now, 100 for the share of replicas or rows that are late, 100 for the share of\n\
             capacity or throughput gained. Hours: work, a tenth of the time that data moves ({} an hour for each device,\n\
             --max-move), 40 for what has to be bought.\nLooked for: {}.",
            bytes(self.max_move),
            rules.join(", ")
        );
    }
}

fn add_cause(text: &mut String, number: usize, cause: &LookCause, explained: Option<f64>) {
    let mut cost = match cause.work_hours {
        hours @ ..1.0 => format!("{:.0} min of work", hours * 60.0),
        hours => format!("{hours:.0} h of work"),
    };
    if cause.moved_bytes >= 1.0 {
        let _ = write!(cost, ", {} move", bytes(cause.moved_bytes));
    }
    if cause.is_bought {
        cost += ", and a purchase";
    }
    // Writing to memory does not fail.
    let _ = writeln!(text, "\n{number}. {}", cause.name);
    for one in cause.evidence.iter().take(NAMED) {
        let _ = writeln!(
            text,
            "   seen    {}\n             ({})",
            plain(&one.figure),
            plain(&one.read_at)
        );
    }
    let more = cause.evidence.len().saturating_sub(NAMED);
    if more > 0 {
        let _ = writeln!(text, "   seen    {more} more like these: --json names them");
    }
    for step in &cause.remedy {
        let _ = writeln!(text, "   remedy  {}", plain(step));
    }
    let _ = writeln!(text, "   gain    {}\n   cost    {cost}", cause.gain);
    if explained.is_some() {
        let (points, hours, rank) = (cause.points, cause.cost_hours, cause.rank);
        let _ = writeln!(text, "   rank    {points:.1} points / {hours:.2} h = {rank:.1}");
    }
}

fn add_ramp(text: &mut String, ramp: &RampAdvice) {
    let _ = writeln!(
        text,
        "\nnew devices in {}.builder ({}), in steps:\n  {}",
        ramp.ring,
        ramp.devices.join(" "),
        ramp.command
    );
    if let Some(why) = &ramp.refused {
        let _ = writeln!(text, "  refused: {why}");
    }
    for (number, step) in ramp.steps.iter().take(SHOWN_STEPS).enumerate() {
        let _ = writeln!(
            text,
            "  {}. after {:.0} h: {} move in {:.1} h",
            number + 1,
            step.after_hours,
            bytes(step.bytes),
            step.hours
        );
        for command in &step.commands {
            let _ = writeln!(text, "     {command}");
        }
    }
    if ramp.steps.len() > SHOWN_STEPS {
        let _ = writeln!(text, "  … {} steps in all: --json has them", ramp.steps.len());
    }
    if !ramp.steps.is_empty() {
        *text += "  Each step: rebalance, copy the ring to every node, wait until `martlet recon -r` says that replication is done.\n";
    }
}

/// Foreign text on one line: without what would command a terminal.
fn plain(text: &str) -> String {
    text.chars()
        .map(|one| if one.is_control() { '\u{fffd}' } else { one })
        .collect()
}

/// What was not looked at, for want of an option, of an answer or of a figure.
fn unseen(sight: &ClusterSight, arguments: &LookArguments) -> Vec<String> {
    let mut all = sight.unseen.clone();
    let named =
        |server: &ServerSight, why: &str| format!("{} server {}: {why}", server.ring_use.word(), server.place());
    if sight.is_one_process() {
        let inside = "storage servers: they are inside of the gateway's process (martlet up), and have no recon";
        all.push(inside.to_owned());
    } else {
        let silent = sight.servers.iter();
        all.extend(silent.filter_map(|server| Some(named(server, server.silence.as_deref()?))));
    }
    let partly = sight.servers.iter().filter(|server| server.silence.is_none());
    all.extend(partly.filter_map(|server| Some(named(server, server.refusal.as_deref()?))));
    let has_sizes = sight
        .servers
        .iter()
        .flat_map(|server| server.devices.iter().flatten())
        .any(|device| device.is_mounted);
    if !has_sizes {
        all.push("sizes of devices: no server has a device that is a mount point".to_owned());
    }
    if arguments.gateway.is_empty() {
        all.push("gateways: no ring names them; say --gateway HOST:PORT".to_owned());
    }
    for gateway in sight
        .gateways
        .iter()
        .filter(|one| one.conf.is_none() && one.silence.is_none() && one.pages.is_none())
    {
        all.push(format!(
            "metrics of {}: OpenStack's has none; Martlet's shows them to metrics_clients",
            gateway.place
        ));
    }
    if sight.log.is_none() {
        all.push("how containers are used: say --access-log FILE".to_owned());
    }
    if sight.dispersion.is_empty() {
        all.push("copies of the dispersion sample: say --dispersion FILE".to_owned());
    }
    all
}
