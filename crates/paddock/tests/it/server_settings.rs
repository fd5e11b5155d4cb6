//! Validation and precedence of settings.

use std::fs;

use super::client_template::publish;
use super::process::Setup;

/// Part of a password that must never appear in output.
const HIDDEN: &str = "hidden-word";

/// Settings with invalid values.
const BAD: [(&str, &str); 42] = [
    ("listen", "nowhere"),
    ("listen", "127.0.0.1:99999"),
    ("listen", "192.0.2.1:8001"),
    ("data-dir", "/dev/null/data"),
    ("data-dir", "/proc/nowhere"),
    ("database-url", "mysql://ann:hidden-word@127.0.0.1/db"),
    ("database-url", "postgres://ann:hidden-word@127.0.0.1:1/db"),
    ("database-url", "postgres://ann:hidden-word@127.0.0.1:port/db"),
    ("database-url", "postgres://ann:hidden-word@host.invalid/db"),
    ("database-url", "postgres://ann:hidden-word@127.0.0.1/db?speed=hidden-word"),
    ("database-url", "ann:hidden-word@127.0.0.1"),
    ("database-url", "sqlite:/dev/null/paddock.db"),
    ("sqlite-durability", "some"),
    ("runtime", "magic"),
    ("agent-silence-secs", "0"),
    ("agent-grace-secs", "soon"),
    ("admin-password", ""),
    ("local-agent", "maybe"),
    ("accept-lost-keys", "maybe"),
    ("max-deployments-per-organization", "-1"),
    ("max-deployments-per-cluster", "many"),
    ("default-quota", "cpu=much"),
    ("default-quota", "deployments=1.5"),
    ("password-min-length", "0"),
    ("token-life-secs", "1.5"),
    ("token-life-secs", "999999999999999999999"),
    ("request-timeout-secs", "0"),
    ("sign-up", "maybe"),
    ("token-max-life-secs", "315360001"),
    ("member-invites", "some"),
    ("invite-max-life-secs", "31536001"),
    ("allowed-host", "http://paddock.example"),
    ("trusted-proxy", "10.0.0.0/33"),
    ("max-connections", "0"),
    ("user-requests-per-sec", "-1"),
    ("max-streams-per-user", "many"),
    ("max-stream-secs", "0"),
    ("limit-loopback", "yes"),
    ("log-format", "xml"),
    ("log", "store=loud"),
    ("simulated-delay-ms", "soon"),
    ("config", "/dev/null/paddock.toml"),
];

/// Errors of a setting given as flag, as variable and in the file.
fn errors(name: &str, value: &str) -> Vec<String> {
    let flag = format!("--{name}");
    let setup = || Setup::new().without(&flag);
    let as_flag = setup().arg(&flag, value);
    let mut ways = vec![as_flag];
    let word = name.replace('-', "_");
    let mut as_variable = setup();
    if name == "admin-password" {
        as_variable = Setup::plain();
    }
    ways.push(as_variable.env(&format!("PADDOCK_{}", word.to_uppercase()), value));
    if name != "config" {
        let in_file = if name == "admin-password" { Setup::plain() } else { setup() };
        let file = in_file.file("paddock.toml");
        fs::write(&file, format!("{word} = {value:?}\n")).unwrap();
        ways.push(in_file.arg("--config", file.to_str().unwrap()));
    }
    ways.iter().map(|setup| setup.run_to_exit().fails(1, &[]).stderr).collect()
}

#[test]
fn invalid_setting_aborts_startup_with_its_name() {
    for (name, value) in BAD {
        for error in errors(name, value) {
            assert!(error.starts_with(&format!("error: --{name}: ")), "{name} {value}: {error}");
            assert_eq!(error.lines().count(), 1, "{name} {value}: {error}");
            assert!(!error.contains(HIDDEN), "{name} {value}: {error}");
        }
    }
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let setup = Setup::new();
    let file = setup.file("paddock.toml");
    fs::write(&file, "log_format = \"of the file\"\n").unwrap();
    let setup = setup.arg("--config", file.to_str().unwrap());
    setup.run_to_exit().fails(1, &["--log-format: ", "not \"of the file\""]);
    let setup = setup.env("PADDOCK_LOG_FORMAT", "of the variable");
    setup.run_to_exit().fails(1, &["--log-format: ", "not \"of the variable\""]);
    let setup = setup.arg("--log-format", "of the flag");
    setup.run_to_exit().fails(1, &["--log-format: ", "not \"of the flag\""]);
    setup.arg("--log-format", "json").start();
}

#[test]
fn config_file_may_be_set_by_variable_and_contain_numbers() {
    let setup = Setup::new();
    let file = setup.file("paddock.toml");
    let text = "password_min_length = 12\nlocal_agent = true\ntoken_life_secs = 60\n";
    fs::write(&file, text).unwrap();
    let server = setup.env("PADDOCK_CONFIG", file.to_str().unwrap()).start();
    server
        .client()
        .run_with_input("org create acme --username ann --password-stdin", "elevenchars")
        .fails(1, &["at least 12 characters"]);
}

#[test]
fn invalid_config_file_is_rejected() {
    for (text, words) in [
        ("lisen = \"127.0.0.1:0\"", &["paddock.toml: unknown field `lisen`"][..]),
        ("log = \"info\"\nlisten", &["paddock.toml: line 2: "]),
        ("[server]\nlisten = \"127.0.0.1:0\"", &["unknown field `server`"]),
    ] {
        let setup = Setup::new();
        let file = setup.file("paddock.toml");
        fs::write(&file, text).unwrap();
        let outcome = setup.arg("--config", file.to_str().unwrap()).run_to_exit().fails(1, words);
        assert!(outcome.stderr.starts_with("error: --config: "), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    }
}

#[test]
fn private_addresses_are_refused_unless_permitted() {
    for (settings, why) in [
        ("", "is not permitted: it is a loopback address"),
        ("private_addresses = \"refuse\"", "setting `allow_address`"),
        ("private_addresses = \"allow\"", "is unreachable"),
        ("allow_address = \"127.0.0.1\"", "is unreachable"),
        ("allow_address = \"10.0.0.0/8\"", "is not permitted"),
    ] {
        let setup = Setup::new();
        let file = setup.file("paddock.toml");
        fs::write(&file, settings).unwrap();
        let server = setup.arg("--config", file.to_str().unwrap()).start();
        let ann = server.owner("acme", "ann");
        // Nothing listens there.
        let call = "  - {name: call, executor: command, with: {url: 'http://127.0.0.1:1/'}}";
        publish(&ann, &format!("name: shop\nversion: 1.0.0\nresources:\n{call}\n"));
        ann.run("env apply shop --template shop").succeeds();
        let began = base::monotonic();
        loop {
            let shown = ann.json("env show shop")["resources"].to_string();
            if shown.contains(why) {
                break;
            }
            assert!(began.elapsed().as_secs() < 120, "{settings}: {shown}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
}
