//! Files of `/etc/swift`: whatever they say is read or refused, quickly, and never makes much of little.

use crate::input::text;
use settings::interpolate::expand;
use settings::realms::Realms;
use settings::{
    AccountServerSettings, ContainerServerSettings, Document, ObjectServerSettings, ProxyConf, StorageConf, SwiftConf,
};
use std::path::Path;

pub(crate) fn configuration(bytes: &[u8]) {
    let (path, text) = (Path::new("/etc/swift/fuzzed.conf"), text(bytes));
    let _ = Realms::parse(path, &text);
    let Ok(document) = Document::parse(path, &text) else {
        return;
    };
    let lines = text.lines().count();
    for section in &document.sections {
        for option in &section.options {
            assert!((1..=lines).contains(&option.line), "{option:?}");
            assert_eq!(
                document.section(&section.name).and_then(|it| it.get(&option.name)),
                Some(option)
            );
            if let Ok(expanded) = expand(&document, &section.name, option) {
                assert!(expanded.len() <= 1 << 20, "{} bytes of {}", expanded.len(), text.len());
            }
        }
    }
    let _ = SwiftConf::from_document(&document);
    let _ = ProxyConf::from_documents(&document, Some(&document));
    let _ = ProxyConf::internal_from_documents(&document, None);
    let _ = StorageConf::<ObjectServerSettings>::from_document(&document);
    let _ = StorageConf::<ContainerServerSettings>::from_document(&document);
    let _ = StorageConf::<AccountServerSettings>::from_document(&document);
}
