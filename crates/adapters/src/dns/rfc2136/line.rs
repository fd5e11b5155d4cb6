//! A connection to the server: signed messages there, checked ones back.

use std::io;

use domain::base::Message;
use domain::base::iana::Rcode;
use domain::rdata::tsig::Time48;
use port::Fault;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::message::{self, Signed};
use super::{FullName, Rfc2136, answer};

/// A connection to the server, for a few messages.
pub(super) struct Line(TcpStream);

impl Rfc2136 {
    pub(super) async fn connect(&self) -> Result<Line, Fault> {
        let stream = TcpStream::connect(self.server).await.map_err(|error| self.broken(&error))?;
        Ok(Line(stream))
    }

    /// Has `name` be an alias of `target` and nothing else, or no alias at all: in one update.
    pub(super) async fn update(
        &self,
        line: &mut Line,
        name: &FullName,
        target: Option<&FullName>,
    ) -> Result<(), Fault> {
        let target = target.map(|target| (target, self.ttl_s));
        let update = message::update(self.id(), self.zone.name(), name, target);
        let said = self.ask(line, update).await?;
        answer::accept(self, said.header().rcode(), &[Rcode::NOERROR])
    }

    /// What the server says that `name` is an alias of.
    pub(super) async fn look(
        &self,
        line: &mut Line,
        name: &FullName,
    ) -> Result<Option<FullName>, Fault> {
        let said = self.ask(line, message::question(self.id(), name)).await?;
        answer::accept(self, said.header().rcode(), &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
        answer::target(self, &said, name)
    }

    async fn ask(&self, line: &mut Line, draft: message::Draft) -> Result<Message<Vec<u8>>, Fault> {
        let signed = Signed::new(draft, self.key.clone(), self.time());
        let heard = line.exchange(signed.bytes()).await.map_err(|error| self.broken(&error))?;
        answer::check(self, &signed, heard, self.time())
    }

    fn broken(&self, error: &io::Error) -> Fault {
        Fault::Unavailable(format!("{} can't be reached: {error}", self.server()))
    }

    fn id(&self) -> u16 {
        u16::try_from((self.noise)() & 0xffff).expect("two bytes are two bytes")
    }

    fn time(&self) -> Time48 {
        Time48::from_u64(u64::from((self.now)().seconds()))
    }
}

impl Line {
    /// Over TCP, every message has its length before it.
    async fn exchange(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let length = u16::try_from(message.len()).map_err(io::Error::other)?;
        self.0.write_all(&[&length.to_be_bytes(), message].concat()).await?;
        let mut heard = vec![0; self.0.read_u16().await?.into()];
        self.0.read_exact(&mut heard).await?;
        Ok(heard)
    }
}
