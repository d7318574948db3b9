//! Values that a configuration and a naming scheme both have: texts in the words of each format.

use schemars::JsonSchema;
use serde::Deserialize;

/// A text for each format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suffix {
    /// In a `.deb`
    pub deb: String,
    /// In an `.rpm`
    pub rpm: String,
}

/// The HIP runtime that transformed binaries need, in each format's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeRelation {
    /// The HIP runtime that reads `.kpack`, as host packages with device code depend on it in a
    /// `.deb`, e.g. `libamdhip64-7 (>= 7.1)` [default: the scheme's, or none with a warning]
    pub deb: Option<String>,
    /// The same in an `.rpm`, e.g. `hip-runtime-amd >= 7.1` [default: the scheme's, or none with a
    /// warning]
    pub rpm: Option<String>,
}

/// Where a library comes from that neither the set nor the distribution has. An `.rpm` needs it by
/// its name in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutsideLibrary {
    /// Dependency of a `.deb`, e.g. `libamdhip64-7 (>= 7.1)`
    pub deb: Option<String>,
}
