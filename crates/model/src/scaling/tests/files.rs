//! Parsing of pool files, and errors with their lines.

use super::*;
use crate::cluster::Settings;
use crate::kind::Catalog;

const FULL: &str = "pools:
  - name: eu-small
    cloud_provider: aws
    region: eu-west-1
    hosts:
      - {kind: kafka, type: standard, reserved: 1}
    cluster:
      provider: agent
      labels: {tier: small}
      nodes:
        - {name: a, capacity: {cpu: 16, ram: 64Gi}, labels: {disk: fast}}
        - {name: b, capacity: {cpu: 16, ram: 64Gi}}
    at_least: 1
    at_most: 20
    limit: {cpu: 400}
    slack: {cpu: 8}
    grow_after_waiting_seconds: 5
    grow_after_seconds: 60
    cool_down_seconds: 900
    idle_for_seconds: 1200
    dry_run: true
";

const SHORT: &str = "pools:
  - name: x
    cloud_provider: local
    region: local
    cluster:
      provider: local
      capacity: {cpu: 4}
    at_most: 3
";

fn read(text: &str) -> Result<Vec<Pool>, String> {
    parse_for("f.yaml", text, &Catalog::built_in()).map_err(|refused| refused.to_string())
}

#[test]
fn all_settings_are_parsed() {
    let pools = read(FULL).unwrap();
    let [pool] = pools.as_slice() else { panic!("{pools:?}") };
    assert_eq!((pool.at_least, pool.at_most, pool.dry_run), (1, 20, true));
    assert_eq!(pool.pace.grow_after_waiting, Duration::from_secs(5));
    assert_eq!(pool.pace.cool_down, minutes(15));
    assert_eq!(pool.template.capacity.get("cpu"), crate::Quantity::whole(32));
    assert_eq!(pool.hosts[0].reserved, 1);
    // By default the largest size of the type must always fit.
    let kafka = Catalog::built_in();
    let sizes = &kafka.kind("kafka").unwrap().instance_type("standard").unwrap().sizes;
    assert_eq!(pool.largest, [sizes.last().unwrap().resources.clone()]);
    assert_eq!(pool.hosts[0].room, sizes[0].resources);
    let selector = BTreeMap::from([("disk".to_owned(), "fast".to_owned())]);
    assert!(pool.template.could_run(&cpus(16), &selector));
    assert!(!pool.template.could_run(&cpus(17), &selector));
}

#[test]
fn omitted_settings_have_defaults() {
    let pools = read(SHORT).unwrap();
    let expected = Pool {
        name: "x".into(),
        at_most: 3,
        template: Template { region: "local".into(), capacity: cpus(4), ..plain().template },
        ..plain()
    };
    assert_eq!(pools, [expected]);
}

#[test]
fn clusters_of_third_party_agents_are_counted_in_units() {
    let text = FULL
        .replace(
            "      labels: {tier: small}\n",
            "      foreign_agent: true\n      capacity: {kafka.standard: 5}\n",
        )
        .replace("      nodes:\n", "")
        .replace("        - {name: a, capacity: {cpu: 16, ram: 64Gi}, labels: {disk: fast}}\n", "")
        .replace("        - {name: b, capacity: {cpu: 16, ram: 64Gi}}\n", "")
        .replace("    slack: {cpu: 8}\n", "    slack: {kafka.standard: 2}\n");
    let pools = read(&text).unwrap();
    assert_eq!(pools[0].hosts[0].room, Resources::from([("kafka.standard", 1)]));
    assert!(pools[0].largest[0].get("kafka.standard") >= crate::Quantity::whole(1));
}

#[test]
fn provider_settings_are_parsed() {
    let text = SHORT.replace(
        "  provider: local\n",
        "  provider: terraform\n      settings: {terraform: {module: small, variables: {n: 3}}}\n",
    );
    let pools = read(&text).unwrap();
    assert!(matches!(&pools[0].template.settings, Settings::Terraform(t) if t.module == "small"));
}

#[test]
fn invalid_settings_are_refused_with_their_line() {
    for (from, to, expect) in [
        ("at_most: 3", "at_mots: 3", "f.yaml:8: pools.x: unknown field `at_mots`"),
        ("at_most: 3", "at_most: many", "f.yaml:8: pools.x.at_most: must be a whole number from 0"),
        ("at_most: 3", "at_most: 0", "f.yaml:8: pools.x.at_most: must be from 1 to 10000"),
        (
            "at_most: 3",
            "at_least: 4\n    at_most: 3",
            "f.yaml:8: pools.x.at_least: must not be more than at_most, which is 3",
        ),
        ("name: x", "name: X y", "f.yaml:2: pools.X y.name: must have 1 to 63 characters of a-z"),
        (
            "capacity: {cpu: 4}",
            "capacity: {}",
            "f.yaml:7: pools.x.cluster.capacity: must contain at least",
        ),
        (
            "provider: local",
            "provider: mine",
            "f.yaml:6: pools.x.cluster.provider: unknown variant",
        ),
        ("region: local", "region: \"\"", "f.yaml:4: pools.x.region: must not be empty"),
        (
            "at_most: 3",
            "at_most: 3\n    slack: {cpu: 13}",
            "f.yaml:9: pools.x.slack: exceeds the capacity of `at_most` clusters by 1 cpu",
        ),
        (
            "at_most: 3",
            "at_most: 3\n    largest: {cpu: 5}",
            "f.yaml:9: pools.x.largest: 5 cpu must fit on one node of the cluster",
        ),
        (
            "at_most: 3",
            "at_most: 3\n    cool_down_seconds: 604801",
            "f.yaml:9: pools.x.cool_down_seconds: must be at most 604800 (a week)",
        ),
        (
            "at_most: 3",
            "at_most: 3\n    hosts: [{kind: goat, type: x}]",
            "f.yaml:9: pools.x.hosts[0].kind: unknown kind",
        ),
        (
            "at_most: 3",
            "at_most: 3\n    hosts: [{kind: kafka, type: x}]",
            "f.yaml:9: pools.x.hosts[0].type: the kind has no such instance type",
        ),
        (
            "at_most: 3\n",
            "at_most: 3\n  - name: x\n    cloud_provider: a\n    region: b\n    cluster: {provider: local, capacity: {cpu: 1}}\n    at_most: 1\n",
            "f.yaml:9: pools.x.name: must be unique",
        ),
    ] {
        let refused = read(&SHORT.replace(from, to)).unwrap_err();
        assert!(refused.starts_with(expect), "{refused}\n{expect}");
    }
}

#[test]
fn example_file_is_valid() {
    let pools = read(include_str!("../../../../../examples/scaling/scaling.yaml")).unwrap();
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["batch", "services", "cloud"]);
    assert!(pools[1].dry_run && pools[1].hosts[0].reserved == 1);
    let created = pools[2].template.cluster("cloud-1".into());
    assert!(
        matches!(created.settings, Settings::Terraform(terraform) if terraform.module == "small")
    );
}
