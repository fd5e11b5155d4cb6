//! Specification of a new deployment, as flags and as a request body.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::super::error::Error;
use super::super::parse;
use super::super::resources::{Resources, unique};

/// All options but the image.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Spec {
    /// Name of the deployment [default: chosen by the server]
    #[arg(long)]
    name: Option<String>,
    /// Cluster to run on, by name or id [default: chosen by the server]
    #[arg(long, value_name = "NAME-OR-ID")]
    pub(super) cluster: Option<String>,
    #[command(flatten)]
    resources: Resources,
    /// Priority; higher numbers are placed first and may preempt lower ones [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Number of replicas [default: 1]
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// Environment variable; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::pair)]
    env: Vec<(String, String)>,
    /// Container port to publish; repeatable
    #[arg(long = "port", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// Label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::pair)]
    labels: Vec<(String, String)>,
    /// Restart policy [default: on-failure]
    #[arg(long, value_enum, value_name = "WHEN")]
    restart: Option<Restart>,
    /// Maximum run time of each replica, such as 90s, 10m or 2h [default: unlimited]
    #[arg(long, value_name = "DURATION", value_parser = parse::seconds)]
    run_for: Option<u64>,
    /// Label that a node (or its cluster) must have; repeatable
    #[arg(long = "on-label", value_name = "KEY=VALUE", value_parser = parse::pair)]
    node_selector: Vec<(String, String)>,
    /// Place each replica on a different node
    #[arg(long)]
    spread: bool,
    /// Command to run instead of the image's default
    #[arg(last = true)]
    command: Vec<String>,
}

/// Restart policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Restart {
    Never,
    #[value(alias = "on_failure")]
    OnFailure,
    Always,
}

impl Restart {
    fn wire_value(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OnFailure => "on_failure",
            Self::Always => "always",
        }
    }
}

impl Spec {
    /// Request body. Omits unset fields, so that the server's defaults apply.
    pub(super) fn request(
        self,
        image: Option<String>,
        cluster_id: Option<String>,
    ) -> Result<Value, Error> {
        let env = unique("variable", self.env)?;
        let labels = unique("label", self.labels)?;
        let node_selector = unique("label", self.node_selector)?;
        let resources = self.resources.by_type()?;
        let fields = [
            ("name", self.name.map(Value::from)),
            ("image", image.map(Value::from)),
            ("cluster_id", cluster_id.map(Value::from)),
            ("resources", Some(json!(resources))),
            ("priority", self.priority.map(Value::from)),
            ("replicas", self.replicas.map(Value::from)),
            ("env", (!env.is_empty()).then(|| json!(env))),
            ("ports", (!self.ports.is_empty()).then(|| json!(self.ports))),
            ("labels", (!labels.is_empty()).then(|| json!(labels))),
            ("restart", self.restart.map(|restart| restart.wire_value().into())),
            ("run_for", self.run_for.map(Value::from)),
            ("node_selector", (!node_selector.is_empty()).then(|| json!(node_selector))),
            ("anti_affinity", self.spread.then(|| true.into())),
            ("command", (!self.command.is_empty()).then(|| json!(self.command))),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
        Ok(Value::Object(given.collect()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        spec: Spec,
    }

    fn request_for(image: Option<&str>, line: &str) -> Result<Value, String> {
        let cli = Cli::try_parse_from(format!("x {line}").split_whitespace());
        let spec = cli.map_err(|error| error.to_string())?.spec;
        spec.request(image.map(Into::into), None).map_err(|error| error.message())
    }

    fn request(line: &str) -> Result<Value, String> {
        request_for(Some("nginx"), line)
    }

    #[test]
    fn flags_become_the_request() {
        for (line, want) in [
            (
                "--cpu 500m --ram 1Gi --resource gpu=1 --priority -5 --replicas 2 --name web",
                json!({ "image": "nginx", "name": "web", "priority": -5, "replicas": 2,
                        "resources": { "cpu": "500m", "ram": "1Gi", "gpu": "1" } }),
            ),
            (
                "--cpu 1 --env A=1 --env B=x=y --port 80 --port 443 --label t=w -- sh -c --cpu",
                json!({ "image": "nginx", "resources": { "cpu": "1" },
                        "env": { "A": "1", "B": "x=y" }, "ports": [80, 443],
                        "labels": { "t": "w" }, "command": ["sh", "-c", "--cpu"] }),
            ),
            (
                "--cpu 1 --restart on-failure --run-for 10m --on-label zone=a --spread",
                json!({ "image": "nginx", "resources": { "cpu": "1" }, "restart": "on_failure",
                        "run_for": 600, "node_selector": { "zone": "a" }, "anti_affinity": true }),
            ),
        ] {
            assert_eq!(request(line), Ok(want), "{line}");
        }
    }

    #[test]
    fn default_resources_are_left_to_the_server() {
        assert_eq!(request("").unwrap()["resources"], json!({}));
        assert_eq!(request("--ram 1Gi").unwrap()["resources"], json!({ "ram": "1Gi" }));
        assert_eq!(request_for(None, ""), Ok(json!({ "resources": {} })));
    }

    #[test]
    fn invalid_flags_are_rejected() {
        for (line, part) in [
            ("--env A", "--env"),
            ("--env A=1 --env A=2", "variable \"A\" is given twice"),
            ("--on-label a=1 --on-label a=2", "label \"a\" is given twice"),
            ("--port 0", "--port"),
            ("--port 70000", "--port"),
            ("--replicas many", "--replicas"),
            ("--resource gpu", "--resource"),
            ("--run-for soon", "use for example 45s, 30m, 12h or 7d"),
            ("--run-for 0s", "must be greater than zero"),
            ("--restart sometimes", "[possible values: never, on-failure, always]"),
            ("stray", "stray"),
        ] {
            let error = request(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
