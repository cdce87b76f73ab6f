//! Answers are the best there are, meet what is wanted, and contradictions are named.

use super::conflict::{Relaxation, contradictions, is_possible};
use super::constraint::Constraint;
use super::design::{ClusterDesign, NodeCounts};
use super::least::{Goal, SearchContext};
use super::{PurchaseQuestion, recipe_bound, recipes, search};
use crate::inventory::PurchaseInventory;
use crate::inventory::tests::starter;
use crate::model::limits::throughput;
use crate::model::rates::SoftwareRates;

fn rates() -> SoftwareRates {
    SoftwareRates::built_in().unwrap()
}

/// A catalogue so small that every cluster can be tried.
fn small() -> PurchaseInventory {
    let mut inventory = starter();
    inventory.servers.truncate(3);
    inventory.drives.remove(1);
    inventory.balancers.truncate(1);
    inventory.wanted.capacity = Some(300e12);
    inventory.wanted.throughput = Some(2e9);
    inventory.wanted.budget = None;
    inventory.wanted.p99 = None;
    inventory
}

#[test]
fn the_least_cost_is_that_of_trying_everything() {
    let (inventory, rates) = (small(), rates());
    let best = search(PurchaseQuestion::LeastCost, &inventory, &rates, 3)[0];
    let goal = Goal::of(&inventory.wanted);
    let requests = goal.throughput / inventory.mix.bytes_per_request();
    let mut cheapest = f64::INFINITY;
    for recipe in recipes(&inventory) {
        for gateways in inventory.wanted.gateways..6 {
            for storage in inventory.wanted.zones..60 {
                for balancers in 1..8 {
                    let counts = NodeCounts {
                        gateways,
                        storage,
                        balancers,
                    };
                    let design = ClusterDesign {
                        recipe,
                        counts,
                        uplink: None,
                    };
                    let price = design.totals(&inventory).price;
                    if price >= cheapest || design.capacity(&inventory) < goal.capacity {
                        continue;
                    }
                    let found = throughput(&design.model(&inventory), &inventory.mix, &rates);
                    let bears = found.limits.iter().all(|limit| {
                        let most = match limit.resource {
                            crate::model::limits::Resource::Balancer => inventory.wanted.balancer_utilisation,
                            _ => inventory.wanted.utilisation,
                        };
                        limit.requests.value * most >= requests * (1.0 - 1e-9)
                    });
                    let lasts = design.years_to_loss(&inventory) >= 1e6;
                    let fits = SearchContext {
                        inventory: &inventory,
                        rates: &rates,
                    }
                    .fits(&design);
                    if bears && lasts && fits {
                        cheapest = price;
                    }
                }
            }
        }
    }
    assert!(
        (best.design.totals(&inventory).price - cheapest).abs() < 1e-6,
        "{} {cheapest}",
        -best.worth
    );
}

#[test]
fn the_three_questions_agree_with_each_other() {
    let (mut inventory, rates) = (small(), rates());
    let least = search(PurchaseQuestion::LeastCost, &inventory, &rates, 1)[0];
    let price = least.design.totals(&inventory).price;
    // With exactly that budget the most of either is what was asked for, or what its last node brings beyond it.
    inventory.wanted.budget = Some(price);
    let most = search(PurchaseQuestion::MostCapacity, &inventory, &rates, 1)[0];
    assert!(most.design.capacity(&inventory) >= least.design.capacity(&inventory) * (1.0 - 1e-3));
    assert!(most.design.totals(&inventory).price <= price);
    let fastest = search(PurchaseQuestion::MostThroughput, &inventory, &rates, 1)[0];
    assert!(fastest.goal.throughput >= least.goal.throughput);
    // More money never buys less.
    inventory.wanted.budget = Some(2.0 * price);
    let richer = search(PurchaseQuestion::MostThroughput, &inventory, &rates, 1)[0];
    assert!(
        richer.goal.throughput > 1.2 * fastest.goal.throughput,
        "{richer:?} {fastest:?}"
    );
}

