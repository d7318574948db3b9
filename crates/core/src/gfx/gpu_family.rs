//! The archs that the GPU family of an artifact covers.
//!
//! A GPU family is the label of a build job: a target (`gfx1151`, `gfx942:xnack+`), a build family whose `X`
//! is the rest of the processor's number (`gfx110X-dgpu`, `gfx94X-dcgpu`), or a word that names no processor
//! (`generic`, `all`, `dcgpu-all`). The label only says what its job meant to build; what an artifact holds
//! is read from its content.
//!
//! Source: the build families of ROCm's TheRock.

use super::{BaseArch, Target};

/// Suffixes of labels for a kind of GPU.
const KINDS: [&str; 4] = ["-all", "-dcgpu", "-dgpu", "-igpu"];

/// The archs that a label means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuFamily {
    /// One base arch.
    Arch(BaseArch),
    /// All processors whose name is longer than this and begins with it.
    Processors(String),
    /// No archs can be derived from the label.
    Unspecific,
}

impl GpuFamily {
    /// Reads a label.
    pub fn of_label(label: &str) -> Self {
        let stem = KINDS.iter().find_map(|kind| label.strip_suffix(kind)).unwrap_or(label);
        let start = stem.trim_end_matches('X');
        let digits = start.strip_prefix("gfx").unwrap_or_default();
        if start != stem && digits.starts_with(|c: char| c.is_ascii_digit()) {
            return Self::Processors(start.to_owned());
        }
        match Target::parse_spelling(stem) {
            Ok(target) => Self::Arch(target.base().clone()),
            Err(_) => Self::Unspecific,
        }
    }

    /// Whether the job meant to build for `arch`. An unspecific label covers everything.
    pub fn covers(&self, arch: &BaseArch) -> bool {
        match self {
            Self::Arch(own) => own == arch,
            Self::Processors(start) => {
                let rest = arch.as_str().strip_prefix(start.as_str());
                rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('-'))
            }
            Self::Unspecific => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_covers_what_its_job_means_to_build() {
        assert_eq!(covered("gfx110X-dgpu"), ["gfx1100", "gfx1103"]);
        assert_eq!(covered("gfx90X-dcgpu"), ["gfx906", "gfx90a"]);
        assert_eq!(covered("gfx94X"), ["gfx942"]);
        assert_eq!(covered("gfx950-dcgpu"), ["gfx950"]);
        assert_eq!(covered("gfx1151"), ["gfx1151"]);
        assert_eq!(covered("gfx942:xnack+"), ["gfx942"]);
        for unspecific in ["generic", "all", "dcgpu-all", "X", "gfxX"] {
            assert_eq!(covered(unspecific).len(), 7, "{unspecific}");
        }
    }

    fn covered(label: &str) -> Vec<&'static str> {
        let archs = ["gfx906", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1103", "gfx1151"];
        let family = GpuFamily::of_label(label);
        archs.into_iter().filter(|arch| family.covers(&arch.parse().unwrap())).collect()
    }
}
