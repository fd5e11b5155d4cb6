//! Lets containers reach the world: forwarding and masquerading, through the machine's own tool.
//!
//! Without a tool there is no egress; containers run all the same, and the log says so.

use std::net::Ipv4Addr;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Lets what comes from the bridge out.
pub(super) async fn allow(id: &str, bridge: &str, base: Ipv4Addr, prefix: u8) {
    if let Err(error) = tokio::fs::write("/proc/sys/net/ipv4/ip_forward", "1").await {
        tracing::warn!(%error, "containers can't reach the world: forwarding can't be turned on");
        return;
    }
    let network = format!("{base}/{prefix}");
    // What an earlier process of ours has set is replaced, not doubled.
    forbid(id).await;
    let by_nft = nft(&rules(id, bridge, &network)).await;
    if by_nft && drops_forwarded().await {
        // Docker's rules drop all that is forwarded; no rule of another table can change that.
        accept(id, bridge).await;
    }
    if by_nft || (masquerade(id, bridge, &network).await && accept(id, bridge).await) {
        tracing::info!(bridge, network, "containers can reach the world");
        return;
    }
    tracing::warn!("containers can't reach the world: install nftables or iptables for that");
}

/// Takes the rules away.
pub(super) async fn forbid(id: &str) {
    // Declared first, since removing what is not there is an error.
    nft(&format!("table ip paddock_{id}\ndelete table ip paddock_{id}\n")).await;
    for table in ["nat", "filter"] {
        let Ok(output) = Command::new("iptables").args(["-w", "-t", table, "-S"]).output().await
        else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ours = format!("paddock-{id}");
        for rule in text.lines().filter(|rule| rule.contains(&ours)) {
            let words = rule.replacen("-A", "-D", 1).replace('"', "");
            let mut command = Command::new("iptables");
            command.args(["-w", "-t", table]).args(words.split_whitespace());
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

/// Do the older tool's rules drop what is forwarded unless told otherwise?
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

/// A rule with our name on it, by which it is found again.
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
