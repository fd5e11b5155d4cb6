//! External systems behind a fault-injecting gate.

use std::fs;

use serde_json::json;
use testing::programs::{
    Bind, Gate, INITIAL_TOKEN, Mode, Moto, OidcProvider, Program, ZONE, claims, free_port,
};

use crate::process::Setup;

/// An external system that instances need.
pub(super) trait System {
    /// Name in health checks.
    const NAME: &str;
    /// Number of objects per instance.
    const EACH: usize;
    /// An invalid response.
    const GARBAGE: &[u8];

    /// Prepares the system without starting it.
    fn prepare() -> Self;
    /// Gate in front of the system.
    fn gate(&self) -> &Gate;
    /// Settings of a server that uses the system.
    fn settings(&self, setup: Setup) -> Setup;
    /// Starts or restarts the system.
    async fn start(&mut self);
    /// Kills the system.
    fn kill(&mut self);
    /// Number of objects of instances.
    async fn object_count(&self) -> usize;
}

const NOT_HTTP: &[u8] = b"SSH-2.0-OpenSSH_9.2\r\n";
const NOT_JSON: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 8\r\n\r\nWelcome!";

/// BIND, with a persistent zone.
pub(super) struct Updates {
    bind: Bind,
    gate: Gate,
    running: Option<Program>,
}

impl System for Updates {
    const NAME: &str = "the name server";
    const EACH: usize = 3;
    const GARBAGE: &[u8] = NOT_HTTP;

    fn prepare() -> Self {
        let bind = Bind::prepare();
        Self { gate: Gate::before(bind.address()), bind, running: None }
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn settings(&self, setup: Setup) -> Setup {
        let key = setup.file("dns.key");
        fs::write(&key, &self.bind.writer).unwrap();
        setup
            .arg("--dns-server", &self.gate.address.to_string())
            .arg("--dns-zone", ZONE)
            .arg("--dns-key-file", key.to_str().unwrap())
            .arg("--domain", ZONE)
    }

    async fn start(&mut self) {
        self.running = Some(self.bind.start());
    }

    fn kill(&mut self) {
        self.running.take().unwrap().kill();
    }

    async fn object_count(&self) -> usize {
        self.bind.dig(ZONE, "AXFR").lines().filter(|line| line.contains(" CNAME ")).count()
    }
}

/// moto. It keeps state in memory, unlike Route 53, so the gate is closed instead of killing it.
pub(super) struct Aws {
    moto: Moto,
    gate: Gate,
    running: Option<(Program, String)>,
}

impl System for Aws {
    const NAME: &str = "Route 53";
    const EACH: usize = 3;
    const GARBAGE: &[u8] = NOT_JSON;

    fn prepare() -> Self {
        let moto = Moto::prepare();
        Self { gate: Gate::before(moto.address()), moto, running: None }
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn settings(&self, setup: Setup) -> Setup {
        setup
            .arg("--route53-zone", ZONE)
            .arg("--route53-endpoint", &format!("http://{}", self.gate.address))
            .arg("--domain", ZONE)
            .env("AWS_ACCESS_KEY_ID", "AKIATEST")
            .env("AWS_SECRET_ACCESS_KEY", "hidden")
    }

    async fn start(&mut self) {
        if self.running.is_none() {
            self.kill(); // Rejects requests until the zone exists.
            let running = self.moto.start();
            self.running = Some((running, self.moto.create_zone().await));
        }
        self.gate.set(Mode::Pass);
    }

    fn kill(&mut self) {
        self.gate.set(Mode::Garbage(Vec::new()));
    }

    async fn object_count(&self) -> usize {
        let (_, zone) = self.running.as_ref().unwrap();
        self.moto.records(zone).await.matches("<Type>CNAME</Type>").count()
    }
}

/// An OpenID provider, which loses its clients on restart.
pub(super) struct Registrations {
    port: u16,
    gate: Gate,
    running: Option<OidcProvider>,
}

impl System for Registrations {
    const NAME: &str = "the OpenID provider";
    const EACH: usize = 1;
    const GARBAGE: &[u8] = NOT_JSON;

    fn prepare() -> Self {
        let port = free_port();
        Self { port, gate: Gate::before(([127, 0, 0, 1], port).into()), running: None }
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn settings(&self, setup: Setup) -> Setup {
        setup
            .arg("--sso-issuer", &format!("http://{}", self.gate.address))
            .env("PADDOCK_SSO_REGISTRATION_TOKEN", INITIAL_TOKEN)
    }

    async fn start(&mut self) {
        let issuer = format!("http://{}", self.gate.address);
        self.running = Some(OidcProvider::with(&json!({
            "port": self.port, "issuer": issuer, "generation": 1, "rotates_tokens": true,
            "claims": claims(),
        })));
    }

    fn kill(&mut self) {
        self.running.take().unwrap().stop();
    }

    async fn object_count(&self) -> usize {
        self.running.as_ref().unwrap().clients().await.len()
    }
}
