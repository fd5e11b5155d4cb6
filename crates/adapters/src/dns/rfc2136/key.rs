//! The key that a server and its clients share, also as BIND's tools write it.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use domain::tsig;
use model::Secret;
use port::Fault;

/// How signatures are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// `hmac-sha256`, which every server knows.
    HmacSha256,
    /// `hmac-sha512`.
    HmacSha512,
}

/// A key by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// What both sides call it.
    pub name: String,
    /// What it is used with.
    pub algorithm: Algorithm,
    /// Its bytes, in base64.
    pub secret: Secret,
}

impl Key {
    /// Reads the text of a key file, as `tsig-keygen` writes it.
    pub fn from_bind(text: &str) -> Result<Self, Fault> {
        let words = words(text);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let ["key", name, "{", body @ .., "}", ";"] = words.as_slice() else {
            return Err(Fault::Refused(SHAPE.into()));
        };
        let said = |what: &str| {
            let mut statements = body.chunks(3);
            statements.find_map(|statement| match statement {
                [key, value, ";"] if *key == what => Some(*value),
                _ => None,
            })
        };
        let missing = |what: &str| Fault::Refused(format!("The DNS key “{name}” has no {what}"));
        let algorithm = said("algorithm").ok_or_else(|| missing("algorithm"))?;
        let secret = said("secret").ok_or_else(|| missing("secret"))?;
        let key = Self {
            name: (*name).to_owned(),
            algorithm: algorithm.parse()?,
            secret: Secret::new(secret),
        };
        key.checked().map(|_| key)
    }

    /// The key as it signs.
    pub(super) fn checked(&self) -> Result<tsig::Key, Fault> {
        let refuse = |why: &str| Fault::Refused(format!("The DNS key “{}” {why}", self.name));
        let name = tsig::KeyName::from_str(&self.name)
            .map_err(|_| refuse("has a name that is not a domain name"))?;
        let secret = BASE64.decode(self.secret.reveal().trim().as_bytes());
        let secret = secret.map_err(|_| refuse("has a secret that is not base64"))?;
        if secret.is_empty() {
            return Err(refuse("has an empty secret"));
        }
        let algorithm = match self.algorithm {
            Algorithm::HmacSha256 => tsig::Algorithm::Sha256,
            Algorithm::HmacSha512 => tsig::Algorithm::Sha512,
        };
        tsig::Key::new(algorithm, &secret, name, None, None)
            .map_err(|error| refuse(&format!("can't be used: {error}")))
    }
}

/// What a key file looks like.
const SHAPE: &str =
    "A DNS key file is one statement: key \"NAME\" { algorithm hmac-sha256; secret \"BASE64\"; };";

impl FromStr for Algorithm {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        match text.trim_end_matches('.').to_ascii_lowercase().as_str() {
            "hmac-sha256" => Ok(Self::HmacSha256),
            "hmac-sha512" => Ok(Self::HmacSha512),
            other => Err(Fault::Refused(format!(
                "The DNS key's algorithm is “{other}”, but must be hmac-sha256 or hmac-sha512"
            ))),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha512 => "hmac-sha512",
        })
    }
}

/// The words of a configuration: quotes and comments are gone, marks stand alone.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '#' => (None, after(rest, "\n")),
            '/' if rest.starts_with("//") => (None, after(rest, "\n")),
            '/' if rest.starts_with("/*") => (None, after(&rest[2..], "*/")),
            '"' => {
                let word = rest[1..].split('"').next().unwrap_or_default();
                (Some(word), after(&rest[1..], "\""))
            }
            '{' | '}' | ';' => (Some(&rest[..1]), &rest[1..]),
            _ => {
                let is_end =
                    |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '"' | '#');
                let end = rest.find(is_end).unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
        };
        words.extend(word.map(str::to_owned));
        rest = after.trim_start();
    }
    words
}

/// What comes after a mark; nothing if it never comes.
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.split_once(mark).map_or("", |(_, after)| after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "6bUbNvO3bFdTKQ1kHNuMfJ3CCpVY3KoY8SMUkFTBz2o=";

    fn key() -> Key {
        let secret = Secret::new(SECRET);
        Key { name: "paddock".into(), algorithm: Algorithm::HmacSha256, secret }
    }

    #[test]
    fn a_key_file_is_read_as_bind_writes_it() {
        let texts = [
            format!("key \"paddock\" {{\n\talgorithm hmac-sha256;\n\tsecret \"{SECRET}\";\n}};\n"),
            format!(
                "# a\n// b\n/* c; */ key paddock{{secret \"{SECRET}\"; algorithm HMAC-SHA256;}};"
            ),
            format!("key paddock {{ algorithm \"hmac-sha256.\"; secret {SECRET}; }}; // end"),
        ];
        for text in texts {
            assert_eq!(Key::from_bind(&text), Ok(key()), "{text}");
        }
    }

    #[test]
    fn a_bad_key_file_says_what_is_wrong_and_never_shows_the_secret() {
        let cases = [
            (String::new(), "one statement"),
            (format!("options {{ secret \"{SECRET}\"; }};"), "one statement"),
            (format!("key a {{ secret \"{SECRET}\"; }};"), "has no algorithm"),
            ("key a { algorithm hmac-sha256; };".into(), "has no secret"),
            (format!("key a {{ algorithm hmac-md5; secret \"{SECRET}\"; }};"), "hmac-md5"),
            (format!("key a {{ algorithm hmac-sha256; secret \"{SECRET}!\"; }};"), "not base64"),
            ("key a { algorithm hmac-sha256; secret \"\"; };".into(), "empty secret"),
            (format!("key a..b {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};"), "domain name"),
            (format!("key \"a {{ algorithm hmac-sha256; secret {SECRET}; }};"), "one statement"),
        ];
        for (text, expected) in cases {
            let Err(Fault::Refused(said)) = Key::from_bind(&text) else { panic!("{text}") };
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains(SECRET), "{said}");
        }
        assert!(!format!("{:?}", key()).contains(SECRET));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\PC\n]{0,60}|(key|[ab{};\"#/* \n]){0,30}") {
            let _ = Key::from_bind(&text);
        }
    }
}
