//! JSON Schemas of target types, which belong to a crate without schemas.

use schemars::JsonSchema;

/// The processor part of a target ID, e.g. `gfx90a`, `gfx1250-strict`, `gfx11-generic`,
/// or `amdgcnspirv` for arch-neutral device code.
///
/// A hyphenated qualifier belongs to the base arch: `gfx1250-strict` is not `gfx1250`.
#[derive(JsonSchema)]
#[schemars(
    rename = "BaseArch",
    extend("pattern" = "^(gfx[0-9][0-9a-z]*(-[0-9a-z]+)*|amdgcnspirv)$")
)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct BaseArchSchema(String);
