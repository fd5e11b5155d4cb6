//! Built-in kinds, and validation errors with their lines.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::template::tests::values;
use super::*;
use crate::Quantity;

const KAFKA: &str = include_str!("../../../../catalog/kafka.yaml");
const DINOSAUR: &str = include_str!("../../../../catalog/dinosaur.yaml");

fn kafka() -> Kind {
    parse("catalog/kafka.yaml", KAFKA).unwrap_or_else(|error| panic!("{error}"))
}

fn dinosaur() -> Kind {
    parse("catalog/dinosaur.yaml", DINOSAUR).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn built_in_catalog_has_both_kinds() {
    let catalog = Catalog::built_in();
    let names: Vec<_> = catalog.kinds().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["dinosaur", "kafka"]);
    assert_eq!(catalog.by_api("kafkas_mgmt").unwrap().name, "kafka");
    assert_eq!(catalog.kind("dinosaur").unwrap().error_prefix, "DINOSAURS-MGMT");
    assert_eq!(catalog.by_api("kafkas"), None);
}

#[test]
fn kafka_matches_the_reference() {
    let kafka = kafka();
    assert_eq!(kafka.words.object, "Kafka");
    assert_eq!(kafka.words.list, "KafkaRequestList");
    assert_eq!(kafka.words.admin_list, "KafkaList");
    assert_eq!(kafka.words.agent_list, "ManagedKafkaList");
    assert_eq!(kafka.words.versions(), "kafkaVersions");
    assert_eq!(kafka.words.ibps().unwrap(), "kafkaIbpVersions");
    assert_eq!(kafka.words.updating("strimzi"), "StrimziUpdating");
    let (standard, x2) = kafka.plan("standard.x2").unwrap();
    assert!(standard.multi_az);
    let ids: Vec<_> = standard.billing_models.iter().map(|m| (&*m.id, m.grace_days)).collect();
    assert_eq!(ids, [("standard", 7), ("marketplace", 7), ("eval", 4), ("enterprise", 7)]);
    assert_eq!((x2.capacity_consumed, x2.quota_consumed, x2.maturity), (2, 2, Maturity::Preview));
    assert_eq!(x2.zones, [Zones::Multi]);
    assert_eq!(x2.resources.get("ram"), "1536Mi".parse::<Quantity>().unwrap());
    let ingress = x2.limit("ingress_throughput_per_sec").unwrap();
    assert_eq!(ingress.value, LimitValue::Quantity { text: "100Mi".into(), bytes: 100 << 20 });
    assert_eq!(ingress.agent.as_deref(), Some("ingressPerSec"));
    assert_eq!(x2.limit("max_partitions").unwrap().value, LimitValue::Number(3000));
    let period = x2.limit("max_data_retention_period").unwrap();
    assert_eq!(period.value, LimitValue::Text("P14D".into()));
    let (_, trial) = kafka.plan("developer.x1").unwrap();
    assert_eq!(trial.lifespan_seconds, Some(172_800));
    assert_eq!(kafka.trial_type().unwrap().id, "developer");
    assert_eq!(kafka.default_cloud().default_region().name, "local");
    assert_eq!(kafka.cloud("aws").unwrap().default_region().name, "us-east-1");
    assert_eq!(kafka.default_version().version, "3.9.0");
    assert_eq!(kafka.unit("standard"), "kafka.standard");
    assert!(kafka.order_columns().contains(&"bootstrap_server_host"));
}

#[test]
fn dinosaur_matches_the_template() {
    let dinosaur = dinosaur();
    assert_eq!(dinosaur.words.list, "DinosaurRequestList");
    assert_eq!((&*dinosaur.words.host, dinosaur.words.host_port), ("host", None));
    assert_eq!(dinosaur.words.operator, "dinosaurOperator");
    assert_eq!(dinosaur.words.agent_domain, "mas");
    assert_eq!(dinosaur.words.ibps(), None);
    assert_eq!(dinosaur.offers.multi_az, MultiAz::Asked);
    assert!(dinosaur.offers.status && !dinosaur.offers.plans);
    assert_eq!(dinosaur.offers.search_columns.len(), 5);
    assert_eq!(dinosaur.types[0].sizes[0].display_name, "x1");
    let ready = Ready::Http { port: 8080, path: "/".into(), status: 200, within: 120 };
    assert_eq!(dinosaur.run.container.ready, ready);
}

