//! What a request costs processors and drives, from measured nodes: figures for `buy` and `predict`.
//!
//! A gateway's time for a request is g + S g_b, a storage node's for a piece h + S h_b. Both are fitted by least
//! squares of relative errors.
//! Always holds: only runs are used in which the nodes were busy for most of their share, as a busy node takes many
//! requests at once and so needs less time for each; where too few were, all are, and the figure's source says so.
//! Where drives, networks or a balancer were limited, idle nodes say nothing, since others made them idle. The band is
//! that in which one more run lies with 95 %. Figures that the runs say nothing of keep their values and sources.

use super::least_squares::fit;
use super::operations;
use super::runs::{MeasuredCluster, MeasuredRun};
use crate::model::rates::{MeasuredRange, MeasuredRanges, Rate, SoftwareRates};
use vocabulary::Fault;

/// Of its processors, the share that a busy node uses.
const BUSY: f64 = 0.85;
/// A share of writes up to this is a load that reads, and the rest of 1 one that writes.
const PURE: f64 = 0.02;

/// Seconds for each request and each byte, with their relative error.
struct FittedCost {
    request: f64,
    byte: f64,
    error: f64,
    source: String,
}

/// Processor time of one kind of node.
struct KindOfNode {
    name: &'static str,
    /// Processors that were busy of all nodes, and processors of all nodes.
    busy: fn(&MeasuredCluster) -> Option<(f64, f64)>,
}

const GATEWAYS: KindOfNode = KindOfNode {
    name: "gateways",
    busy: |cluster| {
        let all = cluster.gateway_processors? * f64::from(cluster.gateways);
        Some((cluster.gateways_busy?, all))
    },
};
const STORAGE: KindOfNode = KindOfNode {
    name: "storage nodes",
    busy: |cluster| {
        let all = cluster.storage_processors? * f64::from(cluster.storage_nodes);
        Some((cluster.storage_busy?, all))
    },
};

impl KindOfNode {
    /// None where something else was the limit. `pieces` says how many of them a request makes.
    fn cost(&self, runs: &[MeasuredRun], pieces: impl Fn(&MeasuredRun) -> f64) -> Result<Option<FittedCost>, Fault> {
        let has_other_limits = runs.iter().any(|run| run.cluster.limits.is_some());
        let mut known = vec![];
        for run in runs {
            let (busy, all) = (self.busy)(&run.cluster).ok_or_else(|| {
                Fault::caller(format!(
                    "{}: what it loaded does not say how busy processors of {} were (`advise measure` does)",
                    run.name, self.name
                ))
            })?;
            let cost = busy / run.rate / pieces(run);
            known.push((busy / all > BUSY, vec![1.0 / cost, run.size / cost]));
        }
        let rows = |only_busy: bool| -> Vec<Vec<f64>> {
            let chosen = known.iter().filter(|(is_busy, _)| *is_busy || !only_busy);
            chosen.map(|(_, row)| row.clone()).collect()
        };
        for (only_busy, why) in [(true, "busy for most of their share"), (false, "not all busy")] {
            if has_other_limits && !only_busy {
                return Ok(None);
            }
            let rows = rows(only_busy);
            let Some(found) = fit(&rows, &vec![1.0; rows.len()]) else {
                continue;
            };
            if let [request, byte] = found.coefficients[..]
                && request > 0.0
                && byte > 0.0
            {
                let bands = rows.iter().map(|row| found.half_band(row));
                return Ok(Some(FittedCost {
                    request,
                    byte,
                    error: bands.fold(0.0, f64::max),
                    source: format!(
                        "martlet advise fit: processor time of {} in {} runs, {why}; {}",
                        self.name,
                        rows.len(),
                        runs[0].cluster.what
                    ),
                }));
            }
        }
        Err(Fault::caller(format!(
            "the runs do not tell what a request and what a byte costs {}: measure sizes that are farther apart",
            self.name
        )))
    }
}

/// Which of the figures runs of a write share say something of.
fn is_writing(runs: &[MeasuredRun]) -> Result<bool, Fault> {
    match runs {
        _ if runs.iter().all(|run| run.write_share <= PURE) => Ok(false),
        _ if runs.iter().all(|run| run.write_share >= 1.0 - PURE) => Ok(true),
        _ => Err(Fault::caller(
            "rates: the runs read and write, so that what each costs is not known: measure reads = 1 and reads = 0 apart",
        )),
    }
}

