//! Which cluster answers a question best: every recipe of the catalogue, with bounds.
//!
//! All three questions rest on one function, the cheapest cluster of a recipe that bears a goal (`search/least.rs`). It
//! never gets cheaper as the goal grows, so the most capacity or throughput is found by halving. A recipe that cannot
//! reach what the answers so far reach is left after one look.
//! Always holds: every recipe is looked at, in an order that does not depend on chance; answers meet all constraints;
//! the first answers are the same however many are asked for.
//!
//! | question | file |
//! |---|---|
//! | a cluster that could be bought: model, bill, totals | `search/design.rs` |
//! | the least numbers that bear a goal | `search/least.rs` |
//! | constraints that contradict each other | `search/conflict.rs`, `search/constraint.rs` |
//! | how many racks servers need | `search/racks.rs` |

pub mod conflict;
pub mod constraint;
pub mod design;
pub mod least;
pub mod racks;

use crate::inventory::{DriveKind, PurchaseInventory};
use crate::model::rates::SoftwareRates;
use clap::ValueEnum;
use design::{ClusterDesign, Recipe};
use least::{Goal, SearchContext};
use serde::Serialize;
use std::cmp::Ordering;

/// Numbers of drives in a node that are tried, evenly spread up to its bays.
const DRIVE_STEPS: u32 = 6;
/// Recipes that are looked at in seconds, contradictions included.
pub const MOST_RECIPES: usize = 20_000;
/// Halving ends when the answer is known to less than this share.
const CLOSE: f64 = 1e-4;
/// Capacities or throughputs within this share of each other are equal: then the price decides.
const SAME_WORTH: f64 = 1e-3;
/// More capacity or throughput than a goal is looked for: as many bytes, or bytes a second.
const HUGE_GOAL: f64 = 1e21;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum PurchaseQuestion {
    /// The least cost for a capacity and a throughput.
    LeastCost,
    /// The most capacity for a throughput and a budget.
    MostCapacity,
    /// The most throughput for a capacity and a budget.
    MostThroughput,
}

impl PurchaseQuestion {
    /// What makes a design better.
    fn worth(self, inventory: &PurchaseInventory, design: &ClusterDesign, goal: Goal) -> f64 {
        match self {
            Self::LeastCost => -design.totals(inventory).price,
            Self::MostCapacity => design.capacity(inventory),
            Self::MostThroughput => goal.throughput,
        }
    }

    /// The better one first: of equal worth the cheaper one, of equal price that of less power.
    fn order(self, inventory: &PurchaseInventory, one: &FoundDesign, other: &FoundDesign) -> Ordering {
        let [first, second] = [one, other].map(|found| found.design.totals(inventory));
        let worth = match self {
            Self::LeastCost => other.worth.total_cmp(&one.worth),
            _ => grade(other.worth).cmp(&grade(one.worth)),
        };
        worth
            .then(first.price.total_cmp(&second.price))
            .then(first.power.total_cmp(&second.power))
    }
}

/// Equal for worths that [`SAME_WORTH`] does not tell apart.
fn grade(worth: f64) -> i64 {
    (worth.ln() / SAME_WORTH).floor() as i64
}

/// A cluster and what it was found for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundDesign {
    /// The cluster.
    pub design: ClusterDesign,
    /// What it bears within the constraints.
    pub goal: Goal,
    /// The more, the better.
    pub worth: f64,
}

/// At most as many recipes as [`recipes`] makes, without making them.
pub fn recipe_bound(inventory: &PurchaseInventory) -> usize {
    let count = |is_one: fn(&crate::inventory::CatalogueServer) -> bool| {
        inventory.servers.iter().filter(|one| is_one(one)).count()
    };
    let drives = inventory
        .drives
        .iter()
        .map(|kind| listings(&inventory.drives, kind).len());
    count(|one| one.is_gateway)
        * count(|one| one.is_storage)
        * drives.sum::<usize>()
        * DRIVE_STEPS as usize
        * inventory.balancers.len().max(1)
        * inventory.protections.len()
}

