//! Compiles the program of the built-in image, linked statically.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

const SOURCE: &str = "page/page.rs";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let program = Path::new(&variable("OUT_DIR")).join("page");
    let mut command = Command::new(variable("RUSTC"));
    command.arg(SOURCE).arg("-o").arg(&program).args(["--target", &variable("TARGET")]);
    command.args(["--edition", "2024", "--crate-name", "page", "--crate-type", "bin"]);
    let release = "opt-level=z codegen-units=1 lto panic=abort strip=symbols";
    for option in release.split(' ').chain(["target-feature=+crt-static"]) {
        command.args(["-C", option]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg(format!("-Clinker={linker}"));
    }
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        outcome => {
            println!(
                "cargo::error=compiling {SOURCE} failed: {outcome:?}. It needs a static libc."
            );
            ExitCode::FAILURE
        }
    }
}
