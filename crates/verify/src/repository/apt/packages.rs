//! The packages that the indexes of a suite list.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use rayon::prelude::*;
use rockpack_archive::apt_index;
use rockpack_archive::deb::{
    ControlFields, DebFront, each_owned_path, parse_control, unreadable_reason,
};
use rockpack_archive::path_digests::PathDigests;
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::indexed::deb_path;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::owners::Owner;
use rockpack_package::requirement::Relations;
use rockpack_package::resolver::machines;
use rockpack_package::{DEB_FIELDS, Format};
use sha2::{Digest, Sha256, Sha512};

use crate::problem::UnreadData;
use crate::repository::context::{BATCH_SIZE, Context};
use crate::repository::{
    RelationBudget, check_owners, check_unmet, check_versions, for_arch, states,
};

/// Fields that only an index has.
const OF_THE_INDEX: [&str; 7] =
    ["Filename", "Size", "MD5sum", "SHA1", "SHA256", "SHA512", "Description-md5"];

/// Minimum average bytes of a paragraph of an index: the digest alone has 64, and there are five more fields.
const SHORTEST: usize = 128;

/// Checks the packages of all indexes of a suite.
pub(super) fn check(context: &mut Context<'_>, suite: &str, indexes: BTreeMap<String, String>) {
    let packages = packages(context, indexes);
    let offered: Vec<OfferedPackage<'_>> = packages.iter().map(SuitePackage::offered).collect();
    let listed = packages.iter().map(|package| (package.path.as_str(), package.field("SHA256")));
    check_versions(context, &offered, listed.clone());
    let mut archs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, package) in packages.iter().enumerate() {
        for arch in package.other_archs.iter().chain([&package.arch]) {
            archs.entry(arch).or_default().push(at);
        }
    }
    let machines = machines(Format::Deb, archs.keys().copied());
    archs.retain(|arch, _| machines.contains(arch));
    check_unmet(context, Format::Deb, &offered, &archs, |at| packages[at].path.as_str());
    let owners = check_packages(context, &packages, offered);
    let named = context.files;
    let differ = |_: (usize, usize), _: u64| true;
    check_owners(context, Format::Deb, &owners, differ, |at, is_it| {
        deb_path(&named.open(&packages.get(at)?.path).ok()??, is_it)
    });
    states::compare(context, &format!("apt-{suite}"), listed.collect());
}

struct SuitePackage {
    path: String,
    fields: ControlFields,
    /// The architecture of the first index that lists it; further ones are rare, so they are separate.
    arch: Arc<str>,
    other_archs: BTreeSet<Arc<str>>,
}

