//! What a new deployment should be, as flags and as the body of a request.

use serde_json::{Value, json};

use super::super::error::Error;
use super::super::parse;
use super::super::resources::{Resources, unique};

/// All but the image.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Spec {
    /// What the deployment is called [default: the server's choice]
    #[arg(long)]
    name: Option<String>,
    /// The cluster that it must run on, by name or id [default: the server's choice]
    #[arg(long, value_name = "NAME-OR-ID")]
    pub(super) cluster: Option<String>,
    #[command(flatten)]
    resources: Resources,
    /// Who goes first: the higher number
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// How many of it run
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// A variable of its environment; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::pair)]
    env: Vec<(String, String)>,
    /// A port that it listens on; may be repeated
    #[arg(long = "port", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::pair)]
    labels: Vec<(String, String)>,
    /// What to run instead of the image's own command
    #[arg(last = true)]
    command: Vec<String>,
}

impl Spec {
    /// The body of the request: what was not said is not sent, so that the server's defaults hold.
    pub(super) fn request(
        self,
        image: Option<String>,
        cluster_id: Option<String>,
    ) -> Result<Value, Error> {
        let env = unique("variable", self.env)?;
        let labels = unique("label", self.labels)?;
        let fields = [
            ("name", self.name.map(Value::from)),
            ("image", image.map(Value::from)),
            ("cluster_id", cluster_id.map(Value::from)),
            ("resources", Some(json!(self.resources.by_type()?))),
            ("priority", self.priority.map(Value::from)),
            ("replicas", self.replicas.map(Value::from)),
            ("env", (!env.is_empty()).then(|| json!(env))),
            ("ports", (!self.ports.is_empty()).then(|| json!(self.ports))),
            ("labels", (!labels.is_empty()).then(|| json!(labels))),
            ("command", (!self.command.is_empty()).then(|| json!(self.command))),
        ];
        let said = fields.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
        Ok(Value::Object(said.collect()))
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

    fn request(line: &str) -> Result<Value, String> {
        let cli = Cli::try_parse_from(format!("x {line}").split_whitespace());
        let spec = cli.map_err(|error| error.to_string())?.spec;
        spec.request(Some("nginx".into()), None).map_err(|error| error.what())
    }

    #[test]
    fn flags_become_the_request() {
        for (line, want) in [
            ("", json!({ "image": "nginx", "resources": {} })),
            (
                "--cpu 500m --ram 1Gi --resource gpu=1 --priority -5 --replicas 2 --name web",
                json!({ "image": "nginx", "name": "web", "priority": -5, "replicas": 2,
                        "resources": { "cpu": "500m", "ram": "1Gi", "gpu": "1" } }),
            ),
            (
                "--env A=1 --env B=x=y --port 80 --port 443 --label t=w -- sh -c --cpu",
                json!({ "image": "nginx", "resources": {}, "env": { "A": "1", "B": "x=y" },
                        "ports": [80, 443], "labels": { "t": "w" },
                        "command": ["sh", "-c", "--cpu"] }),
            ),
        ] {
            assert_eq!(request(line), Ok(want), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("--env A", "--env"),
            ("--env A=1 --env A=2", "variable \"A\" is given twice"),
            ("--port 0", "--port"),
            ("--port 70000", "--port"),
            ("--replicas many", "--replicas"),
            ("--resource gpu", "--resource"),
            ("stray", "stray"),
        ] {
            let error = request(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
