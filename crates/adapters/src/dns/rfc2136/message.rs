//! The messages to the server.

use std::sync::Arc;

use domain::base::iana::{Class, Opcode, Rtype};
use domain::base::message_builder::AdditionalBuilder;
use domain::base::rdata::UnknownRecordData;
use domain::base::{MessageBuilder, Ttl};
use domain::rdata::Cname;
use domain::rdata::tsig::Time48;
use domain::tsig::{ClientTransaction, Key};

use super::FullName;

/// A message that is not signed yet.
pub(super) type Draft = AdditionalBuilder<Vec<u8>>;

/// Names have at most 255 bytes, and a message up to 65,535.
const FITS: &str = "a few names fit into a message";

/// An update of one name: deletes its alias, and adds the target if there is one.
pub(super) fn update(
    id: u16,
    zone: &FullName,
    name: &FullName,
    target: Option<(&FullName, u32)>,
) -> Draft {
    let mut message = MessageBuilder::new_vec();
    message.header_mut().set_id(id);
    message.header_mut().set_opcode(Opcode::UPDATE);
    let mut message = message.question();
    message.push((zone, Rtype::SOA, Class::IN)).expect(FITS);
    let mut message = message.authority();
    // Class ANY and no data: all records of this name and type (RFC 2136, 2.5.2).
    let none = UnknownRecordData::from_octets(Rtype::CNAME, [0; 0]).expect(FITS);
    message.push((name, Class::ANY, Ttl::ZERO, none)).expect(FITS);
    if let Some((target, ttl_s)) = target {
        let ttl = Ttl::from_secs(ttl_s);
        message.push((name, Class::IN, ttl, Cname::new(target))).expect(FITS);
    }
    message.additional()
}

/// A query for the target of an alias.
pub(super) fn question(id: u16, name: &FullName) -> Draft {
    let mut message = MessageBuilder::new_vec();
    message.header_mut().set_id(id);
    let mut message = message.question();
    message.push((name, Rtype::CNAME, Class::IN)).expect(FITS);
    message.additional()
}

/// A signed message, with what is needed to check the signature of its response.
pub(super) struct Signed {
    bytes: Vec<u8>,
    pub(super) id: u16,
    pub(super) transaction: ClientTransaction<Arc<Key>>,
}

impl Signed {
    pub(super) fn new(mut draft: Draft, key: Arc<Key>, now: Time48) -> Self {
        let id = draft.header().id();
        let transaction = ClientTransaction::request(key, &mut draft, now).expect(FITS);
        Self { bytes: draft.finish(), id, transaction }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
