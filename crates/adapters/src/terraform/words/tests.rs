//! What Terraform was seen to say.

use super::*;
use serde_json::json;

const BROKEN: &str = "
Error: Terraform encountered problems during initialisation, including problems
with the configuration, described below.

The Terraform configuration must be valid before initialization so that
Terraform can determine which modules and providers need to be installed.


Error: Invalid expression

  on main.tf line 3, in resource \"terraform_data\" \"x\":
   3:   input =\u{20}
   4: }

Expected the start of an expression, but found an invalid expression token.
";

const NO_NETWORK: &str = "Initializing provider plugins...
- Finding latest version of foo/zz...
╷
│ Error: Failed to query available provider packages
│\u{20}
│ Could not retrieve the list of available versions for provider foo/zz: could
│ not connect to registry.terraform.io: dial tcp: no such host
╵
";

const WARNING: &str = "
Warning: Value for undeclared variable

The root module does not declare a variable named \"zz\".
";

fn told(complaints: Vec<Complaint>) -> Fault {
    fault("It can't be", complaints, &Hidden::default())
}

#[test]
fn the_complaint_with_a_place_is_told() {
    let told = told(Complaint::all_from_text(BROKEN));
    let Fault::Refused(why) = told else { panic!("{told:?}") };
    assert_eq!(
        why,
        "It can't be: main.tf:3: Invalid expression: Expected the start of an expression, but found \
         an invalid expression token (and 1 more)"
    );
}

#[test]
fn what_passes_is_tried_again() {
    let told = told(Complaint::all_from_text(NO_NETWORK));
    let Fault::Unavailable(why) = told else { panic!("{told:?}") };
    assert!(why.contains("could not connect to registry.terraform.io"), "{why}");
}

#[test]
fn warnings_are_no_complaints() {
    assert_eq!(Complaint::all_from_text(WARNING), []);
    assert!(
        matches!(told(Vec::new()), Fault::Unavailable(why) if why.contains("does not say why"))
    );
}

#[test]
fn a_diagnostic_is_one_sentence_without_secrets_that_ends() {
    let diagnostic = json!({"severity": "error", "summary": "local-exec provisioner error",
        "detail": format!("Error running 'login s3cret\n now':\n{}", "x".repeat(2000)),
        "range": {"filename": "main.tf", "start": {"line": 8}}});
    let secrets = json!({"password": "s3cret\n now"});
    let hidden = Hidden::of(secrets.as_object().unwrap());
    let told = fault("No", vec![Complaint::from_json(&diagnostic)], &hidden);
    let Fault::Refused(why) = told else { panic!("{told:?}") };
    assert!(
        why.starts_with("No: main.tf:8: local-exec provisioner error: Error running 'login •••")
    );
    assert!(!why.contains("s3cret") && !why.contains('\n'), "{why}");
    assert!(why.chars().count() < MAX_CHARS + 20, "{why}");
}
