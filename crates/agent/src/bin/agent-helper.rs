//! Helper processes of the embedded runtime for this crate's tests. Not part of the product.

use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::child_main().unwrap_or(ExitCode::FAILURE)
}
