//! Curves through runs of a law that is known, with noise: found again, and honest about what was not measured.

use super::device_limits::DeviceLimits;
use super::points::{Configuration, MeasuredPoint, points};
use super::runs::{MeasuredCluster, MeasuredRun, cluster, runs};
use super::simulated::{SimulatedCosts, grid};
use super::{CurvePrediction, LeftOut, fit_runs};
use crate::model::limits::Resource;

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
    let at = |size: f64| {
        let asked = Configuration {
            gateways: 2.0,
            storage_nodes: 4.0,
            size,
            workers: 64.0,
        };
        let named = curves.predict(asked).extrapolations;
        named.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    assert_eq!((at(4096.0), at(65536.0), at(1e6)), (vec![], vec![], vec![]));
    let outside = "object size in bytes: 2000000 was asked about, 4096 to 1000000 was measured";
    assert_eq!(at(2e6), [outside]);
    // Bands were not shown to hold between sizes that are farther apart.
    let mut far = measured(0.03);
    far.iter_mut()
        .filter(|run| run.size > 1e5)
        .for_each(|run| run.size = 1e8);
    let asked = Configuration {
        gateways: 1.0,
        storage_nodes: 1.0,
        size: 65536.0,
        workers: 64.0,
    };
    let named = fit_runs(far).unwrap().predict(asked).extrapolations[0].to_string();
    assert!(
        named.starts_with("object size in bytes between two that were measured"),
        "{named}"
    );
    assert_eq!(curves.not_varied, ["workers"]);
    let of_one: Vec<MeasuredRun> = measured(0.03)
        .into_iter()
        .filter(|run| run.cluster.gateways == 1)
        .collect();
    assert_eq!(fit_runs(of_one).unwrap().not_varied, ["gateways", "workers"]);
}

/// The same law, but each storage node has two drives of 20 MB/s, which it cannot outrun.
fn bounded(noise: f64) -> Vec<MeasuredRun> {
    let mut all = measured(noise);
    for run in &mut all {
        run.cluster.limits = Some(DeviceLimits {
            drives: Some(2),
            drive_transfer: Some(20e6),
            drive_operations: Some(1e5),
            ..DeviceLimits::default()
        });
        let most = f64::from(run.cluster.storage_nodes) * 40e6 / run.size;
        run.rate = (run.rate.powi(-8) + most.powi(-8)).powf(-0.125);
    }
    all
}

#[test]
fn known_limits_of_drives_bound_what_curves_say() {
    let asked = |size| Configuration {
        gateways: 2.0,
        storage_nodes: 3.0,
        size,
        workers: 64.0,
    };
    let curves = fit_runs(bounded(0.03)).unwrap();
    let (large, small) = (curves.predict(asked(1e6)), curves.predict(asked(4096.0)));
    // 120 MB/s of drives, though gateways and processors of nodes bear 650.
    assert!(
        large.rate.holds(120.0) && large.rate.relative_error() < 0.25,
        "{large:?}"
    );
    let (resource, most) = large.bound.unwrap();
    assert!(resource == Resource::Drives && (most - 120.0).abs() < 1e-9);
    assert!(small.rate.holds(law(2, 3, 4096.0)), "{small:?}");
    // Clusters that nothing but their drives limits.
    let mut alone = bounded(0.0);
    alone.retain(|run| run.size > 1e5);
    let found = fit_runs(alone).unwrap().predict(asked(1e6));
    assert!((found.rate.value / 120.0 - 1.0).abs() < 0.02, "{found:?}");
    // A cluster with other limits says nothing of these.
    let mut others = bounded(0.03);
    others[3].cluster.limits = None;
    let why = fit_runs(others).unwrap_err().what;
    assert!(why.contains("have other limits than those of"), "{why}");
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
            "has_failed": false, "client_is_limit": false, "measured": 2.0,
            "operations": [{"kind": "write", "succeeded": 25}, {"kind": "read", "succeeded": 75}],
            "total": {"succeeded": 100, "bytes": 6400000, "rate": 50.0, "latency": {"percentiles": {"50": 10.0, "99": 20.0}}}}]}]}"#
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
        // Changed by hand.
        (
            "\"rate\": 50.0",
            "\"rate\": 90.0",
            "rate = 90, but 100 requests in 2 s are 50.0: the report was changed by hand",
        ),
        (
            "\"succeeded\": 75",
            "\"succeeded\": 95",
            "succeeded = 100 in all, but its operations have 120",
        ),
        (
            "\"99\": 20.0",
            "\"99\": 2.0",
            "p99 = 2 ms is less than the 50th percentile",
        ),
        (
            "\"bytes\": 6400000",
            "\"bytes\": -6400000",
            "bytes = -6400000 is negative",
        ),
        ("\"workers\": 8", "\"workers\": -8", "workers = -8 is negative"),
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

#[test]
fn a_configuration_is_left_out_with_all_of_its_runs() {
    let mut runs = measured(0.0);
    // Three runs that agree with each other and not with the law.
    runs[3].rate *= 2.0;
    runs.extend([runs[3].clone(), runs[3].clone()]);
    let curves = fit_runs(runs.clone()).unwrap();
    assert_eq!((curves.left_out.len(), curves.runs.len()), (12, 14));
    let (odd, rate) = (&curves.left_out[3], law(1, 2, 1e6));
    assert_eq!(odd.runs, 3);
    assert!((odd.rate.1 / rate - 1.0).abs() < 0.02, "{odd:?}");
    // Runs of one configuration alone are one point.
    assert!(fit_runs(vec![runs[3].clone(); 5]).is_err());
}

