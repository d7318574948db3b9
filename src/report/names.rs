//! Names that findings and problems carry. Each is a text, and JSON has it as one.

use std::borrow::Borrow;

use derive_more::Display;
use serde::{Deserialize, Serialize};

/// Declares texts that are told apart by what they name.
macro_rules! names {
    ($($(#[$about:meta])* $Name:ident;)*) => { $(
        $(#[$about])*
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display,
        )]
        pub struct $Name(String);

        impl $Name {
            /// The name itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $Name {
            fn from(name: T) -> Self {
                Self(name.into())
            }
        }
    )* };
}

names! {
    /// A component of a set, from whichever shards: `blas_lib`.
    ComponentName;
    /// A package, without its version: `rocm-blas`.
    PackageName;
    /// A library, as the files that are linked to it name it: `librocblas.so.5`.
    Soname;
}
