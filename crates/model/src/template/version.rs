//! Template versions and references (`name@version`).

use std::cmp::Ordering;

use crate::{Invalid, name};

/// Checks a version: 1 to 64 letters, digits, `.`, `+` and `-`.
pub(super) fn check(field: &str, version: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    if (1..=64).contains(&version.len()) && version.chars().all(allowed) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        "must have 1 to 64 characters out of letters, digits, '.', '+' and '-'",
    ))
}

/// Parses `name@version`. Errors name the field `field`.
pub fn parse_reference(field: &str, text: &str) -> Result<(String, String), Invalid> {
    let Some((template, version)) = text.split_once('@') else {
        let detail = "must have the form name@version, like web-shop@1.4.0";
        return Err(Invalid::new(field, detail));
    };
    name::dns_label(field, template)?;
    check(field, version)?;
    Ok((template.to_owned(), version.to_owned()))
}

/// Compares versions by precedence: 1.10.0 is newer than 1.9.0, and 1.0.0-rc.1 is older than 1.0.0.
///
/// A total order: only identical strings are equal.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let (release_a, pre_a) = split(a);
    let (release_b, pre_b) = split(b);
    parts(release_a, release_b)
        .then_with(|| match (pre_a, pre_b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => parts(a, b),
        })
        .then_with(|| a.cmp(b))
}

/// The release and the pre-release after `-`; build metadata after `+` is ignored.
fn split(version: &str) -> (&str, Option<&str>) {
    let version = version.split_once('+').map_or(version, |(before, _)| before);
    version.split_once('-').map_or((version, None), |(release, pre)| (release, Some(pre)))
}

fn parts(a: &str, b: &str) -> Ordering {
    a.split('.').map(Part::parse).cmp(b.split('.').map(Part::parse))
}

/// An identifier of a version. Numbers come before words and compare by value, at any length.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(usize, &'a str),
    Word(&'a str),
}

impl<'a> Part<'a> {
    fn parse(text: &'a str) -> Self {
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
    fn versions_are_ordered_by_precedence() {
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
    fn reference_needs_a_name_and_a_version() {
        let good = parse_reference("templates[0]", "web-shop@1.4.0+a").unwrap();
        assert_eq!(good, ("web-shop".to_owned(), "1.4.0+a".to_owned()));
        for bad in ["", "web-shop", "@1", "web-shop@", "Web@1", "web@1@2", "web@1 2"] {
            let error = parse_reference("templates[0]", bad).unwrap_err().to_string();
            assert!(error.starts_with("templates[0]: "), "{bad}: {error}");
        }
    }

    proptest! {
        #[test]
        fn comparison_is_a_total_order(a in "[0-9a.+-]{0,8}", b in "[0-9a.+-]{0,8}", c in "[0-9a.+-]{0,8}") {
            prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
            prop_assert_eq!(compare_versions(&a, &b) == Ordering::Equal, a == b);
            let mut all = [a, b, c];
            all.sort_by(|a, b| compare_versions(a, b));
            prop_assert!(compare_versions(&all[0], &all[2]).is_le());
        }
    }
}
