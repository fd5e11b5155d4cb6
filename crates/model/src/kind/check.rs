//! Semantic validation of a kind. Errors name the field by its path in the file.

mod place;
mod program;

use super::{BillingModel, InstanceType, Kind, Offers, SEARCH_COLUMNS, Size, WireNames};
use crate::deployment::{MAX_PRIORITY, check_container};
use crate::{Invalid, name};

/// The maximum lifespan of an instance: ten years.
const MAX_LIFESPAN_SECONDS: u32 = 10 * 365 * 24 * 3600;

pub(super) fn kind(kind: &Kind) -> Result<(), Invalid> {
    identity(kind)?;
    words(&kind.words).map_err(|e| e.within("words"))?;
    offers(&kind.offers).map_err(|e| e.within("offers"))?;
    types(kind)?;
    place::clouds(kind)?;
    program::versions(&kind.versions)?;
    program::needs(&kind.needs).map_err(|e| e.within("needs"))?;
    program::run(&kind.run, &kind.needs).map_err(|e| e.within("run"))
}

fn identity(kind: &Kind) -> Result<(), Invalid> {
    id("name", &kind.name)?;
    id("plural", &kind.plural)?;
    identifier("api", &kind.api)?;
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    if kind.error_prefix.is_empty() || !kind.error_prefix.chars().all(upper) {
        return Err(Invalid::new("error_prefix", "must contain only A-Z, 0-9 and -"));
    }
    name::line("display_name", &kind.display_name, 128)?;
    if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&kind.priority) {
        let detail = format!("must be from -{MAX_PRIORITY} to {MAX_PRIORITY}");
        return Err(Invalid::new("priority", detail));
    }
    Ok(())
}

fn words(words: &WireNames) -> Result<(), Invalid> {
    for (field, text) in [
        ("object", &words.object),
        ("list", &words.list),
        ("admin_list", &words.admin_list),
        ("agent_object", &words.agent_object),
        ("agent_list", &words.agent_list),
        ("agent_host", &words.agent_host),
        ("operator", &words.operator),
        ("version", &words.version),
        ("ibp", words.ibp.as_ref().unwrap_or(&words.version)),
    ] {
        alphanumeric(field, text)?;
    }
    identifier("host", &words.host)?;
    identifier("waiting", &words.waiting)?;
    dns_name("agent_domain", &words.agent_domain)?;
    name::dns_label("admin_role", &words.admin_role)?;
    if !(1..=63).contains(&words.name_max) {
        return Err(Invalid::new("name_max", "must be from 1 to 63"));
    }
    Ok(())
}

fn offers(offers: &Offers) -> Result<(), Invalid> {
    unique("search_columns", "", offers.search_columns.iter().map(String::as_str))?;
    for (i, column) in offers.search_columns.iter().enumerate() {
        if !SEARCH_COLUMNS.contains(&column.as_str()) {
            let detail = format!("must be one of {}", SEARCH_COLUMNS.join(", "));
            return Err(Invalid::new(format!("search_columns[{i}]"), detail));
        }
    }
    Ok(())
}

fn types(kind: &Kind) -> Result<(), Invalid> {
    at_least_one("types", &kind.types)?;
    unique("types", "id", kind.types.iter().map(|one| one.id.as_str()))?;
    each("types", &kind.types, instance_type)?;
    match &kind.trial {
        Some(trial) if kind.instance_type(trial).is_none() => {
            Err(Invalid::new("trial", format!("must be one of {}", type_ids(kind))))
        }
        _ => Ok(()),
    }
}

fn type_ids(kind: &Kind) -> String {
    kind.types.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(", ")
}

fn instance_type(one: &InstanceType) -> Result<(), Invalid> {
    id("id", &one.id)?;
    name::line("display_name", &one.display_name, 128)?;
    at_least_one("billing_models", &one.billing_models)?;
    unique("billing_models", "id", one.billing_models.iter().map(|model| model.id.as_str()))?;
    each("billing_models", &one.billing_models, billing_model)?;
    at_least_one("sizes", &one.sizes)?;
    unique("sizes", "id", one.sizes.iter().map(|size| size.id.as_str()))?;
    each("sizes", &one.sizes, size)?;
    ascending(&one.sizes)
}

fn billing_model(model: &BillingModel) -> Result<(), Invalid> {
    id("id", &model.id)?;
    name::line("resource", &model.resource, 128)?;
    name::line("product", &model.product, 128)?;
    at_least_one("models", &model.models)?;
    if model.grace_days > 3650 {
        return Err(Invalid::new("grace_days", "must be at most 3650"));
    }
    Ok(())
}

