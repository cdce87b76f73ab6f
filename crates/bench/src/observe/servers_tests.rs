use super::{Counters, Look, Servers, cpu_of, field, look, samples};
use crate::workload::own_format::observation::ServerSource;
use std::time::Duration;
use world::World;

#[test]
fn figures_are_found_in_their_texts() {
    let text = "# HELP a x\na 1\na{device=\"d } 1\",b=\"2\"} 2.5\nab 7\na_total 8\n";
    assert_eq!(samples(text, "a").collect::<Vec<_>>(), [1.0, 2.5]);
    let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 9 0 100 1000 3 184";
    assert_eq!((cpu_of(stat), cpu_of("7 (a) S 1")), (Some(3.0), None));
    assert_eq!(field("VmRSS:\t     12 kB\n", "VmRSS:"), Some(12.0));
    assert_eq!(field("rchar: 1\nwrite_bytes: 4096\n", "write_bytes:"), Some(4096.0));
}

fn seen(counters: &[(&str, f64)]) -> Look {
    let counters = counters.iter().map(|(name, cpu)| {
        let counters = Counters {
            cpu: *cpu,
            written: *cpu * 10.0,
            has_cpu: true,
            has_written: true,
        };
        ((*name).to_owned(), counters)
    });
    Look {
        counters: counters.collect(),
        ..Look::default()
    }
}

/// Of one that was there before only what it did since counts; of one that begins meanwhile, all.
#[test]
fn processes_that_begin_anew_are_counted() {
    let world = World::real();
    let source = ServerSource {
        name: "node".to_owned(),
        ..ServerSource::default()
    };
    let mut servers = Servers::new(&[source], &world, Duration::ZERO);
    let watched = &mut servers.all[0];
    watched.take(1.0, seen(&[("1", 100.0)]));
    watched.take(2.0, seen(&[("1", 101.0), ("2", 0.5)]));
    watched.take(3.0, seen(&[("2", 0.25)]));
    watched.take(4.0, Look::default());
    let report = servers.all.remove(0).report(100, 10);
    assert_eq!((report.cpu, report.written), (Some(1.75), Some(17.5)));
    assert_eq!(
        (report.cpu_per_request, report.written_per_stored),
        (Some(17.5), Some(1.75))
    );
    let cores: Vec<Option<f64>> = report.points.iter().map(|point| point.cores).collect();
    assert_eq!(cores, [None, Some(1.5), Some(0.25), None]);
}

#[tokio::test]
async fn what_cannot_be_asked_is_counted() {
    let source = ServerSource {
        name: "gone".to_owned(),
        metrics: Some("http://127.0.0.1:1/metrics".to_owned()),
        recon: Some("http://127.0.0.1:1/recon".to_owned()),
        processes: Some("no process is called so, is it".to_owned()),
    };
    let found = look(&World::real(), &source).await;
    assert_eq!(found.failures.len(), 4, "{:?}", found.failures);
    assert!(
        found.failures[0].contains("http://127.0.0.1:1/metrics: no connection"),
        "{:?}",
        found.failures
    );
}

/// This test's own process is left out, so that it looks at one that it starts.
#[tokio::test]
async fn processes_are_found_by_their_command_lines() {
    let mut child = std::process::Command::new("sleep").arg("611.0625").spawn().unwrap();
    let source = ServerSource {
        name: "here".to_owned(),
        processes: Some("sleep 611.0625".to_owned()),
        ..ServerSource::default()
    };
    // Between fork and exec its command line is that of this process.
    let found = loop {
        let found = look(&World::real(), &source).await;
        if !found.counters.is_empty() {
            break found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found.counters.keys().collect::<Vec<_>>(), [&child.id().to_string()]);
    assert!(found.memory > Some(0.0) && found.counters.values().all(|one| one.has_cpu));
}
