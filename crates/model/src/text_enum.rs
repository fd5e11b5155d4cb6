//! Enums with the same text form in the API and in the database.

/// Implements `as_str`, `ALL`, `Display` and `FromStr` from one table.
macro_rules! text_enum {
    ($type:ident { $($variant:ident => $text:literal),* $(,)? }) => {
        impl $type {
            /// The text form in the API and in the database.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Invalid;
            fn from_str(text: &str) -> Result<Self, $crate::Invalid> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err($crate::Invalid::new(
                        stringify!($type).to_lowercase(),
                        format!(
                            "must be one of {1}, not \"{0}\"",
                            text.escape_default(),
                            [$($text),*].join(", ")
                        ),
                    )),
                }
            }
        }
    };
}
pub(crate) use text_enum;
