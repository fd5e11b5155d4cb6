//! Failed calls, mapped to faults: a setting to correct, or a temporary failure.

use aws_sdk_route53::config::http::HttpResponse;
use aws_sdk_route53::error::{ProvideErrorMetadata, SdkError};
use port::Fault;

use super::{CALL_TIMEOUT, Route53};
use crate::http::root_of;

/// Error codes of denied access.
const DENIED: [&str; 8] = [
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];
/// Error codes of temporary failures.
const TEMPORARY: [&str; 5] = [
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
        let Some(service_error) = error.as_service_error() else {
            return match error {
                SdkError::ResponseError(_) => invalid_response(&root_of(error)),
                SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                    Fault::Unavailable(format!("Route 53 did not answer within {CALL_TIMEOUT:?}"))
                }
                _ => Fault::Unavailable(format!("Route 53 is unreachable: {}", root_of(error))),
            };
        };
        let status = error.raw_response().map_or(500, |answer| answer.status().as_u16());
        let message = service_error.message().unwrap_or("no details given");
        self.classify(service_error.code(), message, status)
    }

    fn classify(&self, code: Option<&str>, message: &str, status: u16) -> Fault {
        match code {
            Some("NoSuchHostedZone") => self.no_zone(),
            Some(code) if DENIED.contains(&code) => Fault::Refused(format!(
                "Route 53 denied access to the access key {} ({code}). Check the key and its \
                 permissions",
                self.options.credentials.id
            )),
            Some(code) if TEMPORARY.contains(&code) || status >= 500 => {
                Fault::Unavailable(format!("Route 53 failed temporarily ({code}): {message}"))
            }
            Some(code) => {
                Fault::Refused(format!("Route 53 rejected the request ({code}): {message}"))
            }
            None => invalid_response(&format!("status {status} without a code")),
        }
    }

    /// The zone does not exist. A zone that is recreated under its name has another id.
    pub(super) fn no_zone(&self) -> Fault {
        self.cache_zone_id(None);
        Fault::Refused(format!(
            "Route 53 has no zone {}. Check the zone and the account of the access key",
            self.zone.name()
        ))
    }
}

pub(super) fn invalid_response(why: &str) -> Fault {
    Fault::Unavailable(format!("Route 53 returned an invalid response: {why}"))
}
