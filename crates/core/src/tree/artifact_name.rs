//! The names of artifacts.

use std::str::FromStr;

use derive_more::Display;
use serde::{Deserialize, Serialize};

use super::ComponentKind;
use crate::error::{Error, Result};

/// The name of an artifact: `{name}_{kind}_{gpu_family}`, e.g. `blas_lib_gfx110X-dgpu`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display, Serialize, Deserialize)]
#[display("{name}_{kind}_{gpu_family}")]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactName {
    /// The project, e.g. `blas`, `host-suite-sparse`.
    pub name: String,
    /// The component kind, e.g. `lib`.
    pub kind: ComponentKind,
    /// The label of the build job: `generic`, a target, several GPUs.
    pub gpu_family: String,
}

impl ArtifactName {
    /// The component of the artifact, e.g. `blas_lib`.
    pub fn component(&self) -> String {
        format!("{}_{}", self.name, self.kind)
    }
}

impl From<ArtifactName> for String {
    fn from(name: ArtifactName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for ArtifactName {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for ArtifactName {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let fields: Vec<&str> = text.split('_').collect();
        let &[name, kind, gpu_family] = fields.as_slice() else {
            return Err(no_artifact_name(text));
        };
        if name.is_empty() || gpu_family.is_empty() {
            return Err(no_artifact_name(text));
        }
        let kind = kind.parse()?;
        Ok(Self { name: name.to_owned(), kind, gpu_family: gpu_family.to_owned() })
    }
}

fn no_artifact_name(text: &str) -> Error {
    Error::malformed(format!("`{text}` is no artifact name")).hint(
        "artifacts are named {name}_{kind}_{gpu_family}, as in blas_lib_gfx110X-dgpu; a name has \
         no `_` of its own, and has `-` instead, as in host-suite-sparse",
    )
}
