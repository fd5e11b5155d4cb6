//! An HTTP server with canned responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Returns a status and a body for a request line, such as `GET /metrics HTTP/1.1`.
type Reply = dyn Fn(&str) -> (u16, String) + Send + Sync;

/// Starts a server in this process; returns its address.
pub(crate) fn serve(reply: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let reply: Arc<Reply> = Arc::new(reply);
    std::thread::spawn(move || {
        for visitor in listener.incoming().flatten() {
            let reply = reply.clone();
            std::thread::spawn(move || answer(&visitor, &*reply));
        }
    });
    format!("http://{address}")
}

fn answer(mut visitor: &TcpStream, reply: &Reply) -> Option<()> {
    let mut reader = BufReader::new(visitor);
    let mut lines = reader.by_ref().lines();
    let request = lines.next()?.ok()?;
    let mut length = 0;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let line = line.to_lowercase();
        length = line.strip_prefix("content-length: ").map_or(length, |n| n.parse().unwrap());
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let (status, body) = reply(&request);
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
    visitor.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).ok()
}
