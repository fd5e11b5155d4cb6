//! A connection to the DNS server: signs messages and checks responses.

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
pub(super) struct Connection(TcpStream);

impl Rfc2136 {
    pub(super) async fn connect(&self) -> Result<Connection, Fault> {
        let stream =
            TcpStream::connect(self.server).await.map_err(|error| self.unreachable(&error))?;
        Ok(Connection(stream))
    }

    /// Replaces the alias `name` by one of `target`, or deletes it: in one update.
    pub(super) async fn update(
        &self,
        connection: &mut Connection,
        name: &FullName,
        target: Option<&FullName>,
    ) -> Result<(), Fault> {
        let target = target.map(|target| (target, self.ttl_s));
        let update = message::update(self.id(), self.zone.name(), name, target);
        let response = self.send(connection, update).await?;
        answer::accept(self, response.header().rcode(), &[Rcode::NOERROR])
    }

    /// The target of the alias `name` on the server.
    pub(super) async fn query(
        &self,
        connection: &mut Connection,
        name: &FullName,
    ) -> Result<Option<FullName>, Fault> {
        let response = self.send(connection, message::question(self.id(), name)).await?;
        self.alias(&response, name)
    }

    /// The target of the alias `name` in a trusted response.
    fn alias(
        &self,
        response: &Message<Vec<u8>>,
        name: &FullName,
    ) -> Result<Option<FullName>, Fault> {
        answer::accept(self, response.header().rcode(), &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
        answer::target(self, response, name)
    }

    /// Parses a response to a query for the alias `name`: with and without the check of its
    /// signature. For fuzzing, which can't sign responses.
    #[doc(hidden)]
    pub fn parse_response(
        &self,
        name: &str,
        response: &[u8],
    ) -> [Result<Option<String>, Fault>; 2] {
        let parse = |is_checked: bool| {
            let name = self.zone.below(name)?;
            let message = if is_checked {
                let query = message::question(self.id(), &name);
                let query = Signed::new(query, self.key.clone(), self.time());
                answer::check(self, &query, response.to_vec(), self.time())?
            } else {
                let Ok(message) = Message::from_octets(response.to_vec()) else { return Ok(None) };
                message
            };
            Ok(self.alias(&message, &name)?.map(|target| target.to_string()))
        };
        [parse(true), parse(false)]
    }

    async fn send(
        &self,
        connection: &mut Connection,
        draft: message::Draft,
    ) -> Result<Message<Vec<u8>>, Fault> {
        let signed = Signed::new(draft, self.key.clone(), self.time());
        let response = connection.exchange(signed.bytes()).await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        answer::check(self, &signed, response, self.time())
    }

    fn unreachable(&self, error: &io::Error) -> Fault {
        Fault::Unavailable(format!("{} is unreachable: {error}", self.server()))
    }

    fn id(&self) -> u16 {
        u16::try_from((self.noise)() & 0xffff).expect("two bytes are two bytes")
    }

    fn time(&self) -> Time48 {
        Time48::from_u64(u64::from((self.now)().seconds()))
    }
}

impl Connection {
    /// Sends a message and reads the response; over TCP, each is preceded by its length.
    async fn exchange(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let length = u16::try_from(message.len()).map_err(io::Error::other)?;
        self.0.write_all(&[&length.to_be_bytes(), message].concat()).await?;
        let mut response = vec![0; self.0.read_u16().await?.into()];
        self.0.read_exact(&mut response).await?;
        Ok(response)
    }
}
