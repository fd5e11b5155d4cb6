//! A BIND of the test's own, with a zone that keys may change.

use std::net::SocketAddr;
use std::process::Command;

use adapters::dns::rfc2136::{Key, Options, Rfc2136};
use tempfile::TempDir;

use crate::patience;
use crate::program::{self, Program};

/// The zone that is served.
pub(crate) const ZONE: &str = "fleet.example.test";

/// The folder, the port and the keys of a server, which may run or not.
pub(crate) struct Bind {
    folder: TempDir,
    pub(crate) port: u16,
    /// May change the zone.
    pub(crate) writer: Key,
    /// May only look.
    pub(crate) reader: Key,
}

impl Bind {
    /// Prepares a server; it does not run yet.
    pub(crate) fn prepare() -> Self {
        let (folder, port) = (TempDir::with_prefix("paddock-bind-").unwrap(), program::free_port());
        let files = [keygen("writer", "hmac-sha256"), keygen("reader", "hmac-sha512")];
        let at = folder.path().display().to_string();
        let configuration = format!(
            r#"{} {} controls {{ }};
            options {{ directory "{at}"; pid-file "{at}/pid"; session-keyfile "{at}/session";
                managed-keys-directory "{at}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
                recursion no; dnssec-validation no; notify no; empty-zones-enable no; }};
            zone "{ZONE}" {{ type primary; file "{at}/zone"; update-policy {{ grant writer zonesub ANY; }}; }};"#,
            files[0], files[1]
        );
        let zone =
            "$TTL 60\n@ SOA ns admin 1 60 60 600 60\n@ NS ns\nns A 127.0.0.1\nhost A 127.0.0.1\n";
        std::fs::write(folder.path().join("named.conf"), configuration).unwrap();
        std::fs::write(folder.path().join("zone"), zone).unwrap();
        let [writer, reader] = files.map(|file| Key::from_bind(&file).unwrap());
        Self { folder, port, writer, reader }
    }

    /// Starts it, again on the same port with what it knew.
    pub(crate) fn start(&self) -> Program {
        // Debian's AppArmor keeps the program at its usual path out of temporary folders.
        let copy = self.folder.path().join("named");
        std::fs::copy(program::find("named", "PADDOCK_TEST_NAMED"), &copy).unwrap();
        let mut named = Command::new(copy);
        named.args(["-g", "-n", "1", "-c"]).arg(self.folder.path().join("named.conf"));
        let running = Program::start(&named, self.folder.path());
        running.wait_until(|| !self.dig(ZONE, "SOA").is_empty())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// What somebody else is told.
    pub(crate) fn dig(&self, name: &str, kind: &str) -> String {
        let mut dig = Command::new(program::find("dig", "PADDOCK_TEST_DIG"));
        dig.args(["@127.0.0.1", "-p", &self.port.to_string(), "+tcp", "+noall", "+answer"]);
        let output = dig.args(["+time=5", "+tries=1", name, kind]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let records = text.lines().filter(|line| !line.is_empty() && !line.starts_with(';'));
        records.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
    }
}

/// The adapter, as the settings would make it.
pub(crate) fn adapter(server: SocketAddr, key: &Key) -> Rfc2136 {
    let options = Options { server, zone: ZONE.into(), key: key.clone(), ttl_s: 300 };
    Rfc2136::new(&options, patience::now, || 4711).unwrap()
}

fn keygen(name: &str, algorithm: &str) -> String {
    let mut keygen = Command::new(program::find("tsig-keygen", "PADDOCK_TEST_TSIG_KEYGEN"));
    let output = keygen.args(["-a", algorithm, name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
