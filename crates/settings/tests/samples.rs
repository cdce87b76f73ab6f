//! The files in `etc/` are what the declarations say.
//!
//! After changing an option: `MARTLET_WRITE_REFERENCE=1 cargo test -p settings`.

use settings::sample::{SampleKind, sample};
use std::path::Path;

#[test]
fn the_samples_are_current() {
    let etc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etc");
    let mut old = vec![];
    for kind in SampleKind::ALL {
        let (path, current) = (etc.join(format!("{}-sample", kind.file_name())), sample(kind));
        if std::env::var_os("MARTLET_WRITE_REFERENCE").is_some() {
            std::fs::create_dir_all(&etc).expect("etc can be made");
            std::fs::write(&path, &current).expect("the sample can be written");
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != current {
            old.push(path);
        }
    }
    assert!(
        old.is_empty(),
        "out of step with the declarations: {old:?}; run: MARTLET_WRITE_REFERENCE=1 cargo test -p settings"
    );
}
