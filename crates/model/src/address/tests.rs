//! Tests of address classes and policies.

use proptest::prelude::*;

use super::*;

fn policy(allows_private: bool, allowed: &[&str]) -> Policy {
    Policy { allows_private, allowed: allowed.iter().map(|text| text.parse().unwrap()).collect() }
}

#[test]
fn addresses_are_classified() {
    for (class, addresses) in [
        (
            Class::Public,
            &["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"][..],
        ),
        (
            Class::Loopback,
            &["127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "::", "::1", "::ffff:127.0.0.1"],
        ),
        (
            Class::Private,
            &[
                "10.1.2.3",
                "172.16.0.1",
                "192.168.1.1",
                "100.64.0.1",
                "192.0.0.8",
                "198.18.0.1",
                "240.0.0.1",
                "fd12::1",
                "fec0::1",
                "::ffff:10.0.0.1",
                "::10.0.0.1",
                "64:ff9b::10.0.0.1",
                "64:ff9b:1::1",
                "2002:a00:1::1",
                "2001::1",
            ],
        ),
        (
            Class::LinkLocal,
            &[
                "169.254.169.254",
                "169.254.0.1",
                "::ffff:169.254.169.254",
                "64:ff9b::a9fe:a9fe",
                "2002:a9fe:a9fe::1",
                "::a9fe:a9fe",
                "fe80::1",
            ],
        ),
        (
            Class::Metadata,
            &["fd00:ec2::254", "100.100.100.200", "168.63.129.16", "::ffff:168.63.129.16"],
        ),
        (Class::Multicast, &["255.255.255.255", "224.0.0.1", "ff02::1", "::ffff:224.0.0.1"]),
    ] {
        for address in addresses {
            assert_eq!(Class::of(address.parse().unwrap()), class, "{address}");
        }
    }
}

#[test]
fn only_permitted_addresses_pass() {
    for (policy, address, is_permitted) in [
        (policy(false, &[]), "8.8.8.8", true),
        (policy(false, &[]), "127.0.0.1", false),
        (policy(false, &[]), "10.0.0.1", false),
        (policy(true, &[]), "127.0.0.1", true),
        (policy(true, &[]), "10.0.0.1", true),
        (policy(true, &[]), "169.254.169.254", false),
        (policy(true, &[]), "fd00:ec2::254", false),
        (policy(true, &[]), "224.0.0.1", false),
        (policy(false, &["10.0.0.0/8"]), "10.200.0.1", true),
        (policy(false, &["10.0.0.0/8"]), "::ffff:10.200.0.1", true),
        (policy(false, &["10.0.0.0/8"]), "11.0.0.1", true),
        (policy(false, &["10.0.0.0/8"]), "192.168.0.1", false),
        (policy(false, &["127.0.0.1"]), "127.0.0.1", true),
        (policy(false, &["127.0.0.1"]), "127.0.0.2", false),
        (policy(false, &["fd12::/16"]), "fd12::1", true),
        (policy(false, &["0.0.0.0/0", "::/0"]), "10.0.0.1", true),
        (policy(false, &["0.0.0.0/0", "::/0"]), "169.254.169.254", false),
        (policy(false, &["0.0.0.0/0", "::/0"]), "fd00:ec2::254", false),
        (policy(false, &["0.0.0.0/0", "::/0"]), "224.0.0.1", false),
        (policy(false, &["169.254.169.254"]), "169.254.169.254", true),
        (policy(false, &["169.254.0.0/16"]), "169.254.1.1", true),
        (policy(false, &["fe80::/10"]), "fe80::1", true),
        (policy(false, &["224.0.0.0/4"]), "224.0.0.1", false),
    ] {
        let checked = policy.check(address.parse().unwrap());
        assert_eq!(checked.is_ok(), is_permitted, "{policy:?} {address}");
    }
}

#[test]
fn networks_are_parsed_and_normalized() {
    for (text, expected) in [
        ("10.1.2.3/8", Some("10.0.0.0/8")),
        ("10.1.2.3", Some("10.1.2.3/32")),
        ("1.2.3.4/0", Some("0.0.0.0/0")),
        ("fd12::1/16", Some("fd12::/16")),
        ("::1", Some("::1/128")),
        ("::/0", Some("::/0")),
        ("10.0.0.0/33", None),
        ("fd00::/129", None),
        ("10.0.0.0/", None),
        ("localhost", None),
        ("", None),
    ] {
        let parsed = text.parse::<Network>().ok().map(|network| network.to_string());
        assert_eq!(parsed.as_deref(), expected, "{text}");
    }
}

#[test]
fn refusal_names_the_class_and_the_setting_but_not_the_address_of_a_name() {
    let strict = Policy::default();
    assert_eq!(strict.check_literal("shop.example"), Ok(()));
    let why = strict.check_literal("[::1]").unwrap_err().to_string();
    assert_eq!(
        why,
        "[::1] is not permitted: it is a loopback address. The platform administrator can permit \
         it (setting `allow_address`)"
    );
    let why = Refused::name("db.corp", Class::Private).to_string();
    assert!(why.starts_with("db.corp is not permitted: it resolves to a private address"), "{why}");
}

proptest! {
    #[test]
    fn embedded_address_has_the_class_of_its_ipv4_address(bits: u32) {
        let four = Ipv4Addr::from_bits(bits);
        let (high, low) = ((bits >> 16) as u16, (bits & 0xffff) as u16);
        let class = Class::of(four.into());
        prop_assert_eq!(Class::of(four.to_ipv6_mapped().into()), class);
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
        prop_assert_eq!(Class::of(nat64.into()), class);
        let six_to_four = Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5);
        prop_assert_eq!(Class::of(six_to_four.into()), class);
    }

    #[test]
    fn network_contains_the_address_it_was_made_of(bits: u128, prefix in 0u8..=128) {
        let ip = IpAddr::V6(Ipv6Addr::from_bits(bits));
        let network: Network = format!("{ip}/{prefix}").parse().unwrap();
        prop_assert!(network.contains(ip));
        let again: Network = network.to_string().parse().unwrap();
        prop_assert_eq!(again, network);
    }
}
