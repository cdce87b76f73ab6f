//! The published example of the method, and what this program makes of it.
//!
//! Comes in: `published/swift-advisor-2012.toml`, in which each figure says whether it was read in its source, was
//! given as a published result, or is inferred. Goes out: the method's answers beside the published ones.
//! Always holds: an inferred figure is called so wherever it is shown.

pub mod sampling;

use crate::model::estimate::Estimate;
use sampling::{SamplingCurve, magic_number};
use serde::Deserialize;
use std::fmt::Write;
use vocabulary::Fault;

/// The example.
const EXAMPLE: &str = include_str!("published/swift-advisor-2012.toml");

/// What the agreement is worth.
const REMARK: &str =
    "  Prices are inferred (list prices of 2012, from memory), for one proxy and three kinds of storage node, though
  the statement speaks of three proxy sizes; that the curves bend with a knee of 1 is assumed. All three, and the
  numbers that were tried, were chosen with the published results known: the agreement shows that the method can give
  them, and is no evidence that it predicts.";

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureOrigin {
    /// Read in the source.
    Source,
    /// Given as a published result.
    Statement,
    /// Concluded; not published.
    Inferred,
}

/// A figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// In the unit that its place says.
    pub value: f64,
    /// Where it comes from.
    pub origin: FigureOrigin,
    /// How it was concluded.
    #[serde(default)]
    pub note: String,
}

/// A page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPage {
    /// Its title.
    pub title: String,
    /// Where it was.
    pub address: String,
    /// What of it was read.
    pub read: String,
}

/// A series of sampling.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSampling {
    /// Which.
    pub name: String,
    /// Storage nodes at which throughput stops growing.
    pub saturation: PublishedFigure,
    /// Storage nodes at which MB/s are cheapest.
    pub cheapest: PublishedFigure,
    /// An hour.
    pub proxy_price: PublishedFigure,
    /// An hour.
    pub storage_price: PublishedFigure,
}

/// A cluster that could be chosen.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedChoice {
    /// In words.
    pub name: String,
    /// Its gateways.
    pub proxies: u32,
    /// Its storage nodes.
    pub storage: u32,
    /// An hour.
    pub proxy_price: PublishedFigure,
    /// An hour.
    pub storage_price: PublishedFigure,
    /// MB/s of one.
    pub proxy_network: PublishedFigure,
}

/// The numbers that were tried.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSteps {
    /// Storage nodes.
    pub values: Vec<u32>,
    /// Where they come from.
    pub origin: FigureOrigin,
    /// How they were concluded.
    pub note: String,
}

/// The balancer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedBalancer {
    /// MB/s.
    pub cap: PublishedFigure,
}

/// The whole example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedExample {
    /// Its name.
    pub name: String,
    /// Its sources.
    pub page: Vec<PublishedPage>,
    /// Series of sampling.
    pub sampling: Vec<PublishedSampling>,
    /// Numbers that were tried.
    pub steps: PublishedSteps,
    /// One balancer.
    pub balancer: PublishedBalancer,
    /// MB/s that were wanted.
    pub goal: PublishedFigure,
    /// Clusters to choose from.
    pub choice: Vec<PublishedChoice>,
}

/// What the method makes of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingOutcome {
    /// Where throughput stops.
    pub saturation: f64,
    /// Where MB/s are cheapest, of the numbers that were tried.
    pub cheapest: u32,
    /// By how much the next best number is dearer: less than the error of a measurement makes both alike.
    pub margin: f64,
}

/// What the method makes of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceOutcome {
    /// MB/s of one gateway with its storage nodes.
    pub of_gateway: Estimate,
    /// MB/s behind one balancer.
    pub behind_one_balancer: Estimate,
    /// Balancers for the goal.
    pub balancers: u32,
    /// An hour, without balancers.
    pub price: f64,
}

impl PublishedExample {
    /// The one that comes with the program.
    pub fn built_in() -> Result<Self, Fault> {
        toml::from_str(EXAMPLE).map_err(|error| Fault::caller(format!("the published example: {error}")))
    }

    /// Sampling, with a knee of 1.
    pub fn sample(&self, series: &PublishedSampling) -> Option<SamplingOutcome> {
        // Only the place of the knee is published: throughput is counted in what the gateway bears.
        let curve = SamplingCurve {
            gateway: 1.0,
            storage: 1.0 / series.saturation.value,
            knee: 1.0,
        };
        let steps = curve.steps(&self.steps.values, series.proxy_price.value, series.storage_price.value);
        let best = magic_number(&steps)?;
        let others = steps.iter().filter(|step| step.nodes != best.nodes);
        let next = others.map(|step| step.cost).fold(f64::INFINITY, f64::min);
        Some(SamplingOutcome {
            saturation: curve.saturation(),
            cheapest: best.nodes,
            margin: next / best.cost - 1.0,
        })
    }

