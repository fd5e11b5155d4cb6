//! Plans in the formats of Terraform, shortened.

use super::*;

fn line(difference: &Difference) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
    format!("{}: {} → {}", difference.field, shown(&difference.found), shown(&difference.made))
}

fn check(plan: &Value, lines: &[&str]) {
    let variables = json!({"password": "s3cret-word"});
    let redactor = Redactor::new(variables.as_object().unwrap());
    let found = differences(plan, &redactor);
    assert_eq!(found.iter().map(line).collect::<Vec<_>>(), lines);
}

#[test]
fn created_and_deleted_resources_are_one_difference_each() {
    let resource = |address: &str, actions: &[&str]| json!({"address": address, "change": {"actions": actions, "before": null, "after": {"a": 1}}});
    check(
        &json!({"resource_changes": [
            resource("x.a", &["create"]), resource("x.b", &["delete"]), resource("x.c", &["no-op"]),
            resource("data.x.d", &["read"]), resource("x.e", &["forget"]),
        ]}),
        &["x.a: - → \"exists\"", "x.b: \"exists\" → -", "x.e: \"exists\" → -"],
    );
}

#[test]
fn updates_are_listed_by_field_with_sensitive_values_redacted() {
    let change = json!({
        "actions": ["update"],
        "before": {"id": "7", "input": {"n": "one", "p": "old"}, "output": 1, "size": 1, "note": "x"},
        "after": {"id": "7", "input": {"n": "two", "p": "new"}, "size": 2, "note": "my s3cret-word"},
        "after_unknown": {"input": {}, "output": true},
        "before_sensitive": {"input": {"p": true}},
        "after_sensitive": {"input": {"p": true}},
    });
    check(
        &json!({"resource_changes": [{"address": "x.a", "change": change}], "output_changes": {
            "id": {"actions": ["update"], "before": "1", "after": "2", "before_sensitive": false,
                   "after_sensitive": false},
            "token": {"actions": ["update"], "before": "1", "after": "2", "before_sensitive": true,
                      "after_sensitive": true},
            "same": {"actions": ["no-op"], "before": "1", "after": "1"},
        }}),
        &[
            "x.a.input.n: \"one\" → \"two\"",
            "x.a.input.p: \"•••\" → \"•••\"",
            "x.a.note: \"x\" → \"my •••\"",
            "x.a.size: 1 → 2",
            "output.id: \"1\" → \"2\"",
            "output.token: \"•••\" → \"•••\"",
        ],
    );
}

#[test]
fn values_are_redacted_if_the_plan_has_no_sensitivity_marks() {
    let change = json!({"actions": ["update"], "before": {"a": "1"}, "after": {"a": "2"}});
    check(
        &json!({"resource_changes": [{"address": "x.a", "change": change}]}),
        &["x.a.a: \"•••\" → \"•••\""],
    );
}

#[test]
fn tainted_resource_is_replaced() {
    let change = json!({"actions": ["delete", "create"], "before": {"id": "1"}, "after": {},
        "after_unknown": {"id": true}, "after_sensitive": {}});
    check(
        &json!({"resource_changes": [{"address": "x.a", "change": change,
            "action_reason": "replace_because_tainted"}]}),
        &["x.a: \"tainted\" → \"exists\""],
    );
}

#[test]
fn differences_and_values_are_bounded() {
    let resource =
        |at: usize| json!({"address": format!("x.a{at}"), "change": {"actions": ["create"]}});
    let many: Vec<_> = (0..MAX_DIFFERENCES + 7).map(resource).collect();
    let found = differences(&json!({"resource_changes": many}), &Redactor::default());
    let last = &*found[MAX_DIFFERENCES].field;
    assert_eq!((found.len(), last), (MAX_DIFFERENCES + 1, "7 more"));
    let change = json!({"actions": ["update"], "before": "x".repeat(9999), "after": "",
        "after_sensitive": false});
    let found = differences(&json!({"output_changes": {"o": change}}), &Redactor::default());
    assert_eq!(found[0].found.as_ref().unwrap().as_str().unwrap().chars().count(), MAX_CHARS + 1);
}

#[test]
fn plans_of_old_versions_are_parsed_from_text() {
    let text = "
An execution plan has been generated and is shown below.
  - not.this

Terraform will perform the following actions:

  + null_resource.a
      id:       <computed>
      triggers.x: \"1\" => \"2\"

  ~ aws_thing.b
      + size.x: \"1\" => \"2\"

-/+ null_resource.c (new resource required)
  - module.x.null_resource.d
 <= data.aws_thing.e

Plan: 2 to add, 1 to change, 2 to destroy.
";
    let lines: Vec<_> = differences_from_text(text).iter().map(line).collect();
    let expected = [
        "null_resource.a: - → \"exists\"",
        "aws_thing.b: \"changed\" → \"exists\"",
        "null_resource.c: \"changed\" → \"exists\"",
        "module.x.null_resource.d: \"exists\" → -",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn all_sensitive_values_are_found() {
    let plan = json!({
        "variables": {"a": {"value": "of a variable"}, "b": {"value": "seen"}},
        "configuration": {"root_module": {"variables": {"a": {"sensitive": true}, "b": {}}}},
        "planned_values": {
            "outputs": {"c": {"sensitive": true, "value": "of an output"}, "d": {"value": "seen"}},
            "root_module": {
                "resources": [{"values": {"x": {"p": "deep", "n": "seen"}},
                               "sensitive_values": {"x": {"p": true}}}],
                "child_modules": [{"resources": [{"values": {"l": ["seen", "inside"]},
                                                  "sensitive_values": {"l": [false, true]}}]}],
            },
        },
        "prior_state": {"values": {"root_module": {"resources": [
            {"values": {"x": "before"}, "sensitive_values": {"x": true}}]}}},
    });
    let expected = ["of a variable", "of an output", "deep", "inside", "before"];
    assert_eq!(secrets(&plan), expected.map(Value::from));
}
