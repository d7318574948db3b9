//! Types for the names in findings and problems. JSON has each as a text.

use std::borrow::Borrow;

use derive_more::Display;
use serde::{Deserialize, Serialize};

/// Declares types that wrap a name.
macro_rules! names {
    ($($(#[$about:meta])* $Name:ident;)*) => { $(
        $(#[$about])*
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display,
        )]
        pub struct $Name(String);

        impl $Name {
            /// The name as a text.
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
    /// A component of a set, from any shard: `blas_lib`.
    ComponentName;
    /// A package, without its version: `rocm-blas`.
    PackageName;
    /// A library, by the name that files linked to it use: `librocblas.so.5`.
    Soname;
}
