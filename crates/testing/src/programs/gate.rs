//! A way to a server that can be made slow, or answer garbage in its place.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What happens to those who come.
#[derive(Clone)]
pub enum Mode {
    /// They reach the server.
    Pass,
    /// They are listened to, and never answered.
    Stall,
    /// They are given these bytes.
    Garbage(Vec<u8>),
}

struct Inside {
    mode: Mode,
    open: Vec<TcpStream>,
}

/// A gate before a server.
pub struct Gate {
    /// Where visitors come to.
    pub address: SocketAddr,
    inside: Arc<Mutex<Inside>>,
}

impl Gate {
    /// A gate that lets all through to `server`.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inside = Arc::new(Mutex::new(Inside { mode: Mode::Pass, open: Vec::new() }));
        let shared = inside.clone();
        std::thread::spawn(move || {
            for visitor in listener.incoming().flatten() {
                let mode = {
                    let mut inside = shared.lock().unwrap();
                    inside.open.push(visitor.try_clone().unwrap());
                    inside.mode.clone()
                };
                std::thread::spawn(move || receive(visitor, server, mode));
            }
        });
        Self { address, inside }
    }

    /// Changes what happens to those who come. Those who are there are cut off.
    pub fn set(&self, mode: Mode) {
        let mut inside = self.inside.lock().unwrap();
        inside.mode = mode;
        for stream in inside.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn receive(mut visitor: TcpStream, server: SocketAddr, mode: Mode) {
    match mode {
        Mode::Pass => {
            let Ok(server) = TcpStream::connect(server) else {
                let _ = visitor.shutdown(Shutdown::Both);
                return;
            };
            let (from, to) = (visitor.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || carry(from, to));
            carry(server, visitor);
        }
        Mode::Stall => while visitor.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {},
        Mode::Garbage(bytes) => {
            let _ = visitor.read(&mut [0; 4096]);
            let _ = visitor.write_all(&bytes);
            let _ = visitor.shutdown(Shutdown::Both);
        }
    }
}

/// Carries bytes until one side is closed, and closes the other.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
