//! How every command is said, and what it does: what `--help` and a wrong line print.
//!
//! Always holds: the first line is that of OpenStack's program, whose users know it by heart; the rest is our own.

/// What stands for the program's name.
const PROGRAM: &str = "PROGRAM";

/// A command and its usage.
pub struct UsagePage {
    /// Its name.
    pub name: &'static str,
    /// The words after the name, and what it does.
    text: &'static str,
    /// Whether it takes search values, which need a page of their own.
    searches: bool,
}

impl UsagePage {
    const fn new(name: &'static str, text: &'static str) -> UsagePage {
        UsagePage {
            name,
            text,
            searches: false,
        }
    }

    const fn searching(name: &'static str, text: &'static str) -> UsagePage {
        UsagePage {
            name,
            text,
            searches: true,
        }
    }

    /// The page for a program of that name.
    pub fn shown(&self, program: &str) -> String {
        format!("{}\n", self.text.replace(PROGRAM, program))
    }

    /// The page, and how devices are searched where the command does.
    pub fn with_search_values(&self, program: &str) -> String {
        match self.searches {
            true => format!("{}\n{SEARCH_VALUES}", self.shown(program)),
            false => self.shown(program),
        }
    }
}

/// The page of a command.
pub fn page(name: &str) -> Option<&'static UsagePage> {
    PAGES.iter().find(|page| page.name == name)
}

/// Everything: what `ring-builder` without a file prints.
pub fn overview(program: &str) -> String {
    let mut out = format!("{program} 1.3\n\n");
    for page in &PAGES {
        out.push_str(&page.shown(program));
        out.push('\n');
    }
    out.push_str(SEARCH_VALUES);
    let names: Vec<&str> = PAGES
        .iter()
        .map(|page| page.name)
        .filter(|name| !name.is_empty())
        .collect();
    out.push_str(&format!("\nCommands: {}\n", wrapped(&names, 10, 78)));
    out.push_str("Exit codes: 0 = done, 1 = done, but read the warning (or nothing was to be done), 2 = not done\n");
    out
}

