//! A network of its own for a test: a "host" that runs containers, and another machine.
//!
//! Both are network namespaces that the test makes, so that no address outside of them is ever
//! used, not even those of metadata services.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::sync::mpsc;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// The other machine's public address.
pub(crate) const PUBLIC: &str = "203.0.113.10";
/// The other machine's private addresses; the first is the DNS server.
pub(crate) const PRIVATE: [&str; 3] = ["192.168.77.53", "10.9.9.9", "172.20.0.9"];
/// Address of the metadata services of clouds; here the other machine's.
pub(crate) const METADATA: &str = "169.254.169.254";
/// The host's address.
pub(crate) const HOST: &str = "203.0.113.1";
/// A port on which the host and the other machine answer.
pub(crate) const PORT: u16 = 8000;

/// Runs a test in the host's namespaces, connected with the other machine.
pub(crate) fn on_a_host<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let host = std::thread::spawn(move || {
        new_namespaces();
        ip("link set lo up");
        connect_other_machine();
        answer();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(test());
    });
    if let Err(panic) = host.join() {
        std::panic::resume_unwind(panic);
    }
}

fn new_namespaces() {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("tests run as root");
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("nameserver {}\n", PRIVATE[0])).unwrap();
    mount(Some(file.path()), "/etc/resolv.conf", none, MsFlags::MS_BIND, none).unwrap();
}

/// Starts the other machine, with routes in both directions.
fn connect_other_machine() {
    let (tell_tid, tid) = mpsc::channel();
    let (connected, is_connected) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        tell_tid.send(nix::unistd::gettid()).unwrap();
        is_connected.recv().unwrap();
        ip("link set lo up");
        ip("link set up1 up");
        for address in [PUBLIC].into_iter().chain(PRIVATE).chain([METADATA]) {
            ip(&format!("address add {address}/24 dev up1"));
        }
        ip(&format!("route add default via {HOST}"));
        answer();
        std::thread::spawn(|| answer_dns(&UdpSocket::bind((PRIVATE[0], 53)).unwrap()));
        ready.send(()).unwrap();
        // The namespace lives as long as its threads: until the end of the test's process.
        loop {
            std::thread::park();
        }
    });
    let tid = tid.recv().unwrap();
    ip(&format!("link add up0 type veth peer name up1 netns {tid}"));
    ip(&format!("address add {HOST}/24 dev up0"));
    ip("link set up0 up");
    for address in PRIVATE.into_iter().chain([METADATA]) {
        ip(&format!("route add {address}/32 dev up0"));
    }
    connected.send(()).unwrap();
    is_ready.recv().unwrap();
}

/// Accepts connections on all addresses of this namespace and greets.
fn answer() {
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"hello\n");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0]);
        }
    });
}

/// Answers every query with one address.
fn answer_dns(socket: &UdpSocket) {
    let mut query = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut query) {
        let mut answer = query[..length].to_vec();
        // A response with one answer: the name of the question, A, IN, 60 s, 203.0.113.10.
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        answer[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 10]);
        let _ = socket.send_to(&answer, from);
    }
}

/// Runs `ip` in this thread's namespace.
pub(crate) fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.expect("the package iproute2 is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
