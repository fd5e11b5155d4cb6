//! Snapshots: files in `snapshots/` with every text that users see, for review.
//!
//! Uses only `std`: crates that `testing` depends on include this file by path.

use std::path::Path;

/// Fails unless `snapshots/{name}` contains `text`. `UPDATE_SNAPSHOTS=1` writes the file instead.
pub fn assert_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("writable");
        std::fs::write(&path, text).expect("writable");
    }
    let saved = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = (1..).zip(saved.lines().zip(text.lines())).find(|(_, (old, new))| old != new);
    assert!(
        saved == text,
        "snapshots/{name} differs from the code, first at {differs:?}. If the change is intended: \
         UPDATE_SNAPSHOTS=1 cargo nextest run --workspace snapshot"
    );
}
