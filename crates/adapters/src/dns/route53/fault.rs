//! What a failed call means: a setting to check, or something that passes.

use aws_sdk_route53::config::http::HttpResponse;
use aws_sdk_route53::error::{ProvideErrorMetadata, SdkError};
use port::Fault;

use super::{ONE_CALL, Route53};
use crate::http::root_of;

/// Codes of those who are not let in.
const KEY: [&str; 8] = [
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];
/// Codes of what passes.
const PASSES: [&str; 5] = [
    "PriorRequestNotComplete",
    "RequestTimeout",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
];

impl Route53 {
    pub(super) fn fault<E>(&self, error: &SdkError<E, HttpResponse>) -> Fault
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let Some(said) = error.as_service_error() else {
            return match error {
                SdkError::ResponseError(_) => confused(&root_of(error)),
                SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                    Fault::Unavailable(format!("Route53 did not answer within {ONE_CALL:?}"))
                }
                _ => Fault::Unavailable(format!("Route53 can't be reached: {}", root_of(error))),
            };
        };
        let status = error.raw_response().map_or(500, |answer| answer.status().as_u16());
        self.verdict(said.code(), said.message().unwrap_or("it does not say why"), status)
    }

    fn verdict(&self, code: Option<&str>, message: &str, status: u16) -> Fault {
        match code {
            Some("NoSuchHostedZone") => self.no_zone(),
            Some(code) if KEY.contains(&code) => Fault::Refused(format!(
                "Route53 does not let the access key {} do this ({code}): check the key and its rights",
                self.options.keys.id
            )),
            Some(code) if PASSES.contains(&code) || status >= 500 => {
                Fault::Unavailable(format!("Route53 could not do it now ({code}): {message}"))
            }
            Some(code) => Fault::Refused(format!("Route53 refused it ({code}): {message}")),
            None => confused(&format!("status {status} without a code")),
        }
    }

    /// The zone is not there. Should one be made again under its name, it has another id.
    pub(super) fn no_zone(&self) -> Fault {
        self.remember_zone_id(None);
        Fault::Refused(format!(
            "Route53 has no zone {}: check the zone, and whose access key it is",
            self.zone.name()
        ))
    }
}

pub(super) fn confused(why: &str) -> Fault {
    Fault::Unavailable(format!("Route53 gave an answer that makes no sense: {why}"))
}
