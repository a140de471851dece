//! One table of names for an enum whose values stand in rows: states, kinds, actions.
//!
//! Invariant: a row with a name that is not in the table is damaged, and is said to be.

/// Gives an enum its names: `names!(Action of "a row of the queue" { Fetch = "fetch", … })`.
/// It can then be read out of a row, and be a value of a statement.
macro_rules! names {
    ($kind:ident of $what:literal { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $kind {
            /// All of them, in the order of the enum.
            pub const ALL: &[$kind] = &[$($kind::$variant),*];

            /// Its name in tables, and for people and programs.
            pub const fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)*
                }
            }

            /// The one with a name.
            pub fn parse(name: &str) -> Option<$kind> {
                $kind::ALL.iter().copied().find(|it| it.name() == name)
            }
        }

        impl $crate::value::FromColumn for Option<$kind> {
            fn from_column(row: &$crate::Row<'_>, index: usize) -> $crate::Result<Option<$kind>> {
                let Some(name) = row.get::<Option<String>>(index)? else { return Ok(None) };
                match $kind::parse(&name) {
                    Some(found) => Ok(Some(found)),
                    None => Err($crate::Error::corrupt($what, name)),
                }
            }
        }

        impl $crate::value::FromColumn for $kind {
            fn from_column(row: &$crate::Row<'_>, index: usize) -> $crate::Result<$kind> {
                let missing = || $crate::Error::corrupt($what, "a name is missing");
                row.get::<Option<$kind>>(index)?.ok_or_else(missing)
            }
        }

        impl From<$kind> for $crate::Value<'_> {
            fn from(it: $kind) -> Self {
                $crate::Value::Text(it.name())
            }
        }
    };
}
pub(crate) use names;
