//! A document as a tree with the location of every value, built only to locate errors.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Location, Options, Spanned};

/// A value of the document and its location.
pub(super) struct Tree(Spanned<Value>);

enum Value {
    Leaf(String),
    List(Vec<Spanned<Value>>),
    Map(Vec<(Spanned<String>, Spanned<Value>)>),
}

impl Tree {
    pub(super) fn read(text: &str, options: Options) -> Option<Tree> {
        serde_saphyr::from_str_with_options(text, options).ok().map(Tree)
    }

    /// The line of the field at `path`, or of its nearest ancestor, and the path with ids.
    pub(super) fn find(&self, path: &str) -> (Option<usize>, String) {
        let (mut here, mut line, mut display) = (Some(&self.0), line(&self.0), String::new());
        for step in steps(path) {
            let next = here.and_then(|node| child(node, step));
            if let Some((_, at)) = next {
                line = at;
            }
            here = next.map(|(node, _)| node);
            append(&mut display, step, here);
        }
        (line, display)
    }

    /// The path of the value at a location, or of the map with a key there.
    pub(super) fn path_at(&self, location: &Location) -> Option<String> {
        search(&self.0, location, "")
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// `a[0].b` as steps.
fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split(['.', '[']).filter(|part| !part.is_empty()).map(|part| {
        let item = part.strip_suffix(']').and_then(|number| number.parse().ok());
        item.map_or(Step::Key(part), Step::Item)
    })
}

fn child<'a>(node: &'a Spanned<Value>, step: Step) -> Option<(&'a Spanned<Value>, Option<usize>)> {
    match (&node.value, step) {
        (Value::List(items), Step::Item(i)) => items.get(i).map(|item| (item, line(item))),
        (Value::Map(entries), Step::Key(key)) => entries
            .iter()
            .find(|(name, _)| name.value == key)
            .map(|(name, value)| (value, line(name))),
        _ => None,
    }
}

fn line<T>(node: &Spanned<T>) -> Option<usize> {
    usize::try_from(node.referenced.line()).ok().filter(|&line| line > 0)
}

/// Appends a step to a path; list entries are shown by their id or name.
fn append(display: &mut String, step: Step, node: Option<&Spanned<Value>>) {
    let name = match step {
        Step::Key(key) => Some(key),
        Step::Item(_) => node.and_then(entry_name),
    };
    *display = match (name, step) {
        (None, Step::Item(i)) => format!("{display}[{i}]"),
        (name, _) if display.is_empty() => name.unwrap_or_default().to_owned(),
        (name, _) => format!("{display}.{}", name.unwrap_or_default()),
    };
}

fn entry_name(node: &Spanned<Value>) -> Option<&str> {
    ["id", "name", "username", "instance_type_id"].into_iter().find_map(|key| {
        match child(node, Step::Key(key)) {
            Some((Spanned { value: Value::Leaf(text), .. }, _)) => Some(text.as_str()),
            _ => None,
        }
    })
}

fn search(node: &Spanned<Value>, location: &Location, path: &str) -> Option<String> {
    if same(&node.referenced, location) {
        return Some(path.to_owned());
    }
    match &node.value {
        Value::Leaf(_) => None,
        Value::List(items) => items.iter().enumerate().find_map(|(i, item)| {
            let mut path = path.to_owned();
            append(&mut path, Step::Item(i), Some(item));
            search(item, location, &path)
        }),
        Value::Map(entries) => entries.iter().find_map(|(key, value)| {
            if same(&key.referenced, location) {
                return Some(path.to_owned());
            }
            let mut inner = path.to_owned();
            append(&mut inner, Step::Key(&key.value), None);
            search(value, location, &inner)
        }),
    }
}

fn same(a: &Location, b: &Location) -> bool {
    (a.line(), a.column()) == (b.line(), b.column())
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Leaf(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Leaf(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Leaf(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Leaf(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Leaf(value.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Leaf(String::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}
