//! Images in the image store of the server's machine.

use std::fs::File;
use std::io::SeekFrom;
use std::path::Path;

use axum::Json as Answer;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use futures_util::StreamExt as _;
use model::image::StoreError;
use model::{OrganizationId, name};
use serde::Deserialize;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};
use utoipa::IntoParams;
use wire::image::Images;

use crate::body::{self, Deadline, content_type, read_body};
use crate::caller::Call;
use crate::page::Query;
use crate::storage::{self, Storage};
use crate::{App, Problem};

/// Maximum number of loaded images of an organization.
const MAX_IMAGES: usize = 100;
/// Maximum length of an image name.
const MAX_NAME: usize = 255;
/// Media types of archives. The content decides whether it is compressed.
const MEDIA_TYPES: [&str; 4] =
    ["application/x-tar", "application/octet-stream", "application/gzip", "application/x-gzip"];

/// Options of a load.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LoadQuery {
    /// Name of the image instead of the one in the archive, which must contain one image.
    name: Option<String>,
}

/// The image to delete.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImageQuery {
    /// Name of the image: `localhost/NAME:TAG`.
    name: String,
}

/// Loads the images of an archive into the image store of the server's machine.
///
/// The archive is a tar or tar.gz in the format of `docker save` or of an OCI layout. The images
/// belong to the caller's organization and are deployed by the returned names. An image of the same
/// name is replaced.
#[utoipa::path(post, path = "/api/v1/images", tag = "images", params(LoadQuery),
    request_body(description = "Image archive",
        content((Vec<u8> = "application/x-tar"), (Vec<u8> = "application/octet-stream"),
            (Vec<u8> = "application/gzip"), (Vec<u8> = "application/x-gzip"))),
    responses((status = 201, body = Images, description = "Loaded"), Problem))]
pub(crate) async fn image_load(
    Call(app, caller): Call,
    Query(query): Query<LoadQuery>,
    request: Request,
) -> Result<(StatusCode, Answer<Images>), Problem> {
    let organization = caller.user.organization_id;
    let name = query.name.map(|name| name::line("name", &name, MAX_NAME)).transpose()?;
    let checked = match check_headers(&app, &request) {
        Ok(()) => check_store(&app, organization, length(&request)).await,
        refused => refused,
    };
    let _permit = match checked.and_then(|()| app.uploads.try_acquire().map_err(|_| busy())) {
        Ok(permit) => permit,
        Err(problem) => {
            drain(&app, request.into_body()).await;
            return Err(problem);
        }
    };
    let archive = receive(&app, request.into_body()).await?;
    let storage = Storage::lock(&app, organization, caller.actor()).await?;
    storage.reserve(archive.metadata().map_or(0, |data| data.len())).await?;
    let images = match app.images.load(organization, archive, name).await {
        Ok(images) => images,
        Err(error) => {
            storage.refresh().await?;
            return Err(error.into());
        }
    };
    if let Err(problem) = storage.settle().await {
        for image in images {
            app.images.delete(organization, image.name).await?;
        }
        storage.refresh().await?;
        return Err(problem);
    }
    for image in &images {
        let (name, digest) = (&image.name, &image.digest);
        tracing::info!(%organization, name, digest, "image loaded");
    }
    Ok((StatusCode::CREATED, Answer(images.into())))
}

/// Lists the organization's loaded images and the built-in image.
#[utoipa::path(get, path = "/api/v1/images", tag = "images",
    responses((status = 200, body = Images, description = "Complete list"), Problem))]
pub(crate) async fn image_list(Call(app, caller): Call) -> Result<Answer<Images>, Problem> {
    let images = app.images.list(caller.user.organization_id).await?;
    Ok(Answer(images.into()))
}

/// Deletes a loaded image that no deployment uses.
#[utoipa::path(delete, path = "/api/v1/images", tag = "images", params(ImageQuery),
    responses((status = 204, description = "Deleted"), Problem))]