/// Figures with those put in that runs say; `is_own` when the others were fitted as well, by an earlier command.
pub fn rates(runs: &[MeasuredRun], base: &SoftwareRates, is_own: bool) -> Result<SoftwareRates, Fault> {
    let is_writing = is_writing(runs)?;
    let pieces = |run: &MeasuredRun| match is_writing {
        true => f64::from(run.cluster.pieces.unwrap_or(1)),
        false => 1.0,
    };
    let (gateway, storage) = (GATEWAYS.cost(runs, |_| 1.0)?, STORAGE.cost(runs, pieces)?);
    let operations = match is_writing {
        false => operations::read_operations(runs)?,
        true => None,
    };
    if gateway.is_none() && storage.is_none() && operations.is_none() {
        return Err(Fault::caller(
            "rates: what these runs measured is no figure of the software: limits of their drives, networks or balancer \
             ended first, so that no processors were busy for most of their share; measure reads of small objects from limited \
             drives, or plans that limit processors alone",
        ));
    }
    let mut rates = base.clone();
    put(&mut rates, is_writing, [gateway, storage]);
    if let Some(operations) = operations {
        rates.read_operations_indexed = operations;
    }
    let kind = if is_writing { "writes" } else { "reads" };
    let source = format!("fitted through {} runs ({kind})", runs.len());
    rates.name = if is_own {
        format!("{}; {source}", base.name)
    } else {
        source
    };
    rates.measured = ranges(
        runs,
        if is_own {
            base.measured.clone()
        } else {
            MeasuredRanges::default()
        },
    );
    Ok(rates)
}

/// Puts costs of gateways and of storage nodes in, where they are known.
fn put(rates: &mut SoftwareRates, is_writing: bool, costs: [Option<FittedCost>; 2]) {
    let places = match is_writing {
        false => [
            (&mut rates.gateway_read_cpu, &mut rates.gateway_read_cpu_per_byte),
            (&mut rates.storage_read_cpu, &mut rates.storage_read_cpu_per_byte),
        ],
        true => [
            (&mut rates.gateway_write_cpu, &mut rates.gateway_write_cpu_per_byte),
            (&mut rates.storage_write_cpu, &mut rates.storage_write_cpu_per_byte),
        ],
    };
    for ((request, byte), cost) in places.into_iter().zip(costs) {
        let Some(cost) = cost else { continue };
        let figure = |value| Rate {
            value,
            error: cost.error,
            source: cost.source.clone(),
        };
        (*request, *byte) = (figure(cost.request), figure(cost.byte));
    }
}

