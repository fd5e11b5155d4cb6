//! Reads a quota list from a file.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::Offset;
use serde::Deserialize;

use super::{Account, Grant, Organization, QuotaList, STANDARD};
use crate::kind::{Catalog, FileError};
use crate::name::{fold, line};
use crate::{Invalid, Time, yaml};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    registered_service_accounts: Vec<FileAccount>,
    #[serde(default)]
    registered_users_per_organisation: Vec<FileOrganization>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAccount {
    username: String,
    max_allowed_instances: Option<u32>,
    #[serde(default)]
    granted_quota: Vec<FileGrant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileOrganization {
    id: String,
    #[serde(default)]
    any_user: bool,
    max_allowed_instances: Option<u32>,
    #[serde(default)]
    registered_users: Vec<FileUser>,
    #[serde(default)]
    granted_quota: Vec<FileGrant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUser {
    username: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGrant {
    kind: Option<String>,
    instance_type_id: String,
    billing_models: Option<Vec<FileModel>>,
    // The name in existing quota lists.
    kafka_billing_models: Option<Vec<FileModel>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileModel {
    id: String,
    max_allowed_instances: Option<u32>,
    expiration_date: Option<String>,
}

/// Parses a quota list. `file` is the file name for errors.
pub fn parse(file: &str, text: &str) -> Result<QuotaList, FileError> {
    let read: File = yaml::read(file, text)?;
    read.list(None).map_err(|invalid| yaml::file_error(file, text, &invalid))
}

/// Parses a quota list and refuses grants for types that no kind of the catalog has.
pub fn parse_for(file: &str, text: &str, catalog: &Catalog) -> Result<QuotaList, FileError> {
    let read: File = yaml::read(file, text)?;
    read.list(Some(catalog)).map_err(|invalid| yaml::file_error(file, text, &invalid))
}

impl File {
    fn list(self, catalog: Option<&Catalog>) -> Result<QuotaList, Invalid> {
        let names = self.registered_service_accounts.iter().map(|one| fold(&one.username));
        unique("registered_service_accounts", "username", names)?;
        let ids = self.registered_users_per_organisation.iter().map(|one| one.id.clone());
        unique("registered_users_per_organisation", "id", ids)?;
        Ok(QuotaList {
            organizations: each(
                "registered_users_per_organisation",
                &self.registered_users_per_organisation,
                |one| one.organization(catalog),
            )?,
            accounts: each(
                "registered_service_accounts",
                &self.registered_service_accounts,
                |one| one.account(catalog),
            )?,
        })
    }
}

impl FileOrganization {
    fn organization(&self, catalog: Option<&Catalog>) -> Result<Organization, Invalid> {
        let users = self.registered_users.iter().map(|user| fold(&user.username));
        unique("registered_users", "username", users.clone())?;
        Ok(Organization {
            id: line("id", &self.id, 255)?,
            any_user: self.any_user,
            users: users.collect(),
            grants: grants(&self.granted_quota, self.max_allowed_instances, catalog)?,
        })
    }
}

impl FileAccount {
    fn account(&self, catalog: Option<&Catalog>) -> Result<Account, Invalid> {
        Ok(Account {
            username: fold(&line("username", &self.username, 255)?),
            grants: grants(&self.granted_quota, self.max_allowed_instances, catalog)?,
        })
    }
}

/// The grants of an entry; by default the standard type and billing model.
fn grants(
    granted: &[FileGrant],
    limit: Option<u32>,
    catalog: Option<&Catalog>,
) -> Result<Vec<Grant>, Invalid> {
    if granted.is_empty() {
        return Ok(vec![standard(None, STANDARD, limit)]);
    }
    let key = |one: &FileGrant| {
        format!("{}.{}", one.kind.as_deref().unwrap_or_default(), one.instance_type_id)
    };
    unique("granted_quota", "instance_type_id", granted.iter().map(key))?;
    let lists = each("granted_quota", granted, |one| {
        check_granted(one, catalog)?;
        one.grants(limit)
    })?;
    Ok(lists.into_iter().flatten().collect())
}

fn standard(kind: Option<String>, instance_type: &str, limit: Option<u32>) -> Grant {
    Grant {
        kind,
        instance_type: instance_type.to_owned(),
        billing_model: STANDARD.to_owned(),
        limit,
        expires_at: None,
    }
}

impl FileGrant {
    /// The billing models and the name of their field.
    fn models(&self) -> Result<(&'static str, &[FileModel]), Invalid> {
        const OLD: &str = "kafka_billing_models";
        match (&self.billing_models, &self.kafka_billing_models) {
            (Some(_), Some(_)) => {
                Err(Invalid::new(OLD, "must not be combined with billing_models"))
            }
            (None, Some(models)) => Ok((OLD, models)),
            (models, None) => Ok(("billing_models", models.as_deref().unwrap_or_default())),
        }
    }

    fn grants(&self, limit: Option<u32>) -> Result<Vec<Grant>, Invalid> {
        let grant = standard(self.kind.clone(), &self.instance_type_id, limit);
        let (list, models) = self.models()?;
        if models.is_empty() {
            return Ok(vec![grant]);
        }
        unique(list, "id", models.iter().map(|one| one.id.clone()))?;
        each(list, models, |model| {
            Ok(Grant {
                billing_model: model.id.clone(),
                limit: model.max_allowed_instances.or(limit),
                expires_at: model.expiration_date.as_deref().map(expiration).transpose()?,
                ..grant.clone()
            })
        })
    }
}

/// Checks that a kind has the granted type and billing models.
fn check_granted(grant: &FileGrant, catalog: Option<&Catalog>) -> Result<(), Invalid> {
    let Some(catalog) = catalog else { return Ok(()) };
    let named = |kind: &str| grant.kind.as_ref().is_none_or(|name| name == kind);
    let kinds: Vec<_> = catalog.kinds().filter(|kind| named(&kind.name)).collect();
    if kinds.is_empty() {
        return Err(Invalid::new("kind", "unknown kind"));
    }
    let types: Vec<_> =
        kinds.iter().filter_map(|kind| kind.instance_type(&grant.instance_type_id)).collect();
    if types.is_empty() {
        return Err(Invalid::new("instance_type_id", "no kind has this instance type"));
    }
    let has = |id: &str| types.iter().any(|one| one.billing_model(id).is_some());
    let (list, models) = grant.models()?;
    match models.iter().position(|model| !has(&model.id)) {
        Some(i) => {
            let detail = "the instance type has no such billing model";
            Err(Invalid::new(format!("{list}[{i}].id"), detail))
        }
        None => Ok(()),
    }
}

/// Parses `2030-01-31 +01:00`: expires at the start of that day in that time zone.
fn expiration(text: &str) -> Result<Time, Invalid> {
    parse_expiration(text).ok_or_else(|| {
        let detail = "must be a date and an offset, for example 2030-01-31 +00:00";
        Invalid::new("expiration_date", detail)
    })
}

fn parse_expiration(text: &str) -> Option<Time> {
    let (day, offset) = text.trim().split_once(' ')?;
    let is_plain = day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let date: Date = day.parse().ok().filter(|_| is_plain)?;
    let at = seconds(offset.trim_start()).and_then(|s| Offset::from_seconds(s).ok())?;
    let midnight = at.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    Some(Time(midnight.as_microsecond()))
}

/// `±HH:MM` in seconds.
fn seconds(offset: &str) -> Option<i32> {
    let sign = match offset.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let number = |text: &str, below: i32| -> Option<i32> {
        let is_plain = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|&n| is_plain && n < below)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

/// Maps a list; errors carry the index of the entry.
fn each<A, B>(
    list: &str,
    items: &[A],
    map: impl Fn(&A) -> Result<B, Invalid>,
) -> Result<Vec<B>, Invalid> {
    let numbered = items.iter().enumerate();
    numbered.map(|(i, item)| map(item).map_err(|e| e.within(&format!("{list}[{i}]")))).collect()
}

/// Checks that keys are unique.
fn unique(list: &str, field: &str, keys: impl Iterator<Item = String>) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (i, key) in keys.enumerate() {
        if !seen.insert(key) {
            return Err(Invalid::new(format!("{list}[{i}].{field}"), "must be unique"));
        }
    }
    Ok(())
}
