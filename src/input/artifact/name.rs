//! What an artifact is called.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What part of a project an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentKind {
    /// Libraries.
    Lib,
    /// Programs.
    Run,
    /// Debug files.
    Dbg,
    /// Headers and build files.
    Dev,
    /// Documentation.
    Doc,
    /// Tests.
    Test,
}

impl ComponentKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Lib, Self::Run, Self::Dbg, Self::Dev, Self::Doc, Self::Test];

    /// The field of an artifact name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lib => "lib",
            Self::Run => "run",
            Self::Dbg => "dbg",
            Self::Dev => "dev",
            Self::Doc => "doc",
            Self::Test => "test",
        }
    }
}

impl FromStr for ComponentKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            Error::malformed(format!("`{text}` is no component"))
                .hint("the components are lib, run, dbg, dev, doc and test")
        })
    }
}

impl fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of an artifact: `{name}_{kind}_{gpu_family}`, e.g. `blas_lib_gfx110X-dgpu`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactName {
    /// E.g. `blas`, `host-suite-sparse`.
    pub name: String,
    /// E.g. `lib`.
    pub component: ComponentKind,
    /// The label that the build job gave: `generic`, a target, several GPUs.
    pub gpu_family: String,
}

impl FromStr for ArtifactName {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let fields: Vec<&str> = text.split('_').collect();
        let bad = || {
            Error::malformed(format!("`{text}` is no artifact name"))
                .hint("artifacts are named {name}_{kind}_{gpu_family}, as in blas_lib_gfx110X-dgpu")
        };
        let &[name, component, gpu_family] = fields.as_slice() else {
            return Err(bad());
        };
        if name.is_empty() || gpu_family.is_empty() {
            return Err(bad());
        }
        let component = component.parse()?;
        Ok(Self { name: name.to_owned(), component, gpu_family: gpu_family.to_owned() })
    }
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.name, self.component, self.gpu_family)
    }
}
