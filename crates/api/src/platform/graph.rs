//! Dependency graphs: as JSON, DOT or SVG.

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
/// Content security policy of a drawing: its own styles only.
const SVG_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Query for a dependency graph.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GraphQuery {
    /// Start of the graph: an ID, a template as `name@version`, or `kind/name`, where the kind is
    /// one of `environment`, `template`, `resource`, `deployment`, `instance` and `cluster`.
    #[param(value_type = String)]
    subject: Option<String>,
    /// `dependencies` (the default): what the subject depends on; `dependents`: what depends on it.
    direction: Option<String>,
    /// Maximum number of hops, from 1 to 2000; unlimited if omitted.
    #[param(value_type = Option<i64>)]
    depth: Option<String>,
    /// `json`, `dot` or `svg`; defaults to the `Accept` header.
    format: Option<String>,
}

/// Output format of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Dot,
    Svg,
}

/// Returns the dependencies or dependents of a subject.
///
/// Covers environments, templates, resources, deployments, instances and clusters that the caller
/// may see.
#[utoipa::path(get, path = "/api/v1/graph", tag = "search", params(GraphQuery),
    responses((status = 200, description = "Dependency graph", content(
        (Graph = "application/json"), (String = "text/vnd.graphviz"), (String = "image/svg+xml"))), Problem))]
pub(crate) async fn graph(
    Call(app, caller): Call,
    headers: HeaderMap,
    Query(query): Query<GraphQuery>,
) -> Result<Response, Problem> {
    let format = query.format(&headers)?;
    let direction = query.direction()?;
    let depth = number("depth", query.depth.as_deref(), 2000, 1, 2000)?;
    let depth = usize::try_from(depth).unwrap_or(MAX_NODES);
    let subject = subject(query.subject.as_deref().unwrap_or_default())?;
    let (mut read, scope) = (app.db.read().await?, caller.scope());
    let start = store::graph::find(&mut read, scope, &subject).await?;
    let graph = store::graph::around(&mut read, scope, start, direction, depth).await?;
    Ok(match format {
        Format::Json => Answer(Graph::from(graph)).into_response(),
        Format::Dot => ([(header::CONTENT_TYPE, DOT)], graph.to_dot()).into_response(),
        Format::Svg => {
            let headers =
                [(header::CONTENT_TYPE, SVG), (header::CONTENT_SECURITY_POLICY, SVG_POLICY)];
            (headers, graph.to_svg()).into_response()
        }
    })
}

impl GraphQuery {
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
        // The first supported type; browsers list many, and JSON is what most expect.
        let accepted = accepted.into_iter().flat_map(|text| text.split(','));
        let named = accepted.filter_map(|kind| kind.split(';').next()).find_map(|kind| {
            kinds.iter().find(|(name, _)| *name == kind.trim()).map(|(_, format)| *format)
        });
        Ok(named.unwrap_or(Format::Json))
    }

    fn direction(&self) -> Result<Direction, Problem> {
        let Some(text) = self.direction.as_deref() else { return Ok(Direction::Dependencies) };
        let direction = text.trim().parse();
        direction.map_err(|_| Problem::field("direction", "must be dependencies or dependents"))
    }
}

/// Parses the reference to a subject.
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
            "must be an ID, a template as name@version, or kind/name such as environment/shop",
        )),
    }
}
