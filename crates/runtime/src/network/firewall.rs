//! Applies the network policy of containers, with the program `nft` or `iptables`.
//!
//! Without one of them no container starts: there would be no isolation.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::policy::{Policy, delete_table};
use crate::options::Firewall;

/// A program that applies policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Program {
    Nft,
    Iptables,
}

/// What each program reported when it was tried; none: it works.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) nft: Option<String>,
    pub(crate) iptables: Option<String>,
}

impl Tried {
    /// Tries both programs in this network namespace, which must be a temporary one.
    pub(crate) fn new() -> Self {
        let any = std::net::Ipv4Addr::new(10, 64, 0, 0);
        let policy = Policy {
            id: "probe".to_owned(),
            bridge: "pd-probe".to_owned(),
            subnet: super::cidr::Cidr::new(any, 20).expect("20 is at most 32"),
            egress: true,
            allowed: Vec::new(),
            resolvers: vec![any],
        };
        let tried = |program: Program| program.apply(&policy).err();
        Self { nft: tried(Program::Nft), iptables: tried(Program::Iptables) }
    }

    /// The program to use. The error says why none works.
    pub(crate) fn choose(&self, wanted: Firewall) -> Result<Program, String> {
        let (try_nft, try_iptables) = match wanted {
            Firewall::Auto => (true, true),
            Firewall::Nft => (true, false),
            Firewall::Iptables => (false, true),
        };
        match (&self.nft, &self.iptables) {
            (None, _) if try_nft => Ok(Program::Nft),
            (_, None) if try_iptables => Ok(Program::Iptables),
            (nft, iptables) => {
                let tried = [(nft, try_nft), (iptables, try_iptables)].into_iter();
                let causes =
                    tried.filter(|(_, is_tried)| *is_tried).filter_map(|(why, _)| why.as_deref());
                Err(causes.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

impl Program {
    /// Applies a policy. The old rules stay in force until the new ones are.
    pub(crate) fn apply(self, policy: &Policy) -> Result<(), String> {
        match self {
            Self::Nft => {
                run("nft", &["-f", "-"], &policy.nft())?;
                if policy.egress && drops_forwarded() {
                    // Docker's rules drop forwarded packets; other tables can't override that.
                    insert(&policy.accepts())?;
                }
            }
            Self::Iptables => {
                run("iptables-restore", &["-w", "--noflush"], &policy.iptables())?;
                insert(&policy.jumps())?;
                insert(&policy.accepts())?;
            }
        }
        if policy.egress
            && let Err(error) = std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        {
            tracing::warn!(%error, "containers have no egress: enabling IP forwarding failed");
        }
        Ok(())
    }

    /// Whether the rules of a policy still exist: other programs may flush all rules.
    pub(crate) fn is_in_force(self, policy: &Policy) -> bool {
        match self {
            Self::Nft => {
                run("nft", &["list", "table", "inet", &format!("paddock_{}", policy.id)], "")
                    .is_ok_and(|rules| rules.contains("hook forward"))
            }
            Self::Iptables => {
                let rules = run("iptables", &["-w", "-t", "mangle", "-S"], "").unwrap_or_default();
                let jumps = policy.jumps();
                let mut jumps = jumps.iter().filter(|[table, ..]| table == "mangle");
                jumps.all(|[_, chain, rule]| rules.contains(&format!("-A {chain} {rule}\n")))
            }
        }
    }
}

/// Removes the rules of an installation, by whichever program they were applied.
pub(crate) fn remove(id: &str) {
    for family in ["inet", "ip"] {
        // `ip`: the table of earlier versions.
        let _ = run("nft", &["-f", "-"], &delete_table(family, id));
    }
    let ours = format!("paddock-{id}");
    for table in ["mangle", "nat", "filter"] {
        let Ok(rules) = run("iptables", &["-w", "-t", table, "-S"], "") else { return };
        let chain = |rule: &str| rule.split(' ').nth(1).unwrap_or_default().to_owned();
        let rules: Vec<&str> = rules.lines().filter(|rule| rule.contains(&ours)).collect();
        for rule in rules.iter().filter(|rule| rule.starts_with("-A")) {
            if !chain(rule).starts_with(&ours) {
                let rule = rule.replacen("-A", "-D", 1).replace('"', "");
                let _ = iptables(table, &rule);
            }
        }
        for rule in rules.iter().filter(|rule| rule.starts_with("-N")) {
            let _ = iptables(table, &format!("-F {}", chain(rule)));
            let _ = iptables(table, &format!("-X {}", chain(rule)));
        }
    }
}

/// Whether iptables drops forwarded packets by default.
fn drops_forwarded() -> bool {
    run("iptables", &["-w", "-S", "FORWARD"], "")
        .is_ok_and(|rules| rules.starts_with("-P FORWARD DROP"))
}

/// Inserts rules at the beginning of their chains, unless they exist.
fn insert(rules: &[[String; 3]]) -> Result<(), String> {
    for [table, chain, rule] in rules {
        if iptables(table, &format!("-C {chain} {rule}")).is_err() {
            iptables(table, &format!("-I {chain} {rule}"))?;
        }
    }
    Ok(())
}

fn iptables(table: &str, rule: &str) -> Result<String, String> {
    let mut arguments = vec!["-w", "-t", table];
    arguments.extend(rule.split_whitespace());
    run("iptables", &arguments, "")
}

/// Runs a program with input and returns its output. The error begins with the program's name.
fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("{program} not found"),
        _ => format!("{program}: {error}"),
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the program does not read its input, its message says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let cause = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed").trim();
    Err(format!("{program}: {}", cause.trim_start_matches(&format!("{program}: "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_program_is_chosen_and_the_causes_are_named() {
        let broken = |cause: &str| Some(cause.to_owned());
        let tried = |nft, iptables| Tried { nft, iptables };
        let both = tried(None, None);
        assert_eq!(both.choose(Firewall::Auto), Ok(Program::Nft));
        assert_eq!(both.choose(Firewall::Iptables), Ok(Program::Iptables));
        let one = tried(broken("nft not found"), None);
        assert_eq!(one.choose(Firewall::Auto), Ok(Program::Iptables));
        assert_eq!(one.choose(Firewall::Nft), Err("nft not found".to_owned()));
        let none = tried(broken("nft not found"), broken("iptables-restore not found"));
        let why = "nft not found; iptables-restore not found".to_owned();
        assert_eq!(none.choose(Firewall::Auto), Err(why));
    }
}
