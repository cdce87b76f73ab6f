//! Six mistuned clusters, each with its cause first; what is said of degraded and mixed clusters.

use super::answer;
use super::pitfalls::Pitfall;
use crate::inventory::{PurchaseInventory, STARTER};
use crate::model::limits::Resource;
use crate::model::rates::SoftwareRates;

/// A cluster in which nothing is wrong.
const SOUND: &str = "\n[design]\ngateway = \"gateway-32\"\ngateways = 4\nstorage = \"storage-12\"\nstorage_nodes = 12\n\
                     drive = \"disk-16t\"\ndrives = 12\nlisting_drive = \"flash-4t\"\nlisting_drives = 2\n\
                     index_on_flash = true\nbalancer = \"balancer-100g\"\nbalancers = 2\nreplicas = 3\npart_power = 15\n";

fn looked_at(changes: &[(&str, &str)]) -> super::AdviceAnswer {
    inventory_and_answer(changes).1
}

fn inventory_and_answer(changes: &[(&str, &str)]) -> (PurchaseInventory, super::AdviceAnswer) {
    let mut text = format!("{STARTER}{SOUND}");
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let inventory = PurchaseInventory::read(&text).unwrap();
    let rates = SoftwareRates::built_in().unwrap();
    let design = inventory.design.as_ref().unwrap().design();
    let requests = inventory.wanted.throughput.unwrap() / inventory.mix.bytes_per_request();
    let answer = answer(&inventory, &rates, &design, Some(requests));
    (inventory, answer)
}

fn first(changes: &[(&str, &str)]) -> Pitfall {
    let mut found = looked_at(changes).pitfalls;
    assert!(!found.is_empty(), "{changes:?}");
    found.remove(0)
}

#[test]
fn a_drive_that_is_lost_serves_nothing() {
    let of = |drives: &str| {
        looked_at(&[
            ("storage_nodes = 12", "storage_nodes = 1"),
            ("drives = 12", drives),
            ("replicas = 3\npart", "replicas = 1\npart"),
        ])
    };
    let two = of("drives = 2");
    assert_eq!(two.degraded[0].lost, "a drive");
    // One of two serves, with what rebuilding leaves of it.
    let share = two.degraded[0].requests.value / two.throughput.requests.value;
    assert!((share - 0.5 * 0.8).abs() < 1e-9, "{share}");
    assert!(of("drives = 1").degraded.is_empty());
}

#[test]
fn nothing_is_wrong_with_a_sound_cluster() {
    let names: Vec<Pitfall> = looked_at(&[]).pitfalls;
    assert_eq!(names, []);
}

#[test]
fn the_cause_of_each_mistuned_cluster_comes_first() {
    // 20 MB/s are the throughput of one balancer's fifth: everything else is idle.
    let slow_balancer = [("throughput = \"80Gbit/s\"", "throughput = \"250MB/s\"")];
    for (changes, name) in [
        (
            &[
                ("gateways = 4\nst", "gateways = 1\nst"),
                ("cores = 32\nmemory = \"128", "cores = 1\nmemory = \"128"),
            ][..],
            "weak-gateways",
        ),
        (&slow_balancer, "balancer-without-half-free"),
        (
            &[("replicas = 3\npart", "uplink = \"1Gbit/s\"\nreplicas = 3\npart")],
            "gateways-on-one-uplink",
        ),
        (
            &[
                ("listing_drive = \"flash-4t\"", "listing_drive = \"disk-16t\""),
                ("index_on_flash = true", "index_on_flash = false"),
                ("listing_drives = 2", "listing_drives = 1"),
                ("deletes = 0.05", "deletes = 0.65"),
                ("reads = 0.8", "reads = 0.2"),
                ("containers = 20000", "containers = 2000000"),
            ],
            "listings-on-slow-drives",
        ),
        (
            &[("network = \"25Gbit/s\"\nbays = 14", "network = \"1Gbit/s\"\nbays = 14")],
            "storage-bound-by-network",
        ),
        (&[("replicas = 3\npart", "replicas = 2\npart")], "two-replicas-only"),
        (&[("zones = 4", "zones = 1")], "too-few-zones"),
        (&[("part_power = 15", "part_power = 7")], "too-few-partitions"),
        (
            &[
                ("containers = 20000", "containers = 1"),
                ("operations = 60000", "operations = 100"),
            ],
            "one-hot-container",
        ),
        (
            &[
                ("size = \"1MB\"", "size = \"2KB\""),
                ("replicas = 3\npart", "data = 8\nparity = 4\npart"),
                ("drives = 12\nlist", "drives = 11\nlist"),
            ],
            "erasure-code-for-small-objects",
        ),
        (
            &[
                ("drives = 12\nlist", "drives = 1\nlist"),
                ("index_on_flash = true", "index_on_flash = false"),
            ],
            "storage-bound-by-drives",
        ),
    ] {
        let found = first(changes);
        assert_eq!(found.name, name, "{found:?}");
        assert!(!found.evidence.is_empty() && !found.remedy.is_empty());
    }
}

