//! Versions of templates, and their references: `name@version`.

use std::cmp::Ordering;

use crate::{Invalid, name};

/// Checks a version: 1 to 64 of letters, digits, `.`, `+` and `-`.
pub(super) fn check(field: &str, version: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    if (1..=64).contains(&version.len()) && version.chars().all(allowed) {
        return Ok(());
    }
    Err(Invalid::new(field, "a version has 1 to 64 of letters, digits, '.', '+' and '-'"))
}

/// Reads `name@version`; `field` is what it is called in what is wrong.
pub fn parse_reference(field: &str, text: &str) -> Result<(String, String), Invalid> {
    let Some((template, version)) = text.split_once('@') else {
        let detail = "must be a template and its version, like web-shop@1.4.0";
        return Err(Invalid::new(field, detail));
    };
    name::dns_label(field, template)?;
    check(field, version)?;
    Ok((template.to_owned(), version.to_owned()))
}

/// Which version is the newer one: 1.10.0 is after 1.9.0, and 1.0.0-rc.1 is before 1.0.0.
///
/// Only the same text is equal, so that a list has one order.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let (release_a, before_a) = split(a);
    let (release_b, before_b) = split(b);
    parts(release_a, release_b)
        .then_with(|| match (before_a, before_b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => parts(a, b),
        })
        .then_with(|| a.cmp(b))
}

/// The release, and what comes after its `-`; what comes after `+` does not count.
fn split(version: &str) -> (&str, Option<&str>) {
    let version = version.split_once('+').map_or(version, |(before, _)| before);
    version.split_once('-').map_or((version, None), |(release, pre)| (release, Some(pre)))
}

fn parts(a: &str, b: &str) -> Ordering {
    a.split('.').map(Part::of).cmp(b.split('.').map(Part::of))
}

/// Numbers come before words, and are compared by their size, however long.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(usize, &'a str),
    Word(&'a str),
}

impl<'a> Part<'a> {
    fn of(text: &'a str) -> Self {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Part::Word(text);
        }
        let digits = text.trim_start_matches('0');
        Part::Number(digits.len(), digits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_have_the_order_that_people_expect() {
        let sorted = [
            "0.9",
            "1",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.2",
            "1.0.0-rc.10",
            "1.0.0",
            "1.0.0+build.2",
            "1.9.0",
            "1.10.0",
            "1.99999999999999999999999",
            "1.100000000000000000000000",
            "2.0.0",
            "main",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare_versions(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn references_have_a_name_and_a_version() {
        let good = parse_reference("templates[0]", "web-shop@1.4.0+a").unwrap();
        assert_eq!(good, ("web-shop".to_owned(), "1.4.0+a".to_owned()));
        for bad in ["", "web-shop", "@1", "web-shop@", "Web@1", "web@1@2", "web@1 2"] {
            let error = parse_reference("templates[0]", bad).unwrap_err().to_string();
            assert!(error.starts_with("templates[0]: "), "{bad}: {error}");
        }
    }

    proptest! {
        #[test]
        fn the_order_is_one(a in "[0-9a.+-]{0,8}", b in "[0-9a.+-]{0,8}", c in "[0-9a.+-]{0,8}") {
            prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
            prop_assert_eq!(compare_versions(&a, &b) == Ordering::Equal, a == b);
            let mut all = [a, b, c];
            all.sort_by(|a, b| compare_versions(a, b));
            prop_assert!(compare_versions(&all[0], &all[2]).is_le());
        }
    }
}