/// Which figures are not those of before, and which are, by their names.
pub fn taken(before: &SoftwareRates, after: &SoftwareRates) -> (Vec<&'static str>, Vec<&'static str>) {
    let both = before.all().into_iter().zip(after.all());
    let (new, kept): (Vec<_>, Vec<_>) = both.partition(|((_, before), (_, after))| before != after);
    let names = |all: Vec<((&'static str, _), _)>| all.into_iter().map(|((name, _), _)| name).collect();
    (names(new), names(kept))
}

/// What the runs had, beside what was measured before.
fn ranges(runs: &[MeasuredRun], before: MeasuredRanges) -> MeasuredRanges {
    let of = |before: Option<MeasuredRange>, get: &dyn Fn(&MeasuredRun) -> Option<f64>| {
        let all = runs.iter().filter_map(get);
        let least = all.clone().fold(f64::INFINITY, f64::min);
        let most = all.fold(f64::NEG_INFINITY, f64::max);
        match before {
            _ if least > most => before,
            Some((from, until)) => Some((from.min(least), until.max(most))),
            None => Some((least, most)),
        }
    };
    MeasuredRanges {
        object_size: of(before.object_size, &|run| Some(run.size.round())),
        gateways: of(before.gateways, &|run| Some(f64::from(run.cluster.gateways))),
        gateway_cores: of(before.gateway_cores, &|run| run.cluster.gateway_processors),
        storage_nodes: of(before.storage_nodes, &|run| Some(f64::from(run.cluster.storage_nodes))),
        drives_per_node: before.drives_per_node,
        // A sum of nothing is -0.
        write_share: of(before.write_share, &|run| Some(run.write_share + 0.0)),
        pieces: of(before.pieces, &|run| run.cluster.pieces.map(f64::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::{rates, taken};
    use crate::fit::device_limits::DeviceLimits;
    use crate::fit::runs::{MeasuredCluster, MeasuredRun};
    use crate::model::rates::SoftwareRates;

    /// A gateway takes 0.1 ms and 1 ns a byte, a storage node 0.2 ms and 2 ns a byte of each piece.
    fn run(size: f64, write_share: f64, noise: f64) -> MeasuredRun {
        let (rate, pieces) = (100.0, if write_share > 0.5 { 3.0 } else { 1.0 });
        let mut cluster = MeasuredCluster::plain(1, 2, "a law");
        cluster.pieces = Some(3);
        cluster.gateways_busy = Some(rate * (1e-4 + 1e-9 * size) * noise);
        cluster.storage_busy = Some(rate * pieces * (2e-4 + 2e-9 * size) / noise);
        cluster.gateway_processors = cluster.gateways_busy.map(|busy| busy * 1.05);
        cluster.storage_processors = cluster.storage_busy.map(|busy| busy / 2.0 * 1.05);
        MeasuredRun {
            name: format!("{size}"),
            cluster,
            size,
            write_share,
            workers: 8.0,
            rate,
            p99: 0.1,
        }
    }

    fn runs(write_share: f64) -> Vec<MeasuredRun> {
        [(4096.0, 1.02), (4096.0, 0.98), (1e6, 1.01), (1e6, 0.99)]
            .map(|(size, noise)| run(size, write_share, noise))
            .to_vec()
    }

    #[test]
    fn costs_are_found_for_reads_and_then_for_writes() {
        let built_in = SoftwareRates::built_in().unwrap();
        let reads = rates(&runs(0.0), &built_in, false).unwrap();
        let near = |found: f64, law: f64| assert!((found / law - 1.0).abs() < 0.03, "{found} {law}");
        near(reads.gateway_read_cpu.value, 1e-4);
        near(reads.storage_read_cpu_per_byte.value, 2e-9);
        assert_eq!(reads.gateway_write_cpu, built_in.gateway_write_cpu);
        assert!(
            (0.02..0.2).contains(&reads.gateway_read_cpu.error),
            "{:?}",
            reads.gateway_read_cpu
        );
        let both = rates(&runs(1.0), &reads, true).unwrap();
        near(both.storage_write_cpu.value, 2e-4);
        assert_eq!(both.gateway_read_cpu, reads.gateway_read_cpu);
        assert_eq!(both.measured.write_share, Some((0.0, 1.0)));
        assert_eq!(SoftwareRates::read(&both.text()).unwrap(), both);
    }

    #[test]
    fn what_the_runs_do_not_contain_is_named() {
        let built_in = SoftwareRates::built_in().unwrap();
        let why = |runs: &[MeasuredRun]| rates(runs, &built_in, false).unwrap_err().what;
        assert!(why(&runs(0.5)).contains("measure reads = 1 and reads = 0 apart"));
        let one_size: Vec<MeasuredRun> = runs(0.0).into_iter().filter(|run| run.size < 1e5).collect();
        assert!(why(&one_size).contains("sizes that are farther apart"));
        let mut unknown = runs(0.0);
        unknown[0].cluster.gateways_busy = None;
        assert!(why(&unknown).contains("4096: what it loaded does not say"));
        // Another limit made them idle: then their costs stay as they were, and there may be no figure at all.
        let limited = |gateways: f64, drive_reads: Option<f64>| {
            let mut runs = runs(0.0);
            for run in &mut runs {
                run.cluster.gateway_processors = Some(gateways);
                run.cluster.storage_processors = Some(4.0);
                run.cluster.drive_reads = drive_reads;
                run.cluster.limits = Some(DeviceLimits {
                    drives: drive_reads.map(|_| 1),
                    balancer: Some(1e9),
                    ..DeviceLimits::default()
                });
            }
            runs
        };
        assert!(why(&limited(4.0, None)).contains("no figure of the software"));
        let found = rates(&limited(4.0, Some(100.0)), &built_in, false).unwrap();
        assert_eq!(taken(&built_in, &found).0, ["read_operations_indexed"]);
        // Idle nodes are used where no others are there, and that is said.
        let mut idle = runs(0.0);
        idle.iter_mut()
            .for_each(|run| run.cluster.gateway_processors = Some(4.0));
        let found = rates(&idle, &built_in, false).unwrap();
        assert!(found.gateway_read_cpu.source.contains("not all busy"));
    }
}
