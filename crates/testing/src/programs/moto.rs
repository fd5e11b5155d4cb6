//! moto: AWS APIs in memory. Its data is lost when it ends.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use reqwest::header::AUTHORIZATION;
use tempfile::TempDir;

use super::{Program, ZONE, find, free_port};

/// Folder and port of a server, which may run or not.
pub struct Moto {
    folder: TempDir,
    port: u16,
}

impl Moto {
    /// Prepares a server without starting it.
    pub fn prepare() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { folder: TempDir::with_prefix("paddock-moto-").unwrap(), port: free_port() }
    }

    /// Starts it, without data.
    pub fn start(&self) -> Program {
        let mut moto = Command::new(find("moto_server", "PADDOCK_TEST_MOTO"));
        moto.args(["-H", "127.0.0.1", "-p", &self.port.to_string()]);
        let running = Program::start(&moto, self.folder.path());
        running.wait_until(|| TcpStream::connect(self.address()).is_ok())
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Creates the zone and returns moto's response.
    pub async fn create_zone(&self) -> String {
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
             <Name>{ZONE}.</Name><CallerReference>x</CallerReference></CreateHostedZoneRequest>"
        );
        let request = reqwest::Client::new().post(self.url("hostedzone")).body(body);
        self.send(request).await
    }

    /// All records of the zone in a response of [`Moto::create_zone`].
    pub async fn records(&self, created: &str) -> String {
        let (_, id) = created.split_once("/hostedzone/").unwrap();
        let id = id.split(['<', '/']).next().unwrap();
        let url = self.url(&format!("hostedzone/{id}/rrset"));
        self.send(reqwest::Client::new().get(url)).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/2013-04-01/{path}", self.address())
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> String {
        // moto selects the service by this header.
        let signed = "AWS4-HMAC-SHA256 Credential=x/20300101/us-east-1/route53/aws4_request, SignedHeaders=host, Signature=x";
        let response = request.header(AUTHORIZATION, signed).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        text
    }
}
