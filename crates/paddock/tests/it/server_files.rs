//! Permissions of the server's files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::process::Setup;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_that_others_can_read_become_private_with_a_log_line() {
    let mut server = Setup::new().start();
    server.terminate();
    assert!(server.wait_for_exit(Duration::from_secs(10)).success());
    let data = server.setup.file("data");
    let shared =
        [(data.clone(), 0o755), (data.join("paddock.db"), 0o644), (data.join("seal.key"), 0o640)];
    for (path, mode) in &shared {
        fs::set_permissions(path, Permissions::from_mode(*mode)).unwrap();
    }
    server.restart();
    for (path, before) in &shared {
        assert_eq!(mode(path) & 0o077, 0, "{}", path.display());
        let log = server.stderr();
        let line = log.lines().find(|line| line.contains(&format!("path={} ", path.display())));
        let line = line.unwrap_or_else(|| panic!("no line for {}: {log}", path.display()));
        assert!(line.contains("WARN") && line.contains(&format!("{before:o}")), "{line}");
    }
}

#[test]
fn new_database_outside_the_data_directory_is_private() {
    let setup = Setup::new();
    let file = setup.file("elsewhere.db");
    let server = setup.arg("--database-url", &format!("sqlite:{}", file.display())).start();
    for suffix in ["", "-wal", "-shm"] {
        let file = server.setup.file(&format!("elsewhere.db{suffix}"));
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn data_directory_shared_by_all_users_is_refused() {
    let setup = Setup::new();
    let data = setup.file("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o1777)).unwrap();
    setup.run_to_exit().fails(1, &["error: --data-dir: ", "shared by all users"]);
}
