//! The model as a whole: which resource is the bottleneck, and what moves it.

use super::cluster::{BalancerGroup, ClusterModel, DrivePower, GatewayGroup, StorageGroup};
use super::latency::{is_p99_within, latency, likely_p99};
use super::limits::{Resource, throughput};
use super::rates::SoftwareRates;
use super::workload::{Protection, RequestMix, SizeShare};

pub fn cluster() -> ClusterModel {
    ClusterModel {
        balancers: None,
        gateways: GatewayGroup {
            count: 2,
            cores: 16.0,
            network: 3.1e9,
            uplink: None,
        },
        storage: StorageGroup {
            count: 6,
            cores: 16.0,
            network: 3.1e9,
            memory: 64e9,
            drives: 12,
            drive: DrivePower {
                transfer: 200e6,
                operations: 150.0,
            },
            listing_drives: 1,
            listing_drive: DrivePower {
                transfer: 500e6,
                operations: 20_000.0,
            },
            index_on_flash: false,
        },
        protection: Protection::Replicas(3),
        listing_replicas: 3,
    }
}

pub fn mix(size: f64, writes: f64) -> RequestMix {
    RequestMix {
        reads: 1.0 - writes,
        writes,
        deletes: 0.0,
        sizes: vec![SizeShare { size, share: 1.0 }],
        objects: 1e9,
        containers: 1000.0,
    }
}

fn bottleneck(change: impl FnOnce(&mut ClusterModel), mix: &RequestMix) -> Resource {
    let mut cluster = cluster();
    change(&mut cluster);
    throughput(&cluster, mix, &SoftwareRates::built_in().unwrap()).bottleneck
}

#[test]
fn each_resource_can_be_the_bottleneck() {
    let (small, large) = (mix(4096.0, 0.5), mix(16e6, 0.5));
    assert_eq!(bottleneck(|_| {}, &small), Resource::Drives);
    let balancer = Some(BalancerGroup {
        count: 1,
        throughput: 140e6,
    });
    assert_eq!(
        bottleneck(|cluster| cluster.balancers = balancer, &large),
        Resource::Balancer
    );
    assert_eq!(
        bottleneck(|cluster| cluster.gateways.network = 1e8, &large),
        Resource::GatewayNetwork
    );
    assert_eq!(
        bottleneck(|cluster| cluster.gateways.uplink = Some(1e8), &large),
        Resource::GatewayUplink
    );
    assert_eq!(
        bottleneck(|cluster| cluster.storage.network = 2e7, &large),
        Resource::StorageNetwork
    );
    let flash = |cluster: &mut ClusterModel| cluster.storage.drive.operations = 1e6;
    assert_eq!(
        bottleneck(
            |cluster| {
                flash(cluster);
                cluster.gateways.cores = 1.0
            },
            &small
        ),
        Resource::GatewayProcessor
    );
    assert_eq!(
        bottleneck(
            |cluster| {
                flash(cluster);
                cluster.storage.cores = 1.0;
                cluster.gateways.cores = 64.0
            },
            &small
        ),
        Resource::StorageProcessor
    );
    assert_eq!(
        bottleneck(
            |cluster| {
                flash(cluster);
                cluster.storage.listing_drive.operations = 100.0
            },
            &small
        ),
        Resource::ListingDrives
    );
}

#[test]
fn the_bottleneck_law_is_met_by_hand() {
    // 1 MB reads, 72 drives of 200 MB/s and 150 operations, 3 operations each: 72 / (3/150 + 1/200) = 2880 a second.
    let mut cluster = cluster();
    cluster.storage.memory = 0.0;
    let rates = SoftwareRates::built_in().unwrap();
    let found = throughput(&cluster, &mix(1e6, 0.0), &rates);
    assert_eq!(found.bottleneck, Resource::Drives);
    assert!((found.requests.value - 2880.0).abs() < 1e-6, "{found:?}");
    assert!(found.requests.low < 2880.0 && found.requests.high > 2880.0);
    // A byte of an erasure code is on a drive once for each data fragment's share, and each read visits all of them.
    cluster.protection = Protection::Erasure { data: 8, parity: 4 };
    let coded = throughput(&cluster, &mix(1e6, 0.0), &rates);
    let by_hand = 72.0 / (8.0 * 3.0 / 150.0 + 1.0 / 200.0);
    assert!((coded.requests.value - by_hand).abs() < 1e-6, "{coded:?}");
}

