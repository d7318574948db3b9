//! The facts of a package that only one format has.

use serde::Serialize;

use super::Relation;

/// An entry of a changelog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangelogEntry {
    /// The time in seconds since 1970.
    pub time: u32,
    /// The author, as `Name <address>`.
    pub author: String,
    /// The text, in lines.
    pub text: String,
}

/// Everything of a package that only a `.deb` has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DebControl {
    /// Package name.
    pub name: String,
    /// Full version, e.g. `7.1.0-1`.
    pub version: String,
    /// `amd64` or `all`.
    pub architecture: String,
    /// Section, e.g. `libs`.
    pub section: String,
    /// Priority, e.g. `optional`.
    pub priority: String,
    /// Maintainer, as `Name <address>`.
    pub maintainer: String,
    /// Relations, sorted by kind and name. Emission sorts them by field.
    pub relations: Vec<Relation>,
    /// Further fields in order, e.g. `X-ROCm-GPU-Architecture`.
    pub fields: Vec<(String, String)>,
    /// Lines of the `triggers` file.
    pub triggers: Vec<String>,
    /// Maintainer scripts: (`preinst`, `postinst`, `prerm`, `postrm`) → text.
    pub scripts: Vec<(String, String)>,
}

impl DebControl {
    /// The name of the package file, without the epoch, like dpkg-deb.
    pub fn file_name(&self) -> String {
        let version = self.version.split_once(':').map_or(&*self.version, |(_, rest)| rest);
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }
}

/// Everything of a package that only an `.rpm` has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RpmControl {
    /// Package name.
    pub name: String,
    /// Epoch, if any.
    pub epoch: Option<u32>,
    /// Version, e.g. `7.1.0`.
    pub version: String,
    /// Release, e.g. `1`.
    pub release: String,
    /// `x86_64` or `noarch`.
    pub arch: String,
    /// Group tag, e.g. `System Environment/Libraries`.
    pub group: String,
    /// Licence expression.
    pub license: String,
    /// Vendor, if any.
    pub vendor: Option<String>,
    /// Packager, if any.
    pub packager: Option<String>,
    /// Relations. Emission adds the package's own name-version Provides.
    pub relations: Vec<Relation>,
    /// Relations that rpmbuild would itself find in the files, marked as such.
    pub discovered: Vec<Relation>,
    /// Relocatable prefixes, e.g. `/opt/rocm-7.1`.
    pub prefixes: Vec<String>,
    /// Scriptlets by their names in a spec file (`%pre`, `%post`, `%postun`) → (interpreter, text).
    pub scripts: Vec<(String, (String, String))>,
    /// The changelog, the newest entry first.
    pub changes: Vec<ChangelogEntry>,
}

impl RpmControl {
    /// The name of the package file, without the epoch, like rpmbuild.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.{}.rpm", self.name, self.version, self.release, self.arch)
    }
}
