//! What the client remembers between two commands, and which server and token are in force.
//!
//! The token is written to one file that only its owner can read, and is sent to no other server
//! than the one that gave it.

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
    /// The token itself, for the one header that carries it.
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

/// The content of the file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
struct Config {
    server: Option<String>,
    username: Option<String>,
    token: Option<Token>,
}

/// Which server is meant, and as whom; resolved once, before anything is done.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Url,
    pub(crate) token: Option<Token>,
    /// Who signed in last, at that server.
    pub(crate) username: Option<String>,
    saved: Config,
    dir: PathBuf,
}

impl Session {
    /// Puts together what was said on the command line, in the environment and at the last login.
    pub(crate) fn resolve(server: Option<String>) -> Result<Self, Error> {
        let env = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let dir = directory(env).ok_or_else(|| {
            Error::Usage("nowhere to keep the token: set HOME or PADDOCK_CONFIG_DIR".into())
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

    /// Remembers who signed in.
    pub(crate) fn remember(&mut self, username: &str, token: &Token) -> Result<(), Error> {
        self.saved = Config {
            server: Some(self.server.as_str().trim_end_matches('/').into()),
            username: Some(username.into()),
            token: Some(token.clone()),
        };
        self.save()
    }

    /// Forgets the token that is in force; server and user name stay for the next login.
    pub(crate) fn forget(&mut self) -> Result<(), Error> {
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
            .map_err(|error| Error::failed(format!("can't write {}: {error}", path.display())))
    }
}

/// Where the file is: our own variable, then the desktop's, then the usual place.
fn directory(env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let ours = env("PADDOCK_CONFIG_DIR").map(PathBuf::from);
    let desktop = || env("XDG_CONFIG_HOME").map(|dir| Path::new(&dir).join("paddock"));
    let home = || env("HOME").map(|dir| Path::new(&dir).join(".config/paddock"));
    ours.or_else(desktop).or_else(home)
}

fn load(dir: &Path) -> Result<Config, Error> {
    let path = dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => {
            return Err(Error::failed(format!("can't read {}: {error}", path.display())));
        }
    };
    // The parser's own words would quote the line, and the line may be the token.
    toml::from_str(&text).map_err(|_| {
        Error::failed_but(
            format!("{} is not valid TOML", path.display()),
            r#"mend it, or remove it and run "paddock login""#,
        )
    })
}

/// Replaces the file in one step, so that a crash leaves the old one or the new one.
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

/// Reads the address of a server.
fn address(text: &str) -> Result<Url, Error> {
    let wrong = |why| Error::Usage(format!("{text:?} is not the address of a server: {why}"));
    let url: Url = text.parse().map_err(|_| wrong("write it like http://127.0.0.1:8001"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("write it like http://127.0.0.1:8001"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(r#"it holds a user name; use "paddock login""#));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("nothing may follow the path"));
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
    fn a_token_goes_only_to_the_server_that_gave_it() {
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
    fn without_a_word_the_server_is_this_machine() {
        let session = Session::new(None, None, Config::default(), PathBuf::new()).unwrap();
        assert_eq!(session.server.as_str(), "http://127.0.0.1:8001/");
        assert_eq!(session.token, None);
    }

    #[test]
    fn bad_addresses_are_named() {
        for text in ["", "home", "home:1", "ftp://home", "http://a:b@home", "http://home?x=1"] {
            let error = address(text).unwrap_err();
            assert!(error.what().contains(&format!("{text:?}")), "{text} {error:?}");
            assert!(matches!(error, Error::Usage(_)));
        }
    }

    #[test]
    fn the_first_directory_that_is_set_wins() {
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
    fn what_is_remembered_is_private_and_can_be_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/paddock");
        let mut session = Session::new(None, None, Config::default(), dir.clone()).unwrap();
        session.remember("ann", &token("t1")).unwrap();
        session.remember("ann", &token("t2")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join(FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no scratch file stays behind");

        let mut session = Session::new(None, None, load(&dir).unwrap(), dir.clone()).unwrap();
        assert_eq!(session.token, Some(token("t2")));
        session.forget().unwrap();
        let kept = load(&dir).unwrap();
        assert_eq!((kept.username.as_deref(), kept.token), (Some("ann"), None));
    }

    #[test]
    fn a_broken_file_is_named_but_never_quoted() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "token = s3cret").unwrap();
        let error = load(home.path()).unwrap_err();
        assert!(error.what().contains(FILE) && !error.what().contains("s3cret"));
        assert!(!format!("{:?}", token("s3cret")).contains("s3cret"));
    }
}