pub(crate) async fn image_delete(
    Call(app, caller): Call,
    Query(query): Query<ImageQuery>,
) -> Result<StatusCode, Problem> {
    let organization = caller.user.organization_id;
    let name = name::line("name", &query.name, MAX_NAME)?;
    let images = app.images.list(organization).await?;
    let is_named = |full: &str| full == name || untagged(full) == Some(&name);
    let image = images.into_iter().find(|image| is_named(&image.name));
    let image = image.ok_or_else(|| Problem::not_found("image", &name))?;
    if image.is_builtin {
        let detail = format!("Image {} is built in and cannot be deleted.", image.name);
        return Err(Problem::conflict(detail));
    }
    let names = [image.name.as_str(), untagged(&image.name).unwrap_or(&image.name)];
    let mut read = app.db.read().await?;
    if let Some(user) = store::deployment::using_image(&mut read, organization, names).await? {
        let detail = format!(
            "Image {} is in use by deployment {user}; delete the deployment first.",
            image.name
        );
        return Err(Problem::conflict(detail));
    }
    drop(read);
    let storage = Storage::lock(&app, organization, caller.actor()).await?;
    app.images.delete(organization, image.name).await?;
    storage.refresh().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The short form of a name whose tag is the default.
fn untagged(name: &str) -> Option<&str> {
    name.strip_suffix(":latest")
}

fn busy() -> Problem {
    Problem::too_many("Too many images are being loaded; try again.", 10)
}

/// Checks type and size before the archive is received.
fn check_headers(app: &App, request: &Request) -> Result<(), Problem> {
    if !MEDIA_TYPES.contains(&content_type(request).as_str()) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Unsupported media type for an image archive: send the header Content-Type: application/x-tar.",
        ));
    }
    if length(request).is_some_and(|length| length > app.settings.max_image_bytes) {
        return Err(too_large(app));
    }
    Ok(())
}

fn length(request: &Request) -> Option<u64> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    length.and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Checks that the server has an image store and the organization may load another image.
async fn check_store(
    app: &App,
    organization: OrganizationId,
    length: Option<u64>,
) -> Result<(), Problem> {
    app.images.check()?;
    let images = app.images.list(organization).await?;
    if images.iter().filter(|image| !image.is_builtin).count() >= MAX_IMAGES {
        return Err(Problem::conflict(format!(
            "The organization has {MAX_IMAGES} loaded images, which is the maximum; delete some."
        )));
    }
    storage::precheck(app, organization, length.unwrap_or(1)).await
}

fn too_large(app: &App) -> Problem {
    let detail = format!(
        "The image archive is larger than {} MiB, the maximum of this server.",
        app.settings.max_image_bytes >> 20
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Writes the body to a file without a name, which disappears when it is closed.
async fn receive(app: &App, body: Body) -> Result<File, Problem> {
    let file = temporary(&app.settings.upload_dir).map_err(|error| not_stored(&error))?;
    let mut file = tokio::fs::File::from_std(file);
    let (mut chunks, mut size) = (body.into_data_stream(), 0u64);
    loop {
        let chunk = tokio::time::timeout(app.settings.request_timeout, chunks.next()).await;
        let chunk = match chunk {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(None) => break,
            Ok(Some(Err(_))) => {
                let detail = "The request body could not be read.";
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
            }
            Err(_) => {
                let detail = "The request body was not received in time.";
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail));
            }
        };
        size += chunk.len() as u64;
        if size > app.settings.max_image_bytes {
            drain(app, Body::from_stream(chunks)).await;
            return Err(too_large(app));
        }
        file.write_all(&chunk).await.map_err(|error| not_stored(&error))?;
    }
    if size == 0 {
        let detail = "The body is empty; send an image archive.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    file.flush().await.map_err(|error| not_stored(&error))?;
    file.seek(SeekFrom::Start(0)).await.map_err(|error| not_stored(&error))?;
    Ok(file.into_std().await)
}

/// Receives the rest of a rejected body, up to a bound: a client that is still sending does not read
/// the response.
async fn drain(app: &App, body: Body) {
    let deadline = Deadline(base::monotonic() + app.settings.request_timeout);
    let _ = read_body(body, body::LIMIT, Some(deadline)).await;
}

fn temporary(dir: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(dir)?;
    tempfile::tempfile_in(dir)
}

fn not_stored(error: &std::io::Error) -> Problem {
    tracing::error!(%error, "storing an uploaded image archive failed");
    Problem::new(
        StatusCode::INSUFFICIENT_STORAGE,
        "Storing the image archive failed on the server.",
    )
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::Invalid(_) => StatusCode::BAD_REQUEST,
            StoreError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            StoreError::NotFound(_) => StatusCode::NOT_FOUND,
            StoreError::InUse(_) | StoreError::Unsupported(_) => StatusCode::CONFLICT,
            StoreError::Failed(cause) => {
                tracing::error!(cause, "image store failed");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self::new(status, error.to_string())
    }
}
