//! Declares the table of findings, and that of failed checks, from one row for each.

/// Declares an enum of stable codes and an enum of findings or problems with these codes, from rows of
/// `Variant = "R000" "name" Severity by "key" { field: Type, … } [subject] [message];`. Subject and message
/// are the arguments of `format!`, with the fields of the row in scope. `by "key"` names the key of the
/// configuration that settles such findings, if there is one. Either all rows of a table have a severity, or
/// none. `read_back` says whether receipts have such objects, which are then deserialized.
#[macro_export]
macro_rules! coded {
    (
        $(#[$of_code:meta])* enum $Code:ident;
        $(#[$of_told:meta])* enum $Told:ident, read_back = $read_back:tt;
        $(
            $(#[doc = $doc:literal])*
            $variant:ident = $id:literal $name:literal $($severity:ident)? $(by $key:literal)?
                { $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? } [$($subject:tt)*] [$($message:tt)*];
        )*
    ) => {
        $(#[$of_code])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Code { $($(#[doc = $doc])* $variant,)* }

        impl $Code {
            /// All codes, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The number, e.g. `R012`.
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// The name, e.g. `arch-not-grouped`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        $crate::coded!(@severities $Code $($variant [$($severity)? $(by $key)?])*);

        impl std::fmt::Display for $Code {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} {}", self.id(), self.name())
            }
        }

        $(#[$of_told])*
        ///
        /// As JSON it is one object: `code`, `name`, `severity` if it has one, `subject` and `message`,
        /// then its fields under their own names. Reading it back takes the code and the fields, and
        /// renders the text anew.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        #[cfg_attr($read_back, derive(serde::Deserialize), serde(tag = "code"))]
        #[allow(missing_docs, reason = "the text of a row says what its fields are")]
        pub enum $Told {
            $(
                $(#[doc = $doc])*
                #[cfg_attr($read_back, serde(rename = $id))]
                $variant { $($(#[$attribute])* $field: $type),* },
            )*
        }

        impl $Told {
            /// The stable code.
            pub fn code(&self) -> $Code {
                match self { $(Self::$variant { .. } => $Code::$variant,)* }
            }

            /// The thing that it is about: a path, an arch, a package.
            #[allow(unused_variables, reason = "a subject names some of the fields")]
            pub fn subject(&self) -> String {
                match self { $(Self::$variant { $($field),* } => format!($($subject)*),)* }
            }

            /// The observation and its consequence, as one sentence without a full stop.
            #[allow(unused_variables, reason = "a message leaves out what the subject names")]
            pub fn message(&self) -> String {
                match self { $(Self::$variant { $($field),* } => format!($($message)*),)* }
            }
        }

        impl std::fmt::Display for $Told {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                use rockpack_core::error::printable;
                let (subject, message) = (self.subject(), self.message());
                write!(f, "{}: {}: {}", self.code(), printable(&subject), printable(&message))
            }
        }

        impl serde::Serialize for $Told {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("code", self.code().id())?;
                map.serialize_entry("name", self.code().name())?;
                match self {
                    $(Self::$variant { .. } => {
                        $(map.serialize_entry("severity", &Severity::$severity)?;)?
                    })*
                }
                map.serialize_entry("subject", &self.subject())?;
                map.serialize_entry("message", &self.message())?;
                match self {
                    $(Self::$variant { $($field),* } => {
                        $(map.serialize_entry(stringify!($field), $field)?;)*
                    })*
                }
                map.end()
            }
        }
    };
    (@severities $Code:ident $($variant:ident [])*) => {};
    (@severities $Code:ident $($variant:ident [$severity:ident $(by $key:literal)?])*) => {
        impl $Code {
            /// The severity.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// The key of the configuration that settles such findings, if there is one.
            pub fn key(self) -> Option<&'static str> {
                match self { $(Self::$variant => [$($key)?].first().copied(),)* }
            }
        }
    };
}
