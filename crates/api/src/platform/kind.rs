//! The kinds of managed services in the catalog.

use axum::Json as Answer;
use axum::extract::State;
use wire::kind::{Kind, Kinds};

use crate::caller::Caller;
use crate::{App, Problem};

/// Lists the kinds of managed services.
#[utoipa::path(get, path = "/api/v1/kinds", tag = "instances",
    responses((status = 200, body = Kinds, description = "Complete list"), Problem))]
pub(crate) async fn kind_list(State(app): State<App>, _: Caller) -> Answer<Kinds> {
    let catalog = app.rules.catalog();
    Answer(Kinds { items: catalog.kinds().map(|kind| Kind::from(&**kind)).collect() })
}
