//! What the software costs for each request, how sure that is, and what it was measured with.

use super::cluster::ClusterModel;
use super::estimate::Estimate;
use super::workload::RequestMix;
use serde::{Deserialize, Serialize};
use vocabulary::Fault;

/// The file that comes with the program.
pub(crate) const BUILT_IN: &str = include_str!("rates.toml");

/// A figure, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// In seconds, seconds a byte, operations or bytes.
    pub value: f64,
    /// How far it may be off, relative to it (95 %).
    pub error: f64,
    /// Which run, page or assumption it comes from.
    pub source: String,
}

impl Rate {
    /// The figure with its band.
    pub fn estimate(&self) -> Estimate {
        Estimate::with_error(self.value, self.error)
    }
}

/// Least and most of a parameter that were measured.
pub type MeasuredRange = (f64, f64);

/// What was measured. A parameter without a range was not looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRanges {
    /// Bytes.
    pub object_size: Option<MeasuredRange>,
    /// Their number.
    pub gateways: Option<MeasuredRange>,
    /// Processors of one.
    pub gateway_cores: Option<MeasuredRange>,
    /// Their number.
    pub storage_nodes: Option<MeasuredRange>,
    /// Drives in one.
    pub drives_per_node: Option<MeasuredRange>,
    /// Of all requests, from 0 to 1.
    pub write_share: Option<MeasuredRange>,
    /// Replicas, or fragments.
    pub pieces: Option<MeasuredRange>,
}

impl MeasuredRanges {
    /// Every range with its name.
    fn all(&self) -> [(&'static str, Option<MeasuredRange>); 7] {
        [
            ("object_size", self.object_size),
            ("gateways", self.gateways),
            ("gateway_cores", self.gateway_cores),
            ("storage_nodes", self.storage_nodes),
            ("drives_per_node", self.drives_per_node),
            ("write_share", self.write_share),
            ("pieces", self.pieces),
        ]
    }
}

/// All figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwareRates {
    /// What they are called in answers.
    pub name: String,
    /// Seconds of a gateway's processor for a read.
    pub gateway_read_cpu: Rate,
    /// The same, for each byte.
    pub gateway_read_cpu_per_byte: Rate,
    /// Seconds of a gateway's processor for a write.
    pub gateway_write_cpu: Rate,
    /// The same, for each byte.
    pub gateway_write_cpu_per_byte: Rate,
    /// Seconds of a storage node's processor for a piece that is read.
    pub storage_read_cpu: Rate,
    /// The same, for each byte of a piece.
    pub storage_read_cpu_per_byte: Rate,
    /// Seconds of a storage node's processor for a piece that is written.
    pub storage_write_cpu: Rate,
    /// The same, for each byte of a piece.
    pub storage_write_cpu_per_byte: Rate,
    /// Operations of a drive for a piece that is read, without a cache.
    pub read_operations: Rate,
    /// The same, when metadata is cached or on flash.
    pub read_operations_indexed: Rate,
    /// Operations of a drive for a piece that is written.
    pub write_operations: Rate,
    /// The same, when metadata is on flash.
    pub write_operations_indexed: Rate,
    /// Operations of a listing's drive for a row, in each copy of the listing.
    pub listing_operations: Rate,
    /// Bytes of memory that keep the metadata of a piece.
    pub metadata_bytes: Rate,
    /// What they were measured with.
    pub measured: MeasuredRanges,
}

/// A parameter that lies outside of what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extrapolation {
    /// `object size in bytes`, for example.
    pub parameter: &'static str,
    /// What the answer is about.
    pub asked: f64,
    /// What was measured, from and to.
    pub measured: MeasuredRange,
}

impl std::fmt::Display for Extrapolation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to) = self.measured;
        let (parameter, asked) = (self.parameter, self.asked);
        write!(
            formatter,
            "{parameter}: {asked} was asked about, {from} to {to} was measured"
        )
    }
}

/// Which bound of the bands a calculation uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Every figure as it is.
    Likely,
    /// The software costs as little as it may.
    Cheap,
    /// The software costs as much as it may.
    Dear,
}

impl Bound {
    /// One end of a band, or the figure.
    pub fn of(self, rate: &Rate) -> f64 {
        let estimate = rate.estimate();
        match self {
            Self::Likely => estimate.value,
            Self::Cheap => estimate.low,
            Self::Dear => estimate.high,
        }
    }
}

