//! Takes over what exists already: `address=id`, as `import` has it.

use port::Fault;

/// A thing that exists.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Thing {
    /// What the module calls it.
    pub(super) address: String,
    /// What its provider calls it.
    pub(super) id: String,
}

/// Reads `address=id`, several of them separated by spaces or commas. A key in brackets may have
/// anything in it, and an id may have commas.
pub(super) fn parse(what: &str) -> Result<Vec<Thing>, Fault> {
    let mut things: Vec<Thing> = Vec::new();
    for (part, follows_comma) in parts(what) {
        match (split(&part), things.last_mut()) {
            (Some((address, id)), _) if is_address(address) && !id.is_empty() => {
                things.push(Thing { address: address.to_owned(), id: id.to_owned() });
            }
            (None, Some(last)) if follows_comma => last.id.extend([",", &part]),
            _ => return Err(unreadable(&part)),
        }
    }
    if things.is_empty() { Err(unreadable(what)) } else { Ok(things) }
}

fn unreadable(what: &str) -> Fault {
    Fault::Refused(format!(
        "adopt: {} can't be read; what exists is named address=id, like aws_instance.web=i-07; \
         several are separated by spaces",
        what.escape_debug()
    ))
}

/// It must not be taken for an option.
fn is_address(address: &str) -> bool {
    address.starts_with(|c: char| c.is_alphabetic() || c == '_') && address.contains('.')
}

/// The parts between separators that are not in brackets, and whether each comes after a comma.
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

/// At the first = that is not in brackets.
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
    fn things_are_named_by_address_and_id() {
        for (what, things) in [
            ("x.a=1", vec![("x.a", "1")]),
            ("x.a=1 x.b=2", vec![("x.a", "1"), ("x.b", "2")]),
            (" x.a=1, x.b=2,x.c=3\n", vec![("x.a", "1"), ("x.b", "2"), ("x.c", "3")]),
            ("module.m.x.a[\"k, =v\"]=i=d", vec![("module.m.x.a[\"k, =v\"]", "i=d")]),
            ("x.a=one,two x.b=3", vec![("x.a", "one,two"), ("x.b", "3")]),
        ] {
            let named = |(address, id): (&str, &str)| Thing {
                address: address.to_owned(),
                id: id.to_owned(),
            };
            let things: Vec<_> = things.into_iter().map(named).collect();
            assert_eq!(parse(what), Ok(things), "{what}");
        }
    }

    #[test]
    fn what_could_be_an_option_or_is_half_is_refused() {
        for what in ["", " ", "x.a", "x.a=", "=1", "-lock=false", "x=1", "x.a=1 y", "two,three"] {
            let Err(Fault::Refused(why)) = parse(what) else { panic!("{what}") };
            assert!(why.contains("address=id"), "{what}: {why}");
        }
    }
}
