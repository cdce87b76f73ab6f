//! Workloads by their names in the field's papers and guides, with the sizes and mixes that those give.
//!
//! Always holds: each makes what it reads first and deletes it last, in containers of its own prefix; each of them is
//! valid for any number of containers, objects and workers from 1 on.

use super::mistake::{WorkloadMistake, one_of};
use super::{Workload, own_format};

/// One of them.
pub struct NamedWorkload {
    /// What it is called.
    pub name: &'static str,
    /// What it stands for, and where it is from.
    pub about: &'static str,
    /// Of a hundred operations: reads, writes, deletes.
    mix: [u32; 3],
    /// Sizes of objects, as a selector with a unit.
    sizes: &'static str,
}

/// How large a named workload is.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Containers.
    pub containers: u64,
    /// Objects in each of them, before the load.
    pub objects: u64,
    /// Requests under way at a time.
    pub workers: u32,
    /// How long it loads the store, as `60s` or `5m`.
    pub runtime: String,
    /// Requests a second, of an open loop.
    pub rate: Option<f64>,
    /// Sizes of objects, instead of the workload's own.
    pub sizes: Option<String>,
    /// Addresses of the store that workers are spread over.
    pub endpoints: Vec<String>,
    /// How full devices are made before the load, as `60%`, and recon's addresses that tell.
    pub full: Option<(String, Vec<String>)>,
    /// The log that is replayed.
    pub log: Option<String>,
    /// How much faster it is.
    pub speed: String,
}

/// Objects in each container of a filling: more than its devices are ever to hold.
const FILLERS: u64 = 100_000_000;

/// The name of the replay of an access log.
pub const REPLAY: &str = "replay";

/// All of them.
pub const ALL: &[NamedWorkload] = &[
    named(
        "SmlRead",
        "small objects, mostly read (100 B, 1 KB, 10 KB; 90/10)",
        [90, 10, 0],
        "h(100|100|1,1000|1000|1,10000|10000|1)B",
    ),
    named(
        "SmlWrite",
        "small objects, mostly written (100 B, 1 KB, 10 KB; 10/90)",
        [10, 90, 0],
        "h(100|100|1,1000|1000|1,10000|10000|1)B",
    ),
    named(
        "LrgRead",
        "large objects, mostly read (1 MB, 100 MB, 1 GB; 90/10)",
        [90, 10, 0],
        "h(1|1|1,100|100|1,1000|1000|1)MB",
    ),
    named(
        "LrgWrite",
        "large objects, mostly written (1 MB, 100 MB, 1 GB; 10/90)",
        [10, 90, 0],
        "h(1|1|1,100|100|1,1000|1000|1)MB",
    ),
    named(
        "LrgRWMix",
        "large objects, read and written alike (1 MB, 100 MB, 1 GB)",
        [50, 50, 0],
        "h(1|1|1,100|100|1,1000|1000|1)MB",
    ),
    named(
        "pebbles",
        "very many small objects (10 KB; 90/10)",
        [90, 10, 0],
        "c(10)KB",
    ),
    named("boulders", "many objects of a megabyte (90/10)", [90, 10, 0], "c(1)MB"),
    named(
        "web-site",
        "pages and pictures, mostly read (1 to 100 KB; 90/5/5)",
        [90, 5, 5],
        "u(1,100)KB",
    ),
    named(
        "gaming",
        "saved games, mostly written (1 to 100 KB; 5/90/5)",
        [5, 90, 5],
        "u(1,100)KB",
    ),
    named(
        "video",
        "films, mostly read (1 to 10 MB; 90/5/5)",
        [90, 5, 5],
        "u(1,10)MB",
    ),
    named(
        "backup",
        "archives, mostly written (1 to 10 MB; 5/90/5)",
        [5, 90, 5],
        "u(1,10)MB",
    ),
    named(
        "photos-write",
        "50 to 200 KB, mostly written (5/90/5)",
        [5, 90, 5],
        "u(50,200)KB",
    ),
    named(
        "photos-read",
        "50 to 200 KB, mostly read (90/5/5)",
        [90, 5, 5],
        "u(50,200)KB",
    ),
    named(
        "filled",
        "64 KB into containers that are filled already: give many --objects",
        [20, 80, 0],
        "c(64)KB",
    ),
    named(
        "containers",
        "1 KB into very many containers: compare --containers 10000 with 20000",
        [10, 90, 0],
        "c(1)KB",
    ),
    named(
        "asus",
        "a web disk's sizes over two weeks, from COSBench's asus.xml (1 KB to 1 GB; read only)",
        [100, 0, 0],
        "h(1|100|604,101|500|116,501|1024|51,1025|5120|169,5121|102400|18,102401|1024000|2)KB",
    ),
];

const fn named(name: &'static str, about: &'static str, mix: [u32; 3], sizes: &'static str) -> NamedWorkload {
    NamedWorkload {
        name,
        about,
        mix,
        sizes,
    }
}

/// The workload of a name, in the own format; for a store that [`own_format::parse`]'s caller fills in.
pub fn text(name: &str, extent: &Extent) -> Result<String, WorkloadMistake> {
    if name.eq_ignore_ascii_case(REPLAY) {
        return replay(extent);
    }
    let named = ALL
        .iter()
        .find(|one| one.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            WorkloadMistake::value(
                "workload",
                name,
                format_args!("a file, or {}", one_of(ALL.iter().map(|one| one.name).chain([REPLAY]))),
            )
        })?;
    Ok(named.text(extent))
}

