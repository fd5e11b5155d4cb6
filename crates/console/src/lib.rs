//! The web console and the API documentation page, embedded into the binary.
//!
//! All assets are static files of this crate, without a build step or downloads, so the pages
//! work without internet access. They use only the server's public API.

#[cfg(test)]
mod tests;

/// The content security policy of the pages: only this server's files, nothing inline.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'; object-src 'none'";

/// The `Cache-Control` header of all files: browsers revalidate each time with the entity tag, so
/// that a new binary takes effect at once.
pub const CACHE_CONTROL: &str = "no-cache";

/// An embedded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// The value of the `Content-Type` header.
    pub content_type: &'static str,
    /// The content.
    pub body: &'static [u8],
    /// The value of the `ETag` header, including quotes: a hash of the content.
    pub etag: &'static str,
}

/// Returns the file at a URL path (without query): `/`, `/docs` or below `/assets/`.
pub fn file(path: &str) -> Option<File> {
    FILES.iter().find(|(served_at, _)| *served_at == path).map(|(_, file)| *file)
}

/// All paths that [`file()`] serves.
pub fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| *path)
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Embeds a file of `assets/` with its URL path, `/assets/<name>` by default.
macro_rules! embed {
    ($name:literal, $content_type:expr) => {
        embed!(concat!("/assets/", $name), $name, $content_type)
    };
    ($path:expr, $name:literal, $content_type:expr) => {{
        const BODY: &[u8] = include_bytes!(concat!("../assets/", $name));
        const TAG: [u8; 18] = entity_tag(BODY);
        const ETAG: &str = match str::from_utf8(&TAG) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        };
        ($path, File { content_type: $content_type, body: BODY, etag: ETAG })
    }};
}

static FILES: &[(&str, File)] = &[
    embed!("/", "index.html", HTML),
    embed!("/docs", "docs.html", HTML),
    embed!("icon.svg", SVG),
    embed!("style.css", CSS),
    embed!("console.css", CSS),
    embed!("docs.css", CSS),
    embed!("api.js", JS),
    embed!("app.js", JS),
    embed!("dom.js", JS),
    embed!("form.js", JS),
    embed!("format.js", JS),
    embed!("live.js", JS),
    embed!("parts.js", JS),
    embed!("people.js", JS),
    embed!("shell.js", JS),
    embed!("stream.js", JS),
    embed!("views/cluster.js", JS),
    embed!("views/clusters.js", JS),
    embed!("views/deployment.js", JS),
    embed!("views/deployment_form.js", JS),
    embed!("views/deployments.js", JS),
    embed!("views/events.js", JS),
    embed!("views/invites.js", JS),
    embed!("views/organization.js", JS),
    embed!("views/overview.js", JS),
    embed!("views/sign_in.js", JS),
    embed!("docs/docs.js", JS),
    embed!("docs/operation.js", JS),
    embed!("docs/schema.js", JS),
    embed!("docs/text.js", JS),
    embed!("docs/try.js", JS),
];

/// The content's 64-bit FNV-1a hash in quotes. It only has to differ between versions, so a
/// non-cryptographic hash that can be computed at compile time is enough.
const fn entity_tag(body: &[u8]) -> [u8; 18] {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut index = 0;
    while index < body.len() {
        hash = (hash ^ body[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    let mut tag = [b'"'; 18];
    let mut digit = 0;
    while digit < 16 {
        tag[16 - digit] = b"0123456789abcdef"[(hash >> (4 * digit) & 0xf) as usize];
        digit += 1;
    }
    tag
}
