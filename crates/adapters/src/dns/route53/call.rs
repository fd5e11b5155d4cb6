//! The calls: find the zone, look, change, wait until the change is everywhere.

use std::time::Duration;

use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ChangeInfo, ChangeStatus, ResourceRecord, ResourceRecordSet,
    RrType,
};
use port::Fault;
use tokio::time::sleep;

use super::super::zone::{self, FullName};
use super::{Route53, fault};

/// How often to ask whether a change is everywhere. Route53 allows an account five calls per second.
const POLL: Duration = Duration::from_secs(2);
/// How many record sets of one name are looked at. An alias has one.
const MOST_RECORDS: i32 = 100;

/// What Paddock's records look like.
pub(super) fn alias(name: &FullName, target: &FullName, ttl_s: u32) -> ResourceRecordSet {
    let value = ResourceRecord::builder().value(target.fmt_with_dot().to_string());
    ResourceRecordSet::builder()
        .name(name.fmt_with_dot().to_string())
        .r#type(RrType::Cname)
        .ttl(ttl_s.into())
        .resource_records(value.build().expect("it has a value"))
        .build()
        .expect("it has a name and a type")
}

impl Route53 {
    /// The records that make `name` an alias: one, or none.
    pub(super) async fn look(&self, name: &FullName) -> Result<Vec<ResourceRecordSet>, Fault> {
        let list = self.client.list_resource_record_sets();
        let list = list.hosted_zone_id(self.zone_id().await?).max_items(MOST_RECORDS);
        let list = list.start_record_name(name.fmt_with_dot().to_string());
        let answer = list.start_record_type(RrType::Cname).send().await;
        let answer = answer.map_err(|error| self.fault(&error))?;
        let is_it = |record: &ResourceRecordSet| {
            record.r#type() == &RrType::Cname && zone::parse(record.name()).as_ref() == Ok(name)
        };
        Ok(answer.resource_record_sets.into_iter().filter(is_it).collect())
    }

    /// Makes changes, all or none, and waits until they are everywhere.
    pub(super) async fn change(
        &self,
        changes: Vec<(ChangeAction, ResourceRecordSet)>,
    ) -> Result<(), Fault> {
        let changes = changes.into_iter().map(|(action, record)| {
            let change = Change::builder().action(action).resource_record_set(record);
            change.build().expect("it has an action and a record")
        });
        let batch = ChangeBatch::builder().set_changes(Some(changes.collect())).build();
        let call = self.client.change_resource_record_sets();
        let call = call.hosted_zone_id(self.zone_id().await?);
        let call = call.change_batch(batch.expect("it has changes"));
        let answer = call.send().await.map_err(|error| self.fault(&error))?;
        self.settle(answer.change_info).await
    }

    /// Waits until a change is everywhere.
    async fn settle(&self, mut change: Option<ChangeInfo>) -> Result<(), Fault> {
        let until = base::monotonic() + self.options.sync_for;
        loop {
            let Some(now) = change else { return Err(fault::confused("it names no change")) };
            if now.status() == &ChangeStatus::Insync {
                return Ok(());
            }
            if base::monotonic() >= until {
                return Err(Fault::Unavailable(format!(
                    "Route53 has taken a change, but not all of its servers have it after {:?}",
                    self.options.sync_for
                )));
            }
            sleep(POLL.min(self.options.sync_for / 10)).await;
            let answer = self.client.get_change().id(now.id()).send().await;
            change = answer.map_err(|error| self.fault(&error))?.change_info;
        }
    }

    /// The zone's id, which is looked up by its name once.
    async fn zone_id(&self) -> Result<String, Fault> {
        if let Some(id) = self.known_zone_id() {
            return Ok(id);
        }
        let list = self.client.list_hosted_zones_by_name();
        let list = list.dns_name(self.zone.name().fmt_with_dot().to_string());
        let answer = list.send().await.map_err(|error| self.fault(&error))?;
        let zones = answer.hosted_zones.iter();
        let same: Vec<_> =
            zones.filter(|z| zone::parse(z.name()).as_ref() == Ok(self.zone.name())).collect();
        match same.as_slice() {
            [one] => {
                self.remember_zone_id(Some(one.id().to_owned()));
                Ok(one.id().to_owned())
            }
            [] => Err(self.no_zone()),
            _ => Err(Fault::Refused(format!(
                "Route53 has several zones {}: say which by its id",
                self.zone.name()
            ))),
        }
    }
}
