//! TCP proxy in front of a server that can stall or respond with garbage.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Behaviour of the gate.
#[derive(Clone)]
pub enum Mode {
    /// Connections reach the server.
    Pass,
    /// Connections are accepted and read, but never answered.
    Stall,
    /// Connections receive these bytes.
    Garbage(Vec<u8>),
}

struct State {
    mode: Mode,
    open: Vec<TcpStream>,
}

/// A gate in front of a server.
pub struct Gate {
    /// Address for clients.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Gate {
    /// Starts a gate that passes connections to `server`.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { mode: Mode::Pass, open: Vec::new() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mode = {
                    let mut state = shared.lock().unwrap();
                    state.open.push(client.try_clone().unwrap());
                    state.mode.clone()
                };
                std::thread::spawn(move || handle(client, server, mode));
            }
        });
        Self { address, state }
    }

    /// Changes the behaviour for new connections and closes open ones.
    pub fn set(&self, mode: Mode) {
        let mut state = self.state.lock().unwrap();
        state.mode = mode;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn handle(mut client: TcpStream, server: SocketAddr, mode: Mode) {
    match mode {
        Mode::Pass => {
            let Ok(server) = TcpStream::connect(server) else {
                let _ = client.shutdown(Shutdown::Both);
                return;
            };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || copy(from, to));
            copy(server, client);
        }
        Mode::Stall => while client.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {},
        Mode::Garbage(bytes) => {
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(&bytes);
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

/// Copies bytes until one side is closed, and closes the other.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
