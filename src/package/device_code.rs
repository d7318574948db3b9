//! The GPUs for which a finished package has device code, by what indexes have of it.

use std::collections::BTreeSet;

use super::indexed::Facts;

/// The field of kernel packages that names their archs.
pub const ARCH_FIELD: &str = "X-ROCm-GPU-Architecture";

/// The end of the names of kernel archives.
const ARCHIVE: &str = ".kpack";

/// The end of the capability that kernel packages provide.
const KERNELS: &str = "-kernels";

impl Facts {
    /// The archs whose device code it has, each as in `gfx1100`: of a `.deb`, those that its field
    /// names; of an `.rpm` that provides kernels or has kernel archives, those that its files name.
    /// Other packages have none.
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

/// The arch that the name of a file has in it.
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
