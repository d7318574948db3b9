//! The folders below the prefix that loaders know: the folder of libraries and the folder of kernel archives.
//!
//! The keys `libdir` and `kpackdir` set them, relative to the prefix. `libdir` says where the artifacts have
//! their libraries. It moves no library, because builds write the folder's name into files (search paths,
//! CMake targets, places of databases). Kernel archives may lie anywhere below the prefix, because the marker
//! of each binary has the relative path to them.
//!
//! Refused are paths that do not lead straight down from the prefix, and names that a shell or the loader's
//! configuration would read as more than a path.

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;

use super::document::ConfigDocument;
use super::keys::Keys;

/// The default folder of kernel archives, below that of libraries.
const KERNELS: &str = ".kpack";

/// The name of the prefix itself in a manifest.
const PREFIX_ITSELF: &str = ".";

/// Folders relative to the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The folder that the dynamic linker searches.
    pub libraries: TreePath,
    /// The folder of kernel archives and their manifests.
    pub kernels: TreePath,
}

impl Folders {
    /// The folders that `keys` name, or else the defaults.
    pub(super) fn new(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) -> Option<Self> {
        let libdir = checked_folder("libdir", &keys.libdir, document, faults);
        let kpackdir = keys
            .kpackdir
            .as_ref()
            .and_then(|text| checked_folder("kpackdir", text, document, faults));
        let libraries = libdir.or_else(|| faults.keep(folder(&Keys::default().libdir)))?;
        let kernels = kpackdir.or_else(|| faults.keep(libraries.join(KERNELS)))?;
        Some(Self { libraries, kernels })
    }

    /// Whether the dynamic linker finds the file at `path` by its name alone.
    pub fn is_public(&self, path: &TreePath) -> bool {
        path.parent().is_some_and(|folder| folder == self.libraries)
    }

    /// The folder above that of kernel archives, as manifests name it.
    pub fn manifest_prefix(&self) -> String {
        let above = self.kernels.parent();
        above.map_or_else(|| PREFIX_ITSELF.to_owned(), |above| above.to_string())
    }
}

fn checked_folder(
    key: &str,
    text: &str,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Option<TreePath> {
    faults.keep(folder(text).map_err(|error| document.located(&[key], &error)))
}

fn folder(text: &str) -> Result<TreePath> {
    if text.is_empty() {
        return Err(refused_folder(text, "it is empty"));
    }
    if text.starts_with('/') {
        return Err(refused_folder(text, "it is absolute"));
    }
    let path = TreePath::new(text).map_err(|_| {
        refused_folder(text, "it has empty, `.` or `..` parts, or a trailing slash")
    })?;
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c)) {
        Ok(path)
    } else {
        Err(refused_folder(text, "only letters, digits and `._+~-` are the same to every tool"))
    }
}

fn refused_folder(text: &str, why: &str) -> Error {
    let message = format!("`{}` cannot be a folder of the prefix: {why}", text.escape_debug());
    Error::new(Kind::Config, message)
        .hint("it is relative to the prefix, as in `lib64` or `lib64/rocm/kpack`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Syntax};

    fn folders(toml: &str) -> Result<Folders> {
        Ok(Config::parse(toml, Syntax::Toml)?.folders)
    }

    #[test]
    fn kernel_archives_lie_with_the_libraries() {
        assert_eq!(shown_folders(""), ["lib", "lib/.kpack", "lib"]);
        assert_eq!(shown_folders("libdir = 'lib64'"), ["lib64", "lib64/.kpack", "lib64"]);
        let own = "libdir = 'lib64'\nkpackdir = 'lib64/rocm/kpack'";
        assert_eq!(shown_folders(own), ["lib64", "lib64/rocm/kpack", "lib64/rocm"]);
        assert_eq!(shown_folders("kpackdir = '.kpack'"), ["lib", ".kpack", "."]);
    }

    fn shown_folders(toml: &str) -> [String; 3] {
        let folders = folders(toml).unwrap();
        [folders.libraries.to_string(), folders.kernels.to_string(), folders.manifest_prefix()]
    }

    #[test]
    fn what_is_no_way_down_from_the_prefix_is_refused() {
        for key in ["libdir", "kpackdir"] {
            for text in ["", "/lib", "lib/", "../lib", "lib/../x", "./lib", "a//b", "a b", "$LIB"] {
                let error = folders(&format!("{key} = '{text}'")).unwrap_err();
                let shown = error.to_string();
                assert!(shown.contains("cannot be a folder of the prefix"), "{shown}");
                assert!(shown.contains("line 1, column"), "{shown}");
            }
        }
    }
}