    /// Optimisation. A cluster was proposed for the goal, so one gateway of it less does not reach it: that bounds what
    /// a gateway with its storage nodes bears from both sides.
    pub fn choose(&self, choice: &PublishedChoice) -> ChoiceOutcome {
        let (goal, cap) = (self.goal.value, self.balancer.cap.value);
        let least = goal / f64::from(choice.proxies);
        let most = (goal / f64::from(choice.proxies - 1)).min(choice.proxy_network.value);
        let of_gateway = Estimate {
            value: (least + most) / 2.0,
            low: least,
            high: most,
        };
        let proxies = f64::from(choice.proxies);
        ChoiceOutcome {
            of_gateway,
            behind_one_balancer: Estimate::least([of_gateway.map(|each| each * proxies), Estimate::exact(cap)]),
            balancers: (goal / cap).ceil() as u32,
            price: proxies * choice.proxy_price.value + f64::from(choice.storage) * choice.storage_price.value,
        }
    }

    /// Everything, in words.
    pub fn text(&self) -> String {
        let mut text = format!("{}: the method on its published example\n\nSources:\n", self.name);
        let mut say = |line: String| {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{line}");
        };
        for page in &self.page {
            say(format!("  {}\n    {} (read: {})", page.title, page.address, page.read));
        }
        say("\nSampling: where throughput stops, and where MB/s are cheapest".to_owned());
        for series in &self.sampling {
            let Some(found) = self.sample(series) else { continue };
            let (saturation, cheapest) = (series.saturation.value, series.cheapest.value);
            let verdict = match f64::from(found.cheapest) == cheapest {
                true => "the same",
                false => "DIFFERENT",
            };
            say(format!(
                "  {}: stops at N = {saturation} (given), cheapest at N = {}, published {cheapest}: {verdict}; the next best \
                 is {:.1} % dearer",
                series.name,
                found.cheapest,
                found.margin * 100.0
            ));
        }
        say(format!(
            "  Numbers that were tried: {:?} (inferred: {})",
            self.steps.values, self.steps.note
        ));
        say(REMARK.to_owned());
        say(format!(
            "\nOptimisation: {} MB/s, one balancer passes on {} MB/s",
            self.goal.value, self.balancer.cap.value
        ));
        let mut cheapest: Option<(f64, &str)> = None;
        for choice in &self.choice {
            let found = self.choose(choice);
            say(format!(
                "  {}: a gateway with its nodes bears {:.1} to {:.1} MB/s (inferred); behind one balancer {:.0} MB/s, the \
                 balancer is the bottleneck; {} balancers reach the goal; {:.2} an hour without them",
                choice.name,
                found.of_gateway.low,
                found.of_gateway.high,
                found.behind_one_balancer.value,
                found.balancers,
                found.price
            ));
            if cheapest.is_none_or(|(price, _)| found.price < price) {
                cheapest = Some((found.price, &choice.name));
            }
        }
        if let Some((_, name)) = cheapest {
            say(format!(
                "  Choice: {name}, by prices that are inferred. Which one was published could not be read."
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{FigureOrigin, PublishedExample};

    #[test]
    fn sampling_finds_the_published_numbers() {
        let example = PublishedExample::built_in().unwrap();
        for series in &example.sampling {
            let found = example.sample(series).unwrap();
            assert!((found.saturation - series.saturation.value).abs() < 1e-9);
            assert_eq!(f64::from(found.cheapest), series.cheapest.value, "{}", series.name);
        }
    }

    #[test]
    fn the_balancer_is_the_bottleneck_of_both_choices() {
        let example = PublishedExample::built_in().unwrap();
        let found: Vec<_> = example.choice.iter().map(|choice| example.choose(choice)).collect();
        for (one, choice) in found.iter().zip(&example.choice) {
            assert!((one.behind_one_balancer.value - 140.0).abs() < 1e-9 && one.balancers == 2);
            let all = one.of_gateway.map(|each| each * f64::from(choice.proxies));
            assert!(all.holds(175.0) && all.value > 175.0);
        }
        assert!(found[0].price < found[1].price);
    }

    #[test]
    fn what_was_inferred_is_called_so() {
        let example = PublishedExample::built_in().unwrap();
        for series in &example.sampling {
            assert_eq!(series.proxy_price.origin, FigureOrigin::Inferred);
            assert!(!series.proxy_price.note.is_empty());
        }
        let text = example.text();
        assert!(
            text.contains("inferred") && text.contains("could not be read") && !text.contains("DIFFERENT"),
            "{text}"
        );
    }
}
