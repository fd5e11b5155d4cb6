//! A fake server that answers each connection with the next step of a script.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Step of the script, for one connection.
pub(crate) enum Act {
    /// Sends a response and closes the connection.
    Answer(String),
    /// Closes the connection without a response.
    HangUp,
}

/// A response with a JSON body.
pub(crate) fn json(status: &str, body: &str) -> Act {
    answer(status, "content-type: application/json\r\n", body)
}

/// A response with additional headers, each terminated by CRLF.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Answer(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

/// An event stream that breaks at its end.
pub(crate) fn stream(events: &str) -> Act {
    Act::Answer(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
    ))
}

/// The fake server.
pub(crate) struct Fake {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Starts the server; after the script, connections are refused.
    pub(crate) fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        thread::spawn(move || {
            for act in script {
                let (mut connection, _) = listener.accept().unwrap();
                received.lock().unwrap().push(read(&connection));
                if let Act::Answer(text) = act {
                    let _ = connection.write_all(text.as_bytes());
                }
            }
        });
        Self { address, requests }
    }

    /// Requests so far, with headers in lower case.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads a request, with its head in lower case.
pub(crate) fn read(connection: &TcpStream) -> String {
    let mut reader = BufReader::new(connection);
    let mut text = String::new();
    while reader.read_line(&mut text).is_ok_and(|bytes| bytes > 2) {}
    let mut text = text.to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    text.push_str(&String::from_utf8(body).unwrap());
    text
}

/// Value of a request header.
pub(crate) fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let head = request.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