/// Everything that a catalogue's kinds can be put together to.
pub fn recipes(inventory: &PurchaseInventory) -> Vec<Recipe> {
    let places = |is_one: fn(&crate::inventory::CatalogueServer) -> bool| {
        let servers = inventory.servers.iter().enumerate();
        servers.filter(move |(_, one)| is_one(one)).map(|(at, _)| at)
    };
    let mut all = vec![];
    let balancers: Vec<Option<usize>> = match inventory.balancers.len() {
        0 => vec![None],
        count => (0..count).map(Some).collect(),
    };
    for gateway in places(|one| one.is_gateway) {
        for storage in places(|one| one.is_storage && one.bays > 0) {
            for (drive, kind) in inventory.drives.iter().enumerate() {
                for (listing, index_on_flash) in listings(&inventory.drives, kind) {
                    let bays = inventory.servers[storage].bays;
                    let left = bays.saturating_sub(listing.map_or(0, |(_, count)| count));
                    for drives in drive_counts(left) {
                        for protection in 0..inventory.protections.len() {
                            all.extend(balancers.iter().map(|balancer| Recipe {
                                gateway,
                                storage,
                                drive,
                                drives,
                                listing,
                                index_on_flash,
                                balancer: *balancer,
                                protection,
                            }));
                        }
                    }
                }
            }
        }
    }
    all
}

/// Where listings and metadata may lie beside drives of a kind.
fn listings(drives: &[DriveKind], kind: &DriveKind) -> Vec<(Option<(usize, u32)>, bool)> {
    let mut all = vec![(None, false)];
    if !kind.is_flash {
        for (at, _) in drives.iter().enumerate().filter(|(_, one)| one.is_flash) {
            all.push((Some((at, 1)), false));
            all.push((Some((at, 2)), true));
        }
    }
    all
}

fn drive_counts(bays: u32) -> Vec<u32> {
    let mut counts: Vec<u32> = (1..=DRIVE_STEPS)
        .map(|step| (bays * step).div_ceil(DRIVE_STEPS))
        .collect();
    counts.retain(|count| *count > 0);
    counts.dedup();
    counts
}

/// The best clusters, the best first; how many are asked for does not change them. Of recipes that differ only in how
/// many drives are in a node the better one.
pub fn search(
    question: PurchaseQuestion,
    inventory: &PurchaseInventory,
    rates: &SoftwareRates,
    top: usize,
) -> Vec<FoundDesign> {
    let context = SearchContext { inventory, rates };
    let asked = Goal::of(&inventory.wanted);
    let mut best: Vec<FoundDesign> = vec![];
    for recipe in recipes(inventory) {
        let floor = best.get(top.saturating_sub(1)).map(|last| last.worth);
        let Some(found) = context.answer(question, recipe, asked, floor) else {
            continue;
        };
        let same = best.iter().position(|one| is_alike(one.design.recipe, recipe));
        match same {
            Some(at) if question.order(inventory, &best[at], &found).is_le() => continue,
            Some(at) => best[at] = found,
            None => best.push(found),
        }
        best.sort_by(|one, other| question.order(inventory, one, other));
        best.truncate(top);
    }
    best
}

fn is_alike(one: Recipe, other: Recipe) -> bool {
    Recipe { drives: 0, ..one } == Recipe { drives: 0, ..other }
}

impl SearchContext<'_> {
    /// The best of a recipe; none where it is no better than `floor`, or there is none.
    fn answer(
        &self,
        question: PurchaseQuestion,
        recipe: Recipe,
        asked: Goal,
        floor: Option<f64>,
    ) -> Option<FoundDesign> {
        let found = |goal: Goal| {
            self.least(recipe, goal).map(|design| FoundDesign {
                design,
                goal,
                worth: question.worth(self.inventory, &design, goal),
            })
        };
        let with = |value: f64| match question {
            PurchaseQuestion::MostThroughput => Goal {
                throughput: value,
                ..asked
            },
            _ => Goal {
                capacity: value,
                ..asked
            },
        };
        let first = found(asked)?;
        if question == PurchaseQuestion::LeastCost {
            return floor.is_none_or(|floor| first.worth >= floor).then_some(first);
        }
        // Nothing that equals the floor can be reached: one look is enough.
        if let Some(floor) = floor {
            found(with(floor * (1.0 - SAME_WORTH)))?;
        }
        // From a start that does not depend on the floor, so that an answer is the same beside any others.
        let start = match question {
            PurchaseQuestion::MostThroughput => asked.throughput,
            _ => first.design.capacity(self.inventory),
        };
        let (mut low, mut best) = (start.max(1.0), first);
        let mut high = low * 16.0;
        while let Some(more) = found(with(high)).filter(|_| high < HUGE_GOAL) {
            (low, best, high) = (high, more, high * 16.0);
        }
        while high / low > 1.0 + CLOSE {
            let middle = (low * high).sqrt();
            match found(with(middle)) {
                Some(more) => (low, best) = (middle, more),
                None => high = middle,
            }
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests;
