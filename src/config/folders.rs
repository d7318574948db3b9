//! The folders of the prefix that mean something to loaders: that of libraries and that of kernel
//! archives.
//!
//! Both are the configuration's (`libdir`, `kpackdir`), and relative to the prefix. `libdir` says
//! where the artifacts have their libraries; it moves none, because what builds write into files
//! (search paths, CMake's targets, the places of databases) knows the folder by its name. Kernel
//! archives lie wherever the set wants them: each binary's marker leads there from where it is.
//!
//! Refused: what is not a plain way down from the prefix, and what a shell or the loader's
//! configuration would read as more than a path.

use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::tree::TreePath;

use super::document::ConfigDocument;
use super::keys::Keys;

/// The folder of kernel archives in that of libraries, unless the configuration says otherwise.
const KERNELS: &str = ".kpack";

/// What a manifest calls the prefix itself.
const PREFIX_ITSELF: &str = ".";

/// Folders relative to the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Where the dynamic linker is told to look.
    pub libraries: TreePath,
    /// Where kernel archives and their manifests are installed.
    pub kernels: TreePath,
}

impl Folders {
    /// The folders that `keys` name, or else the defaults.
    pub(super) fn new(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) -> Option<Self> {
        let mut checked = |key: &str, text: &str| {
            faults.keep(folder(text).map_err(|error| document.located(&[key], &error)))
        };
        let libraries = checked("libdir", &keys.libdir);
        let kernels = keys.kpackdir.as_ref().and_then(|text| checked("kpackdir", text));
        let libraries = libraries.or_else(|| faults.keep(folder(&Keys::default().libdir)))?;
        let kernels = kernels.or_else(|| faults.keep(libraries.join(KERNELS)))?;
        Some(Self { libraries, kernels })
    }

    /// Whether the dynamic linker finds what lies at `path` by its name alone.
    pub fn is_public(&self, path: &TreePath) -> bool {
        path.parent().is_some_and(|folder| folder == self.libraries)
    }

    /// What manifests call the folder above that of kernel archives.
    pub fn manifest_prefix(&self) -> String {
        let above = self.kernels.parent();
        above.map_or_else(|| PREFIX_ITSELF.to_owned(), |above| above.to_string())
    }
}

fn folder(text: &str) -> Result<TreePath> {
    let refuse = |why: &str| {
        let message = format!("`{}` cannot be a folder of the prefix: {why}", text.escape_debug());
        Error::new(Kind::Config, message)
            .hint("it is relative to the prefix, as in `lib64` or `lib64/rocm/kpack`")
    };
    if text.is_empty() {
        return Err(refuse("it is empty"));
    }
    if text.starts_with('/') {
        return Err(refuse("it is absolute"));
    }
    let path = TreePath::new(text)
        .map_err(|_| refuse("it has empty, `.` or `..` parts, or a trailing slash"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+~-".contains(c);
    if text.chars().all(plain) {
        Ok(path)
    } else {
        Err(refuse("only letters, digits and `._+~-` are the same to every tool"))
    }
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
        let shown = |toml: &str| {
            let folders = folders(toml).unwrap();
            [folders.libraries.to_string(), folders.kernels.to_string(), folders.manifest_prefix()]
        };
        assert_eq!(shown(""), ["lib", "lib/.kpack", "lib"]);
        assert_eq!(shown("libdir = 'lib64'"), ["lib64", "lib64/.kpack", "lib64"]);
        let own = "libdir = 'lib64'\nkpackdir = 'lib64/rocm/kpack'";
        assert_eq!(shown(own), ["lib64", "lib64/rocm/kpack", "lib64/rocm"]);
        assert_eq!(shown("kpackdir = '.kpack'"), ["lib", ".kpack", "."]);
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
