//! The program of the built-in image `localhost/paddock-page:1`: serves one page.
//!
//! Uses only the standard library. `build.rs` links it statically, so that the image contains no
//! other file.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

const USAGE: &str = "usage: page [--say TEXT] [--exit CODE] [--allocate MIB]

Serves a page on port 8080 (variable PORT) with the text of the variable MESSAGE.
  --say TEXT      print TEXT and exit
  --exit CODE     exit with CODE
  --allocate MIB  allocate memory before serving";
/// Requests with more header lines are cut off.
const MAX_LINES: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().unwrap_or_default();
        match (flag.as_str(), value.parse::<u64>()) {
            ("--say", _) => {
                println!("{value}");
                return ExitCode::SUCCESS;
            }
            ("--exit", Ok(code)) => return ExitCode::from(u8::try_from(code).unwrap_or(1)),
            ("--allocate", Ok(mib)) => allocate(mib),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("page: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Allocates memory, writes to every page of it, and never frees it.
fn allocate(mib: u64) {
    println!("allocating {mib} MiB");
    for _ in 0..mib {
        std::mem::forget(std::hint::black_box(vec![1u8; 1 << 20]));
    }
}

fn serve() -> io::Result<()> {
    let port = env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8080u16);
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    println!("listening on port {port}");
    for (number, stream) in (1u64..).zip(listener.incoming()) {
        let Ok(stream) = stream else { continue };
        thread::spawn(move || answer(&stream, number));
    }
    Ok(())
}

fn answer(mut stream: &TcpStream, number: u64) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(64 << 10)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    lines
        .take(MAX_LINES)
        .take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty()))
        .count();
    println!("{request}");
    let body = page(number);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    )?;
    if !request.starts_with("HEAD ") {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

fn page(number: u64) -> String {
    let message = escaped(&env::var("MESSAGE").unwrap_or_else(|_| "Hello from Paddock".to_owned()));
    let host = env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = escaped(host.unwrap_or_default().trim());
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\"><title>{message}</title>\
         <style>body{{font:1.2rem/1.5 system-ui,sans-serif;max-width:36rem;margin:20vh auto;\
         padding:0 1rem;color-scheme:light dark}}p{{opacity:.7}}</style><h1>{message}</h1>\
         <p>Served by container {host}, request {number}.</p></html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
