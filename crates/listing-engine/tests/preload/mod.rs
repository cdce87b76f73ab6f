//! System calls of SQLite that fail: it calls the C library directly, so a library that is loaded before that one does
//! it. The library is compiled (`cc`), and the test runs itself with it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the library finds the beginning of the paths that its failures are for.
const FAILING: &str = "FAILING_BELOW";

/// What each library begins with: whether the call on this file is to fail, which is so while the folder has a file of
/// that name.
const HEAD: &str = r#"
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/stat.h>
    #include <sys/types.h>
    #include <unistd.h>
    static int fails(int fd, const char *name, int once) {
        char link[64], path[4096], flag[4096];
        const char *root = getenv("FAILING_BELOW");
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (!root || length < 0) return 0;
        path[length] = 0;
        if (strncmp(path, root, strlen(root))) return 0;
        snprintf(flag, sizeof flag, "%s/%s", root, name);
        if (access(flag, F_OK)) return 0;
        if (once) unlink(flag);
        errno = EIO;
        return 1;
    }
"#;

/// The folder of a test that runs with the library.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FAILING).map(PathBuf::from)
}

/// Runs this program's test of that name with the library, in a folder of its own.
pub fn run_itself(test: &str, library: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (source, made) = (dir.path().join("failing.c"), dir.path().join("failing.so"));
    let folder = dir.path().join("sda");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&source, format!("{HEAD}{library}")).unwrap();
    compile(&source, &made);
    let mut itself = Command::new(std::env::current_exe().unwrap());
    let itself = itself
        .args(["--exact", test])
        .env("LD_PRELOAD", &made)
        .env(FAILING, &folder);
    let run = itself.output().unwrap();
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && printed.contains("1 passed"), "{printed}");
}

fn compile(source: &Path, library: &Path) {
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([library, source])
        .arg("-ldl");
    assert!(compiler.status().unwrap().success());
}
