//! The libraries, programs and ROCm packages of distributions, in tables.
//!
//! ```text
//! table      the format of a table, and what it answers
//! needs      dependencies of a .deb on the libraries of a distribution
//! system     the packages that no set may replace
//! make       a table from what packages say:
//!   symbols    the symbols and shlibs files of packages
//!   inventory  packages with their files
//!   root       a source: the dpkg database of an installed system
//!   archive    a source: a folder of .deb files, or an apt Packages list with its pool
//! ```
//!
//! The tables in `config/distros` are compiled in. The others are files and folders that a user names.

mod archive;
mod inventory;
mod make;
mod needs;
mod root;
mod symbols;
mod system;
mod table;

use std::path::Path;

use rockpack_core::content::{is_file, is_folder, open_file, read_user_file};
use rockpack_core::error::{Error, Kind, Result};

pub use needs::GatheredNeeds;
pub use system::{SystemPackages, shipped_libraries};
pub use table::{
    Distribution, Distributions, KnownNames, Library, PayloadCompression, RpmProfile, Table,
};

/// Longest table in bytes; one of every package of Debian has a tenth of it.
const TABLE_MAX: u64 = 64 << 20;

/// The names of package lists: `Packages`, `Packages.xz`, `deb.debian.org_…_Packages`.
const LIST: &str = "Packages";

impl Table {
    /// The table that `value` means: the name of a shipped one, or the path of a table file or of a source that
    /// [`make`](Self::make) takes. A path has a slash or ends in `.toml`.
    pub fn open(value: &str) -> Result<Self> {
        if !value.contains('/') && !value.ends_with(".toml") {
            return Self::shipped(value);
        }
        let path = Path::new(value);
        if value.ends_with(".toml") {
            let bytes = read_user_file(path, TABLE_MAX, "table of a distribution")?;
            let text = String::from_utf8(bytes)
                .map_err(|_| Error::malformed("is not UTF-8").file(path))?;
            return Self::read(text, path);
        }
        if let Some(profile) = root::rpm_profile(path)? {
            if !Self::names().any(|name| name == profile) {
                let message = format!(
                    "is a system with rpm, `{profile}` by its os-release, that no profile is for"
                );
                let hint =
                    "name the profile of the most similar distribution, such as el9 or fedora";
                return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
            }
            return Self::shipped(&profile);
        }
        Self::read(Self::make(path)?, path)
    }

    /// The text of a table of the system whose root is `source`, of the packages in the folder `source`, or of
    /// those in the package list `source` and its pool.
    pub fn make(source: &Path) -> Result<String> {
        if is_folder(source)? {
            if root::is_root(source)? {
                return root::table(source);
            }
            if root::rpm_profile(source)?.is_some() {
                let hint = "name the root itself as `--distro`";
                let message = "is a system with rpm: an .rpm requires libraries by their names, so it has no table";
                return Err(Error::new(Kind::Usage, message).file(source).hint(hint));
            }
            return archive::folder_table(source);
        }
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_file(source)? && name.contains(LIST) {
            return archive::list_table(source);
        }
        open_file(source).map_err(|error| Error::io(source, "open", error).named_by_user())?;
        let message = "is not a source for a distribution table";
        let hint = "name the root of an installed system, a folder of .deb files, or a package list of apt \
                    (`Packages`, `Packages.xz`)";
        Err(Error::new(Kind::Usage, message).file(source).hint(hint))
    }
}
