//! Tables of keys with their defaults.

/// Declares a table of keys. The value behind `=`, or else the default of the type, is the default of a key.
/// serde, the JSON Schema and `--help` take the defaults from here.
macro_rules! declared {
    ($(#[$($about:tt)*])* pub struct $name:ident {
        $($(#[$($of:tt)*])* pub $key:ident: $type:ty $(= $default:expr)?,)*
    }) => {
        $(#[$($about)*])*
        pub struct $name {
            $($(#[$($of)*])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $crate::config::declared::default!($($default)?),)* }
            }
        }
    };
}
pub(super) use declared;

/// The value behind `=`, or the default of the type.
macro_rules! default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        ($default).into()
    };
}
pub(super) use default;
