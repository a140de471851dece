//! Settings that are one of a few words: enums, each with one table of its words.
//!
//! Invariant: what is stored is the word; another one is refused by a sentence that names the
//! field and lists the words.

/// Gives an enum the words of a setting:
/// `choice!(Removal of "removal" { Message = "message", Delete = "delete" })`.
macro_rules! choice {
    ($kind:ident of $field:literal { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $kind {
            /// Their words, in the order of the enum.
            pub const WORDS: &[&str] = &[$($word),*];

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self {
                    $($kind::$variant => $word,)*
                }
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$kind, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(from)?;
                match word.as_str() {
                    $($word => Ok($kind::$variant),)*
                    _ => Err(serde::de::Error::custom(format!(
                        concat!($field, ": one of {}, not {:?}"),
                        $kind::WORDS.join(", "),
                        word
                    ))),
                }
            }
        }
    };
}
pub(crate) use choice;
