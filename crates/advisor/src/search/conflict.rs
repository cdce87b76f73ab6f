//! Constraints that contradict each other: which ones, and what would make them satisfiable.
//!
//! One constraint after another is left out while there is still no answer: what stays is a set in which each is needed
//! for the contradiction. Of each it is said which value would be enough, the others as they are. Where no value of one
//! is, one of them is loosened until that set has an answer, and the next contradiction is looked for until there is
//! none: so all of them are known, with values that are enough together. How many of a server can be had (`most`)
//! bounds a cluster as well: of each kind it is said how many would be enough.
//! Always holds: with a proposed value there is an answer; it is within one per cent of the least change.

use super::constraint::{ALL, Constraint};
use super::design::Recipe;
use super::least::{Goal, MOST_NODES, SearchContext};
use super::recipes;
use crate::inventory::PurchaseInventory;
use crate::model::rates::SoftwareRates;
use crate::model::workload::Protection;
use serde::Serialize;

/// A constraint is loosened by this factor at most.
const LOOSEST: f64 = 1e30;
/// How near a proposed value is to the least change.
const CLOSE: f64 = 1.01;
/// More replicas are not proposed.
const MOST_REPLICAS: u32 = 5;
/// Contradictions that are resolved one after the other: values are only ever loosened, so that no set of constraints
/// contradicts itself twice.
const MOST_ROUNDS: usize = 1 << ALL.len();

/// What a constraint would have to be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relaxation {
    /// Which.
    pub constraint: Constraint,
    /// What it is.
    pub now: f64,
    /// What it would have to be, the others as they are; none where no value helps.
    pub enough: Option<f64>,
    /// No cluster meets it, whatever the others are.
    pub is_hopeless: bool,
}

/// Whether some cluster meets all constraints.
pub fn is_possible(inventory: &PurchaseInventory, rates: &SoftwareRates) -> bool {
    let context = SearchContext { inventory, rates };
    let goal = Goal::of(&inventory.wanted);
    recipes(inventory)
        .into_iter()
        .any(|recipe| context.least(recipe, goal).is_some())
}

/// All contradictions among the constraints of an inventory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contradictions {
    /// Each with what would be enough of it alone.
    pub constraints: Vec<Relaxation>,
    /// Where no one of those is enough alone: values that are enough when all are changed. Empty where no cluster can
    /// be built at all.
    pub together: Vec<Relaxation>,
    /// Kinds of server of which more would be enough, all constraints as they are; where no constraint stands in the
    /// way, those that do.
    pub servers: Vec<ScarceServer>,
    /// As many replicas, offered beside the protections that there are, would be enough as well; only where objects do
    /// not last.
    pub replicas: Option<u32>,
}

/// A kind of server that can be had too few times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScarceServer {
    /// Its name.
    pub server: String,
    /// As many can be had (`most`).
    pub now: u32,
    /// As many would be enough, all else as it is.
    pub enough: u32,
}

/// One contradiction: the constraints that are needed for it, with their values.
type NeededConstraints = Vec<(Constraint, f64)>;

/// The constraints that contradict each other, each with what it would have to be. Those of the first contradiction
/// where one of them resolves everything; where none does, also those that have to change for all others.
pub fn contradictions(inventory: &PurchaseInventory, rates: &SoftwareRates) -> Contradictions {
    let (first, alone) = needed(inventory, rates);
    let servers = scarce(if first.is_empty() { &alone } else { inventory }, rates);
    let relaxed = first.iter().map(|(constraint, now)| Relaxation {
        constraint: *constraint,
        now: *now,
        enough: enough(*constraint, *now, inventory, rates),
        is_hopeless: false,
    });
    let mut constraints: Vec<Relaxation> = relaxed.collect();
    let is_lasting = constraints.iter().all(|one| one.constraint != Constraint::YearsToLoss);
    let replicas = if is_lasting { None } else { lasting(inventory, rates) };
    if constraints.iter().any(|one| one.enough.is_some()) {
        return Contradictions {
            constraints,
            together: vec![],
            servers,
            replicas,
        };
    }
    let (all, mut together) = resolved(inventory, rates);
    for change in &together {
        if !constraints.iter().any(|one| one.constraint == change.constraint) {
            constraints.push(Relaxation {
                enough: None,
                ..change.clone()
            });
        }
    }
    for one in &mut constraints {
        one.is_hopeless = all
            .iter()
            .any(|needed| matches!(needed[..], [(alone, _)] if alone == one.constraint));
    }
    let place = |one: &Relaxation| ALL.iter().position(|known| *known == one.constraint);
    constraints.sort_by_key(place);
    together.sort_by_key(place);
    Contradictions {
        constraints,
        together,
        servers,
        replicas,
    }
}

