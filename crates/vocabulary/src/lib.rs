//! The words of object storage, as types that cannot be wrong.
//!
//! Comes in: bytes and strings from requests, file names, ring and configuration files. Goes out:
//! [`Timestamp`], [`HashPrefix`] and [`PathHash`], [`Policy`], [`ByteRange`], limits and metadata rules.
//! Always holds: a value that exists is valid; printing and parsing are inverse.
//! Deliberately absent: input, output, clocks, randomness, runtimes.
//!
//! | question | file |
//! |---|---|
//! | when was it written, and how is that spelled | `timestamp.rs` |
//! | how is a path hashed and where does it live on a disk | `hash_path.rs` |
//! | account, container and object names and URL paths | `names.rs` |
//! | storage policies of `swift.conf` | `policy.rs` |
//! | `Range` headers | `range.rs` |
//! | `If-*` headers | `conditional.rs` |
//! | which headers are metadata, and whose | `metadata.rs` |
//! | header names beyond ASCII | `header_name.rs` |
//! | how long and how many | `limits.rs` |
//! | partitions, device numbers, byte counts | `number.rs` |
//! | which addresses does an operator mean | `network.rs` |
//! | bytes in hexadecimal | `hex.rs` |
//! | whose failure it is, and whether trying again helps | `fault.rs` |
//! | dates and times, and how they are spelled | `calendar.rs` |
//! | may an object go: S3's object lock | `object_lock.rs` |
//! | which parts an object is made of | `part_numbers.rs` |
//! | how many processors a list of Linux names | `processors.rs` |

pub mod calendar;
pub mod conditional;
pub mod expiry_queue;
pub mod fault;
pub mod hash_path;
pub mod header_name;
pub mod hex;
pub mod limits;
pub mod markup;
pub mod metadata;
pub mod names;
pub mod network;
pub mod number;
pub mod object_lock;
pub mod part_numbers;
pub mod policy;
pub mod processors;
pub mod range;
pub mod timestamp;

pub use conditional::{Conditions, Outcome};
pub use fault::{Fault, FaultKind};
pub use hash_path::{HashPrefix, PathHash};
pub use limits::Limits;
pub use names::{EntityPath, NameError};
pub use network::{IpNetwork, IpNetworkError, IpNetworks};
pub use number::{ByteCount, DeviceId, Partition};
pub use part_numbers::PartNumbers;
pub use policy::{Policies, Policy, PolicyIndex, PolicyKind};
pub use range::{ByteRange, RangeSet};
pub use timestamp::Timestamp;
