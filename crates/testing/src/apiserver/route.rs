//! Parses request paths.

use super::kind::Kind;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/apps`
    Group(String),
    /// `/apis/apps/v1`: group and version.
    Resources(String, String),
    Objects(Target),
    Unknown,
}

/// A collection, an object in it, or a subresource of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

impl Route {
    pub(super) fn parse(path: &str, kinds: &[Kind]) -> Self {
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match segments.as_slice() {
            ["version"] => Route::Version,
            ["api"] => Route::CoreVersions,
            ["apis"] => Route::Groups,
            ["apis", group] => Route::Group((*group).to_owned()),
            ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
            ["apis", group, version] => {
                Route::Resources((*group).to_owned(), (*version).to_owned())
            }
            ["api", version, rest @ ..] => objects("", version, rest, kinds),
            ["apis", group, version, rest @ ..] => objects(group, version, rest, kinds),
            _ => Route::Unknown,
        }
    }
}

fn objects(group: &str, version: &str, rest: &[&str], kinds: &[Kind]) -> Route {
    let (namespace, rest) = match rest {
        ["namespaces", namespace, plural, rest @ ..]
            if !matches!(*plural, "status" | "finalize") =>
        {
            (Some(*namespace), [&[*plural], rest].concat())
        }
        rest => (None, rest.to_vec()),
    };
    let found = kinds.iter().find(|kind| {
        kind.group == group && kind.version == version && Some(&&*kind.plural) == rest.first()
    });
    let Some(kind) = found.cloned() else { return Route::Unknown };
    if rest.len() > 3 || (namespace.is_some() && !kind.is_namespaced) {
        return Route::Unknown;
    }
    let text = |at: usize| rest.get(at).map(|&text: &&str| text.to_owned());
    Route::Objects(Target {
        kind,
        namespace: namespace.map(str::to_owned),
        name: text(1),
        subresource: text(2),
    })
}
