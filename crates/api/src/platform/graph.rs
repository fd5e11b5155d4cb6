//! What depends on what, around a subject: as JSON, for Graphviz, or drawn.

use axum::Json as Answer;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use model::event::Kind;
use model::graph::{Direction, KINDS, MAX_NODES};
use serde::Deserialize;
use store::graph::Subject;
use utoipa::IntoParams;
use wire::graph::Graph;

use super::search::one_of;
use crate::Problem;
use crate::caller::Call;
use crate::page::{Query, number};

const DOT: &str = "text/vnd.graphviz";
const SVG: &str = "image/svg+xml";
/// A drawing may have its own style, and nothing else.
const ALONE: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Which graph is wanted, and how.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Where to begin: an id, a template as `name@version`, or `kind/name`, where the kind is one of
    /// `environment`, `template`, `resource`, `deployment`, `instance` and `cluster`.
    #[param(value_type = String)]
    subject: Option<String>,
    /// `dependencies`: what it needs; `dependents`: what needs it, and breaks if it goes. The first when it
    /// is left out.
    direction: Option<String>,
    /// How many steps away at most, from 1 to 2000; as far as it goes when it is left out.
    #[param(value_type = Option<i64>)]
    depth: Option<String>,
    /// `json`, `dot` or `svg`; what is accepted decides when it is left out.
    format: Option<String>,
}

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Dot,
    Svg,
}

/// Shows what a subject needs, or what needs it: across environments, templates, resources, deployments,
/// instances and clusters that the caller may see.
#[utoipa::path(get, path = "/api/v1/graph", tag = "search", params(Wanted),
    responses((status = 200, description = "The graph", content(
        (Graph = "application/json"), (String = "text/vnd.graphviz"), (String = "image/svg+xml"))), Problem))]
pub(crate) async fn graph(
    Call(app, caller): Call,
    headers: HeaderMap,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let format = wanted.format(&headers)?;
    let direction = wanted.direction()?;
    let depth = number("depth", wanted.depth.as_deref(), 2000, 1, 2000)?;
    let depth = usize::try_from(depth).unwrap_or(MAX_NODES);
    let subject = subject(wanted.subject.as_deref().unwrap_or_default())?;
    let (mut read, scope) = (app.db.read().await?, caller.scope());
    let begin = store::graph::find(&mut read, scope, &subject).await?;
    let graph = store::graph::around(&mut read, scope, begin, direction, depth).await?;
    Ok(match format {
        Format::Json => Answer(Graph::from(graph)).into_response(),
        Format::Dot => ([(header::CONTENT_TYPE, DOT)], graph.to_dot()).into_response(),
        Format::Svg => {
            let headers = [(header::CONTENT_TYPE, SVG), (header::CONTENT_SECURITY_POLICY, ALONE)];
            (headers, graph.to_svg()).into_response()
        }
    })
}

impl Wanted {
    fn format(&self, headers: &HeaderMap) -> Result<Format, Problem> {
        match self.format.as_deref().map(str::trim) {
            Some("json") => return Ok(Format::Json),
            Some("dot") => return Ok(Format::Dot),
            Some("svg") => return Ok(Format::Svg),
            Some(_) => return Err(Problem::field("format", "must be json, dot or svg")),
            None => {}
        }
        let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let kinds = [(DOT, Format::Dot), (SVG, Format::Svg), ("application/json", Format::Json)];
        // The first that we can give; browsers name many, and JSON is what most mean.
        let wanted = accepted.into_iter().flat_map(|text| text.split(','));
        let named = wanted.filter_map(|kind| kind.split(';').next()).find_map(|kind| {
            kinds.iter().find(|(name, _)| *name == kind.trim()).map(|(_, format)| *format)
        });
        Ok(named.unwrap_or(Format::Json))
    }

    fn direction(&self) -> Result<Direction, Problem> {
        let Some(text) = self.direction.as_deref() else { return Ok(Direction::Dependencies) };
        let known = text.trim().parse();
        known.map_err(|_| Problem::field("direction", "must be dependencies or dependents"))
    }
}

/// How a subject was named.
fn subject(text: &str) -> Result<Subject, Problem> {
    let text = text.trim();
    if let Ok(id) = text.parse() {
        return Ok(Subject::Id(id));
    }
    match text.split_once('/') {
        Some((kind, name)) if !name.is_empty() => {
            Ok(Subject::Named(one_of("subject", &KINDS, kind)?, name.to_owned()))
        }
        None if text.contains('@') => Ok(Subject::Named(Kind::Template, text.to_owned())),
        _ => Err(Problem::field(
            "subject",
            "must be an id, a template as name@version, or kind/name such as environment/shop",
        )),
    }
}
