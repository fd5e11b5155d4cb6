//! Registration of enterprise clusters, validated in the order of the reference fleet manager.

use std::collections::BTreeMap;

use model::cluster::{Hosting, NewCluster, Provider, Settings};
use model::kind::Kind;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::fleet::Error;

const ID_LENGTH: usize = 32;
/// The number of nodes must be a multiple of the number of zones.
const ZONES: i64 = 3;

/// A cluster to register. In addition, under the kind's names, `kafka_machine_pool_node_count` (a
/// multiple of 3) and `access_kafkas_via_private_network`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Registration {
    /// Cluster ID at its origin: 32 letters and digits.
    #[serde(default)]
    cluster_id: String,
    /// DNS name of the cluster's ingress.
    #[serde(default)]
    cluster_ingress_dns_name: String,
    /// Cloud provider; defaults to the kind's default.
    cloud_provider: Option<String>,
    /// Region; defaults to the cloud provider's default.
    region: Option<String>,
    #[serde(flatten)]
    named_by_kind: Map<String, Value>,
}

impl Registration {
    /// Returns the validated cluster ID.
    pub(super) fn cluster_id(&self) -> Result<&str, Error> {
        let length = self.cluster_id.chars().count();
        if length > ID_LENGTH {
            return Err(Error::new(34, format!("cluster_id: must have {ID_LENGTH} characters.")));
        }
        if length < ID_LENGTH {
            return Err(Error::new(33, format!("cluster_id: must have {ID_LENGTH} characters.")));
        }
        if !self.cluster_id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(Error::new(45, "cluster_id: only letters and digits are allowed."));
        }
        Ok(&self.cluster_id)
    }

    /// Validates the registration.
    pub(super) fn read(&self, kind: &Kind) -> Result<(NewCluster, Hosting), Error> {
        if !is_dns_name(&self.cluster_ingress_dns_name) {
            return Err(Error::new(47, "cluster_ingress_dns_name: must be a DNS name."));
        }
        let machines = self.machines(&format!("{}_machine_pool_node_count", kind.name))?;
        let is_private = self.is_private(&format!("access_{}_via_private_network", kind.plural))?;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (cloud, region) = kind.location(&text(&self.cloud_provider), &text(&self.region))?;
        let new = NewCluster {
            name: self.cluster_id.clone(),
            provider: Provider::Agent,
            settings: Settings::None,
            cloud_provider: cloud.name.clone(),
            region: region.name.clone(),
            labels: BTreeMap::new(),
            capacity: model::Resources::default(),
            nodes: Vec::new(),
        };
        let hosting = Hosting {
            is_foreign: true,
            dns: Some(self.cluster_ingress_dns_name.clone()),
            is_private,
            machines: Some(machines),
            ..Hosting::default()
        };
        Ok((new, hosting))
    }

    fn machines(&self, name: &str) -> Result<u32, Error> {
        let value = self.named_by_kind.get(name).and_then(Value::as_i64).unwrap_or_default();
        let machines = u32::try_from(value).ok().filter(|_| value >= ZONES && value % ZONES == 0);
        machines.ok_or_else(|| {
            Error::new(37, format!("{name}: must be at least {ZONES}, and a multiple of {ZONES}."))
        })
    }

    fn is_private(&self, name: &str) -> Result<bool, Error> {
        let value = self.named_by_kind.get(name).and_then(Value::as_bool);
        value.ok_or_else(|| Error::new(21, format!("{name}: must be true or false.")))
    }
}

fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use model::kind::Catalog;
    use serde_json::json;

    use super::*;

    fn read(change: &Value) -> Result<(NewCluster, Hosting), Error> {
        let mut body = json!({
            "cluster_id": "1234567890abcdefghijklmnopqrstuv",
            "cluster_ingress_dns_name": "apps.site.example",
            "kafka_machine_pool_node_count": 6,
            "access_kafkas_via_private_network": true,
        });
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let body: Registration = serde_json::from_value(body).unwrap();
        body.cluster_id()?;
        body.read(Catalog::built_in().kind("kafka").unwrap())
    }

    fn code(change: &Value) -> Option<String> {
        read(change).err().map(|error| {
            let catalog = Catalog::built_in();
            let envelope = error.envelope(catalog.kind("kafka").unwrap(), None);
            serde_json::to_value(envelope).unwrap()["id"].as_str().unwrap().to_owned()
        })
    }

    #[test]
    fn registration_is_parsed_with_defaults() {
        let (new, hosting) = read(&json!({})).unwrap();
        assert_eq!((new.cloud_provider.as_str(), new.region.as_str()), ("local", "local"));
        assert_eq!(
            (hosting.machines, hosting.is_private, hosting.is_foreign),
            (Some(6), true, true)
        );
        let (new, _) = read(&json!({"cloud_provider": "aws", "region": "eu-west-1"})).unwrap();
        assert_eq!((new.cloud_provider.as_str(), new.region.as_str()), ("aws", "eu-west-1"));
    }

    #[test]
    fn first_invalid_field_determines_the_error_code() {
        for (change, expected) in [
            (json!({"cluster_id": "x".repeat(33)}), "34"),
            (json!({"cluster_id": "x".repeat(31)}), "33"),
            (json!({"cluster_id": ""}), "33"),
            (json!({"cluster_id": "_".repeat(32), "cluster_ingress_dns_name": ""}), "45"),
            (json!({"cluster_ingress_dns_name": "", "kafka_machine_pool_node_count": 1}), "47"),
            (json!({"cluster_ingress_dns_name": "a..b"}), "47"),
            (json!({"cluster_ingress_dns_name": "a_b"}), "47"),
            (json!({"cluster_ingress_dns_name": "-a.b"}), "47"),
            (json!({"kafka_machine_pool_node_count": 0}), "37"),
            (json!({"kafka_machine_pool_node_count": 4}), "37"),
            (json!({"kafka_machine_pool_node_count": -3}), "37"),
            (json!({"kafka_machine_pool_node_count": "3"}), "37"),
            (json!({"access_kafkas_via_private_network": null}), "21"),
            (json!({"cloud_provider": "moon"}), "30"),
            (json!({"region": "moon"}), "31"),
        ] {
            assert_eq!(code(&change).as_deref(), Some(expected), "{change}");
        }
        assert_eq!(code(&json!({"kafka_machine_pool_node_count": 3})), None);
    }
}