fn size(size: &Size) -> Result<(), Invalid> {
    id("id", &size.id)?;
    name::line("display_name", &size.display_name, 128)?;
    size.resources.check("resources")?;
    check_container("resources", &size.resources)?;
    if size.resources.is_empty() {
        return Err(Invalid::new(
            "resources",
            "must list what an instance consumes, like cpu and ram",
        ));
    }
    for (field, amount) in
        [("capacity_consumed", size.capacity_consumed), ("quota_consumed", size.quota_consumed)]
    {
        if !(1..=1_000_000).contains(&amount) {
            return Err(Invalid::new(field, "must be from 1 to 1000000"));
        }
    }
    let life = size.lifespan_seconds.unwrap_or(1);
    if !(1..=MAX_LIFESPAN_SECONDS).contains(&life) {
        let detail = format!("must be from 1 to {MAX_LIFESPAN_SECONDS}");
        return Err(Invalid::new("lifespan_seconds", detail));
    }
    at_least_one("zones", &size.zones)
}

/// Sizes must be sorted by capacity, since regions show all sizes up to the largest that fits.
fn ascending(sizes: &[Size]) -> Result<(), Invalid> {
    for (i, pair) in sizes.windows(2).enumerate() {
        let (small, large) = (&pair[0], &pair[1]);
        if small.capacity_consumed > large.capacity_consumed {
            let detail = format!(
                "sizes must be in ascending order of capacity, but {} consumes more than {}",
                small.id, large.id
            );
            return Err(Invalid::new(format!("sizes[{}].capacity_consumed", i + 1), detail));
        }
    }
    Ok(())
}

/// Checks every entry of a list; errors contain its position.
fn each<T>(
    list: &str,
    items: &[T],
    check: impl Fn(&T) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    for (i, item) in items.iter().enumerate() {
        check(item).map_err(|e| e.within(&format!("{list}[{i}]")))?;
    }
    Ok(())
}

fn at_least_one<T>(list: &str, items: &[T]) -> Result<(), Invalid> {
    if items.is_empty() { Err(Invalid::new(list, "must have at least one entry")) } else { Ok(()) }
}

/// Checks that keys are unique; `field` is the key's field, empty if the entry itself is the key.
pub(super) fn unique<'a>(
    list: &str,
    field: &str,
    keys: impl Iterator<Item = &'a str>,
) -> Result<(), Invalid> {
    let mut seen = std::collections::BTreeSet::new();
    for (i, key) in keys.enumerate() {
        if !seen.insert(key) {
            let dot = if field.is_empty() { "" } else { "." };
            let detail = format!("duplicate value \"{}\"", key.escape_default());
            return Err(Invalid::new(format!("{list}[{i}]{dot}{field}"), detail));
        }
    }
    Ok(())
}

/// Checks that exactly one entry is the default.
fn one_default(list: &str, marks: impl Iterator<Item = bool>) -> Result<(), Invalid> {
    let marked: Vec<usize> = marks.enumerate().filter(|(_, mark)| *mark).map(|(i, _)| i).collect();
    match marked[..] {
        [_] => Ok(()),
        [] => Err(Invalid::new(list, "one entry must have default: true")),
        [_, second, ..] => {
            let field = format!("{list}[{second}].default");
            Err(Invalid::new(field, "only one entry may be the default"))
        }
    }
}

/// Checks a name in paths and plans: a lower-case letter, then letters, digits and hyphens.
fn id(field: &str, text: &str) -> Result<(), Invalid> {
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
    if starts && text.len() <= 32 && name::dns_label(field, text).is_ok() {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        "must start with a-z, contain only a-z, 0-9 and -, and have at most 32 characters",
    ))
}

/// Checks a name in paths and JSON: a lower-case letter, then letters, digits and underscores.
pub(super) fn identifier(field: &str, text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
    if starts && text.len() <= 63 && text.chars().all(allowed) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        "must start with a-z, contain only a-z, 0-9 and _, and have at most 63 characters",
    ))
}

fn alphanumeric(field: &str, text: &str) -> Result<(), Invalid> {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts && text.len() <= 63 && text.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        "must start with a letter, contain only letters and digits, and have at most 63 characters",
    ))
}

/// Checks a DNS name: labels separated by dots.
fn dns_name(field: &str, text: &str) -> Result<(), Invalid> {
    if text.len() <= 190 && text.split('.').all(|label| name::dns_label(field, label).is_ok()) {
        return Ok(());
    }
    Err(Invalid::new(field, "must be a DNS name like example.org, with at most 190 characters"))
}
