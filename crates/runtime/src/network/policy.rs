//! Network policy of containers, as rules for `nft` and for `iptables`. Pure.
//!
//! Containers may open connections to public addresses, to the allowed networks and to DNS
//! servers, each only with egress. They reach nothing else: not the host, no private or link-local
//! address, no other container. Connections to containers come from the host only.

use std::net::Ipv4Addr;

use super::cidr::Cidr;

/// Networks that containers reach only if the options allow it. DNS servers are an exception.
const DENIED: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    // Carrier-grade NAT, which clouds use for their services.
    "100.64.0.0/10",
    "127.0.0.0/8",
    // A cloud's configuration service, on a public address.
    "168.63.129.16/32",
    // Link-local: metadata services of clouds.
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

/// Network policy of the containers of one bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Distinguishes the rules of installations on one host.
    pub(crate) id: String,
    pub(crate) bridge: String,
    /// Subnet of the containers.
    pub(crate) subnet: Cidr,
    /// Whether containers may open connections to other hosts.
    pub(crate) egress: bool,
    /// Private networks that containers may reach, with egress.
    pub(crate) allowed: Vec<Cidr>,
    /// DNS servers that containers may query, with egress.
    pub(crate) resolvers: Vec<Ipv4Addr>,
}

impl Policy {
    /// The rules as input of `nft -f`: replaces those of an earlier policy atomically.
    pub(crate) fn nft(&self) -> String {
        let Self { id, bridge, subnet, .. } = self;
        let dns = self.dns_servers().map(|server| {
            format!("ip daddr {server} meta l4proto {{ tcp, udp }} th dport 53 accept\n")
        });
        let dns: String = dns.collect();
        let through = if self.egress {
            let allowed = self.allowed.iter().map(|cidr| format!("ip daddr {cidr} accept\n"));
            let denied = format!("ip daddr {{ {} }} drop\n", DENIED.join(", "));
            format!("{dns}{}{denied}accept\n", allowed.collect::<String>())
        } else {
            "drop\n".to_owned()
        };
        let masquerade = if self.egress {
            format!(
                "chain postrouting {{ type nat hook postrouting priority srcnat;\n\
                 ip saddr {subnet} oifname != \"{bridge}\" masquerade\n}}\n"
            )
        } else {
            String::new()
        };
        format!(
            "{}table inet paddock_{id} {{\n\
             chain input {{ type filter hook input priority mangle;\n\
             iifname != \"{bridge}\" accept\n\
             meta nfproto ipv6 drop\n\
             ct state established,related accept\n\
             {dns}drop\n}}\n\
             chain forward {{ type filter hook forward priority mangle;\n\
             iifname != \"{bridge}\" oifname != \"{bridge}\" accept\n\
             meta nfproto ipv6 drop\n\
             ct state established,related accept\n\
             oifname \"{bridge}\" drop\n\
             {through}}}\n\
             {masquerade}}}\n",
            delete_table("inet", id)
        )
    }

    /// The rules as input of `iptables-restore --noflush`: replaces the content of our chains. In
    /// the table `mangle`, so that they apply before other programs' rules.
    pub(crate) fn iptables(&self) -> String {
        let Self { subnet, bridge, .. } = self;
        let (input, forward, nat) = (self.chain("in"), self.chain("fw"), self.chain("nat"));
        let mut lines = vec![
            "*mangle".to_owned(),
            format!(":{input} - [0:0]"),
            format!(":{forward} - [0:0]"),
            format!("-A {input} {ESTABLISHED} -j RETURN"),
            format!("-A {forward} {ESTABLISHED} -j RETURN"),
            format!("-A {forward} -o {bridge} -j DROP"),
        ];
        for server in self.dns_servers() {
            for chain in [&input, &forward] {
                lines.extend(["udp", "tcp"].map(|protocol| {
                    format!("-A {chain} -d {server}/32 -p {protocol} --dport 53 -j RETURN")
                }));
            }
        }
        lines.push(format!("-A {input} -j DROP"));
        if self.egress {
            let allowed =
                self.allowed.iter().map(|cidr| format!("-A {forward} -d {cidr} -j RETURN"));
            lines.extend(allowed);
            lines.extend(DENIED.iter().map(|range| format!("-A {forward} -d {range} -j DROP")));
        } else {
            lines.push(format!("-A {forward} -j DROP"));
        }
        lines.extend(["COMMIT", "*nat"].map(str::to_owned));
        lines.push(format!(":{nat} - [0:0]"));
        if self.egress {
            lines.push(format!("-A {nat} -s {subnet} ! -o {bridge} -j MASQUERADE"));
        }
        lines.push("COMMIT\n".to_owned());
        lines.join("\n")
    }