#[test]
fn the_first_answers_are_the_same_however_many_are_asked_for() {
    let (inventory, rates) = (starter(), rates());
    for question in [
        PurchaseQuestion::LeastCost,
        PurchaseQuestion::MostCapacity,
        PurchaseQuestion::MostThroughput,
    ] {
        let many = search(question, &inventory, &rates, 5);
        for top in [1, 2, 3] {
            assert_eq!(search(question, &inventory, &rates, top), many[..top], "{question:?}");
        }
        // Of as much throughput or capacity the cheaper one is the better one.
        let prices = many.iter().map(|one| one.design.totals(&inventory).price);
        let all: Vec<(i64, f64)> = many.iter().map(|one| super::grade(one.worth)).zip(prices).collect();
        assert!(
            all.is_sorted_by(|one, other| one.0 != other.0 || one.1 <= other.1),
            "{all:?}"
        );
    }
}

#[test]
fn a_wanted_p99_costs_money_and_is_met() {
    let (mut inventory, rates) = (small(), rates());
    let plain = search(PurchaseQuestion::LeastCost, &inventory, &rates, 1)[0];
    let requests = plain.goal.throughput / inventory.mix.bytes_per_request();
    let p99 = |inventory: &PurchaseInventory, design: &ClusterDesign| {
        let model = design.model(inventory);
        crate::model::latency::latency(&model, &inventory.mix, &rates, requests)
            .unwrap()
            .p99
            .value
    };
    let before = p99(&inventory, &plain.design);
    inventory.wanted.p99 = Some(before * 0.7);
    let fast = search(PurchaseQuestion::LeastCost, &inventory, &rates, 1)[0];
    assert!(p99(&inventory, &fast.design) <= before * 0.7);
    assert!(fast.worth < plain.worth);
}

#[test]
fn contradictions_are_named_with_what_would_be_enough() {
    let (mut inventory, rates) = (small(), rates());
    inventory.wanted.budget = Some(20_000.0);
    assert!(!is_possible(&inventory, &rates));
    let found = contradictions(&inventory, &rates).constraints;
    let budget = found.iter().find(|one| one.constraint == Constraint::Budget).unwrap();
    let enough = budget.enough.unwrap();
    inventory.wanted.budget = Some(enough);
    assert!(is_possible(&inventory, &rates));
    inventory.wanted.budget = Some(enough * 0.98);
    assert!(!is_possible(&inventory, &rates));
    // Nothing can be multiplied as often as one likes.
    inventory.wanted.budget = Some(0.0);
    let found = contradictions(&inventory, &rates).constraints;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        (found[0].enough.unwrap() / enough - 1.0).abs() < 0.02,
        "{found:?} {enough}"
    );
    // One replica on a drive that fails often cannot last for ever, whatever it costs.
    inventory.wanted.budget = None;
    inventory.protections.truncate(1);
    inventory.wanted.years_to_loss = Some(1e25);
    let found = contradictions(&inventory, &rates).constraints;
    let named: Vec<Constraint> = found.iter().map(|one| one.constraint).collect();
    assert_eq!(named, [Constraint::YearsToLoss]);
    assert!(found[0].enough.unwrap() < 1e25);
}

#[test]
fn contradictions_that_have_nothing_to_do_with_each_other_are_resolved_together() {
    let (mut inventory, rates) = (small(), rates());
    // Too little money, and a time that no drive keeps.
    inventory.wanted.budget = Some(20_000.0);
    inventory.wanted.p99 = Some(1e-6);
    let all = contradictions(&inventory, &rates);
    assert!(all.constraints.iter().all(|one| one.enough.is_none()), "{all:?}");
    // Both are named, also the one that no cluster meets whatever the other is.
    let named: Vec<Constraint> = all.constraints.iter().map(|one| one.constraint).collect();
    assert!(
        named.contains(&Constraint::P99) && named.contains(&Constraint::Budget),
        "{all:?}"
    );
    let hopeless: Vec<Constraint> = all
        .constraints
        .iter()
        .filter(|one| one.is_hopeless)
        .map(|one| one.constraint)
        .collect();
    // No cluster at all is so fast, not even one that does nothing, and none costs so little.
    assert_eq!(hopeless, [Constraint::P99, Constraint::Budget], "{all:?}");
    let found = all.together;
    assert!(found.len() > 1, "{found:?}");
    for one in &found {
        match one.constraint {
            Constraint::Budget => inventory.wanted.budget = one.enough,
            Constraint::P99 => inventory.wanted.p99 = one.enough,
            Constraint::Capacity => inventory.wanted.capacity = one.enough,
            Constraint::Throughput => inventory.wanted.throughput = one.enough,
            other => panic!("{other:?} is no constraint of this inventory"),
        }
    }
    assert!(is_possible(&inventory, &rates), "{found:?}");
}

