//! Readiness checks. Run by the agent, because the control plane may not reach the container.

use std::io;
use std::time::Duration;

use model::deployment::{Probe, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two attempts: first and maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Returns when the check passes; an error if it does not in time.
pub(crate) async fn until_ready(
    probe: &Probe,
    ports: &[u16],
    endpoints: &[String],
) -> Result<(), Reason> {
    let failed = |within: Option<u32>, message: String| Reason::ReadinessCheckFailed {
        port: Some(probe.port),
        within_seconds: within.map(u64::from),
        message,
    };
    let at = ports.iter().position(|port| *port == probe.port);
    let Some(endpoint) = at.and_then(|at| endpoints.get(at)) else {
        return Err(failed(None, "the port is not published".to_owned()));
    };
    let end = base::monotonic() + Duration::from_secs(probe.within.into());
    let mut pause = FIRST_PAUSE;
    loop {
        let Err(error) =
            timeout(ATTEMPT_TIMEOUT, attempt(probe, endpoint)).await.unwrap_or_else(timed_out)
        else {
            return Ok(());
        };
        if base::monotonic() + pause > end {
            return Err(failed(Some(probe.within), error.to_string()));
        }
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

fn timed_out(_: tokio::time::error::Elapsed) -> io::Result<()> {
    Err(io::Error::other(format!("no response within {} s", ATTEMPT_TIMEOUT.as_secs())))
}

async fn attempt(probe: &Probe, endpoint: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(endpoint).await?;
    let Some((path, expected)) = &probe.http else { return check_open(&mut stream).await };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    // "HTTP/1.1 200": the rest is ignored.
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = std::str::from_utf8(&head[9..]).unwrap_or_default();
    if status == expected.to_string() {
        return Ok(());
    }
    let status = status.escape_default();
    Err(io::Error::other(format!("{path} returned {status}, expected {expected}")))
}

/// A port forwarder accepts before the program does, and closes if the program does not listen.
async fn check_open(stream: &mut TcpStream) -> io::Result<()> {
    match timeout(Duration::from_millis(100), stream.read(&mut [0])).await {
        Ok(Ok(0)) => Err(io::Error::other("connection closed immediately")),
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn server(response: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let serve = async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1000]).await;
                let _ = stream.write_all(response.as_bytes()).await;
            }
        };
        std::mem::forget(tokio::task::spawn_local(serve));
        at
    }

    async fn check(response: &'static str, http: Option<(String, u16)>) -> Result<(), Reason> {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let at = server(response).await;
                let probe = Probe { port: 80, http, within: 1 };
                until_ready(&probe, &[70, 80], &["127.0.0.1:1".into(), at]).await
            })
            .await
    }

    #[tokio::test]
    async fn http_status_is_compared() {
        let http = Some(("/ok".to_owned(), 200));
        check("HTTP/1.1 200 OK\r\n\r\n", http.clone()).await.unwrap();
        let other = check("HTTP/1.1 503 No\r\n\r\n", http.clone()).await;
        let other = other.unwrap_err().to_string();
        assert!(other.contains("/ok returned 503, expected 200"), "{other}");
        assert!(check("garbage without end", http).await.is_err());
    }

    #[tokio::test]
    async fn closed_or_unpublished_port_fails() {
        let probe = Probe { port: 80, http: None, within: 0 };
        let late = until_ready(&probe, &[80], &["127.0.0.1:1".into()]).await;
        let late = late.unwrap_err();
        assert!(
            matches!(
                late,
                Reason::ReadinessCheckFailed { port: Some(80), within_seconds: Some(0), .. }
            ),
            "{late:?}"
        );
        let unknown = until_ready(&probe, &[81], &["127.0.0.1:1".into()]).await;
        let message = "the port is not published".to_owned();
        let unpublished =
            Reason::ReadinessCheckFailed { port: Some(80), within_seconds: None, message };
        assert_eq!(unknown, Err(unpublished));
    }
}
