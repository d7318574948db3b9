//! What a row of the table of checks declares.

/// Declares [`Check`](super::Check) and [`Problem`](super::Problem) from rows of
/// `Variant = "V000" "name" { field: Type, … } [subject] [message];`. Subject and message are the
/// arguments of `format!`, with the fields of the row in scope. It is the table of findings without
/// severities: a failed check always fails the run, and no receipt has to be read back.
macro_rules! problems {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $id:literal $name:literal
            { $($field:ident: $type:ty),* $(,)? } [$($subject:tt)*] [$($message:tt)*];
    )*) => {
        /// The stable code of a failed check. Codes are never reused or renumbered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check { $($(#[doc = $doc])* $variant,)* }

        impl Check {
            /// All checks, in order.
            pub const ALL: &[Check] = &[$(Check::$variant,)*];

            /// The number, e.g. `V020`.
            pub fn id(self) -> &'static str {
                match self { $(Check::$variant => $id,)* }
            }

            /// The name, e.g. `path-owned-twice`.
            pub fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)* }
            }
        }

        /// One failed check. As JSON it is one object, like a finding of a receipt: `code`, `name`,
        /// `subject` and `message`, then its fields under their own names.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the text of a row says what its fields are")]
        pub enum Problem {
            $($(#[doc = $doc])* $variant { $($field: $type),* },)*
        }

        impl Problem {
            /// Which check failed.
            pub fn check(&self) -> Check {
                match self { $(Self::$variant { .. } => Check::$variant,)* }
            }

            /// What it is about: a package, a path, a code object.
            #[allow(unused_variables, reason = "a subject names some of the fields")]
            pub fn subject(&self) -> String {
                match self { $(Self::$variant { $($field),* } => format!($($subject)*),)* }
            }

            /// What was found, as one sentence without a full stop.
            #[allow(unused_variables, reason = "a message leaves out what the subject names")]
            pub fn message(&self) -> String {
                match self { $(Self::$variant { $($field),* } => format!($($message)*),)* }
            }
        }

        impl Serialize for Problem {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let check = self.check();
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("code", check.id())?;
                map.serialize_entry("name", check.name())?;
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
}