    /// Rules of built-in chains that lead into our chains: table, chain and rule.
    pub(crate) fn jumps(&self) -> Vec<[String; 3]> {
        let bridge = &self.bridge;
        let jump = |table: &str, chain: &str, condition: String, target: &str| {
            let rule = format!("{condition}-j {}", self.chain(target));
            [table.to_owned(), chain.to_owned(), rule]
        };
        vec![
            jump("mangle", "INPUT", format!("-i {bridge} "), "in"),
            jump("mangle", "FORWARD", format!("-i {bridge} "), "fw"),
            jump("mangle", "FORWARD", format!("-o {bridge} "), "fw"),
            jump("nat", "POSTROUTING", String::new(), "nat"),
        ]
    }

    /// Rules of the table `filter` that let egress pass where other programs drop it by default:
    /// table, chain and rule. The policy has dropped forbidden packets before.
    pub(crate) fn accepts(&self) -> Vec<[String; 3]> {
        let comment = format!("-m comment --comment paddock-{}", self.id);
        let bridge = &self.bridge;
        let conditions = [format!("-i {bridge}"), format!("-o {bridge} {ESTABLISHED}")];
        conditions
            .map(|condition| format!("{condition} {comment} -j ACCEPT"))
            .map(|rule| ["filter".to_owned(), "FORWARD".to_owned(), rule])
            .into_iter()
            .filter(|_| self.egress)
            .collect()
    }

    fn dns_servers(&self) -> impl Iterator<Item = &Ipv4Addr> {
        self.resolvers.iter().filter(|_| self.egress)
    }

    /// Name of one of our chains.
    fn chain(&self, purpose: &str) -> String {
        format!("paddock-{}-{purpose}", self.id)
    }
}

/// Conntrack match of replies, as `iptables` prints it.
const ESTABLISHED: &str = "-m conntrack --ctstate RELATED,ESTABLISHED";

/// Input of `nft -f` that deletes our table. Declares it first: deleting a missing one is an error.
pub(crate) fn delete_table(family: &str, id: &str) -> String {
    format!("table {family} paddock_{id}\ndelete table {family} paddock_{id}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(egress: bool) -> Policy {
        Policy {
            id: "x".to_owned(),
            bridge: "pd-x".to_owned(),
            subnet: "10.64.0.0/20".parse().unwrap(),
            egress,
            allowed: vec!["10.1.0.0/16".parse().unwrap()],
            resolvers: vec![Ipv4Addr::new(10, 0, 0, 2)],
        }
    }

    #[test]
    fn exceptions_precede_the_denied_networks() {
        for text in [policy(true).nft(), policy(true).iptables()] {
            let at = |part: &str| text.rfind(part).unwrap_or_else(|| panic!("{part}: {text}"));
            assert!(at("10.0.0.2") < at("10.0.0.0/8") && at("10.1.0.0/16") < at("10.0.0.0/8"));
        }
    }

    #[test]
    fn nothing_is_excepted_without_egress() {
        let without = policy(false);
        for text in [without.nft(), without.iptables()] {
            for part in ["10.0.0.2", "10.1.0.0/16", "MASQUERADE", "masquerade"] {
                assert!(!text.contains(part), "{part}: {text}");
            }
        }
        assert_eq!(without.accepts(), Vec::<[String; 3]>::new());
    }
}
