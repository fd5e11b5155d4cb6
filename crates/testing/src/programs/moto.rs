//! A moto of the test's own: AWS' APIs, in memory. It forgets all when it ends.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use reqwest::header::AUTHORIZATION;
use tempfile::TempDir;

use super::{Program, ZONE, find, free_port};

/// The folder and the port of a server, which may run or not.
pub struct Moto {
    folder: TempDir,
    port: u16,
}

impl Moto {
    /// Prepares a server; it does not run yet.
    pub fn prepare() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { folder: TempDir::with_prefix("paddock-moto-").unwrap(), port: free_port() }
    }

    /// Starts it; it knows of nothing.
    pub fn start(&self) -> Program {
        let mut moto = Command::new(find("moto_server", "PADDOCK_TEST_MOTO"));
        moto.args(["-H", "127.0.0.1", "-p", &self.port.to_string()]);
        let running = Program::start(&moto, self.folder.path());
        running.wait_until(|| TcpStream::connect(self.address()).is_ok())
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Makes the zone; what moto says of it.
    pub async fn make_zone(&self) -> String {
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
             <Name>{ZONE}.</Name><CallerReference>x</CallerReference></CreateHostedZoneRequest>"
        );
        let request = reqwest::Client::new().post(self.url("hostedzone")).body(body);
        self.send(request).await
    }

    /// All records of the zones whose ids `made` names, as others see them.
    pub async fn records(&self, made: &str) -> String {
        let (_, id) = made.split_once("/hostedzone/").unwrap();
        let id = id.split(['<', '/']).next().unwrap();
        let url = self.url(&format!("hostedzone/{id}/rrset"));
        self.send(reqwest::Client::new().get(url)).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/2013-04-01/{path}", self.address())
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> String {
        // By this it knows which service is meant.
        let signed = "AWS4-HMAC-SHA256 Credential=x/20300101/us-east-1/route53/aws4_request, SignedHeaders=host, Signature=x";
        let answer = request.header(AUTHORIZATION, signed).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        text
    }
}