/// Words in lines, those after the first indented.
fn wrapped(words: &[&str], indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for (place, word) in words.iter().enumerate() {
        if place > 0 && column + word.len() >= width {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

const PAGES: [UsagePage; 27] = [
    UsagePage::new(
        "",
        "PROGRAM <builder_file>
    Shows the ring and its devices: where each is, its weight, how many
    partitions it holds and how far that is from its share (balance, percent).
    The flag DEL marks a device that leaves with the next rebalance.",
    ),
    UsagePage::new(
        "add",
        "PROGRAM <builder_file> add
    [r<region>]z<zone>-<ip>:<port>[R<r_ip>:<r_port>]/<device_name>_<meta> <weight>
    [<the same for further devices> <weight>] ...

or

PROGRAM <builder_file> add
    --region <region> --zone <zone> --ip <ip or hostname> --port <port>
    [--replication-ip <ip or hostname>] [--replication-port <port>]
    --device <device_name> --weight <weight> [--meta <meta>]

    Adds devices. Replicators use <r_ip> and <r_port> when they are given. A
    weight says how much a device should hold compared with others: its size
    in GB is a good one. Partitions move with the next rebalance, so add all
    devices first.",
    ),
    UsagePage::new(
        "cancel_increase_partition_power",
        "PROGRAM <builder_file> cancel_increase_partition_power
    Takes back what prepare_increase_partition_power announced, as long as the
    power has not been increased. Run write_ring afterwards, bring the ring to
    all nodes, let swift-object-relinker clean up, then run
    finish_increase_partition_power.
    The relinker is OpenStack Swift's: Martlet has none yet.
    WITH CARE: steps out of order make objects unavailable.",
    ),
    UsagePage::new(
        "create",
        "PROGRAM <builder_file> create <part_power> <replicas> <min_part_hours>
    Makes a builder for 2^<part_power> partitions with <replicas> copies each.
    A partition moves again no sooner than <min_part_hours> hours after its last
    move: choose more than a pass of the replicators takes. The command `plan`
    proposes all three.",
    ),
    UsagePage::new(
        "dispersion",
        "PROGRAM <builder_file> dispersion <search_filter> [options]
    Shows how many partitions have more replicas in one place (region, zone,
    server, device) than they should.

    --verbose (-v)  a line for each place, by the number of replicas in it
    --recalculate   counts anew and saves the result in the builder
    --svg FILE      draws how full devices are and how replicas are spread

    <search_filter> is a regular expression for the beginning of place names:
    \"r\\d+z\\d+$\" selects zones, \".*\\-[^/]*$\" servers.

    Tier   the place
    Parts  replicas of partitions in it
    %      how many of them are too many
    Max    how many replicas of a partition it should have at most
    0 - N  partitions that have so many replicas there",
    ),
    UsagePage::new(
        "finish_increase_partition_power",
        "PROGRAM <builder_file> finish_increase_partition_power
    The last step: the ring no longer says that its power is being increased.
    Run it once swift-object-relinker has cleaned up on all nodes, then
    write_ring.
    The relinker is OpenStack Swift's: Martlet has none yet.
    WITH CARE: steps out of order make objects unavailable.",
    ),
    UsagePage::new(
        "increase_partition_power",
        "PROGRAM <builder_file> increase_partition_power
    Doubles the number of partitions; each new pair stays where the one was.
    Run it once swift-object-relinker has relinked all objects on all nodes,
    then write_ring.
    The relinker is OpenStack Swift's: Martlet has none yet.
    WITH CARE: steps out of order make objects unavailable.",
    ),
    UsagePage::searching(
        "list_parts",
        "PROGRAM <builder_file> list_parts <search-value> [<search-value>] ..

or

PROGRAM <builder_file> list_parts
    [--region <region>] [--zone <zone>] [--ip <ip or hostname>] [--port <port>]
    [--replication-ip <ip or hostname>] [--replication-port <port>]
    [--device <device_name>] [--meta <meta>] [--weight <weight>]

    Lists the partitions that the devices found hold, and how many of these
    devices hold each; those with most come first.",
    ),
    UsagePage::new(
        "plan",
        "PROGRAM <builder_file> plan [--drives N] [--drive-size SIZE] [--servers N]
    [--zones N] [--regions N] [--replicas N] [--final-drives N] [--inventory FILE]
    [--min-part-hours N] [--json] [--svg FILE]
    Proposes part power, replicas and zones and says why, and prints the commands
    that make the ring. Asks what it is not told. --svg draws what these commands
    would make of an inventory's servers. The inventory is TOML:

        final_drives = 200
        [[server]]
        region = 1
        zone = 2
        ip = \"10.0.2.1\"
        drives = 12
        drive_size = \"16TB\"",
    ),
    UsagePage::new(
        "prepare_increase_partition_power",
        "PROGRAM <builder_file> prepare_increase_partition_power
    Announces that the number of partitions will be doubled. Run write_ring
    afterwards, bring the ring to all nodes, let swift-object-relinker relink.
    The relinker is OpenStack Swift's: Martlet has none yet.
    WITH CARE: steps out of order make objects unavailable.",
    ),
    UsagePage::new(
        "pretend_min_part_hours_passed",
        "PROGRAM <builder_file> pretend_min_part_hours_passed
    Lets the next rebalance move partitions that moved a short while ago.
    WITH CARE: if replicators have not brought these to where they moved, a
    second move makes objects unavailable until they have.",
    ),
    UsagePage::searching(
        "ramp",
        "PROGRAM <builder_file> ramp <search-value> --max-move <SIZE>/h
    [--target-weight WEIGHT] [--stored SIZE | --used PERCENT] [--weight-unit SIZE]
    [--step-hours HOURS] [--json] [--svg FILE]
    Lays out the steps in which the devices found come in (or go out, with
    --target-weight 0) without more than SIZE moving per hour: the weights of each
    step, the bytes it moves and when the last one ends. --svg draws the bytes on
    each device before and after each step. Changes nothing.",
    ),
    UsagePage::new(
        "rebalance",
        "PROGRAM <builder_file> rebalance [options]
    Places partitions anew after changes, moves as little as needed, and writes
    builder and ring. Of each partition at most one replica moves, and none that
    moved within min_part_hours.",
    ),
    UsagePage::searching(
        "remove",
        "PROGRAM <builder_file> remove <search-value> [search-value ...] [--yes]

or

PROGRAM <builder_file> remove
    [--region <region>] [--zone <zone>] [--ip <ip or hostname>] [--port <port>]
    [--replication-ip <ip or hostname>] [--replication-port <port>]
    [--device <device_name>] [--meta <meta>] [--weight <weight>] [--yes]

    Takes devices that are gone out of the ring with the next rebalance. A device
    that still works is better emptied first: set its weight to 0, rebalance, let
    the replicators finish, then remove it.",
    ),
    UsagePage::searching(
        "search",
        "PROGRAM <builder_file> search <search-value>

or

PROGRAM <builder_file> search
    [--region <region>] [--zone <zone>] [--ip <ip or hostname>] [--port <port>]
    [--replication-ip <ip or hostname>] [--replication-port <port>]
    [--device <device_name>] [--meta <meta>] [--weight <weight>]

    Shows the devices found.",
    ),
    UsagePage::searching(
        "set_info",
        "PROGRAM <builder_file> set_info
    <search-value> <ip>:<port>[R<r_ip>:<r_port>]/<device_name>_<meta>
    [<search-value> <ip>:<port>[R<r_ip>:<r_port>]/<device_name>_<meta>] ... [--yes]

or

PROGRAM <builder_file> set_info
    [--id <id>] [--ip <ip or hostname>] [--port <port>] [--device <device_name>] ...
    [--change-ip <ip or hostname>] [--change-port <port>]
    [--change-replication-ip <ip or hostname>] [--change-replication-port <port>]
    [--change-device <device_name>] [--change-meta <meta>] [--yes]

    Changes where a device is reached, its name or the remark on it; give only what
    changes: `set_info d74 _\"snet: 5.6.7.8\"`. No partition moves: write_ring is
    enough afterwards.",
    ),
    UsagePage::new(
        "set_min_part_hours",
        "PROGRAM <builder_file> set_min_part_hours <hours>
    How long a partition that moved stays where it is: more than a pass of the
    replicators takes.",
    ),
    UsagePage::new(
        "set_overload",
        "PROGRAM <builder_file> set_overload <overload>[%]
    How much more than its share a device may take where that puts replicas
    farther apart: 0.1 or 10%. Takes effect with the next rebalance.",
    ),
    UsagePage::searching(
        "set_region",
        "PROGRAM <builder_file> set_region <search-value> <region>
    [<search-value> <region>] ... [--yes]

or

PROGRAM <builder_file> set_region [--zone <zone>] [--ip <ip or hostname>] ...
    <new region> [--yes]

    Says that devices stand in another region. Partitions move with the next
    rebalance.",
    ),
    UsagePage::new(
        "set_replicas",
        "PROGRAM <builder_file> set_replicas <replicas>
    How many copies of each partition there are; with a fraction some partitions
    have one more than others. Takes effect with the next rebalance.",
    ),
    UsagePage::searching(
        "set_weight",
        "PROGRAM <builder_file> set_weight <search-value> <new_weight>
    [<search-value> <new_weight>] ... [--yes]

or

PROGRAM <builder_file> set_weight [--region <region>] [--zone <zone>] ...
    [--weight <weight>] <new_weight> [--yes]

    How much devices should hold compared with others; --weight searches for
    devices that have that weight now. Partitions move with the next rebalance.
    The command `ramp` proposes steps.",
    ),
    UsagePage::searching(
        "set_zone",
        "PROGRAM <builder_file> set_zone <search-value> <zone>
    [<search-value> <zone>] ... [--yes]

or

PROGRAM <builder_file> set_zone [--region <region>] [--ip <ip or hostname>] ...
    <new zone> [--yes]

    Says that devices stand in another zone. Partitions move with the next
    rebalance.",
    ),
    UsagePage::new(
        "simulate",
        "PROGRAM <builder_file> simulate --lose <place> [--lose <place>] ...
    [--bandwidth <SIZE>/s] [--stored SIZE | --used PERCENT] [--weight-unit SIZE]
    [--json] [--svg FILE]
    Says what is at risk when places fail (`region:1`, `zone:3`, `zone:1/3`,
    `server:10.0.0.1`, `device:7`, or a search value) and how long repair takes.
    --svg draws the bytes on each device and the replicas left before, with the
    places lost, and after the repair. Changes nothing.",
    ),
    UsagePage::new(
        "validate",
        "PROGRAM <builder_file> validate
    Checks the ring: every partition has its replicas, on devices that exist, no
    two on one device.",
    ),
    UsagePage::new(
        "version",
        "PROGRAM <ring_file> version
    Shows the format and the build version of the ring file.",
    ),
    UsagePage::new(
        "write_builder",
        "PROGRAM <ring_file> write_builder [min_part_hours]
    Makes a builder of a ring whose builder is lost. What only the builder knew is
    lost with it: min_part_hours, overload, when partitions moved.",
    ),
    UsagePage::new(
        "write_ring",
        "PROGRAM <builder_file> write_ring [options]
    Writes the ring file again, for example after set_info; rebalance does it by
    itself.",
    ),
];

/// What search values are.
const SEARCH_VALUES: &str = "The <search-value> can be of the form::

    d<device_id>r<region>z<zone>-<ip>:<port>R<r_ip>:<r_port>/<device_name>_<meta>

    Any part may be left out, but not all. The ip needs its - only after a number.

    d74              the device of id 74
    r4               devices in region 4
    z1-1.2.3.4       devices in zone 1 at 1.2.3.4
    z1:5678          devices in zone 1 on port 5678
    R5.6.7.8         devices that replicate at 5.6.7.8
    [::1]:5678       devices at ::1 on port 5678
    /sdb1            devices named sdb1
    _shiny           devices whose remark contains shiny
    d74r4z1-1.2.3.4:5678/sdb1_\"snet: 5.6.7.8\"
";

#[cfg(test)]
mod power_tests {
    use super::*;

    #[test]
    fn who_sends_to_a_relinker_says_whose_it_is() {
        let sends = |page: &&UsagePage| page.text.contains("swift-object-relinker");
        let pages: Vec<&UsagePage> = PAGES.iter().filter(sends).collect();
        assert_eq!(pages.len(), 4);
        assert!(pages.iter().all(|page| page.text.contains("Martlet has none yet")));
    }
}
