//! Pages and samples that declarations make are what the declarations say.

use crate::finding::Finding;
use crate::tree::Tree;
use settings::sample::{SampleKind, reference, sample};

const REMEDY: &str = "is out of step with the declarations: run MARTLET_WRITE_REFERENCE=1 cargo test -p settings";

/// The page of metrics has its check beside its declarations (`crates/telemetry/src/metrics/catalogue.rs`): what
/// telemetry depends on would make this crate slow to build.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    let samples = SampleKind::ALL.map(|kind| (format!("etc/{}-sample", kind.file_name()), sample(kind)));
    let page = ("docs/reference/configuration.md".to_owned(), reference());
    for (path, current) in samples.into_iter().chain([page]) {
        let written = tree.generated.get(&path).map(String::as_str).unwrap_or_default();
        if written != current {
            let same = written.lines().zip(current.lines()).take_while(|(a, b)| a == b).count();
            findings.push(Finding::new("generated", &path, same + 1, format!("the file {REMEDY}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_page_is_found() {
        let mut tree = Tree::default();
        let pages = SampleKind::ALL.map(|kind| (format!("etc/{}-sample", kind.file_name()), sample(kind)));
        tree.generated.extend(pages);
        tree.generated
            .insert("docs/reference/configuration.md".to_owned(), reference());
        assert!(check(&tree).is_empty());
        let page = tree.generated.get_mut("etc/swift.conf-sample").unwrap();
        *page = page.replacen('\n', "\nan edit\n", 1);
        let found = check(&tree);
        assert_eq!(
            (found.len(), found[0].file.as_str(), found[0].line),
            (1, "etc/swift.conf-sample", 2)
        );
    }
}
