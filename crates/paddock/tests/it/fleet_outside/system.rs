//! Foreign systems behind a gate, each to be started, lost and asked what it holds.

use std::fs;

use serde_json::json;
use testing::programs::{
    Bind, Gate, INITIAL_TOKEN, Mode, Moto, OidcProvider, Program, ZONE, claims, free_port,
};

use crate::process::Setup;

/// A foreign system that an instance needs.
pub(super) trait System {
    /// What the server calls it.
    const NAME: &str;
    /// How much of it belongs to one instance.
    const EACH: usize;
    /// An answer that makes no sense.
    const GARBAGE: &[u8];

    /// Prepares one; it does not run yet.
    fn prepare() -> Self;
    /// The way to it.
    fn gate(&self) -> &Gate;
    /// Settings of a server that uses it.
    fn settings(&self, setup: Setup) -> Setup;
    /// Starts it, for the first time or again.
    async fn start(&mut self);
    /// Loses it, as a loss of power would.
    fn lose(&mut self);
    /// How much it holds for instances.
    async fn held(&self) -> usize;
}

const NOT_HTTP: &[u8] = b"SSH-2.0-OpenSSH_9.2\r\n";
const NOT_JSON: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 8\r\n\r\nWelcome!";

/// BIND, with a zone that outlives it.
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

    fn lose(&mut self) {
        self.running.take().unwrap().kill();
    }

    async fn held(&self) -> usize {
        self.bind.dig(ZONE, "AXFR").lines().filter(|line| line.contains(" CNAME ")).count()
    }
}

/// moto. It would forget all if it ended, as Route 53 would not: it is cut off instead.
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
            self.lose(); // Nobody comes before the zone is there.
            let running = self.moto.start();
            self.running = Some((running, self.moto.make_zone().await));
        }
        self.gate.set(Mode::Pass);
    }

    fn lose(&mut self) {
        self.gate.set(Mode::Garbage(Vec::new()));
    }

    async fn held(&self) -> usize {
        let (_, zone) = self.running.as_ref().unwrap();
        self.moto.records(zone).await.matches("<Type>CNAME</Type>").count()
    }
}

/// An OpenID provider, which forgets its clients when it ends.
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

    fn lose(&mut self) {
        self.running.take().unwrap().stop();
    }

    async fn held(&self) -> usize {
        self.running.as_ref().unwrap().clients().await.len()
    }
}
