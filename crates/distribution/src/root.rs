//! The root of an installed system or of a chroot. Its database of dpkg answers as dpkg-shlibdeps would there; of a
//! system with rpm, `os-release` says which profile is its own.
//!
//! ```text
//! name of a library → files of that name in the linker path, in order
//!                   → packages that own the file, or the file that links lead to inside of the root
//!                   → etc/dpkg/symbols/PKG.symbols.amd64, etc/dpkg/symbols/PKG.symbols, info/PKG.symbols
//!                   → or else etc/dpkg/shlibs.override, info/PKG.shlibs, etc/dpkg/shlibs.default
//! ```
//!
//! `PKG` is `NAME:amd64` if the package is `Multi-Arch: same`. Diversions do not matter: the file that a link leads
//! to has an owner. Source: dpkg-shlibdeps(1), and dpkg 1.21 to 1.23.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rockpack_archive::deb::ControlFields;
use rockpack_core::content::{if_exists, is_file, is_folder, list, open_file, read_file};
use rockpack_core::error::{Error, Result};
use rockpack_core::tree::LINK_LIMIT;

use crate::LIST;
use crate::archive::{other_architecture, read_list, read_paragraphs};
use crate::inventory::{ARCHITECTURE, Inventory, SourcePackage};
use crate::make;
use crate::table::{PROGRAM_FOLDERS, is_program, merged};

const STATUS: &str = "var/lib/dpkg/status";
const INFO: &str = "var/lib/dpkg/info";

/// The administrator's shlibs file, which overrides those of packages.
const SHLIBS_OVERRIDE: &str = "etc/dpkg/shlibs.override";

/// What to do about a database that cannot be read.
const DAMAGED_HINT: &str =
    "the database is damaged or incomplete: name the root of a complete system";

/// Folders of the databases of rpm.
const RPM: [&str; 2] = ["var/lib/rpm", "usr/lib/sysimage/rpm"];

/// Most files of the loader's configuration that are read.
const CONFIGURATION_FILES: usize = 1000;

/// Whether `path` is the root of a system with dpkg.
pub(crate) fn is_root(path: &Path) -> Result<bool> {
    let status = Root { path }.resolve(STATUS)?;
    status.map_or(Ok(false), |status| is_file(&path.join(status)))
}

/// The name of the profile of the system with rpm whose root is `path`; `None` if there is no such system.
pub(crate) fn rpm_profile(path: &Path) -> Result<Option<String>> {
    let root = Root { path };
    let mut has_rpm = false;
    for folder in RPM {
        has_rpm |= is_folder(&path.join(folder))?;
    }
    if !has_rpm || is_root(path)? {
        return Ok(None);
    }
    let mut inventory = Inventory::default();
    inventory.set_os_release(&root.os_release()?);
    let field = |name: &str| inventory.os_release.get(name).map(String::as_str).unwrap_or_default();
    let major = field("VERSION_ID").split('.').next().unwrap_or_default();
    let name = match field("ID") {
        "fedora" => "fedora".to_owned(),
        "rhel" | "centos" | "rocky" | "almalinux" | "ol" => format!("el{major}"),
        "opensuse-tumbleweed" => "sles16".to_owned(),
        "sles" | "sled" | "opensuse-leap" => format!("sles{major}"),
        "" => {
            let message = "has a database of rpm, and no os-release that names the system";
            let hint = "name the profile, as in `--distro el9`";
            return Err(Error::malformed(message).file(path).hint(hint));
        }
        id => format!("{id}{major}"),
    };
    Ok(Some(name))
}

/// The table of the system whose root is `path`.
pub(crate) fn table(path: &Path) -> Result<String> {
    let root = Root { path };
    let mut inventory = Inventory::default();
    inventory.set_os_release(&root.os_release()?);
    let mut owners = BTreeMap::new();
    root.add_installed(&mut inventory, &mut owners)?;
    root.add_available(&mut inventory)?;
    root.add_linked_programs(&mut inventory, &owners)?;
    inventory.defaults.extend(root.text(SHLIBS_OVERRIDE)?);
    inventory.defaults.extend(root.text("etc/dpkg/shlibs.default")?);
    let folders = root.linker_path()?;
    make::table(&inventory, path, |soname| root.locate(soname, &folders, &owners))
}

