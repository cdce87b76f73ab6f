//! Where a ring says something is: its partition, its nodes, and the commands to look there.
//!
//! As `swift-get-nodes`, `swift-object-info` and the like print it, so that it can be pasted into a shell.

use crate::console::Console;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use placement::{Device, Ring};
use std::io;
use vocabulary::{PathHash, PolicyIndex};

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
    /// What an object server must be told.
    pub(crate) policy: Option<PolicyIndex>,
}

impl Placed<'_> {
    /// Prints all of it.
    pub(crate) fn print(&self, console: &mut Console<'_>) -> io::Result<()> {
        let partition = self.ring.partition_of(&self.hash.0);
        let primaries: Vec<&Device> = self.ring.primaries(partition);
        let handoffs: Vec<&Device> = self.ring.handoffs(partition).take(primaries.len()).collect();
        let nodes = || {
            let first = primaries.iter().map(|device| (device, false));
            first.chain(handoffs.iter().map(|device| (device, true)))
        };
        console.say(format_args!("Partition\t{partition}"))?;
        console.say(format_args!("Hash     \t{}\n", self.hash))?;
        for (device, is_handoff) in nodes() {
            let mark = if is_handoff { "\t [Handoff]" } else { "" };
            let Device { ip, port, device, .. } = device;
            console.say(format_args!("Server:Port Device\t{ip}:{port} {device}{mark}"))?;
        }
        console.say("\n")?;
        let mark = |is_handoff| if is_handoff { " # [Handoff]" } else { "" };
        for (device, is_handoff) in nodes() {
            let request = self.request(device, partition);
            console.say(format_args!("{request}{}", mark(is_handoff)))?;
        }
        console.say("\n\nUse your own device location of servers:")?;
        console.say("such as \"export DEVICE=/srv/node\"")?;
        for (device, is_handoff) in nodes() {
            let (directory, suffix, hash) = (self.directory, self.hash.suffix(), self.hash);
            let Device { ip, device, .. } = device;
            let place = format!("${{DEVICE:-/srv/node*}}/{device}/{directory}/{partition}/{suffix}/{hash}");
            console.say(format_args!("ssh {ip} \"ls -lah {place}\"{}", mark(is_handoff)))?;
        }
        console.say(
            "\nnote: `/srv/node*` is used as default value of `devices`, the real value is set in the config file on \
             each storage node.",
        )
    }

    fn request(&self, device: &Device, partition: u32) -> String {
        let Device { ip, port, device, .. } = device;
        let host = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.clone()
        };
        let path: String = self
            .parts
            .iter()
            .map(|part| format!("/{}", utf8_percent_encode(part, QUOTED)))
            .collect();
        let header = match self.policy {
            Some(index) => format!(" -H \"X-Backend-Storage-Policy-Index: {index}\""),
            None => String::new(),
        };
        format!("curl -g -I -XHEAD \"http://{host}:{port}/{device}/{partition}{path}\"{header} --path-as-is")
    }
}
