//! The curve of throughput.
//!
//! A closed loop of W workers on G gateways and N storage nodes answers X requests of S bytes a second. What a request
//! and what its bytes cost a node is time of the same processor, one after the other, and adds; nodes of different
//! kinds work at the same time, and the time between two answers is a p-norm of theirs:
//!
//! ```text
//! X^-p = D_g^p + D_s^p + D_w^p + D_k^p
//! D_g = (g + S g_b) (W/G)^b / G,   D_s = (h + S h_b) (W/N)^b / N,   D_w = w / W
//! ```
//!
//! A large p is the bottleneck law, p = 1 a request that is at one place after the other. b says that a request costs
//! more where many are under way at a node: their connections and buffers share its caches. D_k is the time that known
//! limits of drives, networks and a balancer take, which is not fitted. Of all sets of parts, four
//! values of p and three of b those are taken which say best what they have not seen; `ThroughputCurve::through` has an
//! exception.
//! Always holds: no part is negative; a part that the points do not tell from nothing is left out.

use super::known_limits::{KnownBound, KnownLimits};
use super::least_squares::inverse;
use super::points::{Configuration, MeasuredPoint};

/// How sharp a knee may be.
const KNEES: [i32; 4] = [1, 2, 4, 8];
/// How much dearer requests become where many are under way, as a power of their number.
const CROWDING: [f64; 3] = [0.0, 0.125, 0.25];
/// What a request's time is made of.
const PARTS: [&str; 5] = [
    "gateway, each request",
    "gateway, each byte",
    "storage node, each request",
    "storage node, each byte",
    "worker, each request",
];
/// The set that holds what a byte costs a gateway.
const GATEWAY_BYTES: usize = 1 << 1;
/// Which kind of node each part is time of.
const NODE_OF: [usize; 5] = [0, 0, 1, 1, 2];
/// A part that decides less of every point's time than this cannot be distinguished from nothing.
const NOTICED: f64 = 1e-3;
/// Steps of a fit, halvings of a step, and the logarithm of a part's change in a step at most.
const STEPS: usize = 60;
const HALVINGS: usize = 6;
const LONGEST_STEP: f64 = 2.0;
/// A fit has ended when no part changes by more than this.
const FINISHED: f64 = 1e-5;

/// One number for each of [`PARTS`].
type Parts = [f64; 5];

/// Seconds of each part that lie between two answers, where it takes one second of a request.
fn weights(configuration: Configuration, crowding: f64) -> Parts {
    let share = |nodes: f64| (configuration.workers / nodes).powf(crowding) / nodes;
    let (gateway, node) = (share(configuration.gateways), share(configuration.storage_nodes));
    [
        gateway,
        configuration.size * gateway,
        node,
        configuration.size * node,
        1.0 / configuration.workers,
    ]
}

/// Seconds between two answers, and by how much they grow for each part: d ln time / d ln part. `known` are those of
/// known limits.
fn time(weights: &Parts, known: f64, seconds: &Parts, knee: i32) -> (f64, Parts) {
    let mut nodes = [0.0, 0.0, 0.0, known];
    for part in 0..PARTS.len() {
        nodes[NODE_OF[part]] += weights[part] * seconds[part];
    }
    let most = nodes.iter().copied().fold(0.0, f64::max);
    let powers = nodes.map(|node| (node / most).powi(knee));
    let sum: f64 = powers.iter().sum();
    let mut slopes = [0.0; 5];
    for part in 0..PARTS.len() {
        let node = NODE_OF[part];
        if nodes[node] > 0.0 {
            slopes[part] = powers[node] / sum * weights[part] * seconds[part] / nodes[node];
        }
    }
    (most * sum.powf(1.0 / f64::from(knee)), slopes)
}

/// Which curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    knee: i32,
    crowding: f64,
}

/// The inverse of the normal matrix, for leverages.
#[derive(Debug, Clone)]
struct NormalInverse {
    chosen: Vec<usize>,
    inverse: Vec<Vec<f64>>,
}