#[test]
fn more_cores_are_no_remedy_for_full_ports() {
    let of = |network: &str| {
        let kind = |network: &str| format!("cores = 32\nmemory = \"128GiB\"\nnetwork = \"{network}\"");
        let slow = kind(network).replace("32", "1");
        let found = looked_at(&[("gateways = 4\nst", "gateways = 1\nst"), (&kind("100Gbit/s"), &slow)]).pitfalls;
        found
            .into_iter()
            .find(|one| one.name == "weak-gateways")
            .unwrap()
            .remedy
    };
    assert!(of("100Gbit/s").ends_with("or fewer with more cores"));
    assert!(of("1Gbit/s").contains("networks end before their processors"));
}

#[test]
fn a_cluster_that_lost_something_bears_less() {
    let answer = looked_at(&[]);
    let lost: Vec<&str> = answer.degraded.iter().map(|one| one.lost).collect();
    assert_eq!(lost, ["a drive", "a node", "a zone"]);
    let whole = answer.throughput.requests.value;
    let bears: Vec<f64> = answer.degraded.iter().map(|one| one.requests.value).collect();
    assert!(
        whole >= bears[0] && bears[0] > bears[1] && bears[1] > bears[2],
        "{whole} {bears:?}"
    );
    let hours: Vec<f64> = answer.degraded.iter().map(|one| one.hours.value).collect();
    assert!(hours[0] < hours[1] && hours[1] < hours[2], "{hours:?}");
    // 12 × 12 drives of 16 TB, 80 % full, at a fifth of 200 MB/s each: 12.8 TB through 143 × 40 MB/s / 2.
    let by_hand = 12.8e12 / (143.0 * 40e6 / 2.0) / 3600.0;
    assert!((hours[0] / by_hand - 1.0).abs() < 1e-9, "{hours:?} {by_hand}");
}

#[test]
fn mixed_nodes_hold_their_share() {
    let answer = looked_at(&[
        (
            "name = \"storage-12\"\nroles = [\"storage\"]",
            "name = \"storage-12\"\nroles = [\"gateway\", \"storage\"]",
        ),
        (
            "replicas = 3\npart",
            "mixed_nodes = 4\nmixed_weight = 0.5\nreplicas = 3\npart",
        ),
    ]);
    let mixed = answer.mixed.unwrap();
    assert!((mixed.share_of_pieces - 0.2).abs() < 1e-12, "{mixed:?}");
    // No more than their share of two acknowledgements, as they are no faster than the others.
    assert!(
        mixed.acknowledgements > 0.2 && mixed.acknowledgements <= 0.4 + 1e-9,
        "{mixed:?}"
    );
    // Of half the weight they take twice as long to fill.
    assert!((mixed.days_to_full.unwrap() / mixed.others_days_to_full.unwrap() - 2.0).abs() < 1e-9);
}

