//! Plans as Terraform was seen to show them, shortened.

use super::*;

fn line(difference: &Difference) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
    format!("{}: {} → {}", difference.field, shown(&difference.found), shown(&difference.made))
}

fn check(plan: &Value, lines: &[&str]) {
    let variables = json!({"password": "s3cret-word"});
    let hidden = Hidden::of(variables.as_object().unwrap());
    let found = differences(plan, &hidden);
    assert_eq!(found.iter().map(line).collect::<Vec<_>>(), lines);
}

#[test]
fn things_that_come_and_go_are_one_difference_each() {
    let thing = |address: &str, actions: &[&str]| json!({"address": address, "change": {"actions": actions, "before": null, "after": {"a": 1}}});
    check(
        &json!({"resource_changes": [
            thing("x.a", &["create"]), thing("x.b", &["delete"]), thing("x.c", &["no-op"]),
            thing("data.x.d", &["read"]), thing("x.e", &["forget"]),
        ]}),
        &["x.a: - → \"there\"", "x.b: \"there\" → -", "x.e: \"there\" → -"],
    );
}

#[test]
fn what_changes_is_told_field_by_field_without_what_is_sensitive() {
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
fn a_version_that_does_not_say_what_is_sensitive_shows_no_values() {
    let change = json!({"actions": ["update"], "before": {"a": "1"}, "after": {"a": "2"}});
    check(
        &json!({"resource_changes": [{"address": "x.a", "change": change}]}),
        &["x.a.a: \"•••\" → \"•••\""],
    );
}

#[test]
fn what_was_half_made_is_made_again() {
    let change = json!({"actions": ["delete", "create"], "before": {"id": "1"}, "after": {},
        "after_unknown": {"id": true}, "after_sensitive": {}});
    check(
        &json!({"resource_changes": [{"address": "x.a", "change": change,
            "action_reason": "replace_because_tainted"}]}),
        &["x.a: \"half made\" → \"there\""],
    );
}

#[test]
fn there_is_an_end_to_differences_and_to_values() {
    let thing =
        |at: usize| json!({"address": format!("x.a{at}"), "change": {"actions": ["create"]}});
    let many: Vec<_> = (0..MOST + 7).map(thing).collect();
    let found = differences(&json!({"resource_changes": many}), &Hidden::default());
    assert_eq!((found.len(), &*found[MOST].field), (MOST + 1, "7 more"));
    let change = json!({"actions": ["update"], "before": "x".repeat(9999), "after": "",
        "after_sensitive": false});
    let found = differences(&json!({"output_changes": {"o": change}}), &Hidden::default());
    assert_eq!(found[0].found.as_ref().unwrap().as_str().unwrap().chars().count(), MAX_CHARS + 1);
}

#[test]
fn plans_of_old_are_read_from_their_text() {
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
        "null_resource.a: - → \"there\"",
        "aws_thing.b: \"changed\" → \"there\"",
        "null_resource.c: \"changed\" → \"there\"",
        "module.x.null_resource.d: \"there\" → -",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn all_that_is_sensitive_is_found() {
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
