//! The client's stored login, and resolution of the current server and token.
//!
//! The token is stored in a file that only its owner can read, and is sent only to the server that
//! issued it.

use std::env;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::error::Error;

const DEFAULT_SERVER: &str = "http://127.0.0.1:8001";
const FILE: &str = "client.toml";

/// A bearer token. It is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Token(String);

impl Token {
    /// The secret, for the Authorization header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Content of the file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
struct Config {
    server: Option<String>,
    username: Option<String>,
    token: Option<Token>,
}

/// Current server and user, resolved once at startup.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Url,
    pub(crate) token: Option<Token>,
    /// User of the last login at that server.
    pub(crate) username: Option<String>,
    saved: Config,
    dir: PathBuf,
}

impl Session {
    /// Resolves the session from the command line, the environment and the last login.
    pub(crate) fn resolve(server: Option<String>) -> Result<Self, Error> {
        let env = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let dir = directory(env).ok_or_else(|| {
            Error::Usage("no directory for the token: set HOME or PADDOCK_CONFIG_DIR".into())
        })?;
        let token = env("PADDOCK_TOKEN").and_then(|token| token.into_string().ok()).map(Token);
        Self::new(server, token, load(&dir)?, dir)
    }

    fn new(
        server: Option<String>,
        token: Option<Token>,
        saved: Config,
        dir: PathBuf,
    ) -> Result<Self, Error> {
        let server = server.or_else(|| saved.server.clone());
        let server = address(server.as_deref().unwrap_or(DEFAULT_SERVER))?;
        let is_saved =
            saved.server.as_deref().is_some_and(|old| address(old).ok().as_ref() == Some(&server));
        let token = token.or_else(|| saved.token.clone().filter(|_| is_saved));
        let username = saved.username.clone().filter(|_| is_saved);
        Ok(Self { server, token, username, saved, dir })
    }

    /// Stores the login.
    pub(crate) fn store(&mut self, username: &str, token: &Token) -> Result<(), Error> {
        self.saved = Config {
            server: Some(self.server.as_str().trim_end_matches('/').into()),
            username: Some(username.into()),
            token: Some(token.clone()),
        };
        self.save()
    }

    /// Removes the stored token; server and user name stay for the next login.
    pub(crate) fn remove_token(&mut self) -> Result<(), Error> {
        if self.token.is_none() || self.saved.token != self.token {
            return Ok(());
        }
        self.saved.token = None;
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        let path = self.dir.join(FILE);
        let text = toml::to_string(&self.saved).expect("three strings are always TOML");
        write(&self.dir, &path, &text)
            .map_err(|error| Error::failed(format!("cannot write {}: {error}", path.display())))
    }
}

/// Directory of the file: `PADDOCK_CONFIG_DIR`, then `XDG_CONFIG_HOME`, then `~/.config`.
fn directory(env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let explicit = env("PADDOCK_CONFIG_DIR").map(PathBuf::from);
    let xdg = || env("XDG_CONFIG_HOME").map(|dir| Path::new(&dir).join("paddock"));
    let home = || env("HOME").map(|dir| Path::new(&dir).join(".config/paddock"));
    explicit.or_else(xdg).or_else(home)
}

fn load(dir: &Path) -> Result<Config, Error> {
    let path = dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => {
            return Err(Error::failed(format!("cannot read {}: {error}", path.display())));
        }
    };
    // The parser's error is omitted: it would quote the line, which may contain the token.
    toml::from_str(&text).map_err(|_| {
        Error::failed_with_hint(
            format!("{} is not valid TOML", path.display()),
            r#"fix or delete it, then run "paddock login""#,
        )
    })
}

/// Replaces the file atomically, so that a crash leaves either the old or the new one.
fn write(dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let next = dir.join(format!("{FILE}.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, path)
    })();
    written.inspect_err(|_| drop(fs::remove_file(&next)))
}

/// Parses the URL of a server.
fn address(text: &str) -> Result<Url, Error> {
    let invalid = |why| Error::Usage(format!("invalid server URL {text:?}: {why}"));
    let url: Url = text.parse().map_err(|_| invalid("use for example http://127.0.0.1:8001"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid("use for example http://127.0.0.1:8001"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(r#"must not contain credentials; use "paddock login""#));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("must not contain a query or fragment"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn token(text: &str) -> Token {
        Token(text.into())
    }

    fn saved() -> Config {
        Config {
            server: Some("http://home:1".into()),
            username: Some("ann".into()),
            token: Some(token("old")),
        }
    }

    #[test]
    fn token_is_sent_only_to_its_issuing_server() {
        for (server, env, want_server, want_token) in [
            (None, None, "http://home:1/", Some("old")),
            (Some("http://home:1/"), None, "http://home:1/", Some("old")),
            (Some("http://other:1"), None, "http://other:1/", None),
            (Some("https://home:1"), None, "https://home:1/", None),
            (Some("http://other:1"), Some("new"), "http://other:1/", Some("new")),
        ] {
            let session =
                Session::new(server.map(Into::into), env.map(token), saved(), PathBuf::new())
                    .unwrap();
            assert_eq!(session.server.as_str(), want_server);
            assert_eq!(session.token, want_token.map(token), "{server:?} {env:?}");
        }
    }

    #[test]
    fn default_server_is_localhost() {
        let session = Session::new(None, None, Config::default(), PathBuf::new()).unwrap();
        assert_eq!(session.server.as_str(), "http://127.0.0.1:8001/");
        assert_eq!(session.token, None);
    }

    #[test]
    fn invalid_server_urls_are_rejected() {
        for text in ["", "home", "home:1", "ftp://home", "http://a:b@home", "http://home?x=1"] {
            let error = address(text).unwrap_err();
            assert!(error.message().contains(&format!("{text:?}")), "{text} {error:?}");
            assert!(matches!(error, Error::Usage(_)));
        }
    }

    #[test]
    fn first_configured_directory_wins() {
        for (set, want) in [
            (&["PADDOCK_CONFIG_DIR", "XDG_CONFIG_HOME", "HOME"][..], Some("/PADDOCK_CONFIG_DIR")),
            (&["XDG_CONFIG_HOME", "HOME"], Some("/XDG_CONFIG_HOME/paddock")),
            (&["HOME"], Some("/HOME/.config/paddock")),
            (&[], None),
        ] {
            let env = |name: &str| set.contains(&name).then(|| format!("/{name}").into());
            assert_eq!(directory(env), want.map(PathBuf::from));
        }
    }

    #[test]
    fn stored_login_is_private_and_token_can_be_removed() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/paddock");
        let mut session = Session::new(None, None, Config::default(), dir.clone()).unwrap();
        session.store("ann", &token("t1")).unwrap();
        session.store("ann", &token("t2")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join(FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no temporary file is left behind");

        let mut session = Session::new(None, None, load(&dir).unwrap(), dir.clone()).unwrap();
        assert_eq!(session.token, Some(token("t2")));
        session.remove_token().unwrap();
        let stored = load(&dir).unwrap();
        assert_eq!((stored.username.as_deref(), stored.token), (Some("ann"), None));
    }

    #[test]
    fn invalid_file_is_reported_without_its_content() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "token = s3cret").unwrap();
        let error = load(home.path()).unwrap_err();
        assert!(error.message().contains(FILE) && !error.message().contains("s3cret"));
        assert!(!format!("{:?}", token("s3cret")).contains("s3cret"));
    }
}
