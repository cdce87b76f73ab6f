//! What the kernel says of the machine, in Swift's words.
//!
//! Always holds: a line that is not understood is left out, never guessed at.

use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;
use world::files::{FileSystem, Purpose, read_full_at};

/// More of a file of `/proc` is not looked at.
const LIMIT: usize = 1 << 20;
/// Number of the entry of `/proc/self/auxv` that says how large a page is.
const PAGE_SIZE: u64 = 6;

/// How long the queues of runnable tasks were.
pub(super) fn load(files: &dyn FileSystem) -> io::Result<Value> {
    parse_load(&text(files, "/proc/loadavg")?).ok_or_else(|| odd("/proc/loadavg"))
}

fn parse_load(text: &str) -> Option<Value> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [one, five, fifteen, tasks, processes] = words[..] else {
        return None;
    };
    let number = |word: &str| word.parse::<f64>().ok();
    Some(json!({
        "1m": number(one)?, "5m": number(five)?, "15m": number(fifteen)?,
        "tasks": tasks, "processes": processes.parse::<u64>().ok()?,
    }))
}

/// What the memory is used for.
pub(super) fn memory(files: &dyn FileSystem) -> io::Result<Value> {
    let text = text(files, "/proc/meminfo")?;
    let entries = text.lines().filter_map(|line| line.split_once(':'));
    let values = entries.map(|(name, value)| (name.to_owned(), Value::from(value.trim())));
    Ok(values.collect::<Map<_, _>>().into())
}

/// All that is mounted.
pub(super) fn mounts(files: &dyn FileSystem) -> io::Result<Value> {
    let text = text(files, "/proc/mounts")?;
    let mounts = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(json!({ "device": words.next()?, "path": words.next()? }))
    });
    Ok(mounts.collect())
}

/// How many sockets there are, as far as the kernel tells.
pub(super) fn sockets(files: &dyn FileSystem) -> io::Result<Value> {
    let page = page_size(files)?;
    let mut values = Map::new();
    for file in ["/proc/net/sockstat", "/proc/net/sockstat6"] {
        match text(files, file) {
            Ok(text) => parse_sockets(&text, page, &mut values),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(values.into())
}

fn parse_sockets(text: &str, page: u64, values: &mut Map<String, Value>) {
    for line in text.lines() {
        let number = |at: usize| line.split_whitespace().nth(at)?.parse::<u64>().ok();
        let of_four = [
            ("tcp_in_use", 2, 1),
            ("orphan", 4, 1),
            ("time_wait", 6, 1),
            ("tcp_mem_allocated_bytes", 10, page),
        ];
        let wanted: &[(&str, usize, u64)] = match line {
            line if line.starts_with("TCP: inuse") => &of_four,
            line if line.starts_with("TCP6: inuse") => &[("tcp6_in_use", 2, 1)],
            _ => &[],
        };
        for (name, at, unit) in wanted {
            values.extend(number(*at).map(|count| ((*name).to_owned(), json!(count.saturating_mul(*unit)))));
        }
    }
}

/// Pairs of native words: what, and how much.
fn page_size(files: &dyn FileSystem) -> io::Result<u64> {
    let bytes = bytes(files, "/proc/self/auxv")?;
    let words = bytes.chunks_exact(size_of::<usize>()).map(|word| {
        let mut whole = [0; size_of::<usize>()];
        whole.copy_from_slice(word);
        usize::from_ne_bytes(whole) as u64
    });
    let words: Vec<u64> = words.collect();
    let found = words.chunks_exact(2).find(|pair| pair[0] == PAGE_SIZE);
    found.map(|pair| pair[1]).ok_or_else(|| odd("/proc/self/auxv"))
}

fn text(files: &dyn FileSystem, path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bytes(files, path)?).into_owned())
}

/// Files of `/proc` do not know how long they are.
fn bytes(files: &dyn FileSystem, path: &str) -> io::Result<Vec<u8>> {
    let file = files.open(Path::new(path), Purpose::Read)?;
    let mut bytes = vec![0; LIMIT];
    let length = read_full_at(&*file, &mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn odd(path: &str) -> io::Error {
    io::Error::other(format!("{path} is not as it was expected"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use world::real_files::RealFiles;

    #[test]
    fn lines_of_proc_become_figures() {
        let load = parse_load("0.42 1.5 2 3/456 7890\n").unwrap();
        assert_eq!(
            load.to_string(),
            r#"{"1m":0.42,"5m":1.5,"15m":2.0,"tasks":"3/456","processes":7890}"#
        );
        let mut values = Map::new();
        let text = "sockets: used 9\nTCP: inuse 1 orphan 2 tw 3 alloc 4 mem 5\nTCP6: inuse 6\nTCP: inuse x\n";
        parse_sockets(text, 10, &mut values);
        assert_eq!(
            Value::from(values),
            json!({ "tcp_in_use": 1, "orphan": 2, "time_wait": 3, "tcp_mem_allocated_bytes": 50, "tcp6_in_use": 6 })
        );
        assert!(page_size(&RealFiles).unwrap() >= 4096);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(TCP6?: inuse)?\\PC{0,60}") {
            parse_load(&text);
            parse_sockets(&text, 4096, &mut Map::new());
        }
    }
}