#[test]
fn memory_and_flash_save_operations_of_drives() {
    let rates = SoftwareRates::built_in().unwrap();
    let at = |change: &dyn Fn(&mut ClusterModel)| {
        let mut cluster = cluster();
        cluster.storage.memory = 0.0;
        change(&mut cluster);
        throughput(&cluster, &mix(4096.0, 0.0), &rates).requests.value
    };
    let (plain, memory) = (at(&|_| {}), at(&|cluster| cluster.storage.memory = 1e13));
    let flash = at(&|cluster| cluster.storage.index_on_flash = true);
    assert!(
        (memory / plain - 3.0).abs() < 0.01 && (flash - memory).abs() < 1e-6,
        "{plain} {memory} {flash}"
    );
}

#[test]
fn what_was_not_measured_is_named() {
    let found = throughput(&cluster(), &mix(16e6, 0.5), &SoftwareRates::built_in().unwrap());
    let named: Vec<String> = found.extrapolations.iter().map(ToString::to_string).collect();
    let expected = "object size in bytes: 16000000 was asked about, 4096 to 1048576 was measured";
    assert!(named.iter().any(|one| one == expected), "{named:?}");
    assert!(!named.iter().any(|one| one.contains("share of writes")), "{named:?}");
}

#[test]
fn latency_grows_with_load_and_ends_at_the_limit() {
    let (cluster, rates) = (cluster(), SoftwareRates::built_in().unwrap());
    let mix = mix(65536.0, 0.2);
    let most = throughput(&cluster, &mix, &rates).requests.value;
    let at = |share: f64| latency(&cluster, &mix, &rates, share * most);
    let (idle, half, full) = (at(0.01).unwrap(), at(0.5).unwrap(), at(0.95).unwrap());
    assert!(idle.mean.value < half.mean.value && half.mean.value < full.mean.value);
    for one in [&idle, &half, &full] {
        assert!(one.p99.value > one.mean.value && one.mean.low <= one.mean.value && one.mean.high >= one.mean.value);
    }
    // What a search asks is the same, and cheaper.
    let likely = likely_p99(&cluster, &mix, &rates, 0.5 * most).unwrap();
    assert_eq!(likely, half.p99.value);
    let is_within = |share: f64| is_p99_within(&cluster, &mix, &rates, 0.5 * most, likely * share);
    assert!(is_within(1.0) && is_within(1.001) && !is_within(0.999));
    assert!(likely_p99(&cluster, &mix, &rates, most).is_none() && !is_p99_within(&cluster, &mix, &rates, most, 1e9));
    // The dear end of the software's costs is not borne there.
    assert!(full.p99.high.is_infinite());
    assert!(at(1.0).is_none());
    let drives = half
        .busy
        .iter()
        .find(|(resource, _)| *resource == Resource::Drives)
        .unwrap();
    assert!((drives.1 - 0.5).abs() < 1e-9);
}

/// The whole way of a request, drawn: arrivals are random, each drive serves one after another.
#[test]
fn reads_take_as_long_as_in_a_simulation() {
    let (mut cluster, rates) = (cluster(), SoftwareRates::built_in().unwrap());
    cluster.storage.count = 2;
    cluster.storage.drives = 4;
    cluster.storage.index_on_flash = true;
    let mix = mix(1e6, 0.0);
    let requests = 0.6 * throughput(&cluster, &mix, &rates).requests.value;
    let predicted = latency(&cluster, &mix, &rates, requests).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let (mut free, mut now) = ([0.0_f64; 8], 0.0);
    let (seek, transfer) = (1.0 / 150.0, 1e6 / 200e6);
    let rest = 2.0 * (3.0e-5 + 1e6 * 3.5e-10) + 1e6 / 3.1e9;
    let mut times: Vec<f64> = (0..200_000)
        .map(|_| {
            now -= (1.0 - random.f64()).ln() / requests;
            let drive = random.usize(0..8);
            // A gamma time of two exponential halves varies as the model says: its variance is half its square.
            let seeks = -0.5 * seek * ((1.0 - random.f64()).ln() + (1.0 - random.f64()).ln());
            let start = free[drive].max(now);
            free[drive] = start + seeks + transfer;
            free[drive] - now + rest
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let p99 = times[times.len() * 99 / 100];
    assert!(
        (predicted.mean.value / mean - 1.0).abs() < 0.05,
        "{} {mean}",
        predicted.mean.value
    );
    assert!(
        (predicted.p99.value / p99 - 1.0).abs() < 0.1,
        "{} {p99}",
        predicted.p99.value
    );
}
