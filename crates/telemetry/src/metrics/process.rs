//! The process itself: memory, processors, descriptors, as `/proc/self` has them.
//!
//! Always holds: what cannot be read is left out.

use super::catalogue::{BUILD, CLOCK, CPU, LOST_LINES, MOST_FILES, OPEN_FILES, PROCESSORS, RESIDENT, STARTED, THREADS};
use super::{MetricsPage, MetricsSource};
use std::path::Path;
use std::sync::Arc;
use world::files::{FileSystem, Purpose, read_full_at};
use world::{Clock, World};

/// More of a file of `/proc` is not looked at.
const LIMIT: usize = 64 << 10;
/// Ticks per second in `/proc/self/stat`: Linux says 100 to programs on every machine it runs on today.
const TICKS: f64 = 100.0;

/// This process.
pub struct ProcessMetrics {
    files: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    version: String,
    started: f64,
}

impl ProcessMetrics {
    /// It began now.
    pub fn new(world: &World, version: &str) -> Self {
        Self {
            files: world.files.clone(),
            clock: world.clock.clone(),
            version: version.to_owned(),
            started: world.clock.now().as_f64(),
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        let file = self.files.open(Path::new(path), Purpose::Read).ok()?;
        let mut bytes = vec![0; LIMIT];
        let length = read_full_at(&*file, &mut bytes, 0).ok()?;
        bytes.truncate(length);
        String::from_utf8(bytes).ok()
    }

    fn open_files(&self) -> Option<u64> {
        let mut count = 0;
        let directory = self.files.open_directory(Path::new("/proc/self/fd")).ok()?;
        directory.list(&mut |_| count += 1).ok()?;
        Some(count)
    }
}

impl MetricsSource for ProcessMetrics {
    fn report(&self, page: &mut MetricsPage) {
        page.whole(&BUILD, &[&self.version], 1);
        page.real(&STARTED, &[], self.started);
        page.real(&CLOCK, &[], self.clock.now().as_f64());
        page.whole(&LOST_LINES, &[], crate::log_output::lost_lines());
        let status = self.text("/proc/self/status").unwrap_or_default();
        if let Some(kib) = field(&status, "VmRSS:") {
            page.whole(&RESIDENT, &[], kib.saturating_mul(1024));
        }
        if let Some(threads) = field(&status, "Threads:") {
            page.whole(&THREADS, &[], threads);
        }
        if let Some(count) = processors(&status) {
            page.whole(&PROCESSORS, &[], count);
        }
        if let Some(seconds) = self.text("/proc/self/stat").as_deref().and_then(cpu_seconds) {
            page.real(&CPU, &[], seconds);
        }
        if let Some(most) = self
            .text("/proc/self/limits")
            .as_deref()
            .and_then(|text| field(text, "Max open files"))
        {
            page.whole(&MOST_FILES, &[], most);
        }
        if let Some(open) = self.open_files() {
            page.whole(&OPEN_FILES, &[], open);
        }
    }
}

/// The first number behind a name that begins a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// How many processors a list such as `0-3,8` names.
fn processors(status: &str) -> Option<u64> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    vocabulary::processors::count(list)
}

/// User and system time; the program's name may hold anything, so that fields count from its closing bracket.
fn cpu_seconds(text: &str) -> Option<f64> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse::<u64>().ok()?);
    Some(user.saturating_add(system) as f64 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn this_process_is_reported() {
        let mut page = MetricsPage::default();
        ProcessMetrics::new(&World::real(), "1.2").report(&mut page);
        let text = page.write();
        for name in [
            "martlet_build{version=\"1.2\"} 1",
            "process_resident_memory_bytes ",
            "process_threads ",
            "process_open_fds ",
            "martlet_clock_seconds ",
            "martlet_processors ",
        ] {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(
            text.contains("process_cpu_seconds_total ") && text.contains("process_max_fds "),
            "{text}"
        );
        let status = |list: &str| processors(&format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(
            (status("0"), status("0-3,8"), status("3-0"), status("")),
            (Some(1), Some(5), None, None)
        );
        assert_eq!(cpu_seconds("1 (a) b) R 1 2 3 4 5 6 7 8 9 10 250 50 0"), Some(3.0));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,80}") {
            cpu_seconds(&text);
            field(&text, "V");
            processors(&text);
        }
    }
}
