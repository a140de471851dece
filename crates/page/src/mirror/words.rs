//! Enums whose values have a word in a file.

/// Gives an enum the words that stand for its variants.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every value, in the order of its definition.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word for it in a file.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The value that a word stands for.
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

pub(super) use words;