#[test]
fn three_contradictions_are_all_named() {
    let (mut inventory, rates) = (small(), rates());
    inventory.wanted.budget = Some(1000.0);
    inventory.wanted.p99 = Some(1e-6);
    inventory.wanted.years_to_loss = Some(1e29);
    let all = contradictions(&inventory, &rates);
    for constraint in [Constraint::YearsToLoss, Constraint::P99, Constraint::Budget] {
        assert!(
            all.constraints.iter().any(|one| one.constraint == constraint),
            "{all:?}"
        );
    }
    for one in &all.together {
        match one.constraint {
            Constraint::Budget => inventory.wanted.budget = one.enough,
            Constraint::P99 => inventory.wanted.p99 = one.enough,
            Constraint::YearsToLoss => inventory.wanted.years_to_loss = one.enough,
            Constraint::Capacity => inventory.wanted.capacity = one.enough,
            Constraint::Throughput => inventory.wanted.throughput = one.enough,
            other => panic!("{other:?} is no constraint of this inventory"),
        }
    }
    assert!(!all.together.is_empty() && is_possible(&inventory, &rates), "{all:?}");
}

#[test]
fn constraints_that_give_way_to_many_others_in_turn_are_all_named() {
    let (mut inventory, rates) = (starter(), rates());
    let wanted = &mut inventory.wanted;
    (wanted.budget, wanted.p99, wanted.years_to_loss) = (Some(1000.0), Some(1e-3), Some(1e29));
    (wanted.racks, wanted.power_per_rack, wanted.zones) = (Some(1), Some(10.0), 900);
    let all = contradictions(&inventory, &rates);
    for one in &all.together {
        one.constraint.set(&mut inventory.wanted, one.enough);
        let is_it = |named: &Relaxation| named.constraint == one.constraint;
        assert!(all.constraints.iter().any(is_it), "{all:?}");
    }
    assert!(!all.together.is_empty() && is_possible(&inventory, &rates), "{all:?}");
}

/// What contradicts itself, each with what would be enough.
fn contradicting(inventory: &PurchaseInventory) -> Vec<(&'static str, Option<String>)> {
    let found = contradictions(inventory, &rates()).constraints;
    let shown = |one: &Relaxation| one.enough.map(|enough| one.constraint.shown_enough(enough));
    found.iter().map(|one| (one.constraint.key(), shown(one))).collect()
}

#[test]
fn what_costs_nothing_is_added_until_a_p99_is_met() {
    let (inventory, rates) = (small(), rates());
    let mut free = inventory.clone();
    free.servers.iter_mut().for_each(|one| one.price = 0.0);
    free.drives.iter_mut().for_each(|one| one.price = 0.0);
    free.balancers.iter_mut().for_each(|one| one.price = 0.0);
    let goal = Goal::of(&inventory.wanted);
    let requests = goal.throughput / inventory.mix.bytes_per_request();
    let with = |inventory: &PurchaseInventory, recipe, p99| {
        let mut inventory = inventory.clone();
        inventory.wanted.p99 = p99;
        let context = SearchContext {
            inventory: &inventory,
            rates: &rates,
        };
        context.least(recipe, goal)
    };
    let mut reached = 0;
    for recipe in recipes(&inventory) {
        let Some(least) = with(&inventory, recipe, None) else {
            continue;
        };
        let p99 = crate::model::latency::likely_p99(&least.model(&inventory), &inventory.mix, &rates, requests);
        let faster = p99.map(|p99| p99 * 0.9);
        if with(&inventory, recipe, faster).is_some() {
            reached += 1;
            assert!(with(&free, recipe, faster).is_some(), "{recipe:?}");
        }
    }
    assert!(reached > 0);
}

#[test]
fn the_most_throughput_is_not_without_its_p99() {
    let (mut inventory, rates) = (small(), rates());
    inventory.wanted.throughput = None;
    inventory.wanted.budget = Some(400_000.0);
    inventory.wanted.p99 = Some(1e-5);
    assert_eq!(search(PurchaseQuestion::MostThroughput, &inventory, &rates, 3), []);
    let found = contradicting(&inventory);
    assert!(
        matches!(&found[..], [("p99", Some(enough))] if enough.ends_with(" ms")),
        "{found:?}"
    );
}