#[test]
fn program_is_rendered_for_an_instance() {
    let filled = kafka().run.container.render(&values());
    assert_eq!(filled.image, "docker.io/apache/kafka:1.2.3");
    let filled = dinosaur().run.container.render(&values());
    assert_eq!(filled.env["OIDC_CLIENT_SECRET"], "s3cret");
    assert!(!format!("{filled:?}").contains("s3cret"));
    let objects = dinosaur().run.render_objects(&values());
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[1]["metadata"]["name"], "orders");
    assert_eq!(objects[0]["spec"]["replicas"], 1);
}

#[test]
fn value_cannot_change_the_structure_of_an_object() {
    let values = Values { name: "x\"\nkind: Secret # ".into(), ..values() };
    let object = &dinosaur().run.render_objects(&values)[1];
    assert_eq!(object["kind"], "Service");
    assert_eq!(object["metadata"]["name"], values.name.as_str());
}

#[test]
fn plans_are_parsed() {
    let kafka = kafka();
    assert_eq!(kafka.plan("standard.x1").unwrap().1.id, "x1");
    for (text, why) in [
        ("", PlanError::Malformed),
        ("standard", PlanError::Malformed),
        ("standard.", PlanError::Malformed),
        (".x1", PlanError::Malformed),
        ("standard.x1.x2", PlanError::Malformed),
        ("huge.x1", PlanError::UnknownType("huge".into())),
        ("developer.x2", PlanError::UnknownSize("x2".into())),
    ] {
        assert_eq!(kafka.plan(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn clouds_and_regions_are_resolved() {
    let kafka = kafka();
    let found = |cloud, region| {
        kafka
            .location_for("developer", cloud, region)
            .map(|(c, r)| format!("{}/{}", c.name, r.name))
    };
    assert_eq!(found("", ""), Ok("local/local".into()));
    assert_eq!(found("aws", ""), Ok("aws/us-east-1".into()));
    for (cloud, region, reason) in [
        ("ibm", "", "cloud provider \"ibm\" is not supported; expected one of local, aws, gcp"),
        ("", "us-east-1", "region \"us-east-1\" is not supported; expected one of local for local"),
        ("aws", "eu-west-1", "developer instances are not supported in region eu-west-1 of aws"),
    ] {
        let error = found(cloud, region).unwrap_err();
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn grace_period_defaults_to_a_week() {
    let kafka = kafka();
    assert_eq!(kafka.grace_days("standard", "standard"), 7);
    assert_eq!(kafka.grace_days("standard", "eval"), 4);
    assert_eq!(kafka.grace_days("developer", "standard"), 0);
    assert_eq!(kafka.grace_days("gone", "standard"), 7);
}

#[test]
fn scalars_are_read_as_strings() {
    let text = DINOSAUR.replace("version: 1.0.0", "version: 1.10");
    assert_eq!(parse("d.yaml", &text).unwrap().default_version().version, "1.10");
}

/// Replaces one part of the dinosaur's file and expects an error at the line of `at`.
#[track_caller]
fn rejects(from: &str, to: &str, at: &str, reason: &str) {
    assert!(DINOSAUR.contains(from), "{from}");
    let text = DINOSAUR.replacen(from, to, 1);
    let line = text[..text.find(at).unwrap()].split('\n').count();
    let error = parse("d.yaml", &text).unwrap_err();
    assert_eq!(error.to_string(), format!("d.yaml:{line}: {reason}"), "{from} -> {to}");
}

#[test]
fn names_are_validated() {
    let rule = "must start with a-z, contain only a-z, 0-9 and -, and have at most 32 characters";
    rejects("name: dinosaur", "name: Dino", "name: Dino", &format!("name: {rule}"));
    rejects("- id: eval", "- id: e.val", "- id: e.val", &format!("types.e.val.id: {rule}"));
    rejects("{id: x1", "{id: 1x", "{id: 1x", &format!("types.standard.sizes.1x.id: {rule}"));
    rejects(
        "api: dinosaurs_mgmt",
        "api: dinosaurs/mgmt",
        "api: dinosaurs/mgmt",
        "api: must start with a-z, contain only a-z, 0-9 and _, and have at most 63 characters",
    );
    rejects(
        "DINOSAURS-MGMT",
        "dinosaurs",
        "error_prefix",
        "error_prefix: must contain only A-Z, 0-9 and -",
    );
    rejects(
        "domain: dinosaur.paddock.local",
        "domain: -x.local",
        "domain: -x",
        "needs.domain: must be a DNS name like example.org, with at most 190 characters",
    );
}

#[test]
fn shapes_are_validated() {
    rejects(
        "max_trials: 1",
        "max_trails: 1",
        "max_trails",
        "unknown field `max_trails`, expected one of name, plural, api, error_prefix, \
         display_name, words, offers, limits, types, trial, max_trials, clouds, versions, run, \
         needs, priority",
    );
    rejects(
        "max_trials: 1",
        "max_trials: many",
        "max_trials: many",
        "max_trials: must be a whole number from 0 to 4294967295",
    );
    rejects(
        "multi_az: asked ",
        "multi_az: maybe ",
        "multi_az: maybe",
        "offers.multi_az: unknown variant `maybe`, expected one of forced, asked",
    );
    rejects(
        "trial: eval\n",
        "trial: eval\ntrial: eval\n",
        "trial: eval\nmax",
        "duplicate mapping key: trial not allowed here",
    );
}

#[test]
fn duplicate_ids_are_rejected() {
    rejects(
        "- id: eval",
        "- id: standard",
        "- id: standard\n    display_name: Eval",
        "types.standard.id: duplicate value \"standard\"",
    );
    rejects(
        "      - {name: eu-west-1",
        "      - {name: us-east-1",
        "      - {name: us-east-1, display_name: \"EU",
        "clouds.aws.regions.us-east-1.name: duplicate value \"us-east-1\"",
    );
}

#[test]
fn unsorted_or_empty_sizes_are_rejected() {
    rejects(
        "      - {id: x1, resources: {cpu: 50m, ram: 32Mi}}\n",
        "      - {id: x2, capacity_consumed: 2, resources: {cpu: 1}}\n      - {id: x1, resources: {cpu: 1}}\n",
        "      - {id: x1, resources: {cpu: 1}}",
        "types.standard.sizes.x1.capacity_consumed: sizes must be in ascending order of \
         capacity, but x2 consumes more than x1",
    );
    rejects(
        "      - {id: x1, resources: {cpu: 50m, ram: 32Mi}}\n",
        "      - {id: x1, resources: {}}\n",
        "      - {id: x1, resources: {}}\n",
        "types.standard.sizes.x1.resources: must list what an instance consumes, like cpu and ram",
    );
}

#[test]
fn exactly_one_default_is_required() {
    rejects("    default: true\n", "", "clouds:", "clouds: one entry must have default: true");
    rejects(
        "display_name: \"EU, Ireland\"",
        "display_name: \"EU, Ireland\", default: true",
        "display_name: \"EU, Ireland\"",
        "clouds.aws.regions.eu-west-1.default: only one entry may be the default",
    );
}

#[test]
fn unknown_references_are_rejected() {
    rejects("trial: eval", "trial: test", "trial: test", "trial: must be one of standard, eval");
    rejects(
        "eval: {limit: 1000}",
        "huge: {limit: 1000}",
        "huge: {limit",
        "clouds.aws.regions.us-east-1.types.huge: unknown instance type; expected one of \
         standard, eval",
    );
    rejects(
        "http: {port: 8080",
        "http: {port: 80",
        "http: {port: 80,",
        "run.container.ready.http.port: must be one of the container's ports",
    );
    rejects(
        "{id: x1, resources",
        "{id: x1, limits: {speed: 3}, resources",
        "{id: x1, limits",
        "types.standard.sizes.x1.limits.speed: unknown limit; the kind has none",
    );
    rejects(
        "[region, name, ",
        "[region, nam, ",
        "[region, nam, ",
        "offers.search_columns[1]: must be one of region, name, cloud_provider, status, owner, \
         cluster_id, instance_type",
    );
}

#[test]
fn every_size_sets_all_limits_in_their_measure() {
    let limits = "limits: [{name: speed, measure: bytes}]\ntypes:";
    let text = DINOSAUR.replacen("types:\n", &format!("{limits}\n"), 1);
    let error = parse("d.yaml", &text).unwrap_err().to_string();
    assert!(error.contains("types.standard.sizes.x1.limits.speed: is missing"), "{error}");
    let text = text.replace("{id: x1,", "{id: x1, limits: {speed: fast},");
    let error = parse("d.yaml", &text).unwrap_err().to_string();
    assert!(error.contains("x1.limits.speed: must be a number such as"), "{error}");
    let text = text.replace("speed: fast", "speed: 5Mi");
    let kind = parse("d.yaml", &text).unwrap();
    let value = &kind.types[1].sizes[0].limits[0].value;
    assert_eq!(value, &LimitValue::Quantity { text: "5Mi".into(), bytes: 5 << 20 });
    let text = text.replace("measure: bytes", "measure: number, shown: bytes");
    assert!(
        parse("d.yaml", &text)
            .unwrap_err()
            .to_string()
            .contains("limits.speed.shown: bytes is only")
    );
}

#[test]
fn secrets_are_rejected_in_commands() {
    let wrong = "{{ sso.client_secret }} is not allowed here; use it in env";
    rejects(
        "    env:\n",
        "    command: [page, \"{{ sso.client_secret }}\"]\n    env:\n",
        "    command: [page",
        &format!("run.container.command[1]: {wrong}"),
    );
    rejects(
        "image: localhost/paddock-page:1",
        "image: \"x:{{ sso.client_secret }}\"",
        "image: \"x",
        &format!("run.container.image: {wrong}"),
    );
    rejects(
        "    env:\n",
        "    command: [page, \"{{ owner }}\"]\n    env:\n",
        "    command: [page",
        "run.container.command[1]: {{ owner }} is not allowed here; use it in env",
    );
    rejects(
        "sso: true",
        "sso: false",
        "OIDC_CLIENT_ID",
        "run.container.env.OIDC_CLIENT_ID: {{ sso.… }} requires needs.sso: true",
    );
}

#[test]
fn out_of_range_values_are_rejected() {
    rejects(
        "{standard: {limit: 1000}, eval",
        "{standard: {limit: 2, slack: 3}, eval",
        "{standard: {limit: 2",
        "clouds.aws.regions.us-east-1.types.standard.slack: must not exceed the limit of 2",
    );
    rejects(
        "within: 120",
        "within: 0",
        "within: 0",
        "run.container.ready.http.within: must be from 1 to 86400 seconds",
    );
    rejects(
        "path: /,",
        "path: a,",
        "path: a,",
        "run.container.ready.http.path: must start with / and contain no whitespace",
    );
    rejects(
        "lifespan_seconds: 172800",
        "lifespan_seconds: 0",
        "lifespan_seconds: 0",
        "types.eval.sizes.x1.lifespan_seconds: must be from 1 to 315360000",
    );
    rejects(
        "{id: x1, resources: {cpu",
        "{id: x1, capacity_consumed: 0, resources: {cpu",
        "capacity_consumed: 0",
        "types.standard.sizes.x1.capacity_consumed: must be from 1 to 1000000",
    );
    rejects(
        "max_trials: 1",
        "priority: 1000001",
        "priority: 1000001",
        "priority: must be from -1000000 to 1000000",
    );
    rejects(
        "  sso: true",
        "  sso: true\n  dns: [\"\", Admin]",
        "dns: [",
        "needs.dns[1]: must be empty, or start with a-z, contain only a-z, 0-9 and -, and have at \
         most 31 characters",
    );
    rejects(
        "DINOSAUR_HOST:",
        "DINOSAUR-HOST:",
        "DINOSAUR-HOST:",
        "run.container.env.DINOSAUR-HOST: a variable name must contain only letters, digits and _",
    );
    rejects(
        "ram: 32Mi}}",
        "ram: -1}}",
        "ram: -1}}",
        "types.standard.sizes.x1.resources.ram: must not be negative",
    );
}

#[test]
fn invalid_templates_are_rejected() {
    rejects(
        "DINOSAUR_HOST: \"{{ host }}\"",
        "DINOSAUR_HOST: \"{{ hots }}\"",
        "DINOSAUR_HOST: ",
        "run.container.env.DINOSAUR_HOST: unknown name {{ hots }}; expected one of id, name, namespace, host, \
         version, size, owner, organization, sso.client_id, sso.client_secret",
    );
    rejects(
        "apiVersion: apps/v1",
        "kind_: 1",
        "      kind_",
        "run.manifests[0]: requires a string apiVersion",
    );
}

#[test]
fn versions_must_ascend() {
    let one = "  - {operator: dinosaur-operator.v0.1.0-1, version: 1.0.0}\n";
    let wrong = "must be newer than the previous version: new instances get the last one";
    rejects(
        one,
        &format!("  - {{operator: dinosaur-operator.v0.1.0-1, version: 1.10.0}}\n{one}"),
        one,
        &format!("versions[1].version: {wrong}"),
    );
    let twice = DINOSAUR.replacen(one, &format!("{one}{one}"), 1);
    assert!(parse("d.yaml", &twice).unwrap_err().to_string().contains(wrong));
    assert!(compare_numerically("1.9.0", "1.10.0").is_lt());
    assert!(compare_numerically("v0.26.0-4", "v0.26.0-10").is_lt());
    assert!(compare_numerically("1.0", "1.0").is_eq());
}

#[test]
fn kinds_with_shared_fields_are_rejected() {
    let again = Kind { name: "other".into(), plural: "others".into(), ..dinosaur() };
    let error = Catalog::new(vec![dinosaur(), again]).unwrap_err();
    assert_eq!(error.to_string(), "kind other: api: is already used by the kind dinosaur");
    let better = Kind { max_trials: 9, ..dinosaur() };
    let catalog = Catalog::built_in().with(vec![better]).unwrap();
    assert_eq!(catalog.kind("dinosaur").unwrap().max_trials, 9);
    assert_eq!(catalog.kinds().count(), 2);
}

#[test]
fn hosts_and_routes_are_derived_from_name_and_id() {
    let kafka = kafka();
    let id = "cv0000000000000000g0";
    for (name, label) in [
        ("orders", "orders-cv0000000000000000g0"),
        ("orders-of-the-day", "orders-of--cv0000000000000000g0"),
        ("7up", "up-cv0000000000000000g0"),
        ("ÄÖ", "a-cv0000000000000000g0"),
    ] {
        assert_eq!(kafka.host_label(name, id), label);
    }
    let host = kafka.host("orders", id, kafka.base_domain(None));
    assert_eq!(host, "orders-cv0000000000000000g0.kafka.paddock.local");
    assert_eq!(kafka.base_domain(Some("x.org")), "x.org");
    assert_eq!(kafka.routes(&host)[..2], [host.clone(), format!("admin-server-{host}")]);
}

/// The example of the checklist "Add a kind" in CONTRIBUTING.md is valid.
#[test]
fn example_for_contributors_is_valid() {
    let text = include_str!("../../../../CONTRIBUTING.md");
    let (_, rest) = text.split_once("```yaml\n").expect("an example in YAML");
    let (example, _) = rest.split_once("```").expect("its end");
    // The example is indented as part of a list item.
    let example = example.replace("\n   ", "\n");
    let postgres =
        parse("postgres.yaml", example.trim_start()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(postgres.name, "postgres");
    assert_eq!(postgres.api, "postgreses_mgmt");
    assert_eq!(postgres.error_prefix, "POSTGRESES-MGMT");
    assert!(postgres.plan("standard.small").is_ok());
    let catalog = Catalog::built_in().with(vec![postgres]).unwrap();
    assert!(catalog.by_api("postgreses_mgmt").is_some());
}

/// Parsed once, for all property test cases.
static ONE: LazyLock<Kind> = LazyLock::new(dinosaur);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn host_labels_are_valid_and_unique_per_id(
        name in ".{0,40}",
        a in "[0-9a-v]{20}",
        b in "[0-9a-v]{20}",
        other in ".{0,40}",
    ) {
        let kafka = &*ONE;
        let label = kafka.host_label(&name, &a);
        prop_assert!(crate::name::dns_label("label", &label).is_ok(), "{}", label);
        prop_assert!(label.starts_with(|c: char| c.is_ascii_lowercase()));
        prop_assert!(label.len() + "-".len() + 31 <= 63);
        if a != b {
            prop_assert_ne!(label, kafka.host_label(&other, &b));
        }
    }

    #[test]
    fn damaged_file_never_panics(at in 0usize..4000, with in "[ -~\n]{0,3}") {
        let mut at = at.min(DINOSAUR.len());
        while !DINOSAUR.is_char_boundary(at) {
            at -= 1;
        }
        let text = format!("{}{with}{}", &DINOSAUR[..at], &DINOSAUR[at..]);
        if let Err(error) = parse("d.yaml", &text) {
            prop_assert!(error.line.is_some(), "{}", error);
        }
    }
}
