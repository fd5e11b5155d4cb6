//! `--cpu`, `--ram` and `--resource`. Quantities are sent unparsed; the server validates them.

use std::collections::BTreeMap;

use super::error::Error;
use super::parse;

/// Resource quantities.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Resources {
    /// CPUs, such as 4 or 500m
    #[arg(long, value_name = "QUANTITY")]
    cpu: Option<String>,
    /// Memory, such as 8Gi or 512Mi
    #[arg(long, value_name = "QUANTITY")]
    ram: Option<String>,
    /// Other resource, such as gpu=1; repeatable
    #[arg(long = "resource", value_name = "TYPE=QUANTITY", value_parser = parse::pair)]
    others: Vec<(String, String)>,
}

impl Resources {
    /// Whether no resource is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.ram.is_none() && self.others.is_empty()
    }

    /// Quantities by resource type.
    pub(crate) fn by_type(self) -> Result<BTreeMap<String, String>, Error> {
        let cpu = self.cpu.map(|amount| ("cpu".into(), amount));
        let ram = self.ram.map(|amount| ("ram".into(), amount));
        unique("resource", cpu.into_iter().chain(ram).chain(self.others))
    }
}

/// Collects pairs into a map; duplicate keys are an error.
pub(crate) fn unique(
    what: &str,
    pairs: impl IntoIterator<Item = (String, String)>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        if map.contains_key(&key) {
            return Err(Error::Usage(format!("{what} {key:?} is given twice")));
        }
        map.insert(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_collected_by_type() {
        let resources = Resources {
            cpu: Some("4".into()),
            ram: Some("8Gi".into()),
            others: vec![("gpu".into(), "1".into())],
        };
        let want = [("cpu", "4"), ("gpu", "1"), ("ram", "8Gi")];
        let want = want.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(resources.by_type().unwrap(), BTreeMap::from(want));
    }

    #[test]
    fn duplicate_resource_is_rejected() {
        let others = vec![("cpu".into(), "2".into())];
        let resources = Resources { cpu: Some("4".into()), others, ..Resources::default() };
        assert_eq!(resources.by_type().unwrap_err().message(), "resource \"cpu\" is given twice");
    }
}
