//! How well and how fast placement is: `cargo bench -p paddock-model --bench placement`.
//!
//! Part (a) compares what was packed with an upper bound, part (b) measures decisions per second
//! and the cost of one change in a large world. Everything is generated from fixed seeds; only the
//! times differ from run to run.

#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]
#![expect(clippy::cast_precision_loss, reason = "shown with three digits")]

#[path = "placement/generate.rs"]
mod generate;
#[path = "placement/packing.rs"]
mod packing;
#[path = "placement/speed.rs"]
mod speed;

fn main() {
    let wants = |part: &str| {
        let named: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
        named.is_empty() || named.iter().any(|name| name == part)
    };
    if wants("packing") {
        packing::print();
    }
    if wants("speed") {
        speed::print();
    }
}
