//! A record holds every operation, and is read back.

use crate::commands::{ALONE, Bench, Output, bench_run};
use flate2::read::MultiGzDecoder;
use operator_tools::ToolStatus;
use std::collections::BTreeMap;
use std::io::Read;
use world::World;

const MIXED: &str = "name = 'mixed'\n[storage]\ntype = 'mock'\ndelay = 0\nerrors = 9\nsize = 700\n\
    [[stage]]\nname = 'main'\nworkers = 5\ntotal_operations = 30000\noperations = [\
    { type = 'read', ratio = 80, containers = 'c(1)', objects = 'u(1,10)' },\
    { type = 'write', ratio = 20, cprefix = 'a,b', containers = 'c(1)', objects = 'u(1,10)', sizes = 'c(2)KB' }]\n\
    [[stage]]\nname = 'end'\ntype = 'cleanup'\nworkers = 5\ncontainers = 'r(1,1)'\nobjects = 'r(1,10)'\n";

/// Rows of a record, by their columns.
fn rows(path: &str) -> Vec<BTreeMap<String, String>> {
    let mut text = String::new();
    MultiGzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    // A quoted value of these workloads has a comma and no quote.
    let split = |line: &str| -> Vec<String> {
        let mut values = vec![];
        for (at, piece) in line.split('"').enumerate() {
            match at % 2 {
                1 => values.push(piece.to_owned()),
                _ => values.extend(piece.trim_matches(',').split(',').map(str::to_owned)),
            }
        }
        values
    };
    let (first, lines) = text.split_once('\n').unwrap();
    let columns: Vec<&str> = first.split(',').collect();
    let row = |line: &str| {
        // A value that is empty is the last one, or one that no row of these workloads lacks.
        let values = split(line);
        columns.iter().map(ToString::to_string).zip(values).collect()
    };
    lines.lines().map(row).collect()
}

fn count(rows: &[BTreeMap<String, String>], column: &str, value: &str) -> usize {
    rows.iter().filter(|row| row[column] == value).count()
}

/// The record against the report of the same run: `succeeded`, `failed` and `bytes` of the main stage.
fn check(bench: &Bench, rows: &[BTreeMap<String, String>]) {
    let report = bench.report();
    let total =
        |stage: usize, name: &str| report["stages"][stage]["works"][0]["total"][name].as_u64().unwrap() as usize;
    let main: Vec<_> = rows.iter().filter(|row| row["stage"] == "main").cloned().collect();
    assert_eq!(
        (total(0, "succeeded"), total(0, "failed")),
        (count(&main, "status", "ok"), count(&main, "status", "500"))
    );
    assert_eq!(main.len(), 30_000);
    let bytes: usize = main.iter().map(|row| row["size"].parse::<usize>().unwrap()).sum();
    assert_eq!(bytes, total(0, "bytes"));
    assert_eq!(count(rows, "stage", "end"), 10);
    assert_eq!(count(&main, "container", "a,b1"), count(&main, "operation", "write"));
    let begun = report["manifest"]["begun"].as_f64().unwrap();
    for row in rows {
        let time = |column: &str| row[column].parse::<f64>().unwrap();
        assert!(
            time("due") <= time("start") + 1e-6 && time("start") <= time("end") + 1e-6,
            "{row:?}"
        );
        assert!((begun - 5.0..begun + 600.0).contains(&time("start")), "{row:?} {begun}");
    }
}

#[tokio::test]
async fn a_record_has_a_row_for_every_operation() {
    let (bench, world) = (Bench::new(), World::real());
    let (workload, record, json) = (bench.workload(MIXED), bench.path("record"), bench.path("r.json"));
    let output = Output::default();
    let line = ["run", &workload, "--record", &record, "--json", &json];
    assert_eq!(
        bench_run(&world, &line, &output).await,
        ToolStatus::SUCCESS,
        "{}",
        output.text()
    );
    let all = rows(&record);
    check(&bench, &all);
    let workers: std::collections::BTreeSet<_> = all.iter().map(|row| row["worker"].clone()).collect();
    assert_eq!(workers, ["0", "1", "2", "3", "4"].map(str::to_owned).into());
    let again = Output::default();
    assert_eq!(bench_run(&world, &line[..4], &again).await, ToolStatus::FAILURE);
    assert!(
        again.text().contains("--record ") && again.text().contains("File exists"),
        "{}",
        again.text()
    );
}

