//! What can be wrong with a ring or builder file. Every message says what, and what to do.

use pickle::PickleError;
use thiserror::Error;
use vocabulary::Partition;

/// Why a ring file was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// Not a gzip file at all.
    #[error("ring is not a gzip file: name the *.ring.gz file that swift-ring-builder wrote")]
    NotGzip,
    /// The gzip stream or the content ends too soon.
    #[error("ring is truncated ({what}): copy it again from the builder host")]
    Truncated {
        /// What is cut short.
        what: &'static str,
    },
    /// The gzip stream does not inflate, or its CRC is wrong.
    #[error("ring is corrupt: it does not inflate; copy it again from the builder host")]
    Damaged,
    /// A checksum inside a version 2 ring is wrong.
    #[error("ring is corrupt: checksum of section `{section}` does not match; copy it again from the builder host")]
    Checksum {
        /// The section.
        section: String,
    },
    /// Inflates beyond what any ring needs.
    #[error("ring inflates to more than {limit} bytes: this is no ring")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// Inflates, but is something else.
    #[error(
        "file is no ring (it does not begin with R1NG): name a *.ring.gz file; pickled rings from before Swift 1.7 must be written again with `swift-ring-builder FILE.builder write_ring`"
    )]
    NotARing,
    /// A format version that is not known.
    #[error("ring has format version {version}, only 1 and 2 are known: write it again with `--format-version 1`")]
    Version {
        /// The version found.
        version: u16,
    },
    /// The JSON in it is wrong.
    #[error(
        "ring is corrupt: its {section} cannot be read ({detail}); write it again with `swift-ring-builder FILE.builder write_ring`"
    )]
    Json {
        /// Which JSON.
        section: &'static str,
        /// What the JSON reader says.
        detail: String,
    },
    /// A version 2 section is missing or outside the file.
    #[error(
        "ring is corrupt: section `{section}` is missing or lies outside the file; copy it again from the builder host"
    )]
    Section {
        /// The section.
        section: &'static str,
    },
    /// A part_shift that no ring can have.
    #[error("ring has part_shift {part_shift}, possible are 1 to 32: write it again from its builder file")]
    PartShift {
        /// What was found.
        part_shift: u64,
    },
    /// A next part power that no step of an increase makes.
    #[error(
        "ring has next_part_power {next} beside part power {part_power}: possible are none, {part_power} and {}; write it again from its builder file",
        part_power + 1
    )]
    NextPartPower {
        /// The part power.
        part_power: u32,
        /// What was found.
        next: i64,
    },
    /// A width of device ids that is not 2, 4 or 8.
    #[error("ring has device ids of {bytes} bytes, possible are 2, 4 and 8")]
    DeviceIdBytes {
        /// What was found.
        bytes: u64,
    },
    /// A ring that was never rebalanced.
    #[error("ring has no partitions assigned: run `swift-ring-builder FILE.builder rebalance` and copy the ring again")]
    Empty,
    /// A partition is assigned to a device the ring does not have.
    #[error(
        "ring is corrupt: partition {partition} replica {replica} is on device {device}, which the ring does not have; write it again from its builder file"
    )]
    UnknownDevice {
        /// The partition.
        partition: Partition,
        /// The replica.
        replica: usize,
        /// The id of the missing device.
        device: u64,
    },
    /// A device stands at the wrong place of the list.
    #[error("ring is corrupt: the device at place {place} has id {id}; write it again from its builder file")]
    DeviceId {
        /// The place in the list.
        place: usize,
        /// The id found there.
        id: u32,
    },
    /// A row other than the last is not full, or there are more devices than ids.
    #[error("ring is corrupt: its partition table has the wrong shape; write it again from its builder file")]
    Shape,
    /// A ring whose ids have four bytes, for format 1.
    #[error("Ring v1 only supports 2-byte dev IDs")]
    NeedsVersion2,
}

