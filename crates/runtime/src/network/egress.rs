//! Egress of containers: forwarding and masquerading, through `nft` or `iptables`.
//!
//! Without either, containers run without egress, and a warning is logged.

use std::net::Ipv4Addr;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Enables egress for a bridge.
pub(super) async fn enable(id: &str, bridge: &str, base: Ipv4Addr, prefix: u8) {
    if let Err(error) = tokio::fs::write("/proc/sys/net/ipv4/ip_forward", "1").await {
        tracing::warn!(%error, "containers have no egress: enabling IP forwarding failed");
        return;
    }
    let network = format!("{base}/{prefix}");
    // Replaces the rules of an earlier process.
    disable(id).await;
    let by_nft = nft(&rules(id, bridge, &network)).await;
    if by_nft && drops_forwarded().await {
        // Docker's rules drop forwarded packets; rules of another table can't override that.
        accept(id, bridge).await;
    }
    if by_nft || (masquerade(id, bridge, &network).await && accept(id, bridge).await) {
        tracing::info!(bridge, network, "egress of containers enabled");
        return;
    }
    tracing::warn!("containers have no egress: install nftables or iptables");
}

/// Removes the rules.
pub(super) async fn disable(id: &str) {
    // Declared first, since deleting a missing table is an error.
    nft(&format!("table ip paddock_{id}\ndelete table ip paddock_{id}\n")).await;
    for table in ["nat", "filter"] {
        let Ok(output) = Command::new("iptables").args(["-w", "-t", table, "-S"]).output().await
        else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ours = format!("paddock-{id}");
        for rule in text.lines().filter(|rule| rule.contains(&ours)) {
            let arguments = rule.replacen("-A", "-D", 1).replace('"', "");
            let mut command = Command::new("iptables");
            command.args(["-w", "-t", table]).args(arguments.split_whitespace());
            run(&mut command).await;
        }
    }
}

fn rules(id: &str, bridge: &str, network: &str) -> String {
    format!(
        "table ip paddock_{id}\ndelete table ip paddock_{id}\ntable ip paddock_{id} {{\n\
         chain out {{ type nat hook postrouting priority srcnat;\n\
         ip saddr {network} oifname != \"{bridge}\" masquerade; }}\n\
         chain through {{ type filter hook forward priority filter;\n\
         iifname \"{bridge}\" accept; oifname \"{bridge}\" ct state established,related accept; }}\n\
         }}\n"
    )
}

async fn nft(script: &str) -> bool {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take()
        && stdin.write_all(script.as_bytes()).await.is_err()
    {
        return false;
    }
    child.wait().await.is_ok_and(|status| status.success())
}

/// Whether iptables drops forwarded packets by default.
async fn drops_forwarded() -> bool {
    let rules = Command::new("iptables").args(["-w", "-S", "FORWARD"]).output().await;
    rules.is_ok_and(|rules| rules.stdout.starts_with(b"-P FORWARD DROP"))
}

async fn masquerade(id: &str, bridge: &str, network: &str) -> bool {
    let mut out = iptables("nat", id, &["-A", "POSTROUTING", "-s", network, "!", "-o", bridge]);
    run(out.args(["-j", "MASQUERADE"])).await
}

async fn accept(id: &str, bridge: &str) -> bool {
    let mut to = iptables("filter", id, &["-I", "FORWARD", "-i", bridge]);
    let mut back = iptables("filter", id, &["-I", "FORWARD", "-o", bridge, "-m", "conntrack"]);
    back.args(["--ctstate", "ESTABLISHED,RELATED"]);
    run(to.args(["-j", "ACCEPT"])).await && run(back.args(["-j", "ACCEPT"])).await
}

/// An iptables rule with a comment by which it is found again.
fn iptables(table: &str, id: &str, rule: &[&str]) -> Command {
    let mut command = Command::new("iptables");
    command.args(["-w", "-t", table]).args(rule);
    command.args(["-m", "comment", "--comment", &format!("paddock-{id}")]);
    command
}

async fn run(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}
