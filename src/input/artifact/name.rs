//! What an artifact is called.

use std::str::FromStr;

use derive_more::Display;
use rockpack_base::error::{Error, Result};
use rockpack_base::tree::ComponentKind;

/// The name of an artifact: `{name}_{kind}_{gpu_family}`, e.g. `blas_lib_gfx110X-dgpu`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
#[display("{name}_{kind}_{gpu_family}")]
pub struct ArtifactName {
    /// E.g. `blas`, `host-suite-sparse`.
    pub name: String,
    /// E.g. `lib`.
    pub kind: ComponentKind,
    /// The label that the build job gave: `generic`, a target, several GPUs.
    pub gpu_family: String,
}

impl ArtifactName {
    /// The component that it is of, e.g. `blas_lib`.
    pub fn component(&self) -> String {
        format!("{}_{}", self.name, self.kind)
    }
}

impl FromStr for ArtifactName {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let fields: Vec<&str> = text.split('_').collect();
        let bad = || {
            Error::malformed(format!("`{text}` is no artifact name")).hint(
                "artifacts are named {name}_{kind}_{gpu_family}, as in blas_lib_gfx110X-dgpu; a \
                       name has no `_` of its own, and has `-` instead, as in host-suite-sparse",
            )
        };
        let &[name, kind, gpu_family] = fields.as_slice() else {
            return Err(bad());
        };
        if name.is_empty() || gpu_family.is_empty() {
            return Err(bad());
        }
        let kind = kind.parse()?;
        Ok(Self { name: name.to_owned(), kind, gpu_family: gpu_family.to_owned() })
    }
}
