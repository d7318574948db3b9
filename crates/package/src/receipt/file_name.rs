//! File names of packages.

use super::PackageRecord;
use crate::Format;

/// Name and architecture in the file name of a package.
pub(super) struct NameParts {
    pub name: String,
    pub architecture: String,
}

impl NameParts {
    /// Splits `name_version_arch.deb` or `name-version-release.arch.rpm`; `None` for any other text.
    pub fn of(format: Format, file_name: &str) -> Option<Self> {
        let stem = file_name.strip_suffix(format.as_str())?.strip_suffix('.')?;
        let (name, architecture) = match format {
            Format::Deb => {
                let (rest, architecture) = stem.rsplit_once('_')?;
                let (name, _version) = rest.split_once('_')?;
                (name, architecture)
            }
            Format::Rpm => {
                let (rest, architecture) = stem.rsplit_once('.')?;
                let (with_version, _release) = rest.rsplit_once('-')?;
                let (name, _version) = with_version.rsplit_once('-')?;
                (name, architecture)
            }
        };
        Some(Self { name: name.to_owned(), architecture: architecture.to_owned() })
    }
}

/// The format and the name of the package with this file name; `None` if it is not that of a package.
pub fn package_of_file(file_name: &str) -> Option<(Format, String)> {
    Format::ALL.into_iter().find_map(|it| Some((it, NameParts::of(it, file_name)?.name)))
}

impl PackageRecord {
    /// The name of the package in its format, taken from its file name; `None` if that is not the file name
    /// of a package.
    pub fn name(&self) -> Option<String> {
        NameParts::of(self.format, &self.file_name).map(|parts| parts.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_taken_apart() {
        let expected = Some(["rocm-blas", "amd64"].map(str::to_owned));
        assert_eq!(name_and_architecture(Format::Deb, "rocm-blas_7.1.0-1_amd64.deb"), expected);
        let expected = Some(["rocm-blas-devel", "noarch"].map(str::to_owned));
        let file_name = "rocm-blas-devel-7.1.0~rc1-1.el9.noarch.rpm";
        assert_eq!(name_and_architecture(Format::Rpm, file_name), expected);
        for (format, name) in
            [(Format::Deb, "x.deb"), (Format::Rpm, "a-1.rpm"), (Format::Deb, "a_1_b.rpm")]
        {
            assert_eq!(name_and_architecture(format, name), None, "{name}");
        }
    }

    fn name_and_architecture(format: Format, file_name: &str) -> Option<[String; 2]> {
        let parts = NameParts::of(format, file_name)?;
        Some([parts.name, parts.architecture])
    }
}
