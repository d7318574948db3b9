//! Values that both configurations and naming schemes have: texts for each format.

use schemars::JsonSchema;
use serde::Deserialize;

/// A text for each format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suffix {
    /// Text in a `.deb`
    pub deb: String,
    /// Text in an `.rpm`
    pub rpm: String,
}

/// The HIP runtime that transformed binaries need, in each format's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeRelation {
    /// Dependency on the HIP runtime that reads `.kpack`, for host packages with device code in a `.deb`,
    /// e.g. `libamdhip64-7 (>= 7.1)` [default: the scheme's, or none with a warning]
    pub deb: Option<String>,
    /// Dependency on it in an `.rpm`, e.g. `hip-runtime-amd >= 7.1` [default: the scheme's, or none with a
    /// warning]
    pub rpm: Option<String>,
}

/// The source of a library that neither the set nor the distribution has. An `.rpm` always requires the
/// library by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutsideLibrary {
    /// Dependency of a `.deb`, e.g. `libamdhip64-7 (>= 7.1)`
    pub deb: Option<String>,
}
