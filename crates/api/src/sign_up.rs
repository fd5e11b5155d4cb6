//! Who may create organizations, invite users and join: the setting `--sign-up`.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::access::{Action, SubjectKind, Verb};
use model::event::Actor;

use crate::app::SignUp;
use crate::caller::{Caller, authorization};
use crate::edge::address;
use crate::{App, Problem};

/// A caller who may create an organization: anyone if sign-up is open, otherwise the platform
/// administrator.
pub(crate) struct Founder {
    pub(crate) actor: Actor,
    pub(crate) from: IpAddr,
}

impl FromRequestParts<App> for Founder {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let from = address(&parts.extensions);
        if app.settings.sign_up == SignUp::Open {
            return Ok(Self { actor: Actor::Anonymous, from });
        }
        if authorization(&parts.headers).is_none() {
            return Err(refused(app.settings.sign_up));
        }
        let caller = Caller::from_request_parts(parts, app).await?;
        if !caller.is_admin() {
            return Err(refused(app.settings.sign_up));
        }
        Ok(Self { actor: caller.actor(), from })
    }
}

fn refused(sign_up: SignUp) -> Problem {
    Problem::forbidden(match sign_up {
        SignUp::Closed => {
            "Sign-up is closed: only the platform administrator creates organizations. Ask the \
             administrator for an account."
        }
        SignUp::Invite | SignUp::Open => {
            "Sign-up is by invite: only the platform administrator creates organizations. Ask an owner \
             of an organization for an invite code, or the administrator for a new organization."
        }
    })
}

/// Rejects a caller who may not invite users.
pub(crate) fn may_invite(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.settings.sign_up == SignUp::Closed {
        return Err(Problem::forbidden(
            "Sign-up is closed: no invites are created. Ask the platform administrator to allow them.",
        ));
    }
    let is_owner = caller.allows(Action::new(SubjectKind::Invite, Verb::Administer));
    if is_owner || app.settings.member_invites {
        return Ok(());
    }
    Err(Problem::forbidden("Only an owner of the organization may invite users; ask an owner."))
}

/// Rejects the redemption of invites if sign-up is closed.
pub(crate) fn may_join(app: &App) -> Result<(), Problem> {
    if app.settings.sign_up == SignUp::Closed {
        return Err(Problem::forbidden(
            "Sign-up is closed: invites cannot be redeemed. Ask the platform administrator to allow it.",
        ));
    }
    Ok(())
}
