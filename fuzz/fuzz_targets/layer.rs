//! Layers (tar, compressed or not), applied to a directory. No file outside changes, and no layer
//! takes more than its budget.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paddock_fuzz::Sandbox;
use runtime::fuzzing::layer;

const MAX_BYTES: u64 = 256 << 10;
const MAX_ENTRIES: u64 = 64;

fuzz_target!(|blob: &[u8]| {
    let sandbox = Sandbox::new();
    layer(&sandbox.path(), blob, MAX_BYTES, MAX_ENTRIES);
    let usage = sandbox.check();
    assert!(usage.entries <= MAX_ENTRIES, "{usage:?}");
    // The file that exceeds the budget is written up to it, and one byte more.
    assert!(usage.disk_bytes <= MAX_BYTES + 4096, "{usage:?}");
});