#[test]
fn flash_pays_where_it_saves_nodes() {
    let answer = looked_at(&[
        (
            "listing_drive = \"flash-4t\"\nlisting_drives = 2\nindex_on_flash = true\n",
            "",
        ),
        ("objects = 200e6", "objects = 200e9"),
        ("capacity = \"500TB\"", "capacity = \"300000TB\""),
    ]);
    let metadata = answer.flash.iter().find(|one| one.change.contains("metadata")).unwrap();
    assert!(
        metadata.gain.low > 1.0 && metadata.gain.low < metadata.gain.value && metadata.gain.high > metadata.gain.value
    );
    assert!(
        metadata.gain.value > 1.3 && metadata.pays() == Some(true),
        "{metadata:?}"
    );
    assert!(metadata.ends_before.is_none() && !metadata.takes_bays, "{metadata:?}");
    // Behind a slow balancer, in nodes whose bays are all taken.
    let answer = looked_at(&[
        (
            "listing_drive = \"flash-4t\"\nlisting_drives = 2\nindex_on_flash = true\n",
            "",
        ),
        ("drives = 12\n", "drives = 13\n"),
        ("throughput = \"80Gbit/s\"", "throughput = \"1Gbit/s\""),
        ("objects = 200e6", "objects = 200e9"),
        ("capacity = \"500TB\"", "capacity = \"300000TB\""),
    ]);
    let found: Vec<(bool, bool)> = answer
        .flash
        .iter()
        .map(|one| (one.ends_before == Some(Resource::Balancer), one.takes_bays))
        .collect();
    // One for listings has a bay, two for metadata have not.
    assert_eq!(found, [(true, false), (true, true)], "{:?}", answer.flash);
    let flash = looked_at(&[
        ("objects = 200e6", "objects = 200e9"),
        ("capacity = \"500TB\"", "capacity = \"300000TB\""),
    ])
    .flash;
    assert!(flash.is_empty(), "{flash:?}");
}

#[test]
fn nothing_that_saves_no_node_pays() {
    let change = |price, saved| super::flash::FlashAdvice {
        change: "more memory".to_owned(),
        gain: crate::model::estimate::Estimate::exact(1.1),
        nodes_saved: saved,
        worth_per_node: f64::from(saved) * 1000.0,
        price_per_node: price,
        ends_before: None,
        takes_bays: false,
    };
    let verdicts = [
        (None, 0),
        (None, 1),
        (Some(500.0), 0),
        (Some(500.0), 1),
        (Some(2000.0), 1),
    ];
    let verdicts = verdicts.map(|(price, saved)| change(price, saved).pays());
    assert_eq!(verdicts, [Some(false), None, Some(false), Some(true), Some(false)]);
}

#[test]
fn the_run_that_confirms_an_answer_has_workers_for_its_load() {
    let answer = looked_at(&[]);
    let workers = |requests, p99| super::next_steps::workload(&crate::inventory::tests::starter().mix, requests, p99);
    assert!(answer.validation.contains("workers = 256\n"));
    // Each object is read once on average: 8000 requests a second for 300 s, 80 % of them reads, in 32 containers.
    let at_8000 = workers(8000.0, None);
    assert!(at_8000.contains("objects = \"u(1,60000)\""), "{at_8000}");
    // As many are deleted, each once: 5 % of the requests and a tenth more, an odd number.
    assert!(
        at_8000.contains("containers = \"s(1,32)\", objects = \"s(60001,64127)\""),
        "{at_8000}"
    );
    // Small loads make small runs.
    assert!(workers(1.0, None).contains("objects = \"u(1,10)\""));
    assert!(workers(8000.0, Some(0.25)).contains("workers = 2000\n"));
    assert!(workers(8000.0, Some(f64::INFINITY)).contains("workers = 10000\n"));
    assert!(workers(8000.0, None).contains("workers = 256\n"));
}

