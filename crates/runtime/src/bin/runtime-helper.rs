//! Stand-in for the server in the runtime's tests: fetcher, shim and forwarder, or a server that
//! starts one container and can be killed. Not part of the product.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use model::deployment::Restart;
use runtime::{Container, Embedded, Error, Options, child_main};

fn main() -> ExitCode {
    if let Some(code) = child_main() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, instance, image] = arguments.as_slice() else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map(|runtime| runtime.block_on(serve(dir, instance, image))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => fail(&error.to_string()),
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::FAILURE
}

async fn serve(dir: &str, instance: &str, image: &str) -> Result<(), Error> {
    let mut options = Options { egress: false, ..Options::new(dir, instance) };
    // Registries of tests are on loopback.
    options.registries.addresses.allows_private = true;
    let embedded = Embedded::probe(options).await?;
    let container = Container {
        name: "web-0".to_owned(),
        image: image.to_owned(),
        owner: None,
        command: Vec::new(),
        env: BTreeMap::new(),
        ports: vec![8080],
        cpu: None,
        ram: None,
        disk: None,
        restart: Restart::Always,
        pull: None,
    };
    let endpoints = embedded.start(&container).await?;
    let _ = writeln!(std::io::stdout(), "{}", endpoints.join(" "));
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(())
}