#[test]
fn a_server_that_no_rack_has_room_for_is_in_no_answer() {
    let mut inventory = small();
    // Sixty racks have units and watts for everything, and none for a storage node of two units.
    (inventory.wanted.racks, inventory.wanted.units_per_rack) = (Some(60), Some(1.0));
    assert_eq!(contradicting(&inventory), [("units_per_rack", Some("2".to_owned()))]);
    (inventory.wanted.units_per_rack, inventory.wanted.power_per_rack) = (Some(42.0), Some(100.0));
    // A storage node with its drives, or a gateway, whichever takes more.
    let found = contradicting(&inventory);
    let [("power_per_rack", Some(enough))] = &found[..] else {
        panic!("{found:?}")
    };
    let watts: f64 = enough.trim_end_matches(" W").parse().unwrap();
    assert!((250.0..460.0).contains(&watts), "{found:?}");
    inventory.wanted.power_per_rack = Some(watts);
    assert!(is_possible(&inventory, &rates()));
    // Few racks are named by their number.
    (inventory.wanted.racks, inventory.wanted.power_per_rack) = (Some(1), Some(8000.0));
    inventory.wanted.capacity = Some(3e15);
    let found = contradicting(&inventory);
    let racks = found.iter().find(|(key, _)| *key == "racks").unwrap();
    inventory.wanted.racks = Some(racks.1.as_ref().unwrap().parse().unwrap());
    assert!(
        inventory.wanted.racks > Some(2) && is_possible(&inventory, &rates()),
        "{found:?}"
    );
    inventory.wanted.racks = inventory.wanted.racks.map(|racks| racks - 1);
    assert!(!is_possible(&inventory, &rates()), "{found:?}");
}

#[test]
fn gateways_years_and_servers_that_can_be_had_are_named() {
    let mut inventory = small();
    inventory.wanted.gateways = 5;
    inventory
        .servers
        .iter_mut()
        .filter(|one| one.is_gateway)
        .for_each(|one| one.most = 2);
    inventory.wanted.throughput = Some(1e8);
    let found = contradictions(&inventory, &rates());
    assert_eq!(contradicting(&inventory), [("gateways", Some("2".to_owned()))]);
    let servers = found
        .servers
        .iter()
        .map(|one| (one.server.as_str(), one.now, one.enough));
    assert_eq!(
        servers.collect::<Vec<_>>(),
        [("gateway-16", 2, 5), ("gateway-32", 2, 5)]
    );
    // Three replicas lie on three nodes, whatever is wanted.
    inventory.wanted.gateways = 1;
    inventory
        .servers
        .iter_mut()
        .filter(|one| one.is_storage)
        .for_each(|one| one.most = 2);
    let found = contradictions(&inventory, &rates());
    let [server] = &found.servers[..] else {
        panic!("{found:?}")
    };
    assert!(
        found.constraints.is_empty() && (server.now, server.enough) == (2, 3),
        "{found:?}"
    );
    // What grows for long asks for too much: fewer years would be enough.
    let mut inventory = starter();
    (inventory.wanted.growth_a_year, inventory.wanted.years) = (0.5, 20.0);
    let found = contradicting(&inventory);
    let years = found.iter().find(|(key, _)| *key == "years").unwrap();
    inventory.wanted.years = years.1.as_ref().unwrap().parse().unwrap();
    assert!(
        inventory.wanted.years > 1.0 && is_possible(&inventory, &rates()),
        "{found:?}"
    );
}

#[test]
fn what_shrinks_has_to_find_room_today() {
    let mut inventory = starter();
    (inventory.wanted.growth_a_year, inventory.wanted.years) = (-0.5, 3.0);
    let goal = Goal::of(&inventory.wanted);
    assert_eq!(Some(goal.capacity), inventory.wanted.capacity);
    assert_eq!(Some(goal.throughput), inventory.wanted.throughput);
}

#[test]
fn no_more_recipes_are_made_than_their_bound() {
    for inventory in [starter(), small()] {
        let (made, bound) = (recipes(&inventory).len(), recipe_bound(&inventory));
        assert!(made <= bound && bound < 2 * made, "{made} {bound}");
    }
}
