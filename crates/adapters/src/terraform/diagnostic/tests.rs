//! Output of Terraform.

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

fn result(diagnostics: Vec<Diagnostic>) -> Fault {
    fault("Plan failed", diagnostics, &Redactor::default())
}

#[test]
fn diagnostic_with_a_location_is_reported() {
    let fault = result(Diagnostic::all_from_text(BROKEN));
    let Fault::Refused(why) = fault else { panic!("{fault:?}") };
    assert_eq!(
        why,
        "Plan failed: main.tf:3: Invalid expression: Expected the start of an expression, but \
         found an invalid expression token (and 1 more)"
    );
}

#[test]
fn temporary_failure_is_retried() {
    let fault = result(Diagnostic::all_from_text(NO_NETWORK));
    let Fault::Unavailable(why) = fault else { panic!("{fault:?}") };
    assert!(why.contains("could not connect to registry.terraform.io"), "{why}");
}

#[test]
fn warnings_are_ignored() {
    assert_eq!(Diagnostic::all_from_text(WARNING), []);
    let fault = result(Vec::new());
    assert!(matches!(fault, Fault::Unavailable(why) if why.contains("no details given")));
}

#[test]
fn diagnostic_is_one_truncated_line_without_secrets() {
    let diagnostic = json!({"severity": "error", "summary": "local-exec provisioner error",
        "detail": format!("Error running 'login s3cret\n now':\n{}", "x".repeat(2000)),
        "range": {"filename": "main.tf", "start": {"line": 8}}});
    let secrets = json!({"password": "s3cret\n now"});
    let redactor = Redactor::new(secrets.as_object().unwrap());
    let fault = fault("No", vec![Diagnostic::from_json(&diagnostic)], &redactor);
    let Fault::Refused(why) = fault else { panic!("{fault:?}") };
    assert!(
        why.starts_with("No: main.tf:8: local-exec provisioner error: Error running 'login •••")
    );
    assert!(!why.contains("s3cret") && !why.contains('\n'), "{why}");
    assert!(why.chars().count() < MAX_CHARS + 20, "{why}");
}
