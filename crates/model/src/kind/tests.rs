//! Kinds: the built-in ones, and every rule with its line.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::template::tests::values;
use super::*;
use crate::Quantity;

const KAFKA: &str = include_str!("../../../../catalog/kafka.yaml");
const DINOSAUR: &str = include_str!("../../../../catalog/dinosaur.yaml");

fn kafka() -> Kind {
    parse("catalog/kafka.yaml", KAFKA).unwrap_or_else(|refused| panic!("{refused}"))
}

fn dinosaur() -> Kind {
    parse("catalog/dinosaur.yaml", DINOSAUR).unwrap_or_else(|refused| panic!("{refused}"))
}

#[test]
fn the_built_in_catalog_has_both_kinds() {
    let catalog = Catalog::built_in();
    let names: Vec<_> = catalog.kinds().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["dinosaur", "kafka"]);
    assert_eq!(catalog.by_api("kafkas_mgmt").unwrap().name, "kafka");
    assert_eq!(catalog.kind("dinosaur").unwrap().error_prefix, "DINOSAURS-MGMT");
    assert_eq!(catalog.by_api("kafkas"), None);
}

#[test]
fn kafka_is_what_the_reference_has() {
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
fn dinosaur_is_what_the_template_has() {
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
fn texts_are_filled_in_for_an_instance() {
    let filled = kafka().run.container.filled(&values());
    assert_eq!(filled.image, "docker.io/apache/kafka:1.2.3");
    let filled = dinosaur().run.container.filled(&values());
    assert_eq!(filled.env["OIDC_CLIENT_SECRET"], "s3cret");
    assert!(!format!("{filled:?}").contains("s3cret"));
    let objects = dinosaur().run.objects(&values());
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[1]["metadata"]["name"], "orders");
    assert_eq!(objects[0]["spec"]["replicas"], 1);
}

#[test]
fn a_value_cannot_change_the_shape_of_an_object() {
    let values = Values { name: "x\"\nkind: Secret # ".into(), ..values() };
    let object = &dinosaur().run.objects(&values)[1];
    assert_eq!(object["kind"], "Service");
    assert_eq!(object["metadata"]["name"], values.name.as_str());
}

#[test]
fn plans() {
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
fn places() {
    let kafka = kafka();
    let found = |cloud, region| {
        kafka.place_for("developer", cloud, region).map(|(c, r)| format!("{}/{}", c.name, r.name))
    };
    assert_eq!(found("", ""), Ok("local/local".into()));
    assert_eq!(found("aws", ""), Ok("aws/us-east-1".into()));
    for (cloud, region, reason) in [
        ("ibm", "", "the cloud provider \"ibm\" is not supported; supported are local, aws, gcp"),
        ("", "us-east-1", "the region \"us-east-1\" is not supported; local has local"),
        (
            "aws",
            "eu-west-1",
            "developer instances are not supported in the region eu-west-1 of aws",
        ),
    ] {
        let error = found(cloud, region).unwrap_err();
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn grace_is_a_week_unless_the_file_says_otherwise() {
    let kafka = kafka();
    assert_eq!(kafka.grace_days("standard", "standard"), 7);
    assert_eq!(kafka.grace_days("standard", "eval"), 4);
    assert_eq!(kafka.grace_days("developer", "standard"), 0);
    assert_eq!(kafka.grace_days("gone", "standard"), 7);
}

#[test]
fn texts_are_taken_as_they_are_written() {
    let text = DINOSAUR.replace("version: 1.0.0", "version: 1.10");
    assert_eq!(parse("d.yaml", &text).unwrap().default_version().version, "1.10");
}

/// Replaces one piece of the dinosaur's file, and expects a refusal at the line of `at`.
#[track_caller]
fn broken(from: &str, to: &str, at: &str, reason: &str) {
    assert!(DINOSAUR.contains(from), "{from}");
    let text = DINOSAUR.replacen(from, to, 1);
    let line = text[..text.find(at).unwrap()].split('\n').count();
    let refused = parse("d.yaml", &text).unwrap_err();
    assert_eq!(refused.to_string(), format!("d.yaml:{line}: {reason}"), "{from} -> {to}");
}

#[test]
fn names_are_checked() {
    let rule = "must start with a-z, go on with a-z, 0-9 and -, and have at most 32";
    broken("name: dinosaur", "name: Dino", "name: Dino", &format!("name: {rule}"));
    broken("- id: eval", "- id: e.val", "- id: e.val", &format!("types.e.val.id: {rule}"));
    broken("{id: x1", "{id: 1x", "{id: 1x", &format!("types.standard.sizes.1x.id: {rule}"));
    broken(
        "api: dinosaurs_mgmt",
        "api: dinosaurs/mgmt",
        "api: dinosaurs/mgmt",
        "api: must start with a-z, go on with a-z, 0-9 and _, and have at most 63",
    );
    broken(
        "DINOSAURS-MGMT",
        "dinosaurs",
        "error_prefix",
        "error_prefix: must be made of A-Z, 0-9 and -",
    );
    broken(
        "domain: dinosaur.paddock.local",
        "domain: -x.local",
        "domain: -x",
        "needs.domain: must be a DNS name like example.org, with at most 190 characters",
    );
}

#[test]
fn shapes_are_checked() {
    broken(
        "max_trials: 1",
        "max_trails: 1",
        "max_trails",
        "unknown field `max_trails`, expected one of name, plural, api, error_prefix, \
         display_name, words, offers, limits, types, trial, max_trials, clouds, versions, run, \
         needs, priority",
    );
    broken(
        "max_trials: 1",
        "max_trials: many",
        "max_trials: many",
        "max_trials: must be a whole number from 0 to 4294967295",
    );
    broken(
        "multi_az: asked ",
        "multi_az: maybe ",
        "multi_az: maybe",
        "offers.multi_az: unknown variant `maybe`, expected one of forced, asked",
    );
    broken(
        "trial: eval\n",
        "trial: eval\ntrial: eval\n",
        "trial: eval\nmax",
        "duplicate mapping key: trial not allowed here",
    );
}

#[test]
fn ids_are_unique() {
    broken(
        "- id: eval",
        "- id: standard",
        "- id: standard\n    display_name: Eval",
        "types.standard.id: \"standard\" is there twice",
    );
    broken(
        "      - {name: eu-west-1",
        "      - {name: us-east-1",
        "      - {name: us-east-1, display_name: \"EU",
        "clouds.aws.regions.us-east-1.name: \"us-east-1\" is there twice",
    );
}

#[test]
fn sizes_are_in_order() {
    broken(
        "      - {id: x1, resources: {cpu: 50m, ram: 32Mi}}\n",
        "      - {id: x2, capacity_consumed: 2, resources: {cpu: 1}}\n      - {id: x1, resources: {cpu: 1}}\n",
        "      - {id: x1, resources: {cpu: 1}}",
        "types.standard.sizes.x1.capacity_consumed: sizes must be in the order of what they \
         consume, but x2 consumes more",
    );
    broken(
        "      - {id: x1, resources: {cpu: 50m, ram: 32Mi}}\n",
        "      - {id: x1, resources: {}}\n",
        "      - {id: x1, resources: {}}\n",
        "types.standard.sizes.x1.resources: must name what an instance takes, like cpu and ram",
    );
}

#[test]
fn there_is_one_default() {
    broken(
        "    default: true\n",
        "",
        "clouds:",
        "clouds: one entry must be marked with default: true",
    );
    broken(
        "display_name: \"EU, Ireland\"",
        "display_name: \"EU, Ireland\", default: true",
        "display_name: \"EU, Ireland\"",
        "clouds.aws.regions.eu-west-1.default: only one entry may be the default",
    );
}

#[test]
fn references_are_known() {
    broken("trial: eval", "trial: test", "trial: test", "trial: must be one of standard, eval");
    broken(
        "eval: {limit: 1000}",
        "huge: {limit: 1000}",
        "huge: {limit",
        "clouds.aws.regions.us-east-1.types.huge: no such instance type; the kind has standard, \
         eval",
    );
    broken(
        "http: {port: 8080",
        "http: {port: 80",
        "http: {port: 80,",
        "run.container.ready.http.port: must be one of the container's ports",
    );
    broken(
        "{id: x1, resources",
        "{id: x1, limits: {speed: 3}, resources",
        "{id: x1, limits",
        "types.standard.sizes.x1.limits.speed: no such limit; the kind has none",
    );
    broken(
        "[region, name, ",
        "[region, nam, ",
        "[region, nam, ",
        "offers.search_columns[1]: must be one of region, name, cloud_provider, status, owner, \
         cluster_id, instance_type",
    );
}

#[test]
fn limits_are_given_by_every_size_and_in_their_measure() {
    let limits = "limits: [{name: speed, measure: bytes}]\ntypes:";
    let text = DINOSAUR.replacen("types:\n", &format!("{limits}\n"), 1);
    let refused = parse("d.yaml", &text).unwrap_err().to_string();
    assert!(refused.contains("types.standard.sizes.x1.limits.speed: is missing"), "{refused}");
    let text = text.replace("{id: x1,", "{id: x1, limits: {speed: fast},");
    let refused = parse("d.yaml", &text).unwrap_err().to_string();
    assert!(refused.contains("x1.limits.speed: not an amount"), "{refused}");
    let text = text.replace("speed: fast", "speed: 5Mi");
    let kind = parse("d.yaml", &text).unwrap();
    let value = &kind.types[1].sizes[0].limits[0].value;
    assert_eq!(value, &LimitValue::Quantity { text: "5Mi".into(), bytes: 5 << 20 });
    let text = text.replace("measure: bytes", "measure: number, shown: bytes");
    assert!(parse("d.yaml", &text).unwrap_err().to_string().contains("limits.speed.shown: only"));
}

#[test]
fn secrets_stay_out_of_process_lists() {
    let wrong = "{{ sso.client_secret }} is not allowed here; put it into env";
    broken("      - -c\n", "      - \"{{ sso.client_secret }}\"\n", "      - \"{{ sso", &{
        format!("run.container.command[1]: {wrong}")
    });
    broken(
        "image: docker.io/library/busybox:1.36",
        "image: \"x:{{ sso.client_secret }}\"",
        "image: \"x",
        &format!("run.container.image: {wrong}"),
    );
    broken(
        "      - -c\n",
        "      - \"{{ owner }}\"\n",
        "      - \"{{ owner",
        "run.container.command[1]: {{ owner }} is not allowed here; put it into env",
    );
    broken(
        "sso: true",
        "sso: false",
        "OIDC_CLIENT_ID",
        "run.container.env.OIDC_CLIENT_ID: {{ sso.… }} needs needs.sso: true",
    );
}

#[test]
fn numbers_have_bounds() {
    broken(
        "{standard: {limit: 1000}, eval",
        "{standard: {limit: 2, slack: 3}, eval",
        "{standard: {limit: 2",
        "clouds.aws.regions.us-east-1.types.standard.slack: must be at most the limit, 2",
    );
    broken(
        "within: 120",
        "within: 0",
        "within: 0",
        "run.container.ready.http.within: must be from 1 to 86400 seconds",
    );
    broken(
        "path: /,",
        "path: a,",
        "path: a,",
        "run.container.ready.http.path: must start with / and have no blanks",
    );
    broken(
        "lifespan_seconds: 172800",
        "lifespan_seconds: 0",
        "lifespan_seconds: 0",
        "types.eval.sizes.x1.lifespan_seconds: must be from 1 to 315360000",
    );
    broken(
        "{id: x1, resources: {cpu",
        "{id: x1, capacity_consumed: 0, resources: {cpu",
        "capacity_consumed: 0",
        "types.standard.sizes.x1.capacity_consumed: must be from 1 to 1000000",
    );
    broken(
        "max_trials: 1",
        "priority: 1000001",
        "priority: 1000001",
        "priority: must be from -1000000 to 1000000",
    );
    broken(
        "  sso: true",
        "  sso: true\n  dns: [\"\", Admin]",
        "dns: [",
        "needs.dns[1]: must be empty, or start with a-z, go on with a-z, 0-9 and -, and have at \
         most 31",
    );
    broken(
        "DINOSAUR_HOST:",
        "DINOSAUR-HOST:",
        "DINOSAUR-HOST:",
        "run.container.env.DINOSAUR-HOST: a variable's name has letters, digits and _",
    );
    broken(
        "ram: 32Mi}}",
        "ram: -1}}",
        "ram: -1}}",
        "types.standard.sizes.x1.resources.ram: an amount can't be negative",
    );
}

#[test]
fn templates_know_their_names() {
    broken(
        "DINOSAUR_HOST: \"{{ host }}\"",
        "DINOSAUR_HOST: \"{{ hots }}\"",
        "DINOSAUR_HOST: ",
        "run.container.env.DINOSAUR_HOST: {{ hots }} is none of id, name, namespace, host, \
         version, size, owner, organization, sso.client_id, sso.client_secret",
    );
    broken(
        "apiVersion: apps/v1",
        "kind_: 1",
        "      kind_",
        "run.manifests[0]: needs a text apiVersion",
    );
}

#[test]
fn versions_ascend() {
    let one = "  - {operator: dinosaur-operator.v0.1.0-1, version: 1.0.0}\n";
    let wrong = "must be newer than the one before: the last is what instances get";
    broken(
        one,
        &format!("  - {{operator: dinosaur-operator.v0.1.0-1, version: 1.10.0}}\n{one}"),
        one,
        &format!("versions[1].version: {wrong}"),
    );
    let twice = DINOSAUR.replacen(one, &format!("{one}{one}"), 1);
    assert!(parse("d.yaml", &twice).unwrap_err().to_string().contains(wrong));
    assert!(by_numbers("1.9.0", "1.10.0").is_lt());
    assert!(by_numbers("v0.26.0-4", "v0.26.0-10").is_lt());
    assert!(by_numbers("1.0", "1.0").is_eq());
}

#[test]
fn kinds_share_nothing() {
    let again = Kind { name: "other".into(), plural: "others".into(), ..dinosaur() };
    let refused = Catalog::new(vec![dinosaur(), again]).unwrap_err();
    assert_eq!(refused.to_string(), "kind other: api: is that of the kind dinosaur already");
    let better = Kind { max_trials: 9, ..dinosaur() };
    let catalog = Catalog::built_in().with(vec![better]).unwrap();
    assert_eq!(catalog.kind("dinosaur").unwrap().max_trials, 9);
    assert_eq!(catalog.kinds().count(), 2);
}

#[test]
fn hosts_and_routes() {
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

/// The example of the checklist "Add a kind" is a kind, as it stands there.
#[test]
fn the_example_for_contributors_is_a_kind() {
    let text = include_str!("../../../../CONTRIBUTING.md");
    let (_, rest) = text.split_once("```yaml\n").expect("an example in YAML");
    let (example, _) = rest.split_once("```").expect("its end");
    // It stands in an item of a list.
    let example = example.replace("\n   ", "\n");
    let postgres =
        parse("postgres.yaml", example.trim_start()).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(postgres.name, "postgres");
    assert_eq!(postgres.api, "postgreses_mgmt");
    assert_eq!(postgres.error_prefix, "POSTGRESES-MGMT");
    assert!(postgres.plan("standard.small").is_ok());
    let catalog = Catalog::built_in().with(vec![postgres]).unwrap();
    assert!(catalog.by_api("postgreses_mgmt").is_some());
}

/// Read once: properties ask it many times.
static ONE: LazyLock<Kind> = LazyLock::new(dinosaur);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn labels_are_labels_and_differ_with_the_id(
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
    fn a_damaged_file_is_refused_or_read_but_never_panics(at in 0usize..4000, with in "[ -~\n]{0,3}") {
        let mut at = at.min(DINOSAUR.len());
        while !DINOSAUR.is_char_boundary(at) {
            at -= 1;
        }
        let text = format!("{}{with}{}", &DINOSAUR[..at], &DINOSAUR[at..]);
        if let Err(refused) = parse("d.yaml", &text) {
            prop_assert!(refused.line.is_some(), "{}", refused);
        }
    }
}
