//! The packages of a set or a repository that GPUs need, and the command that installs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use derive_more::Display;
use rockpack_archive::python_index::WheelPackage;
use rockpack_archive::wheel::WheelArchive;
use rockpack_core::content::{Content, is_file, is_folder, read_small};
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::gfx::{self, BaseArch};
use rockpack_core::run::Budget;
use rockpack_package::Format;
use rockpack_package::for_gpu::{GpuPackage, GpuPackages};
use rockpack_package::indexed::{IndexMetadata, IndexedPackage};
use rockpack_package::offered::OfferedPackage;
use rockpack_package::receipt::listing::{ListedPackage, of_receipt};
use rockpack_package::receipt::wheels::{self, WheelKind, WheelReceipt};
use rockpack_package::receipt::{self, Receipt};
use rockpack_package::resolver::Resolver;
use rockpack_repo::contents;
use rockpack_report::words::{either, shell_word};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Display)]
#[display(rename_all = "lowercase")]
pub enum Installer {
    /// apt of Debian and Ubuntu
    Apt,
    /// dnf of Fedora and Enterprise Linux
    Dnf,
    /// zypper of openSUSE and SLES
    Zypper,
    /// pip, for wheels
    Pip,
}

impl Installer {
    /// The format of its packages; `None` for wheels.
    fn format(self) -> Option<Format> {
        match self {
            Self::Apt => Some(Format::Deb),
            Self::Dnf | Self::Zypper => Some(Format::Rpm),
            Self::Pip => None,
        }
    }
}

/// The packages of a set or a repository that an installer can install.
#[derive(Debug)]
pub struct PackageSource {
    installer: Installer,
    offers: GpuPackages,
    /// Options of the command, each with a blank before it.
    options: String,
    /// The folder of a set of packages and what is in it: they are installed as files.
    set: Option<(PathBuf, Vec<ListedPackage>)>,
}

#[derive(Debug, Serialize)]
pub struct Install {
    /// The packages as the command has them: names, paths of files, or projects of wheels with extras.
    pub packages: Vec<String>,
    pub command: String,
}

impl PackageSource {
    /// Reads the set or repository in `folder`. `suite` selects one of several apt suites.
    pub fn read(
        folder: &Path,
        installer: Installer,
        suite: Option<&str>,
        budget: &Budget,
    ) -> Result<Self> {
        let [packages, wheels] = [receipt::FILE_NAME, wheels::FILE_NAME].map(|it| folder.join(it));
        let (offers, options) = (GpuPackages::default(), String::new());
        let mut source = Self { installer, offers, options, set: None };
        let found = (installer.format(), is_file(&packages)?, is_file(&wheels)?);
        if suite.is_some() && found != (Some(Format::Deb), false, false) {
            return Err(Error::new(Kind::Usage, "--suite needs `--for apt` and a repository"));
        }
        match found {
            (Some(format), true, _) => source.add_set(folder, &packages, format)?,
            (None, _, true) => {
                source.offers = GpuPackages::of_wheels(&host_wheels(folder, &wheels, budget)?);
                source.options = format!(" --find-links {}", shell_word(folder));
            }
            (format, false, false) => source.add_repository(folder, format, suite, budget)?,
            _ => {}
        }
        if source.offers.all().next().is_none() {
            let message = format!("has no packages for {installer}");
            return Err(Error::new(Kind::Usage, message).file(folder));
        }
        Ok(source)
    }

    fn add_set(&mut self, folder: &Path, path: &Path, format: Format) -> Result<()> {
        let bytes = read_small(path, receipt::LIMIT, "receipt")?;
        let mut packages = Receipt::parse(&bytes).and_then(|it| of_receipt(&it)).file(path)?;
        packages.retain(|package| package.format == format);
        self.offers = GpuPackages::new(format, packages.iter().map(gpu_package));
        self.set = Some((folder.to_owned(), packages));
        Ok(())
    }

    fn add_repository(
        &mut self,
        folder: &Path,
        format: Option<Format>,
        suite: Option<&str>,
        budget: &Budget,
    ) -> Result<()> {
        let found = if is_folder(folder)? { contents(folder, budget)? } else { None };
        let Some(contents) = found else {
            let message = "is neither a set nor a repository of rockpack";
            let hint = "name a folder of `build`, `wheel` or `repo`: one with packages.json, \
                        wheels.json or .rockpack";
            return Err(Error::new(Kind::Usage, message).file(folder).hint(hint));
        };
        let packages = match format {
            Some(Format::Deb) => of_suite(folder, contents.suites, suite)?,
            _ => contents.others,
        };
        let all = packages.iter().map(|package| &package.facts);
        self.offers = match format {
            Some(format) => {
                let own = all.filter(|facts| facts.kind().format() == Some(format));
                GpuPackages::new(format, own.filter_map(GpuPackage::of))
            }
            None => GpuPackages::of_wheels(all.filter_map(|facts| match facts {
                IndexMetadata::Wheel(package) => Some(&**package),
                IndexMetadata::Deb(_) | IndexMetadata::Rpm(_) => None,
            })),
        };
        if let (None, Some(url)) = (format, contents.index_url) {
            self.options = format!(" --index-url {}", shell_word(Path::new(&url)));
        }
        Ok(())
    }

