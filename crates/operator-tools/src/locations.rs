//! Where a ring says something is: its partition, its nodes, and the commands to look there.
//!
//! As `swift-get-nodes`, `swift-object-info` and the like print it, so that it can be pasted into a shell.

use crate::console::Console;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use placement::{Device, Ring};
use std::io;
use vocabulary::{Partition, PathHash, PolicyIndex};

/// What Python's `quote` leaves as it is.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'_')
    .remove(b'.')
    .remove(b'-')
    .remove(b'~');

/// Something that a ring places.
pub(crate) struct Placed<'a> {
    /// The ring.
    pub(crate) ring: &'a Ring,
    /// `accounts`, `containers`, `objects`, `objects-1`.
    pub(crate) directory: &'a str,
    /// Account, container, object: as many as there are.
    pub(crate) parts: &'a [&'a str],
    /// Their hash.
    pub(crate) hash: PathHash,
    /// The policy header that an object server needs.
    pub(crate) policy: Option<PolicyIndex>,
}

/// What is printed of a place.
pub(crate) struct LocationListing<'a> {
    /// The ring.
    pub(crate) ring: &'a Ring,
    /// `accounts`, `containers`, `objects`, `objects-1`; none where the ring does not say what it places.
    pub(crate) directory: Option<&'a str>,
    /// The partition.
    pub(crate) partition: Partition,
    /// What stands behind the partition in a request: the quoted names, with their slashes.
    pub(crate) path: &'a str,
    /// The hash of what is looked for; none when only the partition is known.
    pub(crate) hash: Option<PathHash>,
    /// The policy header that an object server needs.
    pub(crate) policy: Option<PolicyIndex>,
    /// All handoffs, not only as many as there are replicas.
    pub(crate) all: bool,
}

/// Names as they stand in a URL.
pub(crate) fn quoted(name: &str) -> String {
    utf8_percent_encode(name, QUOTED).to_string()
}

impl Placed<'_> {
    /// Prints all of it.
    pub(crate) fn print(&self, console: &mut Console<'_>) -> io::Result<()> {
        let path: String = self.parts.iter().map(|part| format!("/{}", quoted(part))).collect();
        let listing = LocationListing {
            ring: self.ring,
            directory: Some(self.directory),
            partition: self.ring.partition_of(&self.hash.0),
            path: &path,
            hash: Some(self.hash),
            policy: self.policy,
            all: false,
        };
        listing.print(console)
    }
}

impl LocationListing<'_> {
    /// Prints all of it.
    pub(crate) fn print(&self, console: &mut Console<'_>) -> io::Result<()> {
        let partition = self.partition;
        let primaries: Vec<&Device> = self.ring.primaries(partition);
        let most = if self.all { usize::MAX } else { primaries.len() };
        let handoffs: Vec<&Device> = self.ring.handoffs(partition).take(most).collect();
        let nodes = || {
            let first = primaries.iter().map(|device| (device, false));
            first.chain(handoffs.iter().map(|device| (device, true)))
        };
        let hash = self.hash.map_or_else(|| "None".to_owned(), |hash| hash.to_string());
        console.say(format_args!("Partition\t{partition}"))?;
        console.say(format_args!("Hash     \t{hash}\n"))?;
        for (device, is_handoff) in nodes() {
            let mark = if is_handoff { "\t [Handoff]" } else { "" };
            let Device { ip, port, device, .. } = device;
            console.say(format_args!("Server:Port Device\t{ip}:{port} {device}{mark}"))?;
        }
        console.say("\n")?;
        let mark = |is_handoff| if is_handoff { " # [Handoff]" } else { "" };
        for (device, is_handoff) in nodes() {
            let request = self.request(device);
            console.say(format_args!("{request}{}", mark(is_handoff)))?;
        }
        console.say("\n\nUse your own device location of servers:")?;
        console.say("such as \"export DEVICE=/srv/node\"")?;
        for (device, is_handoff) in nodes() {
            let place = self.place(device);
            console.say(format_args!(
                "ssh {} \"ls -lah {place}\"{}",
                device.ip,
                mark(is_handoff)
            ))?;
        }
        console.say(
            "\nnote: `/srv/node*` is used as default value of `devices`, the real value is set in the config file on \
             each storage node.",
        )
    }

    fn place(&self, device: &Device) -> String {
        let (device, partition) = (&device.device, self.partition);
        let directory = self.directory.unwrap_or("objects");
        let place = format!("${{DEVICE:-/srv/node*}}/{device}/{directory}/{partition}");
        match self.hash {
            Some(hash) => format!("{place}/{}/{hash}", hash.suffix()),
            None => place,
        }
    }

    fn request(&self, device: &Device) -> String {
        let Device { ip, port, device, .. } = device;
        let host = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.clone()
        };
        let (partition, path) = (self.partition, self.path);
        let header = match self.policy {
            Some(index) => format!(" -H \"X-Backend-Storage-Policy-Index: {index}\""),
            None => String::new(),
        };
        format!("curl -g -I -XHEAD \"http://{host}:{port}/{device}/{partition}{path}\"{header} --path-as-is")
    }
}