impl NormalInverse {
    /// How much a point with such slopes decides over its own fit.
    fn leverage(&self, slopes: &Parts) -> f64 {
        let image = |row: &Vec<f64>| -> f64 {
            row.iter()
                .zip(&self.chosen)
                .map(|(one, part)| one * slopes[*part])
                .sum()
        };
        let rows = self.inverse.iter().zip(&self.chosen);
        rows.map(|(row, part)| image(row) * slopes[*part]).sum()
    }
}

/// Parts as they were fitted.
#[derive(Debug, Clone)]
struct FittedParts {
    /// Of each part; nothing of one that was not chosen.
    seconds: Parts,
    /// Of what it has not seen: the sum of squares of ln X.
    error: f64,
    normal: NormalInverse,
}

/// A fitted curve.
#[derive(Debug, Clone)]
pub struct ThroughputCurve {
    shape: Shape,
    fitted: FittedParts,
    known: KnownLimits,
}

/// A point as one fit sees it.
struct WeighedPoint {
    /// Of parts.
    weights: Parts,
    /// Seconds of known limits.
    known: f64,
    /// Measured seconds between two answers.
    measured: f64,
}

/// Logarithms of what a curve says, relative to what was measured, with their slopes.
fn residuals(points: &[WeighedPoint], seconds: &Parts, knee: i32) -> Vec<(f64, Parts)> {
    let one = |point: &WeighedPoint| {
        let (time, slopes) = time(&point.weights, point.known, seconds, knee);
        ((time / point.measured).ln(), slopes)
    };
    points.iter().map(one).collect()
}

fn squares(residuals: &[(f64, Parts)]) -> f64 {
    residuals.iter().map(|(residual, _)| residual * residual).sum()
}

/// The inverse of the normal matrix; none where the points do not tell parts apart.
fn normal_inverse(residuals: &[(f64, Parts)], chosen: &[usize]) -> Option<Vec<Vec<f64>>> {
    let product =
        |one: usize, other: usize| -> f64 { residuals.iter().map(|(_, slopes)| slopes[one] * slopes[other]).sum() };
    let normal = chosen
        .iter()
        .map(|one| chosen.iter().map(|other| product(*one, *other)).collect());
    inverse(normal.collect())
}

/// Seconds of chosen parts by least squares of ln X (Gauss and Newton, in logarithms of parts, so that none becomes
/// negative).
fn fitted(points: &[WeighedPoint], chosen: &[usize], knee: i32) -> Option<FittedParts> {
    let mut seconds = [0.0; 5];
    for part in chosen {
        // Half of what no point contradicts.
        let most = points.iter().map(|point| point.measured / point.weights[*part]);
        seconds[*part] = 0.5 * most.fold(f64::INFINITY, f64::min);
    }
    let mut now = residuals(points, &seconds, knee);
    for _ in 0..STEPS {
        let is_noticed = |part: &usize| now.iter().any(|(_, slopes)| slopes[*part] > NOTICED);
        if !chosen.iter().all(is_noticed) {
            return None;
        }
        let inverse = normal_inverse(&now, chosen)?;
        let right: Vec<f64> = chosen
            .iter()
            .map(|part| {
                -now.iter()
                    .map(|(residual, slopes)| residual * slopes[*part])
                    .sum::<f64>()
            })
            .collect();
        let step: Vec<f64> = inverse
            .iter()
            .map(|row| row.iter().zip(&right).map(|(one, other)| one * other).sum::<f64>())
            .collect();
        let longest = step.iter().fold(0.0, |longest: f64, one| longest.max(one.abs()));
        let mut scale = (LONGEST_STEP / longest.max(1e-300)).min(1.0);
        let mut better = None;
        for _ in 0..HALVINGS {
            let mut tried = seconds;
            for (part, step) in chosen.iter().zip(&step) {
                tried[*part] *= (step * scale).exp();
            }
            let found = residuals(points, &tried, knee);
            if squares(&found) <= squares(&now) {
                better = Some((tried, found));
                break;
            }
            scale /= 2.0;
        }
        let Some((tried, found)) = better else { break };
        (seconds, now) = (tried, found);
        if longest * scale < FINISHED {
            break;
        }
    }
    let normal = NormalInverse {
        chosen: chosen.to_vec(),
        inverse: normal_inverse(&now, chosen)?,
    };
    // The residual of a fit without a point is its residual over one less its leverage.
    let unseen = |(residual, slopes): &(f64, Parts)| (residual / (1.0 - normal.leverage(slopes)).max(1e-9)).powi(2);
    Some(FittedParts {
        seconds,
        error: now.iter().map(unseen).sum(),
        normal,
    })
}