#[test]
fn crowded_nodes_are_slower() {
    let crowded = |run: &MeasuredRun| {
        let share = |nodes: u32| (64.0 / f64::from(nodes)).powf(0.25) / f64::from(nodes);
        let gateway = (5e-4 + 2e-9 * run.size) * share(run.cluster.gateways);
        let storage = 1e-3 * share(run.cluster.storage_nodes);
        1.0 / gateway.hypot(storage)
    };
    let mut runs = measured(0.0);
    for run in &mut runs {
        run.rate = crowded(run);
    }
    let curves = fit_runs(runs.clone()).unwrap();
    assert_eq!((curves.crowding, curves.knee), (0.25, 2.0));
    for (one, run) in curves.left_out.iter().zip(&runs) {
        assert!((one.rate.1 / run.rate - 1.0).abs() < 0.01, "{one:?}");
    }
}

#[test]
fn p99_between_sizes_goes_with_their_work() {
    // Ten times what a gateway and a storage node take: most of it does not depend on the size.
    let work = |size: f64| 5e-4 + 2e-9 * size + 1e-3;
    let mut runs = measured(0.0);
    runs.iter_mut().for_each(|run| run.p99 = 10.0 * work(run.size));
    let asked = Configuration {
        gateways: 1.0,
        storage_nodes: 2.0,
        size: 250_000.0,
        workers: 64.0,
    };
    let predicted = fit_runs(runs).unwrap().predict(asked).p99;
    assert!(
        (predicted.value / (10.0 * work(asked.size)) - 1.0).abs() < 0.02,
        "{predicted:?}"
    );
}

/// How many configurations of sizes in between lie in the bands of throughput and of p99, and how many there were.
fn covered(seed: u64, clusters: usize, measured: &[f64], asked: &[f64]) -> (usize, usize, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut rates, mut times, mut all, mut widths) = (0, 0, 0, 0.0);
    for _ in 0..clusters {
        let costs = SimulatedCosts::drawn(&mut random, 0.1);
        let mut run = |at: Configuration| costs.run(at, &mut random);
        let curves = fit_runs(grid(measured).into_iter().map(&mut run).collect()).unwrap();
        for asked in grid(asked) {
            let (predicted, measured) = (curves.predict(asked), run(asked));
            assert_eq!(predicted.extrapolations, []);
            // Bands without bound would hold everything.
            widths +=
                (predicted.rate.high / predicted.rate.value).ln() + (predicted.p99.high / predicted.p99.value).ln();
            rates += usize::from(predicted.rate.holds(measured.rate));
            times += usize::from(predicted.p99.holds(measured.p99));
            all += 1;
        }
    }
    let width = (widths / (2 * all) as f64).exp();
    assert!(width < 2.0, "bands reach to {width} times what is said on average");
    (rates, times, all)
}

/// `MARTLET_BAND_CLUSTERS` plays more clusters than the five of every test run.
#[test]
fn bands_hold_between_measured_sizes() {
    let clusters = std::env::var("MARTLET_BAND_CLUSTERS").map_or(5, |count| count.parse().unwrap());
    for (measured, asked) in [
        ([4096.0, 262_144.0], [16_384.0, 65_536.0]),
        ([4096.0, 1_048_576.0], [32_768.0, 262_144.0]),
    ] {
        let (rates, times, all) = covered(1, clusters, &measured, &asked);
        println!("{rates} in the band of throughput and {times} in that of p99, of {all} between {measured:?}");
        assert!(
            10 * rates >= 9 * all && 10 * times >= 9 * all,
            "{rates} and {times} of {all}"
        );
    }
}

/// Runs of `make advise-measure`.
fn kept(set: &str) -> Vec<MeasuredRun> {
    let all: toml::Table = toml::from_str(include_str!("measured.toml")).unwrap();
    let number = |value: &toml::Value| value.as_float().unwrap_or_else(|| value.as_integer().unwrap() as f64);
    let mut found = vec![];
    for one in all[set].as_array().unwrap() {
        let (gateways, nodes) = (number(&one["gateways"]) as u32, number(&one["storage_nodes"]) as u32);
        for run in one["runs"].as_array().unwrap() {
            found.push(MeasuredRun {
                name: "measured".to_owned(),
                cluster: MeasuredCluster::plain(gateways, nodes, "limited processes"),
                size: number(&one["size"]),
                write_share: 0.0,
                workers: 64.0,
                rate: number(&run[0]),
                p99: number(&run[1]) / 1e3,
            });
        }
    }
    found
}

#[test]
fn measured_configurations_are_predicted() {
    for (set, least) in [("first", 9), ("second", 11)] {
        let curves = fit_runs(kept(set)).unwrap();
        let is_good = |one: &&LeftOut| one.errors().0.abs() <= 0.15 && one.errors().1.abs() <= 0.3;
        let good = curves.left_out.iter().filter(is_good).count();
        assert!(
            good >= least && curves.left_out.len() == 12,
            "{set}: {:?}",
            curves.left_out
        );
    }
}

/// The page says which of them do not, and why that may be.
#[test]
fn answers_of_a_size_between_lie_in_the_bands_but_one() {
    let curves = fit_runs(kept("second")).unwrap();
    let answers = points(&kept("answers"));
    let predicted: Vec<_> = answers
        .iter()
        .map(|point| (point, curves.predict(point.configuration)))
        .collect();
    let within =
        |holds: &dyn Fn(&(&MeasuredPoint, CurvePrediction)) -> bool| predicted.iter().filter(|one| holds(one)).count();
    assert!(
        within(&|(point, curve)| curve.rate.holds(point.rate)) >= 2,
        "{predicted:?}"
    );
    assert!(
        within(&|(point, curve)| curve.p99.holds(point.p99)) >= 2,
        "{predicted:?}"
    );
}