/// As many replicas as make an answer possible, where more of them than are offered do.
fn lasting(inventory: &PurchaseInventory, rates: &SoftwareRates) -> Option<u32> {
    let offered = inventory.protections.iter().map(|one| one.losses_survived()).max()?;
    let mut changed = inventory.clone();
    (offered + 2..=MOST_REPLICAS).find(|count| {
        changed.protections = vec![Protection::Replicas(*count)];
        is_possible(&changed, rates)
    })
}

/// Kinds of server of which more would be enough, each alone.
fn scarce(inventory: &PurchaseInventory, rates: &SoftwareRates) -> Vec<ScarceServer> {
    let mut changed = inventory.clone();
    let mut found = vec![];
    for (at, server) in inventory.servers.iter().enumerate() {
        let mut is_enough = |most: u32| {
            changed.servers[at].most = most;
            is_possible(&changed, rates)
        };
        let (mut low, mut high) = (server.most, MOST_NODES);
        if low < high && is_enough(high) {
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                match is_enough(middle) {
                    true => high = middle,
                    false => low = middle,
                }
            }
            found.push(ScarceServer {
                server: server.name.clone(),
                now: server.most,
                enough: high,
            });
        }
        changed.servers[at].most = server.most;
    }
    found
}

/// Contradictions one after the other, and the changes that resolve all of them; no changes where there are none.
fn resolved(inventory: &PurchaseInventory, rates: &SoftwareRates) -> (Vec<NeededConstraints>, Vec<Relaxation>) {
    let (mut changed, mut found) = (inventory.clone(), vec![]);
    let mut changes: Vec<Relaxation> = vec![];
    // Each round resolves one contradiction; one constraint may have to give way to several others in turn.
    for _ in 0..MOST_ROUNDS {
        if is_possible(&changed, rates) {
            return (found, changes);
        }
        let (needed, alone) = needed(&changed, rates);
        // What has to change anyway first, so that as few as possible do.
        let is_changed = |constraint| changes.iter().any(|one| one.constraint == constraint);
        let (again, others): (Vec<_>, Vec<_>) =
            needed.iter().rev().partition(|(constraint, _)| is_changed(*constraint));
        let change = again.into_iter().chain(others).find_map(|(constraint, now)| {
            let enough = enough(constraint, now, &alone, rates)?;
            Some((constraint, enough))
        });
        found.push(needed);
        let Some((constraint, enough)) = change else {
            return (found, vec![]);
        };
        constraint.set(&mut changed.wanted, Some(enough));
        changes.retain(|one| one.constraint != constraint);
        changes.push(Relaxation {
            constraint,
            now: constraint.value(&inventory.wanted).unwrap_or(enough),
            enough: Some(enough),
            is_hopeless: false,
        });
    }
    match is_possible(&changed, rates) {
        true => (found, changes),
        false => (found, vec![]),
    }
}

/// A set of constraints each of which is needed for the contradiction, and the inventory with those alone.
fn needed(inventory: &PurchaseInventory, rates: &SoftwareRates) -> (NeededConstraints, PurchaseInventory) {
    let mut without = inventory.clone();
    let mut needed = vec![];
    for constraint in ALL {
        let Some(value) = constraint.value(&inventory.wanted) else {
            continue;
        };
        constraint.set(&mut without.wanted, None);
        if is_possible(&without, rates) {
            constraint.set(&mut without.wanted, Some(value));
            needed.push((constraint, value));
        }
    }
    (needed, without)
}

/// The least change of one constraint with which there is an answer: of all recipes that of the one that needs least.
/// A recipe that needs no less than the best so far is left after one look.
fn enough(constraint: Constraint, now: f64, inventory: &PurchaseInventory, rates: &SoftwareRates) -> Option<f64> {
    let mut changed = inventory.clone();
    let mut is_enough = |recipe: Recipe, factor: f64| {
        constraint.set(&mut changed.wanted, Some(constraint.loosened(now, factor)));
        let inventory = &changed;
        let context = SearchContext { inventory, rates };
        context.least(recipe, Goal::of(&inventory.wanted)).is_some()
    };
    let mut best: Option<f64> = None;
    for recipe in recipes(inventory) {
        let (mut low, mut high) = (1.0, best.map_or(LOOSEST, |best| best / CLOSE));
        if high <= low || !is_enough(recipe, high) {
            continue;
        }
        while high / low > CLOSE {
            // By halves of the logarithm first, so that far and near are found alike.
            let middle = (low * high).sqrt();
            match is_enough(recipe, middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        best = Some(high);
    }
    best.map(|factor| constraint.loosened(now, factor))
}
