//! BIND with a zone that can be updated by key.

use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use super::{Program, ZONE, find, free_port};

/// Folder, port and keys of a server, which may run or not.
pub struct Bind {
    folder: TempDir,
    port: u16,
    /// Key that may update the zone, as `tsig-keygen` writes it.
    pub writer: String,
    /// Key that may only read.
    pub reader: String,
}

impl Bind {
    /// Prepares a server without starting it.
    pub fn prepare() -> Self {
        let (folder, port) = (TempDir::with_prefix("paddock-bind-").unwrap(), free_port());
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
        let [writer, reader] = files;
        Self { folder, port, writer, reader }
    }

    /// Starts it, on the same port and with its data.
    pub fn start(&self) -> Program {
        // Debian's AppArmor profile of the installed program denies temporary folders.
        let copy = self.folder.path().join("named");
        std::fs::copy(find("named", "PADDOCK_TEST_NAMED"), &copy).unwrap();
        let mut named = Command::new(copy);
        named.args(["-g", "-n", "1", "-c"]).arg(self.folder.path().join("named.conf"));
        let running = Program::start(&named, self.folder.path());
        running.wait_until(|| !self.dig(ZONE, "SOA").is_empty())
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The records of a name, as `dig` prints them.
    pub fn dig(&self, name: &str, kind: &str) -> String {
        let text = self.query(&["+answer", name, kind]);
        let records = text.lines().filter(|line| !line.is_empty() && !line.starts_with(';'));
        records.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
    }

    /// The status of a query: `NOERROR`, `NXDOMAIN`.
    pub fn status(&self, name: &str) -> String {
        let text = self.query(&["+comments", name]);
        let (_, rest) =
            text.split_once("status: ").unwrap_or_else(|| panic!("no response: {text}"));
        rest.split(',').next().unwrap_or_default().to_owned()
    }

    fn query(&self, arguments: &[&str]) -> String {
        let mut dig = Command::new(find("dig", "PADDOCK_TEST_DIG"));
        dig.args(["@127.0.0.1", "-p", &self.port.to_string(), "+tcp", "+noall"]);
        let output = dig.args(["+time=5", "+tries=1"]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Updates the zone, as another client with the key does: a line for `nsupdate`.
    pub fn update(&self, line: &str) {
        let (key, lines) = (self.folder.path().join("writer"), self.folder.path().join("update"));
        std::fs::write(&key, &self.writer).unwrap();
        let server = format!("server 127.0.0.1 {}\nzone {ZONE}\n{line}\nsend\n", self.port);
        std::fs::write(&lines, server).unwrap();
        let mut nsupdate = Command::new(find("nsupdate", "PADDOCK_TEST_NSUPDATE"));
        let done = nsupdate.args(["-v", "-k"]).arg(key).arg(lines).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

fn keygen(name: &str, algorithm: &str) -> String {
    let mut keygen = Command::new(find("tsig-keygen", "PADDOCK_TEST_TSIG_KEYGEN"));
    let output = keygen.args(["-a", algorithm, name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
