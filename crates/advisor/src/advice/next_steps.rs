//! What follows an answer: the ring that it needs, and the run of `martlet bench` that would confirm it.

use crate::inventory::PurchaseInventory;
use crate::model::workload::{Protection, RequestMix};
use crate::search::design::ClusterDesign;
use ring_builder::{CommandStatus, Invocation, Terminal};
use serde::Serialize;
use serde_json::Value;
use std::io;
use world::World;

/// How long it loads. As many objects as are read meanwhile are made before, so that each is read once on average: more
/// would take longer to make and change nothing.
const BENCH_SECONDS: u32 = 300;
/// Objects of each container, at least and at most.
const BENCH_OBJECTS: (f64, f64) = (10.0, 1e7);
/// Its workers.
const FEWEST_WORKERS: u32 = 256;
const MOST_WORKERS: u32 = 10_000;
/// How its containers are called.
const PREFIX: &str = "cprefix = \"confirm-advice-\"";
/// Containers of the run.
const BENCH_CONTAINERS: u32 = 32;

/// What `martlet ring-builder plan` says of the ring of objects.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RingAdvice {
    /// The command that says so.
    pub command: String,
    /// 2 to this power partitions.
    pub part_power: u64,
    /// The whole plan.
    pub plan: Value,
}

/// Asks the ring builder. Nothing where it refuses.
pub fn ring(world: &World, inventory: &PurchaseInventory, design: &ClusterDesign) -> Option<RingAdvice> {
    let drives = design.counts.storage * design.recipe.drives;
    let pieces = match design.protection(inventory) {
        Protection::Replicas(count) => count,
        code @ Protection::Erasure { .. } => code.pieces(),
    };
    let size = inventory.drives[design.recipe.drive].size;
    let numbers = [
        ("--drives", f64::from(drives)),
        (
            "--final-drives",
            design.final_drives(inventory).min(1e6).max(f64::from(drives)),
        ),
        ("--servers", f64::from(design.counts.storage)),
        ("--zones", f64::from(inventory.wanted.zones.min(design.counts.storage))),
        ("--replicas", f64::from(pieces)),
        ("--drive-size", size.round()),
    ];
    let mut words = vec!["object.builder".to_owned(), "plan".to_owned()];
    for (name, value) in numbers {
        words.extend([name.to_owned(), format!("{value}")]);
    }
    let command = format!("martlet ring-builder {}", words.join(" "));
    words.push("--json".to_owned());
    let (mut out, mut err, mut input) = (vec![], io::sink(), io::empty());
    let mut terminal = Terminal {
        out: &mut out,
        err: &mut err,
        input: &mut input,
    };
    let status = Invocation::new("ring-builder", &words).run(world, &mut terminal);
    let plan: Value = serde_json::from_slice(&out).ok()?;
    let part_power = plan.get("part_power")?.as_u64()?;
    (status != CommandStatus::Error).then_some(RingAdvice {
        command,
        part_power,
        plan,
    })
}

/// Objects of each container of the run, by what is done with them.
struct BenchObjects {
    read: u32,
    deleted: u32,
    written: u32,
}

impl BenchObjects {
    fn of(mix: &RequestMix, requests: f64) -> Self {
        let each = requests * f64::from(BENCH_SECONDS) / f64::from(BENCH_CONTAINERS);
        let count = |share: f64| (each * share).ceil().clamp(BENCH_OBJECTS.0, BENCH_OBJECTS.1) as u32;
        Self {
            read: count(mix.reads),
            // Odd, and a tenth more than are due.
            deleted: count(1.1 * mix.deletes) | 1,
            written: count(mix.writes),
        }
    }

    fn prepared(&self) -> u32 {
        self.read + self.deleted
    }
}

/// A workload of `martlet bench`, in its own format: an open loop at the load that was answered for. It has as many
/// workers as requests would be under way if each took `p99` seconds (Little's law), so that they do not limit it.
pub fn workload(mix: &RequestMix, requests: f64, p99: Option<f64>) -> String {
    let under_way = (requests * p99.unwrap_or(0.0)).ceil() as u32;
    let workers = under_way.clamp(FEWEST_WORKERS, MOST_WORKERS);
    // Shares of the histogram as weights of COSBench's `h(size|size|weight,…)`.
    let sizes: Vec<String> = mix
        .sizes
        .iter()
        .map(|one| format!("{0}|{0}|{1}", one.size.round(), (one.share * 1000.0).round().max(1.0)))
        .collect();
    let sizes = format!("h({})B", sizes.join(","));
    let percent = |share: f64| (share * 100.0).round();
    let (writes, deletes) = (percent(mix.writes), percent(mix.deletes));
    let mut operations = vec![];
    let objects = BenchObjects::of(mix, requests);
    let names = |from: u32, count: u32| {
        let until = from + count - 1;
        format!("{PREFIX}, containers = \"u(1,{BENCH_CONTAINERS})\", objects = \"u({from},{until})\"")
    };
    let mut add = |kind: &str, ratio: f64, rest: String| {
        if ratio > 0.0 {
            operations.push(format!("    {{ type = \"{kind}\", ratio = {ratio}, {rest} }},\n"));
        }
    };
    add("read", 100.0 - writes - deletes, names(1, objects.read));
    // Containers and objects one after the other: since their numbers (32, and an odd one) have no factor in common,
    // each pair comes once. An object that is deleted twice would be a failure.
    let deleted = names(objects.read + 1, objects.deleted).replace("\"u(", "\"s(");
    add("delete", deletes, deleted);
    let written = names(objects.prepared() + 1, objects.written);
    add("write", writes, format!("{written}, sizes = \"{sizes}\""));
    let special = |kind: &str, rest: &str| {
        format!(
            "[[stage]]\nname = \"{kind}\"\ntype = \"{kind}\"\n{PREFIX}\nworkers = {FEWEST_WORKERS}\ncontainers = \
             \"r(1,{BENCH_CONTAINERS})\"\n{rest}\n"
        )
    };
    let range = |count: u32| format!("objects = \"r(1,{count})\"\n");
    let prepared = objects.prepared();
    [
        format!(
            "name = \"confirm-advice\"\ndescription = \"the load that martlet advise answered for: {BENCH_SECONDS} s on as \
             many objects as it reads meanwhile ({:.1} GB), which say little of drives where they fit into the memory of \
             storage nodes\"\n\n",
            f64::from(prepared) * f64::from(BENCH_CONTAINERS) * mix.mean_size() / 1e9
        ),
        special("init", "delay = \"3s\"\n"),
        special("prepare", &format!("{}sizes = \"{sizes}\"\n", range(prepared))),
        format!(
            "[[stage]]\nname = \"main\"\nworkers = {workers}\nruntime = \"{BENCH_SECONDS}s\"\nrate = {:.1}\noperations = \
             [\n{}]\n\n",
            requests.max(0.1),
            operations.concat()
        ),
        special("cleanup", &range(prepared + objects.written)),
        special("dispose", ""),
    ]
    .concat()
}
