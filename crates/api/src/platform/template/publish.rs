//! Publication of templates: as YAML or JSON, or as an archive with modules.

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
use crate::storage::Storage;
use crate::{App, Problem};

/// An uploaded template with its files.
pub(super) struct Upload {
    /// File name of the template for error messages.
    pub(super) file: String,
    pub(super) text: String,
    pub(super) files: Files,
}

/// Request body with a template.
pub(crate) enum TemplateBody {
    /// The template alone.
    Text(&'static str, Bytes),
    /// The template with other files.
    Archive(Bytes),
}

impl<S: Send + Sync> FromRequest<S> for TemplateBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let kind = content_type(&request);
        let template_body = match kind.as_str() {
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
                // A client that is still sending does not read the response.
                let _ = read_up_to(request, body::LIMIT).await;
                return Err(Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "Unsupported media type for a template: send the header Content-Type: \
                     application/yaml, application/json, application/x-tar or application/gzip.",
                ));
            }
        };
        match &template_body {
            Self::Text(_, bytes) | Self::Archive(bytes) if bytes.is_empty() => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "The body is empty; send a template in YAML or JSON, or a tar with its modules.",
            )),
            _ => Ok(template_body),
        }
    }
}

impl TemplateBody {
    fn open(self) -> Result<Upload, Problem> {
        match self {
            Self::Archive(bytes) => archive::unpack(&bytes),
            Self::Text(file, bytes) => {
                let text = String::from_utf8(bytes.into())
                    .map_err(|_| Problem::field("template", "must be text in UTF-8"))?;
                Ok(Upload { file: file.to_owned(), text, files: Files::new() })
            }
        }
    }
}

/// Publication options.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PublishQuery {
    /// Commit of the template, if the template does not name it.
    commit: Option<String>,
    /// Whether to publish for all organizations. Allowed for the platform administrator only.
    #[param(value_type = Option<bool>)]
    shared: Option<String>,
}

impl PublishQuery {
    fn checked(self, caller: &Caller) -> Result<(Option<String>, Option<OrganizationId>), Problem> {
        let commit = self.commit.map(|text| name::line("commit", &text, 128)).transpose()?;
        if !flag("shared", self.shared.as_deref())? {
            return Ok((commit, Some(caller.user.organization_id)));
        }
        caller.must_be_admin("publish templates for all organizations")?;
        Ok((commit, None))
    }
}

/// Publishes a template: YAML, JSON, or a tar or tar.gz with `template.yaml` at its root and
/// modules.
///
/// Publishing the same content again has no effect; different content under the same `name@version`
/// is rejected.
#[utoipa::path(post, path = "/api/v1/templates", tag = "templates", params(PublishQuery),
    request_body(description = "Template, or an archive with the template and its modules",
        content((Object = "application/json"), (String = "application/yaml"),
            (String = "application/x-yaml"), (String = "text/yaml"), (String = "text/plain"),
            (Vec<u8> = "application/x-tar"), (Vec<u8> = "application/gzip"),
            (Vec<u8> = "application/x-gzip"))),
    responses((status = 201, body = Template, description = "Published"),
        (status = 200, body = Template, description = "Already published with the same content"), Problem))]
pub(crate) async fn template_publish(
    Call(app, caller): Call,
    Query(query): Query<PublishQuery>,
    template_body: TemplateBody,
) -> Result<response::Response, Problem> {
    let (commit, organization_id) = query.checked(&caller)?;
    let (upload, mut template) = checked(template_body).await?;
    if has_modules(&template) {
        may_publish_modules(&app, &caller)?;
        check_modules(&upload.file, &upload.text, &template, &upload.files)?;
    }
    template.commit = template.commit.or(commit);
    let hash = template::hash(&template, &upload.files);
    let (source, files) = (&upload.text, &upload.files);
    let new = NewTemplate { organization_id, template: &template, source, files, hash: &hash };
    let storage = match organization_id {
        Some(owner) if !files.is_empty() => {
            let storage = Storage::lock(&app, owner, caller.actor()).await?;
            storage.refresh().await?;
            Some(storage)
        }
        _ => None,
    };
    let mut tx = app.db.begin(caller.actor()).await?;
    let (published, is_new) = store::template::publish(&mut tx, &new).await?;
    if let Some(storage) = storage.as_ref().filter(|_| is_new) {
        let bytes = files.values().map(|content| content.len() as u64).sum();
        storage.check_files(&mut tx, bytes).await?;
    }
    let template_response = complete(&mut tx, published).await?;
    tx.commit().await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(respond(status, template_response))
}

fn respond(status: StatusCode, template_response: Template) -> Response {
    (status, Answer(template_response)).into_response()
}

/// Parses and validates a template, on a blocking thread because large ones take a while.
async fn checked(template_body: TemplateBody) -> Result<(Upload, template::Template), Problem> {
    let checked = tokio::task::spawn_blocking(move || {
        let upload = template_body.open()?;
        let template = template::parse(&upload.file, &upload.text)?;
        Ok((upload, template))
    });
    checked.await.unwrap_or_else(|_| {
        let detail = "Reading the template failed; details are in the server log.";
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    })
}

fn may_publish_modules(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.settings.terraform_templates == Publishers::Everyone || caller.is_admin() {
        return Ok(());
    }
    Err(Problem::forbidden(
        "Terraform modules run programs on the server, so only the platform administrator may publish \
         templates with them; ask the administrator to publish it as shared.",
    ))
}
