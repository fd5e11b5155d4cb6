//! Files for name resolution in a container: `hosts`, `hostname` and `resolv.conf`.

use std::fs;
use std::net::Ipv4Addr;

use crate::plan::Link;

/// Generates the files for `/etc` with their content.
pub(crate) fn files(name: &str, link: &Link) -> [(&'static str, String); 3] {
    let own = link.address;
    let hosts =
        format!("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{own}\t{name}\n");
    [("hosts", hosts), ("hostname", format!("{name}\n")), ("resolv.conf", resolv_conf())]
}

/// The DNS servers that containers use.
pub(super) fn resolvers() -> Vec<Ipv4Addr> {
    resolv_conf().lines().filter_map(reachable_server).collect()
}

/// The host's configuration, without DNS servers that containers can't reach.
fn resolv_conf() -> String {
    ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"]
        .into_iter()
        .map(|file| without_unreachable(&fs::read_to_string(file).unwrap_or_default()))
        .find(|text| text.lines().any(is_server))
        .unwrap_or_default()
}

fn without_unreachable(text: &str) -> String {
    text.lines()
        .filter(|line| !is_server(line) || reachable_server(line).is_some())
        .fold(String::new(), |all, line| all + line + "\n")
}

fn is_server(line: &str) -> bool {
    line.split_whitespace().next() == Some("nameserver")
}

/// The DNS server of a line: not one on the host's loopback, nor one with an IPv6 address.
fn reachable_server(line: &str) -> Option<Ipv4Addr> {
    let server: Ipv4Addr =
        line.split_whitespace().nth(1).filter(|_| is_server(line))?.parse().ok()?;
    (!server.is_loopback() && !server.is_unspecified()).then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_resolvers_are_left_out() {
        let text = "search a.b\nnameserver 127.0.0.53\nnameserver ::1\nnameserver fd00::1\n\
                    nameserver 10.0.0.2\noptions edns0\n";
        let expected = "search a.b\nnameserver 10.0.0.2\noptions edns0\n";
        assert_eq!(without_unreachable(text), expected);
        let servers: Vec<_> = text.lines().filter_map(reachable_server).collect();
        assert_eq!(servers, [Ipv4Addr::new(10, 0, 0, 2)]);
    }
}
