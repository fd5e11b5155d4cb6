//! Slow, oversized, pipelined and invalid HTTP connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::process::Setup;

const PING: &str = "GET /api/v1/self/ping HTTP/1.1\r\nhost: x\r\n\r\n";

/// Reads until the server closes the connection.
fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // Ignores a reset after the response.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn stalled_connections_time_out_and_block_nobody() {
    let server = Setup::new().arg("--request-timeout-secs", "1").start();
    let half_a_header = "POST /api/v1/login HTTP/1.1\r\nhost: localhost\r\ncontent-ty";
    let half_a_body = "POST /api/v1/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                       application/json\r\ncontent-length: 100\r\n\r\n{\"username\":";
    let slow: Vec<TcpStream> = [half_a_header, half_a_body, ""]
        .iter()
        .cycle()
        .take(300)
        .map(|part| {
            let mut stream = server.connect();
            stream.write_all(part.as_bytes()).unwrap();
            stream
        })
        .collect();

    let started = base::monotonic();
    let mut other = server.connect();
    other.write_all(PING.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    assert!(read_to_end(&mut other).contains("pong"));
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());

    for (n, mut stream) in slow.into_iter().enumerate() {
        let response = read_to_end(&mut stream);
        match n % 3 {
            1 => assert!(response.starts_with("HTTP/1.1 408 "), "{response}"),
            _ => {
                assert!(response.is_empty() || response.starts_with("HTTP/1.1 408 "), "{response}");
            }
        }
    }
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[test]
fn oversized_header_is_rejected() {
    let server = Setup::new().start();
    for length in [10_000, 1_000_000] {
        let mut stream = server.connect();
        let long = format!("x-long: {}\r\nconnection: close\r\n\r\n", "x".repeat(length));
        let request = PING.replace("\r\n\r\n", &format!("\r\n{long}"));
        // The server may close the connection early.
        let _ = stream.write_all(request.as_bytes());
        let response = read_to_end(&mut stream);
        assert!(response.starts_with("HTTP/1.1 431 "), "{length}: {response}");
    }
}

#[test]
fn connection_serves_sequential_and_pipelined_requests() {
    let server = Setup::new().start();
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(PING.as_bytes()).unwrap();
        let mut response = String::new();
        while !response.contains("pong") {
            let mut piece = [0; 4096];
            let length = stream.read(&mut piece).unwrap();
            assert!(length > 0, "the connection ended after {response:?}");
            response.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
    }
    let last = PING.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    stream.write_all(format!("{}{last}", PING.repeat(9)).as_bytes()).unwrap();
    let response = read_to_end(&mut stream);
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 10, "{response}");
    assert_eq!(response.matches("pong").count(), 10, "{response}");
}

#[test]
fn invalid_http_is_rejected() {
    let server = Setup::new().start();
    for nonsense in ["\0\0\0\0\r\n\r\n", "HELLO\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = server.connect();
        stream.write_all(nonsense.as_bytes()).unwrap();
        let response = read_to_end(&mut stream);
        assert!(
            response.is_empty() || response.starts_with("HTTP/1.1 4"),
            "{nonsense:?}: {response}"
        );
    }
    let mut stream = server.connect();
    stream.write_all(PING.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    assert!(read_to_end(&mut stream).contains("pong"));
}
