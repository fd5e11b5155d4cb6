//! Quantities: text and JSON. What is parsed is printed and parsed again to the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{Quantity, Resources};

fuzz_target!(|text: &str| {
    if let Ok(quantity) = text.parse::<Quantity>() {
        check(quantity);
    }
    if let Ok(quantity) = serde_json::from_str::<Quantity>(text) {
        check(quantity);
    }
    if let Ok(resources) = serde_json::from_str::<Resources>(text) {
        check_resources(&resources);
    }
});

fn check(quantity: Quantity) {
    assert!((Quantity::ZERO..=Quantity::MAX).contains(&quantity), "{quantity:?}");
    for printed in [quantity.to_string(), quantity.to_short_string()] {
        assert_eq!(printed.parse(), Ok(quantity), "{printed}");
    }
    let json = serde_json::to_string(&quantity).expect("a number is JSON");
    let parsed = serde_json::from_str::<Quantity>(&json).expect("it was written as JSON");
    assert_eq!(parsed, quantity, "{json}");
    assert!(quantity.times(2).is_none_or(|double| double.minus(quantity) == quantity));
}

fn check_resources(resources: &Resources) {
    let json = serde_json::to_string(resources).expect("a map is JSON");
    let parsed = serde_json::from_str::<Resources>(&json).expect("it was written as JSON");
    assert_eq!(&parsed, resources);
    assert!(resources.fits(resources) && resources.shortage(resources).is_empty());
    let _ = (resources.check("resource"), resources.times(u32::MAX), resources.to_string());
}
