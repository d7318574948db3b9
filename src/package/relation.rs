//! How packages refer to each other.

use serde::Serialize;

use crate::receipt::RelationRecord;

/// The kind of a relation between packages. Emission maps each to the format's own field; kinds
/// that a format lacks are left out by the plan, never by emission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationKind {
    /// deb `Depends`, rpm `Requires`.
    Depends,
    /// deb and rpm `Recommends`.
    Recommends,
    /// deb and rpm `Suggests`.
    Suggests,
    /// deb and rpm `Enhances`.
    Enhances,
    /// rpm `Supplements`.
    Supplements,
    /// deb and rpm `Provides`.
    Provides,
    /// deb and rpm `Conflicts`.
    Conflicts,
    /// deb `Breaks`.
    Breaks,
    /// deb `Replaces`.
    Replaces,
    /// rpm `Obsoletes`.
    Obsoletes,
}

impl RelationKind {
    /// As plans and receipts write it: `depends`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Depends => "depends",
            Self::Recommends => "recommends",
            Self::Suggests => "suggests",
            Self::Enhances => "enhances",
            Self::Supplements => "supplements",
            Self::Provides => "provides",
            Self::Conflicts => "conflicts",
            Self::Breaks => "breaks",
            Self::Replaces => "replaces",
            Self::Obsoletes => "obsoletes",
        }
    }
}

/// How a relation compares versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Comparison {
    /// `<<` in deb, `<` in rpm.
    #[serde(rename = "<")]
    Less,
    /// `<=`.
    #[serde(rename = "<=")]
    LessEqual,
    /// `=`.
    #[serde(rename = "=")]
    Equal,
    /// `>=`.
    #[serde(rename = ">=")]
    GreaterEqual,
    /// `>>` in deb, `>` in rpm.
    #[serde(rename = ">")]
    Greater,
}

impl Comparison {
    /// As plans, receipts and rpm write it: `<=`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Equal => "=",
            Self::GreaterEqual => ">=",
            Self::Greater => ">",
        }
    }
}

/// One relation, in the words of one format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Relation {
    /// Which field it goes into.
    pub kind: RelationKind,
    /// Package or capability name; a deb alternative (`a | b`) is written whole.
    pub name: String,
    /// Version bound, in the format's version syntax.
    pub version: Option<(Comparison, String)>,
}

impl Relation {
    /// As plans and receipts list it.
    pub fn record(&self) -> RelationRecord {
        let version = self.version.as_ref();
        RelationRecord {
            kind: self.kind.as_str().to_owned(),
            name: self.name.clone(),
            comparison: version.map(|(comparison, _)| comparison.as_str().to_owned()),
            version: version.map(|(_, version)| version.clone()),
        }
    }
}
