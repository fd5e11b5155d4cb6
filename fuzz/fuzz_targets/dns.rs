//! Answers of DNS servers (RFC 2136). No unsigned answer is trusted.
#![no_main]

use std::sync::LazyLock;

use adapters::dns::rfc2136::{Algorithm, Key, Options, Rfc2136};
use libfuzzer_sys::fuzz_target;
use model::{Secret, Time};

const NAME: &str = "a.example.test";

static DNS: LazyLock<Rfc2136> = LazyLock::new(|| {
    let secret = Secret::new(data_encoding::BASE64.encode(b"a secret that no answer knows"));
    let key = Key { name: "paddock".into(), algorithm: Algorithm::HmacSha256, secret };
    let server = "127.0.0.1:53".parse().expect("an address");
    let options = Options { server, zone: "example.test".into(), key, ttl_s: 60 };
    Rfc2136::new(&options, || Time(1_900_000_000_000_000), || 7).expect("valid options")
});

fuzz_target!(|answer: &[u8]| {
    let [signed, unsigned] = DNS.parse_response(NAME, answer);
    assert!(signed.is_err(), "an answer without a valid signature was trusted");
    if let Ok(Some(target)) = unsigned {
        // At most 255 bytes, each of which may be escaped by four characters.
        assert!(target.len() <= 4 * 255, "{target}");
    }
    if let Ok(text) = std::str::from_utf8(answer) {
        let _ = Key::from_bind(text);
    }
});
