//! Parses what to adopt: `address=id`, as for `terraform import`.

use port::Fault;

/// An existing object to import.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Its address in the module.
    pub(super) address: String,
    /// Its id at its provider.
    pub(super) id: String,
}

/// Parses `address=id`, several separated by spaces or commas. A key in brackets may contain any
/// character, and an id may contain commas.
pub(super) fn parse(what: &str) -> Result<Vec<Import>, Fault> {
    let mut imports: Vec<Import> = Vec::new();
    for (part, follows_comma) in parts(what) {
        match (split(&part), imports.last_mut()) {
            (Some((address, id)), _) if is_address(address) && !id.is_empty() => {
                imports.push(Import { address: address.to_owned(), id: id.to_owned() });
            }
            (None, Some(last)) if follows_comma => last.id.extend([",", &part]),
            _ => return Err(invalid(&part)),
        }
    }
    if imports.is_empty() { Err(invalid(what)) } else { Ok(imports) }
}

fn invalid(what: &str) -> Fault {
    Fault::Refused(format!(
        "adopt: invalid value {}: must be address=id, like aws_instance.web=i-07, several \
         separated by spaces",
        what.escape_debug()
    ))
}

/// Whether it is a resource address, and not an option.
fn is_address(address: &str) -> bool {
    address.starts_with(|c: char| c.is_alphabetic() || c == '_') && address.contains('.')
}

/// The parts between separators outside brackets, and whether each follows a comma.
fn parts(what: &str) -> Vec<(String, bool)> {
    let (mut parts, mut depth) = (vec![(String::new(), false)], 0_usize);
    for c in what.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c.is_whitespace() || c == ',') {
            parts.push((String::new(), c == ','));
        } else if let Some((last, _)) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// Splits at the first = outside brackets.
fn split(part: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let at = part.char_indices().find_map(|(at, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c == '=' && depth == 0).then_some(at)
    })?;
    Some((&part[..at], &part[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_parsed_as_address_and_id() {
        for (what, imports) in [
            ("x.a=1", vec![("x.a", "1")]),
            ("x.a=1 x.b=2", vec![("x.a", "1"), ("x.b", "2")]),
            (" x.a=1, x.b=2,x.c=3\n", vec![("x.a", "1"), ("x.b", "2"), ("x.c", "3")]),
            ("module.m.x.a[\"k, =v\"]=i=d", vec![("module.m.x.a[\"k, =v\"]", "i=d")]),
            ("x.a=one,two x.b=3", vec![("x.a", "one,two"), ("x.b", "3")]),
        ] {
            let import = |(address, id): (&str, &str)| Import {
                address: address.to_owned(),
                id: id.to_owned(),
            };
            let imports: Vec<_> = imports.into_iter().map(import).collect();
            assert_eq!(parse(what), Ok(imports), "{what}");
        }
    }

    #[test]
    fn options_and_incomplete_values_are_refused() {
        for what in ["", " ", "x.a", "x.a=", "=1", "-lock=false", "x=1", "x.a=1 y", "two,three"] {
            let Err(Fault::Refused(why)) = parse(what) else { panic!("{what}") };
            assert!(why.contains("address=id"), "{what}: {why}");
        }
    }
}
