//! Manifests and indexes of registries. Only a manifest within the size limit is accepted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime::fuzzing::manifest;

const MAX_LAYERS: usize = 128;

fuzz_target!(|document: &[u8]| {
    if let Ok((layers, _)) = manifest(document, 1 << 30) {
        assert!(layers <= MAX_LAYERS, "{layers} layers");
        let smaller = manifest(document, 0);
        assert!(smaller.is_err() || smaller == manifest(document, 1 << 30));
    }
});
