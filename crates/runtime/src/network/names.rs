//! Files for name resolution in a container: `hosts`, `hostname` and `resolv.conf`.

use std::fs;

use crate::plan::Link;

/// Generates the files for `/etc` with their content.
pub(crate) fn files(name: &str, link: Option<&Link>) -> [(&'static str, String); 3] {
    let own = link.map_or_else(|| "127.0.1.1".to_owned(), |link| link.address.to_string());
    let hosts =
        format!("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{own}\t{name}\n");
    let resolvers = if link.is_some() { reachable_resolvers() } else { read("/etc/resolv.conf") };
    [("hosts", hosts), ("hostname", format!("{name}\n")), ("resolv.conf", resolvers)]
}

/// The host's resolvers, without those on its loopback.
fn reachable_resolvers() -> String {
    ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"]
        .into_iter()
        .map(|file| without_loopback(&read(file)))
        .find(|text| text.lines().any(|line| line.starts_with("nameserver")))
        .unwrap_or_default()
}

fn without_loopback(text: &str) -> String {
    let is_loopback = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("nameserver")
            && fields.next().is_some_and(|ip| ip.starts_with("127.") || ip == "::1")
    };
    text.lines()
        .filter(|line| !is_loopback(line))
        .fold(String::new(), |all, line| all + line + "\n")
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn resolvers_on_loopback_are_left_out() {
        let text = "search a.b\nnameserver 127.0.0.53\nnameserver 10.0.0.2\noptions edns0\n";
        let expected = "search a.b\nnameserver 10.0.0.2\noptions edns0\n";
        assert_eq!(super::without_loopback(text), expected);
    }
}