/// The replay of a log.
fn replay(extent: &Extent) -> Result<String, WorkloadMistake> {
    let log = extent.log.as_deref();
    let log = log.ok_or_else(|| WorkloadMistake::new("replay: expected --log FILE, a proxy's access log"))?;
    // A text of JSON is one of TOML.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let (log, speed, workers) = (text(log), text(&extent.speed), extent.workers);
    Ok(format!(
        "name = \"{REPLAY}\"\n{}\n[replay]\nlog = {log}\nspeed = {speed}\nworkers = {workers}\n",
        endpoints_text(extent)
    ))
}

fn endpoints_text(extent: &Extent) -> String {
    match extent.endpoints.is_empty() {
        true => String::new(),
        false => format!(
            "\n[storage]\ntype = \"swift\"\nendpoints = \"{}\"\n",
            extent.endpoints.join(",")
        ),
    }
}

/// The workload of a name.
pub fn workload(name: &str, extent: &Extent) -> Result<Workload, WorkloadMistake> {
    own_format::parse(&text(name, extent)?)
}

impl NamedWorkload {
    fn text(&self, extent: &Extent) -> String {
        let Extent {
            containers,
            objects,
            workers,
            runtime,
            rate,
            sizes,
            ..
        } = extent;
        let (name, sizes) = (self.name, sizes.as_deref().unwrap_or(self.sizes));
        let prefix = format!("cprefix = \"bench-{}-\"", name.to_ascii_lowercase());
        let [reads, writes, deletes] = self.mix;
        // What is written in the load has numbers behind those that are read, and as many; deletions take from those.
        let (first_new, last_new) = (objects + 1, objects * 2);
        let mut text = format!("name = \"{name}\"\ndescription = \"{}\"\n", self.about);
        text += &endpoints_text(extent);
        let all = format!("{prefix}\nworkers = {workers}\ncontainers = \"r(1,{containers})\"\n");
        text += &format!("\n[[stage]]\nname = \"init\"\ntype = \"init\"\n{all}");
        if extent.endpoints.len() > 1 {
            // A gateway may remember for a moment that a container was gone, which another one has made again.
            text += "delay = \"3s\"\n";
        }
        text += &format!(
            "\n[[stage]]\nname = \"prepare\"\ntype = \"prepare\"\n{all}objects = \"r(1,{objects})\"\n\
             sizes = \"{sizes}\"\n"
        );
        text += &fill_text(&prefix, sizes, extent);
        text += &format!("\n[[stage]]\nname = \"main\"\nworkers = {workers}\nruntime = \"{runtime}\"\n");
        if let Some(rate) = rate {
            text += &format!("rate = {rate}\narrivals = \"poisson\"\n");
        }
        text += "operations = [\n";
        let of = format!("{prefix}, containers = \"u(1,{containers})\"");
        if reads > 0 {
            text += &format!("    {{ type = \"read\", ratio = {reads}, {of}, objects = \"u(1,{objects})\" }},\n");
        }
        if writes > 0 {
            text += &format!(
                "    {{ type = \"write\", ratio = {writes}, {of}, objects = \"u({first_new},{last_new})\", \
                 sizes = \"{sizes}\" }},\n"
            );
        }
        if deletes > 0 {
            text += &format!(
                "    {{ type = \"delete\", ratio = {deletes}, {of}, objects = \"u({first_new},{last_new})\" }},\n"
            );
        }
        text += "]\n";
        text += &format!("\n[[stage]]\nname = \"cleanup\"\ntype = \"cleanup\"\n{all}objects = \"r(1,{last_new})\"\n");
        text += &format!("\n[[stage]]\nname = \"dispose\"\ntype = \"dispose\"\n{all}");
        if extent.full.is_some() {
            let all = all.replacen("-\"", "-fill-\"", 1);
            text += &format!("\n[[stage]]\nname = \"fill-dispose\"\ntype = \"dispose\"\nemptied = true\n{all}");
        }
        text
    }
}

/// Servers, and stages that write until devices are so full, into containers of their own.
fn fill_text(prefix: &str, sizes: &str, extent: &Extent) -> String {
    let Some((share, recons)) = &extent.full else {
        return String::new();
    };
    let (containers, workers) = (extent.containers, extent.workers);
    let prefix = prefix.replacen("-\"", "-fill-\"", 1);
    let all = format!("{prefix}\nworkers = {workers}\ncontainers = \"s(1,{containers})\"\n");
    let mut text = format!("\n[[stage]]\nname = \"fill-init\"\ntype = \"init\"\n{all}");
    text += &format!(
        "\n[[stage]]\nname = \"fill\"\ntype = \"prepare\"\nfull = \"{share}\"\n{all}objects = \"s(1,{FILLERS})\"\n\
         sizes = \"{sizes}\"\n"
    );
    for (at, recon) in recons.iter().enumerate() {
        text += &format!("\n[[server]]\nname = \"server{}\"\nrecon = \"{recon}\"\n", at + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ALL, Extent, workload};

    #[test]
    fn all_are_valid() {
        for (containers, objects, workers) in [(1, 1, 1), (32, 1000, 64)] {
            let extent = Extent {
                containers,
                objects,
                workers,
                runtime: "10s".into(),
                rate: Some(100.0),
                sizes: None,
                endpoints: vec![],
                full: Some(("60%".into(), vec!["http://a:6200/recon".into()])),
                log: None,
                speed: "1".into(),
            };
            for named in ALL {
                let read = workload(named.name, &extent).unwrap();
                assert_eq!(read.stages.len(), 8, "{}", named.name);
            }
            assert!(
                workload("nonsense", &extent)
                    .unwrap_err()
                    .what
                    .contains("SmlRead, SmlWrite")
            );
        }
    }
}
