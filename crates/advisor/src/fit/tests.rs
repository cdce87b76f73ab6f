//! Curves through runs of a law that is known, with noise: found again, and honest about what was not measured.

use super::fit_runs;
use super::points::Configuration;
use super::runs::{MeasuredCluster, MeasuredRun, cluster, runs};

/// A gateway takes 0.5 ms and 2 ns a byte, a storage node 1 ms; the knee is sharp.
fn law(gateways: u32, storage_nodes: u32, size: f64) -> f64 {
    let (gateway, storage) = (
        (5e-4 + 2e-9 * size) / f64::from(gateways),
        1e-3 / f64::from(storage_nodes),
    );
    1.0 / (gateway.powi(2) + storage.powi(2)).sqrt()
}

fn measured(noise: f64) -> Vec<MeasuredRun> {
    let mut random = fastrand::Rng::with_seed(4);
    let mut all = vec![];
    for gateways in [1, 2] {
        for storage_nodes in [1, 2, 4] {
            for size in [4096.0, 1e6] {
                let mut factor = || 1.0 + noise * (2.0 * random.f64() - 1.0);
                let rate = law(gateways, storage_nodes, size) * factor();
                let p99 = 3.0 * 64.0 / rate * factor();
                all.push(MeasuredRun {
                    name: format!("{gateways}:{storage_nodes}, {size}"),
                    cluster: MeasuredCluster::plain(gateways, storage_nodes, "a law"),
                    size,
                    write_share: 0.0,
                    workers: 64.0,
                    rate,
                    p99,
                });
            }
        }
    }
    all
}

#[test]
fn what_was_not_seen_is_predicted() {
    let curves = fit_runs(measured(0.03)).unwrap();
    assert_eq!(curves.left_out.len(), 12);
    let good = curves.left_out.iter().filter(|one| {
        let (rate, p99) = one.errors();
        rate.abs() < 0.15 && p99.abs() < 0.3
    });
    assert!(good.count() >= 10, "{:?}", curves.left_out);
    let asked = Configuration {
        gateways: 2.0,
        storage_nodes: 3.0,
        size: 4096.0,
        workers: 64.0,
    };
    let predicted = curves.predict(asked);
    assert!(predicted.rate.holds(law(2, 3, 4096.0)), "{predicted:?}");
    assert!(
        predicted.rate.relative_error() < 0.25 && predicted.extrapolations.is_empty(),
        "{predicted:?}"
    );
}

#[test]
fn what_was_not_measured_is_named() {
    let curves = fit_runs(measured(0.03)).unwrap();
    let predicted = curves.predict(Configuration {
        gateways: 9.0,
        storage_nodes: 4.0,
        size: 4096.0,
        workers: 64.0,
    });
    let named: Vec<String> = predicted.extrapolations.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["number of gateways: 9 was asked about, 1 to 2 was measured"]);
    assert_eq!(curves.not_varied, ["workers"]);
    let of_one: Vec<MeasuredRun> = measured(0.03)
        .into_iter()
        .filter(|run| run.cluster.gateways == 1)
        .collect();
    assert_eq!(fit_runs(of_one).unwrap().not_varied, ["gateways", "workers"]);
}

#[test]
fn the_magic_number_follows_prices() {
    let curves = fit_runs(measured(0.0)).unwrap();
    let at = |gateway, storage| curves.magic_number(gateway, storage, 4096.0, 64.0).unwrap();
    assert_eq!((at(1.0, 100.0), at(100.0, 1.0)), (1, 4));
}

#[test]
fn repeated_runs_show_the_noise() {
    let mut twice = measured(0.0);
    assert_eq!(fit_runs(twice.clone()).unwrap().noise, None);
    let mut again = twice[0].clone();
    again.rate *= 1.1;
    twice.push(again);
    let noise = fit_runs(twice).unwrap().noise.unwrap().rate;
    assert!((noise - 1.1f64.ln() / 2f64.sqrt()).abs() < 1e-9, "{noise}");
}

#[test]
fn runs_that_say_nothing_are_refused() {
    let cluster = cluster("gateways = 1\nstorage_nodes = 2\nwhat = \"two processes\"").unwrap();
    let manifest = |changes: &[(&str, &str)]| {
        let mut text = r#"{"interrupted": false, "stages": [{"works": [{"kind": "normal", "workers": 8, "rate": null,
            "has_failed": false, "client_is_limit": false, "operations": [{"kind": "write", "succeeded": 25}],
            "total": {"succeeded": 100, "bytes": 6400000, "rate": 50.0, "latency": {"percentiles": {"99": 20.0}}}}]}]}"#
            .to_owned();
        for (from, to) in changes {
            assert!(text.contains(from));
            text = text.replace(from, to);
        }
        runs("r", &text, &cluster)
    };
    let run = manifest(&[]).unwrap().remove(0);
    assert_eq!(
        (run.size, run.write_share, run.rate, run.p99),
        (64000.0, 0.25, 50.0, 0.02)
    );
    for (from, to, part) in [
        ("\"interrupted\": false", "\"interrupted\": true", "run it again"),
        (
            "\"interrupted\": false",
            "\"some\": 1",
            "expected a report of `bench run --json`",
        ),
        (
            "\"client_is_limit\": false",
            "\"client_is_limit\": true",
            "client was the limit",
        ),
        ("\"has_failed\": false", "\"has_failed\": true", "failed"),
        ("\"rate\": null", "\"rate\": 10", "open loop"),
        ("\"kind\": \"normal\"", "\"kind\": \"init\"", "no work of kind normal"),
        ("\"rate\": 50.0", "\"rate\": 0.0", "nothing succeeded"),
        ("\"stages\"", "\"stage\"", "stages is no list"),
    ] {
        let why = manifest(&[(from, to)]).unwrap_err().what;
        assert!(why.contains(part), "{why}");
    }
    assert!(fit_runs(vec![run]).is_err());
    assert!(super::runs::cluster("gateways = 0\nstorage_nodes = 1\nwhat = \"\"").is_err());
}

#[test]
fn reads_and_writes_are_fitted_apart() {
    let mut mixed = measured(0.0);
    mixed[3].write_share = 0.9;
    let why = fit_runs(mixed).unwrap_err().what;
    assert!(why.contains("0.00 to 0.90"), "{why}");
}
