//! Publishing templates: as YAML or JSON, or as an archive with modules.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json as Answer, response};
use model::template::{self, check_modules, has_modules};
use model::{OrganizationId, name};
use serde::Deserialize;
use store::template::{Files, NewTemplate};
use utoipa::IntoParams;
use wire::template::Template;

use super::{archive, complete};
use crate::app::Publishers;
use crate::body::{self, content_type, read_up_to};
use crate::caller::{Call, Caller};
use crate::page::{Query, flag};
use crate::{App, Problem};

/// A template's text, and what comes with it.
pub(super) struct Sent {
    /// What the text is called in what is wrong with it.
    pub(super) file: String,
    pub(super) text: String,
    pub(super) files: Files,
}

/// A body that holds a template.
pub(crate) enum Parcel {
    /// The template alone.
    Text(&'static str, Bytes),
    /// With files beside it.
    Archive(Bytes),
}

impl<S: Send + Sync> FromRequest<S> for Parcel {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let kind = content_type(&request);
        let parcel = match kind.as_str() {
            "application/yaml" | "application/x-yaml" | "text/yaml" | "text/plain" => {
                Self::Text("template.yaml", read_up_to(request, body::LIMIT).await?)
            }
            "application/json" => {
                Self::Text("template.json", read_up_to(request, body::LIMIT).await?)
            }
            "application/x-tar" | "application/gzip" | "application/x-gzip" => {
                Self::Archive(read_up_to(request, body::ARCHIVE_LIMIT).await?)
            }
            _ => {
                // Whoever is still sending does not hear an answer.
                let _ = read_up_to(request, body::LIMIT).await;
                return Err(Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "A template is YAML, JSON, or a tar with its modules: send the header Content-Type: \
                     application/yaml, application/json, application/x-tar or application/gzip.",
                ));
            }
        };
        match &parcel {
            Self::Text(_, bytes) | Self::Archive(bytes) if bytes.is_empty() => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "The body is empty; send a template in YAML or JSON, or a tar with its modules.",
            )),
            _ => Ok(parcel),
        }
    }
}

impl Parcel {
    fn open(self) -> Result<Sent, Problem> {
        match self {
            Self::Archive(bytes) => archive::unpack(&bytes),
            Self::Text(file, bytes) => {
                let text = String::from_utf8(bytes.into())
                    .map_err(|_| Problem::field("template", "must be text in UTF-8"))?;
                Ok(Sent { file: file.to_owned(), text, files: Files::new() })
            }
        }
    }
}

/// How a template is published.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Publication {
    /// The commit that it came from, if the template does not name it.
    commit: Option<String>,
    /// `true`: for all organizations; by the platform administrator only.
    #[param(value_type = Option<bool>)]
    shared: Option<String>,
}

impl Publication {
    fn checked(self, caller: &Caller) -> Result<(Option<String>, Option<OrganizationId>), Problem> {
        let commit = self.commit.map(|text| name::line("commit", &text, 128)).transpose()?;
        if !flag("shared", self.shared.as_deref())? {
            return Ok((commit, Some(caller.user.organization_id)));
        }
        caller.must_be_admin("publish templates for all organizations")?;
        Ok((commit, None))
    }
}

/// Publishes a template: YAML, JSON, or a tar or tar.gz with `template.yaml` at its root and modules
/// beside it. The same again changes nothing; other content under the same `name@version` is refused.
#[utoipa::path(post, path = "/api/v1/templates", tag = "templates", params(Publication),
    request_body(description = "The template, or an archive with it and its modules",
        content((Object = "application/json"), (String = "application/yaml"),
            (String = "application/x-yaml"), (String = "text/yaml"), (String = "text/plain"),
            (Vec<u8> = "application/x-tar"), (Vec<u8> = "application/gzip"),
            (Vec<u8> = "application/x-gzip"))),
    responses((status = 201, body = Template, description = "Published"),
        (status = 200, body = Template, description = "The same was published before"), Problem))]
pub(crate) async fn template_publish(
    Call(app, caller): Call,
    Query(how): Query<Publication>,
    parcel: Parcel,
) -> Result<response::Response, Problem> {
    let (commit, organization_id) = how.checked(&caller)?;
    let (sent, mut template) = checked(parcel).await?;
    if has_modules(&template) {
        may_bring_modules(&app, &caller)?;
        check_modules(&sent.file, &sent.text, &template, &sent.files)?;
    }
    template.commit = template.commit.or(commit);
    let hash = template::hash(&template, &sent.files);
    let (source, files) = (&sent.text, &sent.files);
    let new = NewTemplate { organization_id, template: &template, source, files, hash: &hash };
    let mut tx = app.db.begin(caller.actor()).await?;
    let (published, is_new) = store::template::publish(&mut tx, &new).await?;
    let shown = complete(&mut tx, published).await?;
    tx.commit().await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer(status, shown))
}

fn answer(status: StatusCode, shown: Template) -> Response {
    (status, Answer(shown)).into_response()
}

/// What was sent, read and checked; beside the tasks, since that takes a while for large ones.
async fn checked(parcel: Parcel) -> Result<(Sent, template::Template), Problem> {
    let checked = tokio::task::spawn_blocking(move || {
        let sent = parcel.open()?;
        let template = template::parse(&sent.file, &sent.text)?;
        Ok((sent, template))
    });
    checked.await.unwrap_or_else(|_| {
        let detail = "The template could not be read; that has been logged.";
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    })
}

fn may_bring_modules(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.settings.terraform_templates == Publishers::Everyone || caller.is_admin() {
        return Ok(());
    }
    Err(Problem::forbidden(
        "Modules of Terraform run programs on the server, so only the platform administrator may publish \
         templates with them; ask the administrator to publish it as shared.",
    ))
}
