//! The API calls: find the zone, list records, change records, wait for `INSYNC`.

use std::time::Duration;

use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ChangeInfo, ChangeStatus, ResourceRecord, ResourceRecordSet,
    RrType,
};
use port::Fault;
use tokio::time::sleep;

use super::super::zone::{self, FullName};
use super::{Route53, fault};

/// How often to poll a change. Route 53 permits an account five calls per second.
const POLL: Duration = Duration::from_secs(2);
/// The maximum number of record sets read of one name. An alias has one.
const MOST_RECORDS: i32 = 100;

/// A CNAME record of Paddock.
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
    /// The CNAME records of `name`: one, or none.
    pub(super) async fn records(&self, name: &FullName) -> Result<Vec<ResourceRecordSet>, Fault> {
        let list = self.client.list_resource_record_sets();
        let list = list.hosted_zone_id(self.zone_id().await?).max_items(MOST_RECORDS);
        let list = list.start_record_name(name.fmt_with_dot().to_string());
        let answer = list.start_record_type(RrType::Cname).send().await;
        let answer = answer.map_err(|error| self.fault(&error))?;
        let is_match = |record: &ResourceRecordSet| {
            record.r#type() == &RrType::Cname && zone::parse(record.name()).as_ref() == Ok(name)
        };
        Ok(answer.resource_record_sets.into_iter().filter(is_match).collect())
    }

    /// Applies changes atomically, and waits until all servers have them.
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
        self.wait_for_sync(answer.change_info).await
    }

    /// Waits until all servers have a change.
    async fn wait_for_sync(&self, mut change: Option<ChangeInfo>) -> Result<(), Fault> {
        let until = base::monotonic() + self.options.sync_timeout;
        loop {
            let Some(now) = change else {
                return Err(fault::invalid_response("it contains no change"));
            };
            if now.status() == &ChangeStatus::Insync {
                return Ok(());
            }
            if base::monotonic() >= until {
                return Err(Fault::Unavailable(format!(
                    "Route 53 accepted a change, but not all of its servers have it after {:?}",
                    self.options.sync_timeout
                )));
            }
            sleep(POLL.min(self.options.sync_timeout / 10)).await;
            let answer = self.client.get_change().id(now.id()).send().await;
            change = answer.map_err(|error| self.fault(&error))?.change_info;
        }
    }

    /// The zone's id, looked up by name once.
    async fn zone_id(&self) -> Result<String, Fault> {
        if let Some(id) = self.cached_zone_id() {
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
                self.cache_zone_id(Some(one.id().to_owned()));
                Ok(one.id().to_owned())
            }
            [] => Err(self.no_zone()),
            _ => Err(Fault::Refused(format!(
                "Route 53 has several zones named {}. Configure the zone id",
                self.zone.name()
            ))),
        }
    }
}
