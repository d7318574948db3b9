//! The GPUs that a finished package has device code for, as far as an index tells.

use std::collections::BTreeSet;

use super::indexed::Facts;

/// The field of kernel packages with the names of their archs.
pub const ARCH_FIELD: &str = "X-ROCm-GPU-Architecture";

/// The suffix of kernel archives.
const ARCHIVE: &str = ".kpack";

/// The suffix of the capability that kernel packages provide.
const KERNELS: &str = "-kernels";

impl Facts {
    /// The archs that the package has device code for, such as `gfx1100`. A `.deb` names them in its field;
    /// an `.rpm` that provides kernels or has kernel archives names them in its file names; a wheel has one
    /// in its name. Other packages have no archs.
    pub fn gpu_archs(&self) -> BTreeSet<&str> {
        match self {
            Self::Deb(package) => {
                let field = package
                    .control
                    .lines()
                    .find_map(|line| line.strip_prefix(ARCH_FIELD)?.strip_prefix(':'));
                field.unwrap_or_default().split_whitespace().collect()
            }
            Self::Rpm(package) => {
                let provides = package.list("provides").iter();
                let mut names = provides.map(|line| line.name.as_str()).chain([&*package.name]);
                let is_kernels = names.any(|name| name.ends_with(KERNELS))
                    || package.files.iter().any(|file| file.path.ends_with(ARCHIVE));
                let files = package.files.iter().filter(|_| is_kernels);
                files.filter_map(|file| arch_of(file.path.rsplit('/').next()?)).collect()
            }
            Self::Wheel(package) => arch_of(&package.project).into_iter().collect(),
        }
    }
}

/// The arch in a file name; `None` if there is no arch.
fn arch_of(name: &str) -> Option<&str> {
    let start = name.find("gfx")?;
    let arch = name.get(start..)?;
    let end = arch.char_indices().skip("gfx".len()).find(|(_, c)| !c.is_ascii_hexdigit());
    let arch = end.map_or(arch, |(end, _)| &arch[..end]);
    (arch.len() > "gfx".len()).then_some(arch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archs_are_read_of_names() {
        for (name, expected) in [
            ("blas_lib_gfx1100.kpack", Some("gfx1100")),
            ("TensileLibrary_gfx90a.co", Some("gfx90a")),
            ("Kernels.so-000-gfx942-xnack+.hsaco", Some("gfx942")),
            ("gfx.txt", None),
            ("kernels.db", None),
        ] {
            assert_eq!(arch_of(name), expected);
        }
    }
}
