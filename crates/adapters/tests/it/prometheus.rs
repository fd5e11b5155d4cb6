//! Metrics from a real Prometheus, and from fakes.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use adapters::prometheus::{Options, Prometheus};
use model::Secret;
use port::Fault;
use tempfile::TempDir;
use testing::programs::{self, Gate, Mode, Program};

use crate::canned;
use crate::patience::{eventually, now};

const MILLISECOND: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_mins(1);

fn options(url: &str) -> Options {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Options { url: url.into(), token: None, timeout: MINUTE, max_response_bytes: 1 << 20 }
}

fn client(url: &str) -> Prometheus {
    Prometheus::new(options(url)).unwrap()
}

/// A Prometheus that scrapes one target, which may run or not.
struct Watcher {
    folder: TempDir,
    port: u16,
}

impl Watcher {
    fn new(target: &str) -> Self {
        let folder = TempDir::with_prefix("paddock-prometheus-").unwrap();
        let target = target.trim_start_matches("http://");
        let configuration = format!(
            "global: {{scrape_interval: 100ms}}\n\
             scrape_configs: [{{job_name: zoo, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), configuration).unwrap();
        Self { folder, port: programs::free_port() }
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn start(&self) -> Program {
        let mut command = Command::new(programs::find("prometheus", "PADDOCK_TEST_PROMETHEUS"));
        let at = self.folder.path().display();
        command.arg(format!("--config.file={at}/prometheus.yml"));
        command.arg(format!("--storage.tsdb.path={at}/data"));
        command.arg(format!("--web.listen-address={}", self.address()));
        Program::start(&command, self.folder.path())
    }
}

fn zoo() -> String {
    canned::serve(|_| {
        (200, "# TYPE animals gauge\nanimals{kind=\"zebra\"} 3\nanimals{kind=\"emu\"} 1.5\n".into())
    })
}

#[tokio::test]
async fn scraped_values_are_returned_by_all_queries() {
    let watcher = Watcher::new(&zoo());
    let _running = watcher.start();
    let metrics = client(&format!("http://{}/", watcher.address()));
    let found = eventually(async || match metrics.query("animals{kind=\"emu\"}", now()).await? {
        found if found.is_empty() => Err(Fault::Unavailable("nothing scraped yet".into())),
        found => Ok(found),
    });
    let found = found.await;
    assert_eq!(found.len(), 1);
    assert!((found[0].point.value - 1.5).abs() < f64::EPSILON);
    assert_eq!(found[0].labels["__name__"], "animals");
    assert_eq!(found[0].labels["job"], "zoo");

    let (start, end) = (now() - MINUTE, now());
    let series = metrics.query_range("animals", start, end, Duration::from_millis(500)).await;
    let series = series.unwrap();
    assert_eq!(series.len(), 2, "{series:?}");
    for one in &series {
        let times: Vec<_> = one.points.iter().map(|point| point.at).collect();
        assert!(!times.is_empty() && times.is_sorted());
        // Prometheus has a resolution of milliseconds.
        let (start, end) = (start - MILLISECOND, end + MILLISECOND);
        assert!(times.iter().all(|at| *at >= start && *at <= end), "{times:?}");
    }
    let text = metrics.federate(&["animals{kind=\"zebra\"}", "nothing"]).await.unwrap();
    assert!(text.contains("kind=\"zebra\"") && !text.contains("emu"), "{text}");
    assert_eq!(metrics.query("nothing", now()).await, Ok(vec![]));
    assert_eq!(metrics.query("vector(1) * 2", now()).await.unwrap().len(), 1);

    let wrong = metrics.query("animals{", now()).await;
    assert!(matches!(&wrong, Err(Fault::Refused(why)) if why.contains("parse error")), "{wrong:?}");
    assert!(matches!(metrics.query("animals[1m]", now()).await, Err(Fault::Refused(_))));
}

#[tokio::test]
async fn failing_prometheus_recovers() {
    let watcher = Watcher::new(&zoo());
    let gate = Gate::before(watcher.address());
    let metrics = client(&format!("http://{}", gate.address));
    let hasty = Options {
        timeout: Duration::from_millis(100),
        ..options(&format!("http://{}", gate.address))
    };
    let hasty = Prometheus::new(hasty).unwrap();
    let down = client(&format!("http://{}", watcher.address())).query("up", now()).await;
    assert!(matches!(&down, Err(Fault::Unavailable(why)) if why.contains("is unreachable")));

    for _ in 0..2 {
        let running = watcher.start();
        eventually(async || metrics.query("up", now()).await).await;
        gate.set(Mode::Stall);
        let slow = hasty.query("up", now()).await;
        assert!(
            matches!(&slow, Err(Fault::Unavailable(why)) if why.contains("within 100ms")),
            "{slow:?}"
        );
        for garbage in
            ["", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"status\""]
        {
            gate.set(Mode::Garbage(garbage.as_bytes().to_vec()));
            assert!(matches!(metrics.query("up", now()).await, Err(Fault::Unavailable(_))));
        }
        gate.set(Mode::Pass);
        eventually(async || metrics.query("up", now()).await).await;
        running.kill();
        assert!(matches!(metrics.query("up", now()).await, Err(Fault::Unavailable(_))));
    }
}

#[tokio::test]
async fn response_above_the_size_limit_is_not_read() {
    let url = canned::serve(|_| (200, "x".repeat(3 << 20)));
    let result = client(&url).federate(&["up"]).await;
    assert!(
        matches!(&result, Err(Fault::Unavailable(why)) if why.contains("larger than 1048576 bytes"))
    );
}

#[tokio::test]
async fn failures_are_classified() {
    let cases = [
        (401, "", true, "Check the token"),
        (403, "", true, "Check the token"),
        (422, r#"{"status":"error","errorType":"execution","error":"too many"}"#, true, "too many"),
        (400, "<html>", true, "400"),
        (404, "", false, "404"),
        (503, "", false, "503"),
        (302, "", false, "302"),
        (200, "<html>It works!</html>", false, "invalid response"),
        (
            200,
            r#"{"status":"success","data":{"resultType":"matrix","result":7}}"#,
            false,
            "invalid response",
        ),
        (
            200,
            r#"{"status":"success","data":{"resultType":"string","result":[1,"x"]}}"#,
            false,
            "invalid response",
        ),
    ];
    for (status, body, is_refused, expected) in cases {
        let url = canned::serve(move |_| (status, body.into()));
        let options = Options { token: Some(Secret::new("hidden")), ..options(&url) };
        let fault = Prometheus::new(options).unwrap().query("up", now()).await.unwrap_err();
        assert_eq!(matches!(fault, Fault::Refused(_)), is_refused, "{status} {fault}");
        let message = fault.to_string();
        assert!(message.contains(expected) && !message.contains("hidden"), "{message}");
    }
    let bad = Prometheus::new(options("prometheus:9090"));
    assert!(matches!(bad, Err(Fault::Refused(why)) if why.contains("“prometheus:9090”")));
}
