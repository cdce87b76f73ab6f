use super::*;
use crate::files::{DIRECT_UNIT, read_bytes_at};

fn names(directory: &dyn Directory) -> Vec<String> {
    let mut names = vec![];
    directory
        .list(&mut |name| names.push(name.to_string_lossy().into_owned()))
        .unwrap();
    names.sort();
    names
}

#[test]
fn reading_leaves_the_access_time_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    std::fs::write(&path, b"content").unwrap();
    let accessed = || std::fs::metadata(&path).unwrap().accessed().unwrap();
    let before = accessed();
    std::thread::sleep(Duration::from_millis(20)); // the clock of the file system's times goes on
    std::fs::write(&path, b"newer").unwrap(); // "relatime" would take note of the first reader after this
    for file in [
        RealFiles.open(&path, Purpose::Read).unwrap(),
        RealFiles.open_directory(place.path()).unwrap().open("file").unwrap(),
    ] {
        assert_eq!(read_bytes_at(&*file, 5, 0).unwrap(), b"newer"[..]);
    }
    assert_eq!(accessed(), before);
}

#[test]
fn an_unnamed_file_gets_its_name_by_its_number_or_through_proc() {
    for by_number in [true, false] {
        NAMED_BY_NUMBER.store(by_number, Ordering::Relaxed);
        an_unnamed_file_gets_its_name_with_its_content();
    }
}

fn an_unnamed_file_gets_its_name_with_its_content() {
    let place = tempfile::tempdir().unwrap();
    let file = RealFiles.open_unnamed(place.path()).unwrap();
    file.write_all_at(b"hello", 0).unwrap();
    file.set_attribute("user.test", b"value").unwrap();
    file.sync().unwrap();
    let directory = RealFiles.open_directory(place.path()).unwrap();
    assert!(names(&*directory).is_empty());
    file.link(&place.path().join("named")).unwrap();
    assert_eq!(
        file.link(&place.path().join("named")).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    directory.sync().unwrap();
    assert_eq!(names(&*RealFiles.open_directory(place.path()).unwrap()), ["named"]);
    let read = directory.open("named").unwrap();
    let mut value = [0; 64];
    assert_eq!(read.get_attribute("user.test", &mut value).unwrap(), 5);
    assert_eq!(read.attribute_length("user.test").unwrap(), 5);
    assert_eq!(read_bytes_at(&*read, 3, 1).unwrap(), b"ell");
    assert_eq!(read_bytes_at(&*read, 30, 1).unwrap(), b"ello");
    assert_eq!(RealFiles.read(&place.path().join("named"), 5).unwrap(), b"hello");
    assert!(RealFiles.read(&place.path().join("named"), 4).is_err());
}

#[test]
fn big_directories_are_listed_whole() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..2000 {
        let path = place.path().join(format!("a-rather-long-file-name-{number}"));
        RealFiles.open(&path, Purpose::Create).unwrap();
    }
    let directory = RealFiles.open_directory(place.path()).unwrap();
    assert_eq!(names(&*directory).len(), 2000);
}

#[test]
fn a_lock_excludes_until_closed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(".lock");
    let first = RealFiles.open(&path, Purpose::Lock).unwrap();
    first.lock(Duration::ZERO).unwrap();
    let second = RealFiles.open(&path, Purpose::Lock).unwrap();
    assert_eq!(
        second.lock(Duration::from_millis(5)).unwrap_err().kind(),
        io::ErrorKind::TimedOut
    );
    drop(first);
    second.lock(Duration::ZERO).unwrap();
}

#[test]
fn a_glance_sees_what_is_known_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    RealFiles.open(&path, Purpose::Create).unwrap();
    std::os::unix::fs::symlink(&path, place.path().join("link")).unwrap();
    if !RealFiles.can_glance(place.path()) {
        return; // the tests run on a network file system or the like
    }
    let seen = RealFiles.glance(place.path(), &["file".to_owned()]).unwrap();
    assert_eq!(
        seen.directory,
        RealFiles.open_directory(place.path()).unwrap().info().unwrap()
    );
    assert_eq!(seen.files, [RealFiles.info(&path).unwrap()]);
    assert_eq!(RealFiles.glance(place.path(), &["absent".to_owned()]), None);
    assert_eq!(RealFiles.glance(&path, &[]), None);
    let link = RealFiles.glance(place.path(), &["link".to_owned()]).unwrap();
    assert_eq!(link.files[0].kind, FileKind::Other);
    assert!(!RealFiles.can_glance(Path::new("/proc")));
}