#[test]
fn constraints_that_a_design_does_not_meet_are_named_with_their_distance() {
    let unmet = |changes: &[(&str, &str)]| {
        let (inventory, answer) = inventory_and_answer(changes);
        let design = inventory.design.as_ref().unwrap().design();
        super::unmet::unmet(&inventory, &SoftwareRates::built_in().unwrap(), &design, &answer)
    };
    let sound = unmet(&[("budget = 250000", "budget = 2500000"), ("racks = 4", "racks = 40")]);
    assert_eq!(sound, []);
    // 12 x 12 x 16 TB x 0.8 / 3 are 614 TB; 750 TB grown by a fifth are 900 TB.
    let found = unmet(&[
        ("budget = 250000", "budget = 50000"),
        ("racks = 4", "racks = 40"),
        ("capacity = \"500TB\"", "capacity = \"750TB\""),
        ("p99 = \"1s\"", "p99 = \"1ms\""),
        ("gateways = 4\nstorage", "gateways = 1\nstorage"),
        ("zones = 4", "zones = 13"),
    ]);
    let of = |key: &str| {
        found
            .iter()
            .find(|one| one.key == key)
            .unwrap_or_else(|| panic!("{key}: {found:?}"))
    };
    assert_eq!(of("capacity").text, "614 TB, wanted 900 TB: 31.7 % less");
    assert_eq!((of("zones").has, of("zones").wanted), (12.0, 13.0));
    assert_eq!(of("gateways").text, "1, wanted 2: 50.0 % less");
    assert!(
        of("budget").text.contains(", at most 50000: ") && of("budget").text.ends_with(" % more"),
        "{found:?}"
    );
    // 51.2 TB a node; and nothing makes a drive so fast.
    assert_eq!(
        of("capacity").remedy.as_deref(),
        Some("storage_nodes = 18 would be enough")
    );
    assert_eq!(
        of("zones").remedy.as_deref(),
        Some("storage_nodes = 13 would be enough")
    );
    assert_eq!(of("gateways").remedy.as_deref(), Some("gateways = 2 would be enough"));
    assert_eq!(of("budget").remedy, None);
    assert!(of("p99").remedy.as_ref().unwrap().contains("no number of these kinds"));
    assert!(of("p99").has > 1e-3 && of("p99").off > 1.0, "{found:?}");
    assert!(found.is_sorted_by(|one, other| one.off >= other.off), "{found:?}");
    // A load that is not borne has no p99, and throughput counts within the wanted utilisation.
    let full = unmet(&[("throughput = \"500MB/s\"", "throughput = \"900GB/s\"")]);
    let p99 = full.iter().find(|one| one.key == "p99").unwrap();
    assert!(
        p99.has.is_infinite() && p99.text == "the load is not borne, at most 1000 ms",
        "{full:?}"
    );
    assert!(
        full.iter()
            .any(|one| one.key == "throughput" && one.text.ends_with("% less")),
        "{full:?}"
    );
    let free = unmet(&[("budget = 250000", "budget = 0")]);
    let budget = free.iter().find(|one| one.key == "budget").unwrap();
    assert!(budget.text.ends_with(", at most 0"), "{free:?}");
}

#[test]
fn answers_of_buy_meet_all_constraints() {
    let (inventory, rates) = (
        PurchaseInventory::read(STARTER).unwrap(),
        SoftwareRates::built_in().unwrap(),
    );
    for found in crate::search::search(crate::search::PurchaseQuestion::LeastCost, &inventory, &rates, 3) {
        let requests = found.goal.throughput / inventory.mix.bytes_per_request();
        let answer = answer(&inventory, &rates, &found.design, Some(requests));
        assert_eq!(super::unmet::unmet(&inventory, &rates, &found.design, &answer), []);
    }
}
