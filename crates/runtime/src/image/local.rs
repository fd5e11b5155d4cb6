//! Names of local images: `localhost/NAME:TAG`, as Podman names them. No registry has them.

use super::{Reference, reference};
use crate::{BUILTIN_IMAGE, Error};

/// The registry part of a local name. With a port, `localhost:5000` is a registry.
const LOCAL: &str = "localhost";

/// Whether an image reference names a local image.
pub fn is_local(image: &str) -> bool {
    reference(image).is_ok_and(|reference| is_local_reference(&reference))
}

pub(crate) fn is_local_reference(reference: &Reference) -> bool {
    reference.registry() == LOCAL
}

/// The local name of an image: without its registry, with a tag. Rejects the name of the built-in
/// image, and digests, which a local name can't have.
pub fn local_name(image: &str) -> Result<String, Error> {
    let parsed = reference(image)?;
    let invalid = |cause: &str| {
        Err(Error::InvalidImageName { image: image.to_owned(), cause: cause.to_owned() })
    };
    if parsed.digest().is_some() {
        return invalid("a loaded image has a tag, not a digest");
    }
    let repository = parsed.repository();
    // The parser adds this to names without a registry.
    let repository = match parsed.registry() {
        "docker.io" => repository.strip_prefix("library/").unwrap_or(repository),
        _ => repository,
    };
    let name = format!("{LOCAL}/{repository}:{}", parsed.tag().unwrap_or("latest"));
    if name == BUILTIN_IMAGE {
        return invalid("the name is reserved for the built-in image");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_without_a_port_is_local() {
        for (image, expected) in [
            ("localhost/web:1", true),
            ("localhost/team/web", true),
            (BUILTIN_IMAGE, true),
            ("localhost:5000/web:1", false),
            ("localhost", false),
            ("web:1", false),
            ("registry.example/localhost/web:1", false),
            ("127.0.0.1/web:1", false),
        ] {
            assert_eq!(is_local(image), expected, "{image}");
        }
    }

    #[test]
    fn names_lose_their_registry_and_get_a_tag() {
        for (image, expected) in [
            ("web:1", "localhost/web:1"),
            ("web", "localhost/web:latest"),
            ("docker.io/library/web:1", "localhost/web:1"),
            ("team/web:1", "localhost/team/web:1"),
            ("registry.example:5000/team/web:1", "localhost/team/web:1"),
            ("localhost/library/web:1", "localhost/library/web:1"),
            ("localhost/web:1", "localhost/web:1"),
        ] {
            assert_eq!(local_name(image), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn digests_reserved_and_invalid_names_are_rejected() {
        let digest = format!("web@sha256:{}", "0a".repeat(32));
        for image in [BUILTIN_IMAGE, "paddock-page:1", &digest, "../x", "Web", ""] {
            assert!(local_name(image).is_err(), "{image}");
        }
    }
}
