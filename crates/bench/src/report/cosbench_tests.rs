use super::{GROUPS, STEPS, files};
use crate::figures::{Failure, RequestOutcome, WorkFigures};
use crate::load::WorkResult;
use crate::report::{Manifest, RunReport, StageReport, WorkReport};
use crate::workload::cosbench;
use std::time::Duration;

const WORKLOAD: &str = "<workload name='mocked'><workflow>
    <workstage name='prepare'><work type='prepare' workers='2' config='containers=r(1,4);objects=r(1,10);sizes=c(2)KB'/>
    </workstage>
    <workstage name='main'><work name='one' workers='4' afr='0' runtime='12' interval='2'>
      <operation type='read' ratio='80' config='containers=u(1,4);objects=u(1,10)'/>
      <operation type='write' ratio='20' config='containers=u(1,4);objects=u(11,20);sizes=c(2)KB'/></work>
    <work name='two' workers='2' runtime='12' interval='2'>
      <operation type='list' ratio='100' config='containers=u(1,4)'/></work></workstage>
    <workstage name='delay' closuredelay='1'><work type='delay'><operation type='delay'/></work></workstage>
    </workflow></workload>";

/// Each operation of the workload: 3 requests of 12 ms, and of reads one more that failed.
fn report() -> RunReport {
    let workload = cosbench::parse(WORKLOAD).unwrap();
    let second = Duration::from_secs(1);
    let stages = workload.stages.iter().enumerate().map(|(at, stage)| StageReport {
        name: stage.name.clone(),
        works: (stage.works.iter())
            .map(|work| {
                let mut figures = WorkFigures::new(work.operations.len(), work.interval);
                for (operation, described) in work.operations.iter().enumerate() {
                    let outcome = |failure| RequestOutcome {
                        bytes: 1000,
                        latency: Duration::from_micros(12_340),
                        first_byte: Some(second / 100),
                        failure,
                    };
                    (0..3).for_each(|at| figures.record(operation, second * at, true, &outcome(None)));
                    if described.kind.name() == "read" {
                        figures.record(operation, second, true, &outcome(Some(Failure::Timeout)));
                    }
                }
                let result = WorkResult {
                    figures,
                    measured: second * 4,
                    cpu: second,
                    lasted: second * 4,
                    threads: 1,
                };
                WorkReport::of(work, &result)
            })
            .collect(),
        begun: 1_764_000_000.0 + 10.0 * at as f64,
        lasted: 4.0,
        ..StageReport::default()
    });
    RunReport {
        workload: workload.name.clone(),
        description: String::new(),
        manifest: Manifest {
            version: "1".to_owned(),
            seed: 1,
            threads: 1,
            verifies: false,
            begun: 1_764_000_000.0,
            source: WORKLOAD.to_owned(),
        },
        stages: stages.collect(),
        interrupted: false,
    }
}

fn file(name: &str) -> String {
    let all = files(&report(), 1);
    all.into_iter().find(|file| file.name == name).unwrap().text
}

/// Headings and cells as COSBench 0.4.2 wrote them when it ran such a workload on its mock: names, order, digits, and
/// what stands where there is nothing.
#[test]
fn the_file_of_a_run_has_cosbenchs_columns() {
    let text = file("w1-mocked.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,\
         95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status"
    );
    assert_eq!(
        lines[1],
        "s1-prepare,prepare-write,prepare,3,3000,12.34,10,12,12,12,12,12,12,0.75,750,100%,completed,\
         waiting @ 2025-11-24 16:00:00,running @ 2025-11-24 16:00:00,completed @ 2025-11-24 16:00:04"
    );
    assert!(
        lines[2].starts_with("s2-main,read,read,3,3000,12.34,10,12,12,12,12,12,12,0.75,750,75%,failed,"),
        "{text}"
    );
    assert_eq!(
        lines[5],
        "delay,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,completed,\
         waiting @ 2025-11-24 16:00:00,sleeping @ 2025-11-24 16:00:20,completed @ 2025-11-24 16:00:24"
    );
    assert_eq!(lines.len(), 6);
}

#[test]
fn the_timeline_of_a_stage_has_two_headings() {
    let text = file("s2-main.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Timestamp,Op-Count,,,Byte-Count,,,Avg-ResTime,,,Avg-ProcTime,,,Throughput,,,Bandwidth,,,Succ-Ratio,,,Version-Info,,"
    );
    assert_eq!(
        lines[1],
        format!(
            ",{},Min-Version,Version,Max-Version",
            ["read,write,list"; GROUPS.len()].join(",")
        )
    );
    assert_eq!(
        lines[2],
        "16:00:12,2,2,2,2000,2000,2000,12.32,12.32,12.32,10.02,10.02,10.02,1,1,1,1000,1000,1000,66.67%,100%,100%,0,0,0"
    );
    assert_eq!((lines.len(), file("s3-delay.csv").as_str()), (4, ""));
}

#[test]
fn the_histogram_has_columns_for_operations_of_normal_works() {
    let text = file("w1-mocked-rt-histogram.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "ResTime,s2-main-w1-one-read,(%),s2-main-w1-one-write,(%),s2-main-w2-two-list,(%)"
    );
    assert_eq!(lines[1], "0~10,0,0%,0,0%,0,0%");
    assert_eq!(lines[2], "10~20,3,100%,3,100%,3,100%");
    assert_eq!(lines[STEPS], "499990~500000,0,100%,0,100%,0,100%");
    assert_eq!(
        (lines[STEPS + 1], lines.len()),
        ("500000~+INF,0,100%,0,100%,0,100%", STEPS + 2)
    );
}

#[test]
fn files_of_all_runs_go_on() {
    assert_eq!(
        file("run-history.csv"),
        "w1,mocked,2025-11-24 16:00:00,2025-11-24 16:00:00,2025-11-24 16:00:24,prepare read write list delay,failed,\
         queuing @ 2025-11-24 16:00:00,processing @ 2025-11-24 16:00:00,failed @ 2025-11-24 16:00:24\n"
    );
    let text = file("workloads.csv");
    assert!(
        text.starts_with(
            "w1-s1-prepare-1,prepare-write,3,3000,2,12.34,10,12,12,12,12,12,12,0.75,750,100%,\
             100% containers=r(1-4) objects=r(1-10) sizes=c(2)KB\n\
             w1-s2-main-1,read,3,3000,4,"
        ),
        "{text}"
    );
}