impl SuitePackage {
    fn offered(&self) -> OfferedPackage<'_> {
        OfferedPackage {
            name: self.field("Package"),
            version: self.field("Version").into(),
            arch: self.field("Architecture"),
            relations: Relations::of_control(|name| self.field(name)),
            paths: Vec::new(),
        }
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// The packages of all indexes in path order. Frees the texts.
fn packages(context: &mut Context<'_>, indexes: BTreeMap<String, String>) -> Vec<SuitePackage> {
    let mut all: BTreeMap<String, SuitePackage> = BTreeMap::new();
    for (index, text) in indexes {
        let (_, behind) = index.split_once("/binary-").unwrap_or_default();
        let arch: Arc<str> = behind.split('/').next().unwrap_or_default().into();
        let (mut packages, mut has_nameless) = (text.len() / SHORTEST, false);
        let mut relations = RelationBudget::of(text.len());
        for fields in apt_index::paragraphs(&text) {
            let fields = take(fields, &mut packages, &mut relations);
            let Some(fields) = context.parsed(&index, fields) else { break };
            let own = fields.get("Architecture").cloned().unwrap_or_default();
            let Some(path) = fields.get("Filename").cloned() else {
                if !std::mem::replace(&mut has_nameless, true) {
                    context.bad_index(&index, "has a package without Filename");
                }
                continue;
            };
            if *own != *arch && own != "all" {
                context.add_inconsistency(&index, format!("has {path}, which is for {own}"));
            }
            let mut is_new = false;
            let package = all.entry(path.clone()).or_insert_with(|| {
                is_new = true;
                let (path, fields, arch) = (path.clone(), fields.clone(), Arc::clone(&arch));
                SuitePackage { path, fields, arch, other_archs: BTreeSet::new() }
            });
            if package.fields != fields {
                let reason = format!("describes {path} differently from an earlier entry");
                context.add_inconsistency(&index, reason);
            }
            if !is_new && (package.arch == arch || !package.other_archs.insert(Arc::clone(&arch))) {
                let reason =
                    format!("lists {path}, which an earlier entry lists{}", for_arch(&arch));
                context.add_inconsistency(&index, reason);
            }
        }
    }
    context.named.extend(all.keys().cloned());
    context.report.indexed += all.len();
    all.into_values().collect()
}

/// A paragraph. Fails if the index has more packages or relations than its bytes can describe; `packages` and
/// `relations` are the remaining numbers.
fn take(
    fields: Result<ControlFields>,
    packages: &mut usize,
    relations: &mut RelationBudget,
) -> Result<ControlFields> {
    let fields = fields?;
    let error = || Error::new(Kind::Limit, "has more packages than its bytes can describe");
    *packages = packages.checked_sub(1).ok_or_else(error)?;
    for (_, name) in DEB_FIELDS {
        let value = fields.get(name).map_or("", String::as_str);
        value.matches([',', '|']).try_for_each(|_| relations.take())?;
    }
    Ok(fields)
}

/// Compares packages with their index, and returns each with the files that it owns.
fn check_packages<'p>(
    context: &mut Context<'_>,
    packages: &[SuitePackage],
    offered: Vec<OfferedPackage<'p>>,
) -> Vec<Owner<'p>> {
    let named = context.files;
    let mut owners = Vec::with_capacity(packages.len());
    let mut offered = offered.into_iter();
    for together in packages.chunks(BATCH_SIZE) {
        let found = together.par_iter().map(|package| {
            let mut data = PackageData::default();
            let compare = |content: &Content| compare(content, &package.fields, &mut data);
            (named.faults(&package.path, compare), data)
        });
        let found: Vec<_> = found.collect();
        for ((problems, mut data), package) in found.into_iter().zip(together) {
            problems.into_iter().for_each(|problem| context.problems.add(problem));
            owners.extend(offered.next().map(|offered| {
                let paths = Cow::Owned(mem::take(&mut data.paths));
                Owner { package: offered, paths, shared: Vec::new() }
            }));
            if let Some(reason) = data.unread {
                context.report.data_unread.push(UnreadData { file: package.path.clone(), reason });
            }
        }
    }
    owners
}

/// The facts in the data archive of a package.
#[derive(Default)]
struct PackageData {
    paths: PathDigests,
    /// The reason why rockpack cannot unpack its data, which other tools can.
    unread: Option<String>,
}

/// The properties of a package that differ from its entry in the index.
fn compare(
    content: &Content,
    fields: &ControlFields,
    data: &mut PackageData,
) -> Result<Vec<String>> {
    let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
    content.each_window(|window| {
        sha256.update(window);
        sha512.update(window);
    })?;
    let (sha256, sha512) = (hex(&sha256.finalize()), hex(&sha512.finalize()));
    let own = [("Size", content.len().to_string()), ("SHA256", sha256), ("SHA512", sha512)];
    let differ = own.iter().filter(|(name, value)| match fields.get(name) {
        // Some writers of indexes omit SHA-512.
        None => *name != "SHA512",
        Some(stated) => stated != value,
    });
    let mut differences: Vec<String> = differ.map(|(name, _)| (*name).to_owned()).collect();
    if !differences.is_empty() {
        return Ok(differences);
    }
    let front = DebFront::read(content)?;
    let mut numbers = Vec::new();
    match each_owned_path(content, |_, number| numbers.push(number)) {
        Ok(()) => data.paths = PathDigests::of_digests(numbers),
        Err(error) if error.kind() == Kind::Unsupported => {
            data.paths = PathDigests::of(front.paths());
            data.unread = Some(unreadable_reason(&error));
        }
        Err(error) => return Err(error),
    }
    let control = parse_control(&front.control)?;
    let all = fields.names().chain(control.names());
    let names: BTreeMap<String, &str> = all.map(|it| (it.to_ascii_lowercase(), it)).collect();
    let is_of_the_index = |name: &&str| OF_THE_INDEX.iter().any(|it| it.eq_ignore_ascii_case(name));
    for name in names.into_values().filter(|name| !is_of_the_index(name)) {
        if value_in_index(&control, name) != value_in_index(fields, name) {
            differences.push(format!("field {name}"));
        }
    }
    Ok(differences)
}

/// The value of a field as an index has it; `None` if the index omits the field.
fn value_in_index<'f>(fields: &'f ControlFields, name: &str) -> Option<&'f String> {
    fields.get(name).filter(|value| !value.is_empty())
}
