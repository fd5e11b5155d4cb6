//! Keys of stored secrets and their rotation.

use axum::Json as Answer;
use axum::http::StatusCode;
use engine::encryption::{self, Keys, RotationError};
use wire::encryption::{EncryptionKeys, Rekey};

use crate::body::Json;
use crate::caller::Call;
use crate::{App, Problem};

/// Returns the IDs of the keys that encrypt stored secrets. For the platform administrator and
/// auditors.
#[utoipa::path(get, path = "/api/v1/admin/encryption", tag = "admin",
    responses((status = 200, body = EncryptionKeys, description = "Key IDs"), Problem))]
pub(crate) async fn encryption_get(Call(app, _): Call) -> Result<Answer<EncryptionKeys>, Problem> {
    Ok(Answer(keys(&app).await?))
}

/// Rotates the key that encrypts stored secrets. For the platform administrator.
///
/// A new key encrypts from now on, and everything stored is encrypted again in the background;
/// older keys decrypt until then.
#[utoipa::path(post, path = "/api/v1/admin/encryption/rekey", tag = "admin", request_body = Rekey,
    responses((status = 202, body = EncryptionKeys, description = "Rotation accepted"), Problem))]
pub(crate) async fn encryption_rekey(
    Call(app, caller): Call,
    Json(request): Json<Rekey>,
) -> Result<(StatusCode, Answer<EncryptionKeys>), Problem> {
    let user = &caller.user.username;
    if request.prepare == Some(true) {
        let key = encryption::prepare(&*app.seal).map_err(problem)?;
        tracing::info!(audit = true, user, key, "encryption key prepared");
    } else {
        encryption::rotate(&app.db, &*app.seal, caller.actor()).await.map_err(problem)?;
        tracing::info!(audit = true, user, "encryption key rotated");
    }
    Ok((StatusCode::ACCEPTED, Answer(keys(&app).await?)))
}

async fn keys(app: &App) -> Result<EncryptionKeys, Problem> {
    let Keys { current, previous, prepared } =
        encryption::keys(&app.db, &*app.seal).await.map_err(problem)?;
    Ok(EncryptionKeys { current, previous, prepared })
}

fn problem(error: RotationError) -> Problem {
    match error {
        RotationError::Store(error) => error.into(),
        RotationError::Keys(fault) => {
            tracing::warn!(%fault, "encryption keys unavailable");
            Problem::unavailable(format!("Encryption keys are unavailable: {fault}."))
        }
        other => Problem::conflict(format!("Key not rotated: {other}.")),
    }
}