/// Path → the packages that own the file.
type Owners = BTreeMap<String, Vec<String>>;

struct Root<'a> {
    path: &'a Path,
}

impl Root<'_> {
    /// The file that programs in the root find at `path`, relative to it and without links.
    fn resolve(&self, path: &str) -> Result<Option<String>> {
        let mut pending: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let (mut found, mut links) = (PathBuf::new(), 0);
        while let Some(part) = pending.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => drop(found.pop()),
                part => found.push(part),
            }
            let place = self.path.join(&found);
            let metadata = match std::fs::symlink_metadata(&place) {
                // A folder on the way is a file.
                Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(None),
                metadata => if_exists(&place, "look at", metadata)?,
            };
            let Some(metadata) = metadata else { return Ok(None) };
            if metadata.is_symlink() {
                links += 1;
                if links > LINK_LIMIT {
                    return Ok(None);
                }
                let target = std::fs::read_link(&place)
                    .map_err(|e| Error::io(&place, "read the link", e))?;
                found.pop();
                if target.is_absolute() {
                    found.clear();
                }
                pending.extend(target.to_string_lossy().rsplit('/').map(str::to_owned));
            }
        }
        Ok(Some(found.to_string_lossy().into_owned()))
    }

    /// The text of the file at `path`, if it exists. Names in old encodings do not matter.
    fn text(&self, path: &str) -> Result<Option<String>> {
        let Some(path) = self.resolve(path)? else { return Ok(None) };
        let path = self.path.join(path);
        let bytes = read_file(&path).map_err(|error| Error::io(&path, "read", error))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn os_release(&self) -> Result<String> {
        let text = match self.text("etc/os-release")? {
            None => self.text("usr/lib/os-release")?,
            text => text,
        };
        Ok(text.unwrap_or_default())
    }

    /// Adds the packages that dpkg's database lists, and the owners of libraries and programs.
    fn add_installed(&self, inventory: &mut Inventory, owners: &mut Owners) -> Result<()> {
        let text = self.text(STATUS)?.unwrap_or_default();
        let path = self.path.join(STATUS);
        let read = read_paragraphs(&text, &path, "dpkg's status", DAMAGED_HINT);
        for (read, number) in read.zip(1..) {
            let (package, fields) = read?;
            let is_dpkg = fields.get("Package").is_some_and(|name| name == "dpkg");
            if is_dpkg && package.is_none() {
                return Err(other_architecture(&path, number));
            }
            if let Some(mut package) = package {
                self.read_info(&fields, &mut package, owners)?;
                inventory.packages.push(package);
            }
        }
        Ok(())
    }

    /// Reads dpkg's files about an installed package.
    fn read_info(
        &self,
        fields: &ControlFields,
        package: &mut SourcePackage,
        owners: &mut Owners,
    ) -> Result<()> {
        let is_same = fields.get("Multi-Arch").is_some_and(|value| value == "same");
        let id =
            if is_same { format!("{}:{ARCHITECTURE}", package.name) } else { package.name.clone() };
        let files = self.text(&format!("{INFO}/{id}.list"))?.ok_or_else(|| {
            let message =
                format!("{id} is installed, but its list of files {INFO}/{id}.list is missing");
            Error::malformed(message).file(self.path.join(STATUS)).hint(DAMAGED_HINT)
        })?;
        for path in files.lines().map(merged) {
            if is_program(&path) {
                package.programs.push(path.clone());
            } else if !path.contains(".so") {
                continue;
            }
            owners.entry(path).or_default().push(package.name.clone());
        }
        for place in [
            format!("etc/dpkg/symbols/{id}.symbols.{ARCHITECTURE}"),
            format!("etc/dpkg/symbols/{id}.symbols"),
            format!("{INFO}/{id}.symbols"),
        ] {
            package.symbols.extend(self.text(&place)?);
        }
        for place in [SHLIBS_OVERRIDE, &format!("{INFO}/{id}.shlibs")] {
            package.shlibs.extend(self.text(place)?);
        }
        Ok(())
    }

    /// Adds the packages of ROCm that apt could install.
    fn add_available(&self, inventory: &mut Inventory) -> Result<()> {
        let Some(folder) = self.resolve("var/lib/apt/lists")? else { return Ok(()) };
        for entry in list(&self.path.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.rsplit('_').next().unwrap_or_default();
            if name.split('.').next() == Some(LIST) {
                // A system may have packages of other architectures, too.
                let packages = read_list(&path)?.into_iter().filter_map(|(package, _)| package);
                inventory.packages.extend(packages.filter(|package| package.is_rocm));
            }
        }
        Ok(())
    }

    /// Adds programs that are links of no package, such as alternatives, to the package of the file.
    fn add_linked_programs(&self, inventory: &mut Inventory, owners: &Owners) -> Result<()> {
        for folder in PROGRAM_FOLDERS {
            let Some(real) = self.resolve(folder)? else { continue };
            for entry in list(&self.path.join(real))? {
                let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
                if owners.contains_key(&path) || path.contains(char::is_whitespace) {
                    continue;
                }
                let file = self.resolve(&path)?.map(|file| merged(&file));
                let Some(names) = file.and_then(|file| owners.get(&file)) else { continue };
                let mut packages = inventory.packages.iter_mut();
                if let Some(own) = packages.find(|package| names.contains(&package.name)) {
                    own.programs.push(path);
                }
            }
        }
        Ok(())
    }

    /// The folders that the loader searches, without leading slash.
    fn linker_path(&self) -> Result<Vec<String>> {
        let mut folders = ["lib", "usr/lib"].map(str::to_owned).to_vec();
        self.add_configured("etc/ld.so.conf", &mut folders, &mut BTreeSet::new())?;
        folders.extend(["lib64", "usr/lib64"].map(str::to_owned));
        Ok(folders)
    }

    /// Adds the folders in a file of the linker's configuration, and in those that it includes. Each is read once.
    fn add_configured(
        &self,
        file: &str,
        folders: &mut Vec<String>,
        read: &mut BTreeSet<String>,
    ) -> Result<()> {
        if read.len() >= CONFIGURATION_FILES || !read.insert(file.to_owned()) {
            return Ok(());
        }
        let text = self.text(file)?.unwrap_or_default();
        for line in text.lines().map(str::trim) {
            if line.starts_with('/') {
                folders.push(line.trim_matches('/').to_owned());
            }
            let Some(pattern) = line.strip_prefix("include ").map(str::trim) else { continue };
            let (folder, name) = pattern.rsplit_once('/').unwrap_or_default();
            let Some(real) = self.resolve(folder)? else { continue };
            let place = self.path.join(&real);
            let files = list(&place)?.map(|it| Ok(it?.file_name().to_string_lossy().into_owned()));
            let mut files = files.collect::<Result<Vec<String>>>()?;
            files.retain(|file| match name.split_once('*') {
                Some((start, end)) => file.starts_with(start) && file.ends_with(end),
                None => file == name,
            });
            files.sort();
            for file in files {
                self.add_configured(&format!("{real}/{file}"), folders, read)?;
            }
        }
        Ok(())
    }

    /// The packages of the files that the loader finds by `name`, up to one of no package.
    fn locate(&self, name: &str, folders: &[String], all: &Owners) -> Result<Option<Vec<String>>> {
        let mut located = None;
        for folder in folders {
            let path = format!("{folder}/{name}");
            let Some(file) = self.resolve(&path)? else { continue };
            if !is_library(&self.path.join(&file))? {
                continue;
            }
            let own = all.get(&merged(&path)).or_else(|| all.get(&merged(&file)));
            let found: &mut Vec<String> = located.get_or_insert_default();
            let Some(own) = own else { break };
            found.extend(own.iter().cloned());
        }
        Ok(located)
    }
}

/// Whether the file at `path` is a 64-bit ELF file for x86-64. The machine ends this part of the header.
fn is_library(path: &Path) -> Result<bool> {
    let mut header = [0; 20];
    match open_file(path).and_then(|mut file| file.read_exact(&mut header)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(Error::io(path, "read", error))
        }
        // Folders, pipes and short files are no libraries.
        Err(_) => Ok(false),
        Ok(()) => Ok(header.starts_with(b"\x7fELF\x02\x01") && header.ends_with(&[62, 0])),
    }
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