#[test]
fn links_are_passed_over() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("7")).unwrap();
    std::os::unix::fs::symlink("/", place.path().join("8")).unwrap();
    let directory = RealFiles.open_directory(place.path()).unwrap();
    assert_eq!(crate::files::own_names(&*directory, place.path()).unwrap(), ["7"]);
    assert_eq!(names(&*directory).len(), 2);
}

#[test]
fn nothing_is_written_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (elsewhere, link) = (place.path().join("elsewhere"), place.path().join("link"));
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    for purpose in [Purpose::Change, Purpose::Append, Purpose::Lock, Purpose::Create] {
        assert!(RealFiles.open(&link, purpose).is_err() && !elsewhere.exists());
    }
    std::fs::write(&elsewhere, b"kept").unwrap();
    for purpose in [Purpose::Change, Purpose::Append, Purpose::Lock, Purpose::Create] {
        assert!(RealFiles.open(&link, purpose).is_err());
    }
    assert!(RealFiles.open(&link, Purpose::Read).is_ok() && RealFiles.open(&link, Purpose::ReadHere).is_err());
    assert!(RealFiles.open_directory(place.path()).unwrap().open("link").is_err());
    let info = |kind: fn(&RealFiles, &Path) -> io::Result<FileInfo>| kind(&RealFiles, &link).unwrap().kind;
    assert_eq!(
        (info(RealFiles::info), info(RealFiles::info_of_name)),
        (FileKind::File, FileKind::Other)
    );
}

#[test]
fn a_mode_says_what_is_open_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let [path, link] = ["file", "link"].map(|name| place.path().join(name));
    std::fs::write(&path, b"x").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for (mode, is_open) in [
        (0o600, false),
        (0o700, false),
        (0o640, true),
        (0o604, true),
        (0o602, true),
    ] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(RealFiles.is_open_to_others(&path).unwrap(), is_open, "{mode:o}");
        assert_eq!(RealFiles.is_open_to_others(&link).unwrap(), is_open, "{mode:o}");
    }
    assert!(RealFiles.is_open_to_others(&place.path().join("none")).is_err());
}

#[test]
fn mount_points_are_not_mistaken_for_directories() {
    assert!(RealFiles.is_mount_point(Path::new("/proc")).unwrap());
    assert!(RealFiles.is_mount_point(Path::new("/")).unwrap());
    assert!(!RealFiles.is_mount_point(Path::new("/proc/sys")).unwrap());
    assert!(!RealFiles.is_mount_point(Path::new("/nowhere")).unwrap());
}

#[test]
fn a_file_is_written_past_the_cache_and_through_it() {
    let place = tempfile::tempdir().unwrap();
    let file = RealFiles.open(&place.path().join("file"), Purpose::Create).unwrap();
    let storage = vec![7; 2 * DIRECT_UNIT];
    let start = storage.as_ptr().align_offset(DIRECT_UNIT);
    let (aligned, unit) = (&storage[start..start + DIRECT_UNIT], DIRECT_UNIT as u64);
    for offset in [0, unit] {
        if !file.write_direct_at(aligned, offset).unwrap() {
            file.write_all_at(aligned, offset).unwrap();
        }
    }
    let mut read = [0; 3];
    assert_eq!((file.read_at(&mut read, 2 * unit - 1).unwrap(), read), (1, [7, 0, 0]));
    file.write_direct_at(aligned, 0).unwrap();
    file.write_all_at(b"end", 2 * unit - 1).unwrap();
    assert_eq!((file.read_at(&mut read, 2 * unit - 1).unwrap(), read), (3, *b"end"));
}
