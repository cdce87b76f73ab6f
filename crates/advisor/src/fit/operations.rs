//! Operations of a drive for a piece that is read, from runs whose drives were limited.
//!
//! Metadata was in memory in such runs, so that the figure is the one for cached metadata. What writes cost a drive is
//! not fitted: the journal of the file system writes beside what a control group counts.
//! Always holds: only objects count that the kernel reads at once; a run that does not say what its drives did is an
//! error that says what to do.

use super::least_squares::student;
use super::runs::MeasuredRun;
use crate::model::rates::Rate;
use vocabulary::Fault;

/// Bytes that Linux reads ahead of a reader (`read_ahead_kb` is 128 where it was not changed). What is longer takes
/// several operations of one transfer.
const AT_ONCE: f64 = 131_072.0;
/// Relative: workers that read an object at the same time share an operation, and metadata takes some.
const LEAST_ERROR: f64 = 0.05;

/// Operations for each piece that is read; none where no drives were limited, or no object is read at once.
pub fn read_operations(runs: &[MeasuredRun]) -> Result<Option<Rate>, Fault> {
    let mut known = vec![];
    for run in runs {
        if run.cluster.limits.is_none_or(|limits| limits.drives.is_none()) {
            continue;
        }
        let reads = run.cluster.drive_reads.ok_or_else(|| {
            Fault::caller(format!(
                "{}: its drives are limited, and it does not say what they did: measure it again, or add drive_reads and \
                 drive_writes (operations a second of all drives) to what stands beside it",
                run.name
            ))
        })?;
        if run.size <= AT_ONCE && reads > 0.0 {
            known.push((reads / run.rate).ln());
        }
    }
    let count = known.len();
    if count == 0 {
        return Ok(None);
    }
    let mean = known.iter().sum::<f64>() / count as f64;
    let squares: f64 = known.iter().map(|one| (one - mean).powi(2)).sum();
    let freedom = count - 1;
    // The band in which one more run lies.
    let half = student(freedom) * (squares / freedom.max(1) as f64 * (1.0 + 1.0 / count as f64)).sqrt();
    Ok(Some(Rate {
        value: mean.exp(),
        error: (half.exp() - 1.0).clamp(LEAST_ERROR, 100.0),
        source: format!(
            "martlet advise fit: operations of limited drives in {count} runs, metadata in memory; {}",
            runs[0].cluster.what
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::read_operations;
    use crate::fit::device_limits::DeviceLimits;
    use crate::fit::runs::{MeasuredCluster, MeasuredRun};

    fn run(size: f64, reads: Option<f64>, drives: Option<u32>) -> MeasuredRun {
        let mut cluster = MeasuredCluster::plain(1, 2, "a law");
        cluster.drive_reads = reads;
        cluster.limits = Some(DeviceLimits {
            drives,
            balancer: Some(1e9),
            ..DeviceLimits::default()
        });
        MeasuredRun {
            name: "one".to_owned(),
            cluster,
            size,
            write_share: 0.0,
            workers: 8.0,
            rate: 100.0,
            p99: 0.1,
        }
    }

    #[test]
    fn operations_of_reads_are_counted() {
        let runs = [98.0, 100.0, 102.0].map(|reads| run(4096.0, Some(reads), Some(1)));
        let found = read_operations(&runs).unwrap().unwrap();
        assert!((found.value - 1.0).abs() < 1e-3, "{found:?}");
        // Student's 4.303 of a deviation of 2 %, and of their mean's.
        assert!((0.08..0.12).contains(&found.error), "{found:?}");
        // A single run tells nothing of its noise but what is assumed.
        assert_eq!(read_operations(&runs[..1]).unwrap().unwrap().error, 0.05);
        // Eight operations of one transfer, and drives without limits.
        let others = [run(1e6, Some(800.0), Some(1)), run(4096.0, None, None)];
        assert_eq!(read_operations(&others).unwrap(), None);
        let why = read_operations(&[run(4096.0, None, Some(1))]).unwrap_err().what;
        assert!(
            why.contains("one: its drives are limited") && why.contains("add drive_reads"),
            "{why}"
        );
    }
}
