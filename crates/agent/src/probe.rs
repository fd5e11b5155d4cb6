//! Does a program answer? Asked from beside it, because its control plane may not reach it.

use std::io;
use std::time::Duration;

use model::deployment::{Probe, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// How long one try may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait between two tries: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Returns when the program answers; an error when it has not in its time.
pub(crate) async fn until_answered(
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
        let Err(error) = timeout(PATIENCE, ask(probe, endpoint)).await.unwrap_or_else(late) else {
            return Ok(());
        };
        if base::monotonic() + pause > end {
            return Err(failed(Some(probe.within), error.to_string()));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn late(_: tokio::time::error::Elapsed) -> io::Result<()> {
    Err(io::Error::other(format!("no answer within {} s", PATIENCE.as_secs())))
}

async fn ask(probe: &Probe, endpoint: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(endpoint).await?;
    let Some((path, wanted)) = &probe.http else { return still_open(&mut stream).await };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    // "HTTP/1.1 200": more is not looked at.
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = std::str::from_utf8(&head[9..]).unwrap_or_default();
    if status == wanted.to_string() {
        return Ok(());
    }
    let status = status.escape_default();
    Err(io::Error::other(format!("{path} was answered with {status}, not {wanted}")))
}

/// Whoever forwards the port accepts before the program does, and closes when it finds nobody.
async fn still_open(stream: &mut TcpStream) -> io::Result<()> {
    match timeout(Duration::from_millis(100), stream.read(&mut [0])).await {
        Ok(Ok(0)) => Err(io::Error::other("the connection was closed at once")),
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let serve = async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1000]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        };
        std::mem::forget(tokio::task::spawn_local(serve));
        at
    }

    async fn asked(answer: &'static str, http: Option<(String, u16)>) -> Result<(), Reason> {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let at = server(answer).await;
                let probe = Probe { port: 80, http, within: 1 };
                until_answered(&probe, &[70, 80], &["127.0.0.1:1".into(), at]).await
            })
            .await
    }

    #[tokio::test]
    async fn the_answer_that_is_wanted() {
        let wanted = Some(("/ok".to_owned(), 200));
        asked("HTTP/1.1 200 OK\r\n\r\n", wanted.clone()).await.unwrap();
        let other = asked("HTTP/1.1 503 No\r\n\r\n", wanted.clone()).await;
        let other = other.unwrap_err().to_string();
        assert!(other.contains("/ok was answered with 503, not 200"), "{other}");
        assert!(asked("garbage without end", wanted).await.is_err());
    }

    #[tokio::test]
    async fn a_port_that_nobody_listens_on() {
        let probe = Probe { port: 80, http: None, within: 0 };
        let late = until_answered(&probe, &[80], &["127.0.0.1:1".into()]).await;
        let late = late.unwrap_err();
        assert!(
            matches!(
                late,
                Reason::ReadinessCheckFailed { port: Some(80), within_seconds: Some(0), .. }
            ),
            "{late:?}"
        );
        let unknown = until_answered(&probe, &[81], &["127.0.0.1:1".into()]).await;
        let message = "the port is not published".to_owned();
        let unpublished =
            Reason::ReadinessCheckFailed { port: Some(80), within_seconds: None, message };
        assert_eq!(unknown, Err(unpublished));
    }
}
