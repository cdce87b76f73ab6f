//! What a cluster is asked to do, and how objects are protected in it.

use serde::Serialize;

/// Requests of one kind and size: one row of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeShare {
    /// Bytes of an object.
    pub size: f64,
    /// Of all objects, from 0 to 1; all of them add up to 1.
    pub share: f64,
}

/// What is asked for, on average.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestMix {
    /// Of all requests, from 0 to 1, that read an object.
    pub reads: f64,
    /// Those that write one.
    pub writes: f64,
    /// Those that delete one.
    pub deletes: f64,
    /// How large objects are.
    pub sizes: Vec<SizeShare>,
    /// Objects that are stored, on whose number the share of cached metadata depends.
    pub objects: f64,
    /// Containers that are written to.
    pub containers: f64,
}

impl RequestMix {
    /// Bytes of an object, on average.
    pub fn mean_size(&self) -> f64 {
        self.sizes.iter().map(|one| one.size * one.share).sum()
    }

    /// Bytes of bodies for each request, on average.
    pub fn bytes_per_request(&self) -> f64 {
        (self.reads + self.writes) * self.mean_size()
    }
}

/// How an object outlives the loss of drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Whole copies.
    Replicas(u32),
    /// Fragments: `data` of them suffice.
    Erasure {
        /// As many fragments suffice.
        data: u32,
        /// As many are there beside them.
        parity: u32,
    },
}

impl Protection {
    /// Pieces of an object, each on a drive of its own.
    pub fn pieces(self) -> u32 {
        match self {
            Self::Replicas(count) => count,
            Self::Erasure { data, parity } => data + parity,
        }
    }

    /// Pieces that are read for an object.
    pub fn pieces_read(self) -> u32 {
        match self {
            Self::Replicas(_) => 1,
            Self::Erasure { data, .. } => data,
        }
    }

    /// The share of an object that a piece is.
    pub fn piece_share(self) -> f64 {
        match self {
            Self::Replicas(_) => 1.0,
            Self::Erasure { data, .. } => 1.0 / f64::from(data),
        }
    }

    /// Pieces that must be stored before a write is acknowledged: a majority of replicas; of fragments one more than
    /// suffice (OpenStack's rule for the usual codes).
    pub fn write_quorum(self) -> u32 {
        match self {
            Self::Replicas(count) => quorum::size(count.max(1) as usize) as u32,
            Self::Erasure { data, parity } => (data + 1).min(data + parity),
        }
    }

    /// Pieces that may be lost before the object is.
    pub fn losses_survived(self) -> u32 {
        match self {
            Self::Replicas(count) => count.saturating_sub(1),
            Self::Erasure { parity, .. } => parity,
        }
    }

    /// Bytes stored for each byte of an object.
    pub fn overhead(self) -> f64 {
        f64::from(self.pieces()) * self.piece_share()
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Replicas(count) => write!(formatter, "{count} replicas"),
            Self::Erasure { data, parity } => write!(formatter, "erasure code {data}+{parity}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Protection;

    #[test]
    fn quorums_are_those_of_the_cluster() {
        let replicas = [1, 2, 3, 4, 5].map(|count| Protection::Replicas(count).write_quorum());
        assert_eq!(replicas, [1, 1, 2, 2, 3]);
        let code = Protection::Erasure { data: 8, parity: 4 };
        assert_eq!((code.write_quorum(), code.pieces(), code.losses_survived()), (9, 12, 4));
        assert!((code.overhead() - 1.5).abs() < 1e-12);
    }
}