impl SoftwareRates {
    /// Those that come with the program.
    pub fn built_in() -> Result<Self, Fault> {
        Self::read(BUILT_IN).map_err(|fault| fault.within("the built-in rates"))
    }

    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Self, Fault> {
        let rates: Self = toml::from_str(text).map_err(|error| {
            let why = error.to_string();
            Fault::caller(format!(
                "{}: `martlet advise rates` prints what is expected",
                why.trim_end()
            ))
        })?;
        for (name, rate) in rates.all() {
            let is_right = rate.value.is_finite() && rate.value > 0.0 && (0.0..=100.0).contains(&rate.error);
            if !is_right {
                let Rate { value, error, .. } = rate;
                return Err(Fault::caller(format!(
                    "{name}: value = {value}, error = {error}: expected a value above 0 and an error of 0 to 100"
                )));
            }
        }
        for (name, range) in rates.measured.all() {
            if let Some((from, until)) = range.filter(|(from, until)| !(*from >= 0.0 && until >= from)) {
                return Err(Fault::caller(format!(
                    "measured: {name} = [{from}, {until}]: expected the least and the most that were measured, 0 or more"
                )));
            }
        }
        Ok(rates)
    }

    /// As a file that [`SoftwareRates::read`] reads.
    pub fn text(&self) -> String {
        // Rust and TOML write numbers alike, and texts without control characters.
        let quoted = |text: &str| {
            let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
        };
        let mut text = format!("name = {}\n", quoted(&self.name));
        for (name, Rate { value, error, source }) in self.all() {
            let source = quoted(source);
            text += &format!("\n[{name}]\nvalue = {value:?}\nerror = {error:?}\nsource = {source}\n");
        }
        text += "\n[measured]\n";
        for (name, range) in self.measured.all() {
            if let Some((from, until)) = range {
                text += &format!("{name} = [{from:?}, {until:?}]\n");
            }
        }
        text
    }

    /// Every figure with its name.
    pub fn all(&self) -> [(&'static str, &Rate); 14] {
        [
            ("gateway_read_cpu", &self.gateway_read_cpu),
            ("gateway_read_cpu_per_byte", &self.gateway_read_cpu_per_byte),
            ("gateway_write_cpu", &self.gateway_write_cpu),
            ("gateway_write_cpu_per_byte", &self.gateway_write_cpu_per_byte),
            ("storage_read_cpu", &self.storage_read_cpu),
            ("storage_read_cpu_per_byte", &self.storage_read_cpu_per_byte),
            ("storage_write_cpu", &self.storage_write_cpu),
            ("storage_write_cpu_per_byte", &self.storage_write_cpu_per_byte),
            ("read_operations", &self.read_operations),
            ("read_operations_indexed", &self.read_operations_indexed),
            ("write_operations", &self.write_operations),
            ("write_operations_indexed", &self.write_operations_indexed),
            ("listing_operations", &self.listing_operations),
            ("metadata_bytes", &self.metadata_bytes),
        ]
    }

    /// What of a question lies outside of what was measured.
    pub fn extrapolations(&self, cluster: &ClusterModel, mix: &RequestMix) -> Vec<Extrapolation> {
        let measured = &self.measured;
        let sizes = mix.sizes.iter().map(|one| one.size);
        let (least, most) = (sizes.clone().fold(f64::INFINITY, f64::min), sizes.fold(0.0, f64::max));
        let asked = [
            ("object size in bytes", least, measured.object_size),
            ("object size in bytes", most, measured.object_size),
            (
                "number of gateways",
                f64::from(cluster.gateways.count),
                measured.gateways,
            ),
            ("cores of a gateway", cluster.gateways.cores, measured.gateway_cores),
            (
                "number of storage nodes",
                f64::from(cluster.storage.count),
                measured.storage_nodes,
            ),
            (
                "drives of a storage node",
                f64::from(cluster.storage.drives),
                measured.drives_per_node,
            ),
            ("share of writes", mix.writes, measured.write_share),
            (
                "pieces of an object",
                f64::from(cluster.protection.pieces()),
                measured.pieces,
            ),
        ];
        let mut outside: Vec<Extrapolation> = vec![];
        for (parameter, asked, range) in asked {
            let Some(measured @ (from, to)) = range else { continue };
            let is_outside = asked < from || asked > to;
            let one = Extrapolation {
                parameter,
                asked,
                measured,
            };
            if is_outside && !outside.contains(&one) {
                outside.push(one);
            }
        }
        outside
    }
}

#[cfg(test)]
mod tests {
    use super::SoftwareRates;

    #[test]
    fn each_built_in_rate_has_a_source() {
        let rates = SoftwareRates::built_in().unwrap();
        for (name, rate) in rates.all() {
            assert!(rate.source.len() > 10, "{name}");
        }
    }

    #[test]
    fn a_wrong_rate_is_named() {
        let text = super::BUILT_IN.replace("value = 3.0e-5", "value = -1.0");
        let why = SoftwareRates::read(&text).unwrap_err().what;
        assert!(why.contains("gateway_read_cpu: value = -1"), "{why}");
        let text = super::BUILT_IN.replace("storage_nodes = [1, 4]", "storage_nodes = [4, 1]");
        let why = SoftwareRates::read(&text).unwrap_err().what;
        assert!(
            why.contains("measured: storage_nodes = [4, 1]: expected the least"),
            "{why}"
        );
        let why = SoftwareRates::read("nmae = 1").unwrap_err().what;
        assert!(why.contains("nmae"), "{why}");
    }
}