    /// The names of the packages that serve a target, none if nothing does, and the libraries without code for it.
    pub fn packages_for(&self, target: &BaseArch) -> (Vec<&str>, BTreeSet<&str>) {
        // Extras of wheels are the same for all variants of an arch.
        let plain = gfx::plain(target).filter(|_| self.installer == Installer::Pip);
        let target = plain.as_ref().unwrap_or(target);
        (self.offers.packages_for(target), self.offers.unserved(target))
    }

    pub fn install(&self, names: &[&str]) -> Install {
        let packages = match &self.set {
            Some((folder, packages)) => files(folder, packages, names),
            None => names.iter().map(|&name| name.to_owned()).collect(),
        };
        let mut command = format!("{} install{}", self.installer, self.options);
        for word in &packages {
            command.push_str(&format!(" {}", shell_word(Path::new(word))));
        }
        Install { packages, command }
    }
}

/// The packages of the apt suite. An error if there are several and none is given.
fn of_suite(
    folder: &Path,
    mut suites: BTreeMap<String, Vec<Arc<IndexedPackage>>>,
    suite: Option<&str>,
) -> Result<Vec<Arc<IndexedPackage>>> {
    let names = either(&Vec::from_iter(suites.keys()), usize::MAX);
    suites.retain(|name, _| suite.is_none_or(|own| own == name));
    if suites.len() != 1 && !names.is_empty() {
        let message = format!("the apt suite is {names}");
        return Err(Error::new(Kind::Usage, message).file(folder).hint("name it with --suite"));
    }
    Ok(suites.into_values().flatten().collect())
}

/// The host wheels of the set in `folder`, whose receipt is at `path`.
fn host_wheels(folder: &Path, path: &Path, budget: &Budget) -> Result<Vec<WheelPackage>> {
    let bytes = read_small(path, receipt::LIMIT, "receipt")?;
    let receipt = WheelReceipt::parse(&bytes).file(path)?;
    let hosts = receipt.wheels.iter().filter(|wheel| wheel.role == WheelKind::Host);
    let read = hosts.map(|host| {
        let file = folder.join(&host.file_name);
        let wheel = WheelArchive::open(Content::open(&file, budget)?).file(&file)?;
        Ok(WheelPackage::of(&host.file_name, &wheel.metadata))
    });
    read.collect()
}

/// The facts about a package that decide which GPUs need it.
pub fn gpu_package(package: &ListedPackage) -> GpuPackage {
    let relations = package.relations.iter().map(|relation| (relation.kind, &*relation.name));
    GpuPackage::new(&package.name, &package.version, &package.archs, relations)
}

/// The packages with these names, and all that they need of `packages`, which are of one format.
pub fn with_needs<'p>(packages: &'p [ListedPackage], names: &[&str]) -> Vec<&'p ListedPackage> {
    let offered: Vec<OfferedPackage<'_>> = packages.iter().map(ListedPackage::offered).collect();
    let format = packages.first().map_or(Format::Deb, |package| package.format);
    let resolver = Resolver::new(format, offered.iter().collect());
    let named = packages.iter().enumerate().filter(|(_, package)| names.contains(&&*package.name));
    let needed = resolver.with_needs(named.map(|(at, _)| at));
    needed.into_iter().filter_map(|at| packages.get(at)).collect()
}

/// The files of the packages with these names, and of all that they need of the set. Packages that are not in
/// the folder, as kept ones of earlier builds, are named.
fn files(folder: &Path, packages: &[ListedPackage], names: &[&str]) -> Vec<String> {
    let needed = with_needs(packages, names);
    let mut words: Vec<String> =
        needed.into_iter().map(|package| package_argument(folder, package)).collect();
    words.sort();
    words
}

fn package_argument(folder: &Path, package: &ListedPackage) -> String {
    let path = folder.join(&package.file_name);
    if !path.is_file() {
        return package.name.clone();
    }
    // apt would read other relative paths as names of packages.
    let is_path = path.is_absolute() || path.starts_with(".") || path.starts_with("..");
    let path = if is_path { path } else { Path::new(".").join(path) };
    path.to_string_lossy().into_owned()
}
