//! Reading a configuration: one file, or the `*.conf` files of a directory merged in order of name.
//!
//! The only file of this crate that touches the file system, and it only reads.

use crate::ini::Document;
use crate::report::SettingsError;
use std::path::{Path, PathBuf};
use std::{fs, io};

impl Document {
    /// Reads a file, or a `conf.d` directory: every `*.conf` in it that is a file and not hidden,
    /// sorted by name; where two set the same option the later one wins.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let unreadable = |file: &Path, e: io::Error| SettingsError::Unreadable {
            file: file.to_owned(),
            reason: e.to_string(),
        };
        if !fs::metadata(path).map_err(|e| unreadable(path, e))?.is_dir() {
            return parse_file(path);
        }
        let mut merged = Document {
            path: path.to_owned(),
            sections: Vec::new(),
        };
        let files = conf_files(path).map_err(|e| unreadable(path, e))?;
        if files.is_empty() {
            return Err(SettingsError::Unreadable {
                file: path.to_owned(),
                reason: "the directory holds no *.conf file; put the configuration there".into(),
            });
        }
        for file in files {
            merged.merge(parse_file(&file)?);
        }
        Ok(merged)
    }
}

fn parse_file(path: &Path) -> Result<Document, SettingsError> {
    let bytes = fs::read(path).map_err(|e| SettingsError::Unreadable {
        file: path.to_owned(),
        reason: e.to_string(),
    })?;
    let text = String::from_utf8(bytes).map_err(|e| SettingsError::Unreadable {
        file: path.to_owned(),
        reason: format!(
            "byte {} is not UTF-8; save the file as UTF-8",
            e.utf8_error().valid_up_to()
        ),
    })?;
    Document::parse(path, &text)
}

fn conf_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".conf") && !name.starts_with('.') && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("10.conf", "[DEFAULT]\na=1\nb=1\n[x]\nq=1\n");
        write("20.conf", "[DEFAULT]\nb=2\n[x]\nr=2\n q3\n");
        write("30.txt", "[x]\nno=1\n");
        write(".40.conf", "[x]\nhidden=1\n");
        fs::create_dir(dir.path().join("sub.conf")).unwrap();
        let document = Document::load(dir.path()).unwrap();
        assert_eq!(document.lookup("x", "b").unwrap().value, "2");
        assert_eq!(document.lookup("x", "r").unwrap().value, "2\nq3");
        assert!(document.lookup("x", "no").is_none());
        assert!(document.lookup("x", "hidden").is_none());
    }

    #[test]
    fn names_what_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("nothing.conf");
        let message = Document::load(&missing).unwrap_err().to_string();
        assert!(message.contains("nothing.conf"), "{message}");
        fs::write(&missing, b"[a]\nx = \xff\n").unwrap();
        let message = Document::load(&missing).unwrap_err().to_string();
        assert!(message.contains("byte 8 is not UTF-8"), "{message}");
    }
}
