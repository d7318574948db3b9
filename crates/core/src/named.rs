//! Enums whose variants each have one name in texts, plans and receipts.

/// Defines such an enum. Serde, `as_str` and `Display` use the same names.
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
            /// The name in texts, plans and receipts.
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

pub use named_enum;
