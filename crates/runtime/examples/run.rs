//! Pulls an image and runs it: `run IMAGE [COMMAND…]`, as root.
//!
//! Prints the container's output; exits with 0 if it completed, else with 1.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use futures_util::StreamExt as _;
use model::deployment::Restart;
use model::log::LogsFrom;
use runtime::{Condition, Container, Embedded, Error, Options};

fn main() -> ExitCode {
    // First, before any thread exists: the runtime starts this program again as helper processes.
    if let Some(code) = runtime::child_main() {
        return code;
    }
    let mut arguments = std::env::args().skip(1);
    let Some(image) = arguments.next() else { return fail("usage: run IMAGE [COMMAND…]") };
    let container = Container {
        name: "example".to_owned(),
        image,
        owner: None,
        command: arguments.collect(),
        env: BTreeMap::new(),
        ports: Vec::new(),
        cpu: Some("500m".parse().expect("half a CPU")),
        ram: Some("256Mi".parse().expect("bytes")),
        disk: None,
        restart: Restart::Never,
        pull: None,
    };
    let tokio = tokio::runtime::Runtime::new().expect("threads can be started");
    match tokio.block_on(run(&container)) {
        Ok(Condition::Failed(why)) => fail(&why),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

async fn run(container: &Container) -> Result<Condition, Error> {
    let runtime = Embedded::probe(Options::new("/var/lib/runtime-example", "example")).await?;
    let endpoints = runtime.start(container).await?;
    let mut lines = runtime.logs(&container.name, &LogsFrom::Start, true);
    while let Some(line) = lines.next().await {
        let _ = writeln!(std::io::stdout(), "{}", line.text);
    }
    let end = runtime.changed(&container.name, &Condition::Running { endpoints }).await;
    runtime.stop(&container.name).await?;
    Ok(end)
}

fn fail(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{why}");
    ExitCode::FAILURE
}
