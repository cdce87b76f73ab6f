//! `docs/reference/configuration.md` says what the declarations say.
//!
//! After changing an option: `MARTLET_WRITE_REFERENCE=1 cargo test -p settings --test reference_page`.

use std::path::Path;

#[test]
fn the_reference_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let current = settings::sample::reference();
    if std::env::var_os("MARTLET_WRITE_REFERENCE").is_some() {
        std::fs::write(&page, &current).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        written == current,
        "docs/reference/configuration.md is out of step with the declarations; \
         run: MARTLET_WRITE_REFERENCE=1 cargo test -p settings --test reference_page"
    );
}
