//! Image archives (`docker save` and OCI layout). Files are stored inside the directory, under
//! numbers, within the budget.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paddock_fuzz::Sandbox;
use runtime::fuzzing::archive;

const MAX_BYTES: u64 = 256 << 10;

fuzz_target!(|data: &[u8]| {
    let sandbox = Sandbox::new();
    let images = archive(data, &sandbox.path(), MAX_BYTES);
    let is_number =
        |name: &std::ffi::OsStr| name.to_str().is_some_and(|n| n.parse::<u32>().is_ok());
    for entry in std::fs::read_dir(sandbox.path()).expect("it exists").flatten() {
        assert!(is_number(&entry.file_name()), "{}", entry.path().display());
    }
    let usage = sandbox.check();
    assert!(usage.bytes <= MAX_BYTES + 1, "{usage:?}");
    assert!(images.is_err() || usage.entries >= 2, "an image has a manifest and a configuration");
});
