//! What a row of the table of findings declares.

/// Declares [`Code`](super::Code) and [`Finding`](super::Finding) from rows of
/// `Variant = "R000" "name" Severity by "key" { field: Type, … } [subject] [message];`, where `by "key"`
/// is there if a key of the configuration settles such findings. Subject and message are the arguments of `format!`, with the fields of the row in scope.
macro_rules! findings {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $id:literal $name:literal $severity:ident $(by $key:literal)?
            { $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? } [$($subject:tt)*] [$($message:tt)*];
    )*) => {
        /// The stable code of a finding. Codes are never reused or renumbered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[doc = $doc])* $variant,)* }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The number, e.g. `R012`.
            pub fn id(self) -> &'static str {
                match self { $(Code::$variant => $id,)* }
            }

            /// The name, e.g. `arch-not-grouped`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// What it means, in a sentence or two.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),*).trim_ascii_start(),)* }
            }

            /// How much it matters.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// The key of the configuration that settles such findings, if there is one.
            pub fn key(self) -> Option<&'static str> {
                match self { $(Code::$variant => [$($key)?].first().copied(),)* }
            }
        }

        /// One finding. As JSON it is one object: `code`, `name`, `severity`, `subject` and
        /// `message`, then its fields under their own names. Reading it back takes the code and the
        /// fields, and renders the text anew.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(tag = "code")]
        #[allow(missing_docs, reason = "the text of a row says what its fields are")]
        pub enum Finding {
            $($(#[doc = $doc])* #[serde(rename = $id)] $variant { $($(#[$attribute])* $field: $type),* },)*
        }

        impl Finding {
            /// Its stable code.
            pub fn code(&self) -> Code {
                match self { $(Self::$variant { .. } => Code::$variant,)* }
            }

            /// What it is about: a path, an arch, a package.
            #[allow(unused_variables, reason = "a subject names some of the fields")]
            pub fn subject(&self) -> String {
                match self { $(Self::$variant { $($field),* } => format!($($subject)*),)* }
            }

            /// What was found and what was done about it, as one sentence without a full stop.
            #[allow(unused_variables, reason = "a message leaves out what the subject names")]
            pub fn message(&self) -> String {
                match self { $(Self::$variant { $($field),* } => format!($($message)*),)* }
            }
        }

        impl Serialize for Finding {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let code = self.code();
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("code", code.id())?;
                map.serialize_entry("name", code.name())?;
                map.serialize_entry("severity", &code.severity())?;
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