impl ThroughputCurve {
    /// The best through points; none where they do not tell parts apart.
    ///
    /// A gateway's bytes are left out only where no curve with them fits. They limit few configurations, and what one
    /// configuration alone shows is lost when it is left out: by such errors no curve with that part is ever the best.
    pub fn through(points: &[MeasuredPoint], known: KnownLimits) -> Option<Self> {
        Self::best(points, known, GATEWAY_BYTES).or_else(|| Self::best(points, known, 0))
    }

    /// The best of those that have some parts.
    fn best(points: &[MeasuredPoint], known: KnownLimits, needed: usize) -> Option<Self> {
        // Known limits alone may say everything.
        let fewest = usize::from(points.iter().any(|point| known.bound(point.configuration).is_none()));
        let mut best: Option<Self> = None;
        for crowding in CROWDING {
            let weighed: Vec<WeighedPoint> = points
                .iter()
                .map(|point| WeighedPoint {
                    weights: weights(point.configuration, crowding),
                    known: known.seconds(point.configuration),
                    measured: 1.0 / point.rate,
                })
                .collect();
            for set in (fewest..1_usize << PARTS.len()).filter(|set| set & needed == needed) {
                let chosen: Vec<usize> = (0..PARTS.len()).filter(|part| set & (1 << part) != 0).collect();
                if chosen.len() >= points.len() {
                    continue;
                }
                for knee in KNEES {
                    let Some(fitted) = fitted(&weighed, &chosen, knee) else {
                        continue;
                    };
                    if best.as_ref().is_none_or(|best| fitted.error < best.fitted.error) {
                        let shape = Shape { knee, crowding };
                        best = Some(Self { shape, fitted, known });
                    }
                }
            }
        }
        best
    }

    /// How sharp its knee is, and how much dearer requests become where many are under way.
    pub fn shape(&self) -> (f64, f64) {
        (f64::from(self.shape.knee), self.shape.crowding)
    }

    /// Parts with the seconds that each takes.
    pub fn parts(&self) -> Vec<(&'static str, f64)> {
        let all = PARTS.iter().copied().zip(self.fitted.seconds);
        all.filter(|(_, seconds)| *seconds > 0.0).collect()
    }

    /// Seconds that a request of so many bytes takes of one gateway and one storage node, up to a factor.
    pub fn work(&self, size: f64) -> f64 {
        let [gateway, gateway_byte, node, node_byte, _] = self.fitted.seconds;
        let all = gateway + node + size * (gateway_byte + node_byte);
        if all > 0.0 { all } else { 1.0 }
    }

    fn time(&self, configuration: Configuration) -> (f64, Parts) {
        let weights = weights(configuration, self.shape.crowding);
        let known = self.known.seconds(configuration);
        time(&weights, known, &self.fitted.seconds, self.shape.knee)
    }

    /// Requests a second.
    pub fn at(&self, configuration: Configuration) -> f64 {
        1.0 / self.time(configuration).0
    }

    /// The known limit that ends first; none without any.
    pub fn bound(&self, configuration: Configuration) -> Option<KnownBound> {
        self.known.bound(configuration)
    }

    /// How much a point there would decide over the curve.
    pub fn leverage(&self, configuration: Configuration) -> f64 {
        self.fitted.normal.leverage(&self.time(configuration).1)
    }
}
