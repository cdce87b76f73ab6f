//! Ring files: which format a file has, and [`RingData`] from it and to it.

use crate::error::RingError;
use crate::ring_data::RingData;
use crate::{format_v1, format_v2, gzip};

impl RingData {
    /// Reads a `*.ring.gz` file of format 1 or 2.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do about it.
    pub fn from_bytes(file: &[u8]) -> Result<RingData, RingError> {
        let content = gzip::inflate(file)?;
        let rest = content.strip_prefix(b"R1NG").ok_or(RingError::NotARing)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(RingError::Truncated {
            what: "there is no format version",
        })?;
        match u16::from_be_bytes(*version) {
            1 => format_v1::read(rest),
            2 => format_v2::read(&content),
            version => Err(RingError::Version { version }),
        }
    }

    /// The format of a `*.ring.gz` file, whether or not this version reads it.
    ///
    /// # Errors
    /// When it is no ring.
    pub fn format_of(file: &[u8]) -> Result<u16, RingError> {
        let content = gzip::inflate(file)?;
        let rest = content.strip_prefix(b"R1NG").ok_or(RingError::NotARing)?;
        let version = rest.first_chunk::<2>().ok_or(RingError::Truncated {
            what: "there is no format version",
        })?;
        Ok(u16::from_be_bytes(*version))
    }

    /// The ring as a `*.ring.gz` file of format 1, which every OpenStack Swift reads.
    ///
    /// # Errors
    /// When a device id needs more than two bytes.
    pub fn to_bytes_v1(&self) -> Result<Vec<u8>, RingError> {
        Ok(gzip::deflate(&self.content_v1()?))
    }

    /// What format 1 holds before compression: byte for byte what OpenStack Swift writes.
    ///
    /// # Errors
    /// When a device id needs more than two bytes.
    pub fn content_v1(&self) -> Result<Vec<u8>, RingError> {
        format_v1::write(self)
    }

    /// The ring as a `*.ring.gz` file of format 2, which Swift reads from 2.36 on.
    pub fn to_bytes_v2(&self) -> Vec<u8> {
        format_v2::write(self)
    }
}