/// Why a builder refused a file or a request.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BuilderError {
    /// The file is no pickle of plain data.
    #[error("builder file cannot be read: {0}; restore it from the backups folder beside it")]
    Pickle(PickleError),
    /// A file with more than any builder whose ring servers read.
    #[error("builder file is too large to be a builder: {0}; restore it from the backups folder beside it")]
    LargeFile(PickleError),
    /// A field is missing or of the wrong kind.
    #[error(
        "builder file is corrupt: field `{field}` is missing or wrong; restore it from the backups folder beside it"
    )]
    Field {
        /// The field.
        field: &'static str,
    },
    /// A next part power that no step of an increase makes.
    #[error(
        "builder has next_part_power {next} beside part power {part_power}: possible are none, {part_power} and {}; restore it from the backups folder beside it",
        part_power + 1
    )]
    NextPartPower {
        /// The part power.
        part_power: u32,
        /// What was found.
        next: i64,
    },
    /// A part power outside 0 to 31.
    #[error("part power {part_power} is impossible: choose 0 to 31 (10 for a laptop, 16 to 20 for a cluster)")]
    PartPower {
        /// What was asked for.
        part_power: u32,
    },
    /// A table larger than servers read.
    #[error(
        "part power {part_power} with {replicas} replicas is too large: its builder needs {gib} of memory, and servers read no ring of that size; choose {most} or less (16 to 20 for a cluster)"
    )]
    TooLarge {
        /// What was asked for.
        part_power: u32,
        /// With so many replicas.
        replicas: f64,
        /// The memory that its builder would need.
        gib: String,
        /// The largest part power that servers read with so many replicas.
        most: u32,
    },
    /// A table for which the process gets no memory.
    #[error(
        "part power {part_power} with {replicas} replicas needs {gib} of memory, more than this process gets: choose a smaller part power (16 to 20 for a cluster), or a machine with more memory"
    )]
    Memory {
        /// What was asked for.
        part_power: u32,
        /// With so many replicas.
        replicas: f64,
        /// The memory needed.
        gib: String,
    },
    /// A replica count below one or not a number.
    #[error("replica count {replicas} is impossible: choose 1 or more (3 is usual)")]
    Replicas {
        /// What was asked for.
        replicas: f64,
    },
    /// A device with a weight that is negative or no number.
    #[error("weight {weight} of device {device} is impossible: choose 0 or more")]
    Weight {
        /// The weight.
        weight: f64,
        /// The device's name.
        device: String,
    },
    /// The same address and name twice.
    #[error("device {device} at {ip}:{port} is in the ring already, as device {id}")]
    Duplicate {
        /// The device that has them already.
        id: u32,
        /// The device's name.
        device: String,
        /// Its address.
        ip: String,
        /// Its port.
        port: u16,
    },
    /// More replicas than devices that have weight.
    #[error(
        "{replicas} replicas need as many devices with weight, the ring has {devices}: add devices or ask for fewer replicas"
    )]
    TooFewDevices {
        /// Replicas asked for.
        replicas: f64,
        /// Devices with weight.
        devices: usize,
    },
    /// An id beyond those a ring can hold.
    #[error("device id {id} is out of range: a ring holds ids up to {most}")]
    IdRange {
        /// The id asked for.
        id: u32,
        /// The largest that is possible.
        most: u32,
    },
    /// An id that is taken.
    #[error("device id {id} is taken")]
    IdTaken {
        /// The id.
        id: u32,
    },
    /// There is no device of that id.
    #[error("there is no device {id} in the ring")]
    NoDevice {
        /// The id.
        id: u32,
    },
    /// A device that leaves with the next rebalance cannot be changed.
    #[error("cannot set {what} of device {id}: it is marked for removal")]
    Removed {
        /// What was to be changed.
        what: &'static str,
        /// The device.
        id: u32,
    },
    /// An overload that is negative or no number.
    #[error("overload {overload} is impossible: choose a fraction of 0 or more (0.1 for ten percent)")]
    Overload {
        /// What was asked for.
        overload: f64,
    },
    /// A width of ids other than 2 or 4 bytes, or one too small for the ids there are.
    #[error("device ids of {bytes} bytes are impossible here: choose 2 (ids up to 65534) or 4")]
    DeviceIdBytes {
        /// What was asked for.
        bytes: u8,
    },
    /// No device has weight.
    #[error("no device of the ring has weight: add devices, or give one weight")]
    NoDevices,
    /// A table that breaks a rule of rings.
    #[error("ring is invalid: {0}")]
    InvalidTable(#[from] InvalidTable),
    /// Nothing placed yet.
    #[error("no partitions are placed yet: rebalance first")]
    NotPlaced,
    /// What was placed makes no ring.
    #[error(transparent)]
    Ring(#[from] RingError),
}

impl From<PickleError> for BuilderError {
    fn from(error: PickleError) -> Self {
        match error {
            PickleError::TooLarge { .. } => BuilderError::LargeFile(error),
            _ => BuilderError::Pickle(error),
        }
    }
}

/// Which rule of rings a builder's table breaks.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidTable {
    /// What the devices say they hold is not what the table has.
    #[error("the devices count {counted} replicas of partitions, the table has {cells}")]
    Counts {
        /// The sum over the devices.
        counted: u64,
        /// The cells of the table.
        cells: u64,
    },
    /// A device holds a partition twice.
    #[error("partition {partition} is assigned twice to device {device}")]
    Doubled {
        /// The partition.
        partition: Partition,
        /// The device.
        device: u32,
        /// All devices of the partition, replica by replica.
        devices: Vec<u32>,
    },
    /// A cell names no device of the ring.
    #[error("partition {partition}, replica {replica} is assigned to no device")]
    Unassigned {
        /// The partition.
        partition: Partition,
        /// The replica.
        replica: usize,
    },
    /// The rows have not the lengths that the replica count asks for.
    #[error("replica {replica} has {found} partitions where {wanted} belong")]
    Length {
        /// The row.
        replica: usize,
        /// Its length.
        found: usize,
        /// The length it should have.
        wanted: usize,
    },
}
