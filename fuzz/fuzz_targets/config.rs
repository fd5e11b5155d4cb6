//! Image configurations. Every chain id is a digest: it becomes a file name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime::fuzzing::config;

fuzz_target!(|document: &[u8]| {
    for count in 0..4 {
        let Ok(chains) = config(document, count) else { continue };
        assert_eq!(chains.len(), count);
        for chain in &chains {
            let is_hex = chain.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            assert!(chain.len() == 64 && is_hex, "{chain}");
        }
    }
});
