//! The foundation of all rockpack crates: errors, the limits of a run, content, targets, trees, compression
//! and package formats.
//!
//! Nothing here reads artifacts, packages or settings; `gfx` and `tree` define the parts of artifact names.

pub mod checked_json;
pub mod compression;
pub mod content;
pub mod error;
pub mod gfx;
pub mod hold;
pub mod package_format;
pub mod run;
pub mod tree;
pub mod unique_keys;
mod zstd_frame;
pub mod zstd_stream;

/// Defines an enum whose variants each have one name in texts, plans and receipts. Serde, `as_str` and `Display` use
/// the same names.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        pub enum $Enum:ident { $($(#[$of_variant:meta])* $Variant:ident = $name:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $Enum {
            $($(#[$of_variant])* #[serde(rename = $name)] $Variant,)+
        }

        impl $Enum {
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $name,)+ }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
