//! Start time of a container whose image is stored: from the call to the running container.
//!
//! `PADDOCK_BENCH_HELPER` names another helper program, `PADDOCK_BENCH_STARTS` the number of starts.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use model::deployment::Restart;
use runtime::{BUILTIN_IMAGE, Container, Embedded, Options};

fn main() {
    let tokio = tokio::runtime::Runtime::new().expect("threads can be started");
    tokio.block_on(run());
}

async fn run() {
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let helper = std::env::var("PADDOCK_BENCH_HELPER");
    let helper = helper.unwrap_or_else(|_| env!("CARGO_BIN_EXE_runtime-helper").to_owned());
    let starts = std::env::var("PADDOCK_BENCH_STARTS").ok().and_then(|count| count.parse().ok());
    let options = Options {
        program: PathBuf::from(helper),
        egress: false,
        ..Options::new(dir.path().join("rt"), format!("b{}", std::process::id()))
    };
    let runtime = Embedded::probe(options).await.expect("the embedded runtime works: run as root");
    let mut times = Vec::new();
    // The first one unpacks the image.
    for at in 0..=starts.unwrap_or(30) {
        let container = container(at);
        let began = base::monotonic();
        runtime.start(&container).await.expect("the container starts");
        if at > 0 {
            times.push(began.elapsed());
        }
        runtime.stop(&container.name).await.expect("the container stops");
    }
    report(&mut times);
}

fn container(at: u32) -> Container {
    Container {
        name: format!("bench-{at}"),
        image: BUILTIN_IMAGE.to_owned(),
        owner: Some("bench".to_owned()),
        command: Vec::new(),
        env: BTreeMap::new(),
        ports: vec![8080],
        cpu: None,
        ram: Some("64Mi".parse().expect("an amount")),
        disk: None,
        restart: Restart::Never,
        pull: None,
    }
}

fn report(times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
    let _ = writeln!(
        std::io::stdout(),
        "start of a container, image stored: {} starts, median {:.1} ms, p90 {:.1} ms, min {:.1} ms",
        times.len(),
        at(50),
        at(90),
        at(0)
    );
}