#[tokio::test]
async fn drivers_send_their_rows_to_the_controller() {
    let (bench, world) = (Bench::new(), World::real());
    let (workload, record) = (bench.workload(MIXED), bench.path("record"));
    let (status, output) = bench
        .run(&[(&world, ALONE); 2], &["run", &workload], &["--record", &record])
        .await;
    assert_eq!(status, ToolStatus::SUCCESS, "{output}");
    let all = rows(&record);
    check(&bench, &all);
    let report = bench.report();
    for driver in report["drivers"].as_array().unwrap() {
        let done = driver["succeeded"].as_u64().unwrap() + driver["failed"].as_u64().unwrap();
        assert_eq!(count(&all, "driver", driver["name"].as_str().unwrap()), done as usize);
    }
}

#[tokio::test]
async fn a_record_is_summarised_and_exported() {
    let (bench, world) = (Bench::new(), World::real());
    let (workload, record, json) = (bench.workload(MIXED), bench.path("record"), bench.path("r.json"));
    let line = ["run", &workload, "--record", &record, "--json", &json];
    assert_eq!(bench_run(&world, &line, &Output::default()).await, ToolStatus::SUCCESS);
    let records = async |words: &[&str]| {
        let output = Output::default();
        let status = bench_run(&world, &[&["records", &record], words].concat(), &output).await;
        (status, output.text())
    };
    let (status, table) = records(&[]).await;
    let report = bench.report();
    let operations = report["stages"][0]["works"][0]["operations"].as_array().unwrap();
    for operation in operations {
        let (kind, succeeded) = (operation["kind"].as_str().unwrap(), &operation["succeeded"]);
        let Some((_, figures)) = table.split_once(&format!("main / main / {kind}: {succeeded} succeeded, ")) else {
            panic!("{table}");
        };
        let shown = figures.split("p99 ").nth(1).unwrap().split(',').next().unwrap();
        let p99 = operation["latency"]["percentiles"]["99"].as_f64().unwrap();
        // Two decimals are shown of what two times in whole microseconds give.
        assert!(
            (shown.parse::<f64>().unwrap() - p99).abs() < 0.01 + p99 / 100.0,
            "{table} {p99}"
        );
    }
    assert_eq!(status, ToolStatus::SUCCESS);
    assert!(table.contains("end / end / delete: 10 succeeded, 0 failed"), "{table}");
    let (_, rows) = records(&["--csv", "--stage", "main", "--operation", "write"]).await;
    assert_eq!(rows.lines().next().unwrap(), bench::record::row::COLUMNS.trim_end());
    assert_eq!(Some(rows.lines().count() as u64 - 1), {
        let write = &operations[1];
        Some(write["succeeded"].as_u64().unwrap() + write["failed"].as_u64().unwrap())
    });
    assert!(
        rows.lines()
            .skip(1)
            .all(|row| row.starts_with("main,main,write,\"a,b1\",myobjects")),
        "{rows}"
    );
    let (_, failed) = records(&["--csv", "--failed"]).await;
    assert_eq!(failed.lines().filter(|row| row.contains(",500,")).count(), 9);
    assert_eq!(failed.lines().count(), 10);
    // What the first half holds is shown, and that it is a half.
    let whole = std::fs::read(&record).unwrap();
    std::fs::write(&record, &whole[..whole.len() / 2]).unwrap();
    let (status, half) = records(&[]).await;
    assert_eq!(status, ToolStatus::FAILURE);
    assert!(
        half.contains("operations it cannot be read on") && half.contains("main / main / read: "),
        "{half}"
    );
    std::fs::write(&record, "stage,work").unwrap();
    let (status, none) = records(&[]).await;
    assert_eq!(status, ToolStatus::FAILURE);
    assert!(none.contains("expected a file of `run --record`"), "{none}");
}
