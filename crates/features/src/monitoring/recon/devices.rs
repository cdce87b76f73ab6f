//! What is to be said of the devices: which there are, whether they are mounted, how full, what is quarantined.

use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;
use world::files::{FileKind, FileSystem};

/// Everything below the devices' directory, null when that cannot be read.
pub(super) fn names(files: &dyn FileSystem, root: &Path) -> Value {
    let mounts = match list(files, root) {
        Ok(names) => json!(names),
        Err(error) => {
            tracing::error!("recon: {}: {error}", root.display());
            Value::Null
        }
    };
    json!({ root.display().to_string(): mounts })
}

/// Directories that are no mount points.
pub(super) fn unmounted(files: &dyn FileSystem, root: &Path) -> io::Result<Value> {
    let devices = devices(files, root)?;
    let wanting = devices.into_iter().filter(|(_, mounted)| *mounted != json!(true));
    Ok(wanting
        .map(|(device, mounted)| json!({ "device": device, "mounted": mounted }))
        .collect())
}

/// How much there is on those that are mounted.
pub(super) fn usage(files: &dyn FileSystem, root: &Path) -> io::Result<Value> {
    let mounts = devices(files, root)?.into_iter().map(|(device, mounted)| {
        if mounted != json!(true) {
            return Ok(json!({ "device": device, "mounted": mounted, "size": "", "used": "", "avail": "" }));
        }
        let space = files.space(&root.join(&device))?;
        let used = space.total.saturating_sub(space.available);
        Ok(json!({ "device": device, "mounted": true, "size": space.total, "used": used, "avail": space.available }))
    });
    mounts.collect()
}

/// How many objects, by policy, and databases have been put aside.
pub(super) fn quarantined(files: &dyn FileSystem, root: &Path) -> io::Result<Value> {
    let (mut objects, mut containers, mut accounts) = (0, 0, 0);
    let mut policies: Map<String, Value> = Map::new();
    for device in list(files, root)? {
        let aside = root.join(device).join("quarantined");
        for kind in list(files, &aside).unwrap_or_default() {
            let count = list(files, &aside.join(&kind)).unwrap_or_default().len();
            match kind.as_str() {
                _ if count == 0 => {}
                "containers" => containers += count,
                "accounts" => accounts += count,
                kind if kind.starts_with("objects") => {
                    objects += count;
                    let policy = kind.split_once('-').map_or("0", |(_, policy)| policy);
                    let known = policies.entry(policy).or_insert_with(|| json!({ "objects": 0 }));
                    known["objects"] = json!(known["objects"].as_u64().unwrap_or(0) + count as u64);
                }
                _ => {}
            }
        }
    }
    Ok(json!({ "objects": objects, "containers": containers, "accounts": accounts, "policies": policies }))
}

/// Each directory, with whether it is mounted, or why that cannot be said.
fn devices(files: &dyn FileSystem, root: &Path) -> io::Result<Vec<(String, Value)>> {
    let mut found = vec![];
    for name in list(files, root)? {
        let path = root.join(&name);
        let mounted = match files.info(&path) {
            Ok(info) if info.kind != FileKind::Directory => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Ok(_) => files.is_mount_point(&path),
            Err(error) => Err(error),
        };
        let mounted = mounted.map_or_else(|error| json!(error.to_string()), |mounted| json!(mounted));
        found.push((name, mounted));
    }
    Ok(found)
}

fn list(files: &dyn FileSystem, directory: &Path) -> io::Result<Vec<String>> {
    let mut names = vec![];
    files
        .open_directory(directory)?
        .list(&mut |name| names.push(name.to_string_lossy().into_owned()))?;
    names.retain(|name| name != "." && name != "..");
    Ok(names)
}
