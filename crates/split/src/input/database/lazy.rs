//! The names of indexes that load others lazily, and of the mappings beside them.
//!
//! TensileLite's master index `TensileLibrary_lazy_<arch>` names its libraries in a tree, for problems. A
//! *mapping* names them once more, by the first of their solutions, for solutions requested by number. Builds
//! before rocm-libraries' pull request 579 have no mapping, those up to 6840 one for all archs
//! (`TensileLiteLibrary_lazy_Mapping`), later ones one for each arch
//! (`TensileLiteLibrary_lazy_<arch>_Mapping`). Source: TensileLite's `MasterSolutionLibrary.hpp`,
//! rocm-libraries' pull requests 579, 6840 and 7009.

use rockpack_core::gfx::BaseArch;
use schemars::JsonSchema;
use serde::Deserialize;

/// The names of a library's master indexes and mappings, without `.dat` or `.dat.zlib`. The `*` of both
/// patterns matches the same text, usually an arch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LazyNames {
    /// Names of master indexes, e.g. `TensileLibrary_lazy_*`.
    pub master: String,
    /// Names of their mappings, e.g. `TensileLiteLibrary_lazy_*_Mapping`.
    pub mapping: String,
    /// The name of one mapping for all master indexes.
    #[serde(default)]
    pub merged: Option<String>,
}

/// The role of an index that is loaded lazily, with the text that `*` matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LazyRole<'a> {
    Master(&'a str),
    Mapping(&'a str),
    MergedMapping,
}

impl<'a> LazyRole<'a> {
    /// The text that `*` matches.
    pub(super) fn key(self) -> Option<&'a str> {
        match self {
            Self::Master(key) | Self::Mapping(key) => Some(key),
            Self::MergedMapping => None,
        }
    }
}

impl LazyNames {
    /// The role of the index called `stem`; `None` if it is neither master index nor mapping.
    pub(super) fn role<'a>(&self, stem: &'a str) -> Option<LazyRole<'a>> {
        if self.merged.as_deref() == Some(stem) {
            return Some(LazyRole::MergedMapping);
        }
        let mapping = between(&self.mapping, stem).map(LazyRole::Mapping);
        mapping.or_else(|| between(&self.master, stem).map(LazyRole::Master))
    }

    /// Tells whether `stem` is the name of an arch's master index.
    pub(super) fn is_master(&self, stem: &str) -> bool {
        let key = between(&self.master, stem);
        key.is_some_and(|key| key.parse::<BaseArch>().is_ok())
    }

    /// The name of the master index for `key`.
    pub(super) fn master_of(&self, key: &str) -> String {
        self.master.replacen('*', key, 1)
    }

    /// The name of the mapping for `key`.
    pub(super) fn mapping_of(&self, key: &str) -> String {
        self.mapping.replacen('*', key, 1)
    }

    /// The fault of the patterns, if any.
    pub fn fault(&self) -> Option<String> {
        let mut patterns = [&self.master, &self.mapping].into_iter();
        let wrong = patterns.find(|pattern| pattern.matches('*').count() != 1);
        wrong.map(|pattern| format!("`{pattern}` has to have one `*`, which stands for the arch"))
    }
}

/// The name of a file without `.co`, `.hsaco`, `.dat` or `.dat.zlib`.
pub fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".zlib").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The text that the one `*` of `pattern` matches in `name`.
fn between<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let (start, end) = pattern.split_once('*')?;
    let key = name.strip_prefix(start)?.strip_suffix(end)?;
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_masters_and_mappings() {
        let names = LazyNames {
            master: "TensileLibrary_lazy_*".to_owned(),
            mapping: "TensileLiteLibrary_lazy_*_Mapping".to_owned(),
            merged: Some("TensileLiteLibrary_lazy_Mapping".to_owned()),
        };
        for (stem, expected) in [
            ("TensileLibrary_lazy_gfx942", Some(LazyRole::Master("gfx942"))),
            ("TensileLibrary_lazy_gfx1250-strict", Some(LazyRole::Master("gfx1250-strict"))),
            ("TensileLiteLibrary_lazy_gfx942_Mapping", Some(LazyRole::Mapping("gfx942"))),
            ("TensileLiteLibrary_lazy_Mapping", Some(LazyRole::MergedMapping)),
            ("TensileLiteLibrary_lazy__Mapping", None),
            ("TensileLibrary_lazy_", None),
            ("TensileLibrary_Type_SS_gfx942", None),
        ] {
            assert_eq!(names.role(stem), expected, "{stem}");
        }
        assert!(names.is_master("TensileLibrary_lazy_gfx942"));
        assert!(!names.is_master("TensileLibrary_lazy_gfx942_x") && !names.is_master("gfx942"));
        assert_eq!(names.master_of("gfx942"), "TensileLibrary_lazy_gfx942");
        assert_eq!(names.mapping_of("gfx942"), "TensileLiteLibrary_lazy_gfx942_Mapping");
        assert_eq!(names.fault(), None);
        for (master, mapping) in [("x", "*"), ("*", "x"), ("*_*", "*")] {
            let (master, mapping) = (master.to_owned(), mapping.to_owned());
            assert!(LazyNames { master, mapping, merged: None }.fault().is_some());
        }
    }
}
