//! The TSIG key that a server and its clients share, in the format of BIND.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use domain::tsig;
use model::Secret;
use port::Fault;

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// `hmac-sha256`, which every server supports.
    HmacSha256,
    /// `hmac-sha512`.
    HmacSha512,
}

/// A named key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name on both sides.
    pub name: String,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Its secret, in base64.
    pub secret: Secret,
}

impl Key {
    /// Parses a key file as `tsig-keygen` writes it.
    pub fn from_bind(text: &str) -> Result<Self, Fault> {
        let tokens = tokens(text);
        let tokens: Vec<_> = tokens.iter().map(String::as_str).collect();
        let ["key", name, "{", body @ .., "}", ";"] = tokens.as_slice() else {
            return Err(Fault::Refused(SHAPE.into()));
        };
        let value = |what: &str| {
            let mut statements = body.chunks(3);
            statements.find_map(|statement| match statement {
                [key, value, ";"] if *key == what => Some(*value),
                _ => None,
            })
        };
        let missing = |what: &str| Fault::Refused(format!("the DNS key “{name}” has no {what}"));
        let algorithm = value("algorithm").ok_or_else(|| missing("algorithm"))?;
        let secret = value("secret").ok_or_else(|| missing("secret"))?;
        let key = Self {
            name: (*name).to_owned(),
            algorithm: algorithm.parse()?,
            secret: Secret::new(secret),
        };
        key.checked().map(|_| key)
    }

    /// The validated key, for signing.
    pub(super) fn checked(&self) -> Result<tsig::Key, Fault> {
        let refuse = |why: &str| Fault::Refused(format!("the DNS key “{}” {why}", self.name));
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
            .map_err(|error| refuse(&format!("cannot be used: {error}")))
    }
}

/// The format of a key file.
const SHAPE: &str = "a DNS key file must be one statement: key \"NAME\" { algorithm hmac-sha256; secret \"BASE64\"; };";

impl FromStr for Algorithm {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        match text.trim_end_matches('.').to_ascii_lowercase().as_str() {
            "hmac-sha256" => Ok(Self::HmacSha256),
            "hmac-sha512" => Ok(Self::HmacSha512),
            other => Err(Fault::Refused(format!(
                "the DNS key's algorithm “{other}” is not supported. Use hmac-sha256 or hmac-sha512"
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

/// The tokens of a configuration, without quotes and comments.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '#' => (None, after(rest, "\n")),
            '/' if rest.starts_with("//") => (None, after(rest, "\n")),
            '/' if rest.starts_with("/*") => (None, after(&rest[2..], "*/")),
            '"' => {
                let token = rest[1..].split('"').next().unwrap_or_default();
                (Some(token), after(&rest[1..], "\""))
            }
            '{' | '}' | ';' => (Some(&rest[..1]), &rest[1..]),
            _ => {
                let is_end =
                    |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '"' | '#');
                let end = rest.find(is_end).unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
        };
        tokens.extend(token.map(str::to_owned));
        rest = after.trim_start();
    }
    tokens
}

/// The text after a mark; empty if the mark is missing.
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
    fn key_file_of_bind_is_parsed() {
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
    fn invalid_key_file_is_refused_without_showing_the_secret() {
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
            let Err(Fault::Refused(why)) = Key::from_bind(&text) else { panic!("{text}") };
            assert!(why.contains(expected), "{why}");
            assert!(!why.contains(SECRET), "{why}");
        }
        assert!(!format!("{:?}", key()).contains(SECRET));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_or_refused(text in "[\\PC\n]{0,60}|(key|[ab{};\"#/* \n]){0,30}") {
            let _ = Key::from_bind(&text);
        }
    }
}
