//! Reads a set from a receipt, a plan, a folder of packages, or one package.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rockpack_archive::spelling;
use rockpack_core::content::{Content, is_file, is_folder, list};
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::run::{Budget, threads};
use serde::Deserialize;

use super::{ListedMember, ListedPackage, Listing, Size, code_digests, package};
use crate::Format;
use crate::receipt::records::name_parts;
use crate::receipt::{
    CodeObjectRecord, LIMIT, MemberRecord, PackageRecord, Receipt, is_tree_path, refuse_prefix,
};
use rockpack_report::ReceiptDoubt;

/// The `kind` of a plan's JSON; receipts have no such field.
pub const PLAN_KIND: &str = "plan";

/// Version of the schema of a plan's JSON; raised when a field changes its meaning.
pub const PLAN_SCHEMA: u32 = 1;

/// The fields of the JSON of `rockpack plan --json` that a listing needs.
#[derive(Deserialize)]
struct PlanDocument {
    schema: u32,
    prefix: String,
    packages: Vec<ListedPackage>,
    #[serde(default)]
    kept: Vec<ListedPackage>,
}

/// The field that distinguishes a plan from a receipt.
#[derive(Deserialize)]
struct DocumentKind {
    kind: Option<String>,
}

/// Returns the reason why no signature proves a receipt with these bytes, if none does.
type JudgeReceipt<'a> = &'a dyn Fn(&[u8]) -> Result<Option<ReceiptDoubt>>;

/// The hint if an earlier set does not exist.
const MISSING_SET_HINT: &str = "name the packages.json of the set that clients have; a first release has no set \
                        before it: build it without that option";

/// Reads the set at `path`: a receipt (`packages.json`), a plan (JSON), a folder of packages, or a single
/// package. In a folder, the packages themselves are read; the receipt is only a claim about them. `judge` gets
/// the bytes of a receipt. Memory is drawn from `budget`, and given back.
pub fn read(path: &Path, budget: &Budget, judge: JudgeReceipt<'_>) -> Result<Listing> {
    let budget = &budget.scope();
    let listing = match is_folder(path) {
        Ok(true) => threads::in_current_pool(|| of_packages(path, budget)),
        Ok(false) => of_file(path, budget, judge),
        Err(error) => Err(error),
    };
    let listing =
        if path.exists() { listing } else { listing.map_err(|e| e.hint(MISSING_SET_HINT)) };
    listing.map_err(|error| error.named_by_user().context("reading an earlier set"))
}

fn of_file(path: &Path, budget: &Budget, judge: JudgeReceipt<'_>) -> Result<Listing> {
    let name = path.display().to_string();
    if Format::of_file_name(path).is_some() {
        let packages = vec![listed(path, budget)?];
        return checked(Listing::new(name, None, packages)).file(path);
    }
    let content = Content::open(path, budget)?;
    let bytes = content.read_vec(0..content.len(), LIMIT, "package set").file(path)?;
    let listing = parse(name, &bytes).file(path)?;
    let doubt = listing.receipt.as_ref().map(|_| judge(&bytes)).transpose()?.flatten();
    Ok(Listing { doubt, ..listing })
}

/// Reads a receipt or a plan (JSON). `name` names it in messages.
pub fn parse(name: String, bytes: &[u8]) -> Result<Listing> {
    let head: DocumentKind = serde_json::from_slice(bytes).map_err(|error| {
        Error::malformed("is neither a receipt nor a plan").wrong_file_kind().cause(error).hint(
            "name a packages.json, what `rockpack plan --json` wrote, or a folder of packages",
        )
    })?;
    match head.kind.as_deref() {
        None => {
            let receipt = Receipt::parse(bytes)?;
            let listing = Listing::new(name, Some(receipt.prefix.clone()), of_receipt(&receipt)?);
            checked(Listing { receipt: Some(Box::new(receipt)), ..listing })
        }
        Some(PLAN_KIND) => of_plan(name, bytes),
        Some(other) => {
            let message = format!("is a `{}`, not a plan", other.escape_debug());
            Err(Error::new(Kind::Unsupported, message))
        }
    }
}

/// Checks and sorts a listing. Drops exact duplicates; refuses others, because nothing says which one counts.
fn checked(mut listing: Listing) -> Result<Listing> {
    listing.packages.iter().try_for_each(refuse_invalid)?;
    listing.packages.iter_mut().try_for_each(refuse_paths_twice)?;
    listing = listing.sorted();
    // Symbolic links, and copies under other file names.
    listing.packages.dedup_by(|one, other| {
        one.order(other).is_eq()
            && *other == ListedPackage { file_name: other.file_name.clone(), ..one.clone() }
    });
    let mut neighbours = listing.packages.iter().zip(listing.packages.iter().skip(1));
    if let Some((other, package)) = neighbours.find(|(one, other)| one.order(other).is_eq()) {
        let ListedPackage { version, architecture, file_name, .. } = package;
        let other = &other.file_name;
        let message =
            format!("is listed twice as {version} for {architecture}: {other} and {file_name}");
        let place = format!("{} {}", package.format, package.name);
        let hint = "name a set with each package once";
        return Err(Error::malformed(message).structure(place).hint(hint));
    }
    Ok(listing)
}

/// Refuses names, versions and paths that no package manager takes. They would go into the relations and
/// scripts of packages that update these.
fn refuse_invalid(package: &ListedPackage) -> Result<()> {
    let ListedPackage { format, name, version, architecture, .. } = package;
    let said = [
        ("name", name, spelling::is_name(*format, name)),
        ("version", version, spelling::is_version(*format, version)),
        ("architecture", architecture, spelling::is_architecture(*format, architecture)),
    ];
    let members = package.members.iter();
    let is_path = |path: &str| path == "/" || path.strip_prefix('/').is_some_and(is_tree_path);
    let paths = members.map(|member| ("path", &member.path, is_path(&member.path)));
    let Some((what, text, _)) = said.into_iter().chain(paths).find(|(.., is_good)| !is_good) else {
        return Ok(());
    };
    let message = format!("`{}` is not a valid {what} of a .{format} package", text.escape_debug());
    let place = format!("{format} {}", name.escape_debug());
    Err(Error::malformed(message).structure(place).hint(
        "no build writes that: use the receipt of the build, or \
         the packages",
    ))
}

/// Sorts the paths of a package, and refuses duplicates. Drops repeated entries of a folder that are equal: some
/// packers state a folder again when they are given a list of paths.
fn refuse_paths_twice(package: &mut ListedPackage) -> Result<()> {
    let ListedPackage { format, name, version, architecture, members, .. } = package;
    members.sort_by(|a, b| a.path.cmp(&b.path));
    members.dedup_by(|one, other| one.is_directory() && one == other);
    let Some(twice) = members.windows(2).find(|pair| pair[0].path == pair[1].path) else {
        return Ok(());
    };
    let message = format!("has the path {} twice", twice[0].path.escape_debug());
    let place = format!("{format} {name} {version} for {architecture}");
    let hint = "it is not clear which of them is installed: build the package again";
    Err(Error::malformed(message).structure(place).hint(hint))
}

fn of_plan(name: String, bytes: &[u8]) -> Result<Listing> {
    let plan: PlanDocument = serde_json::from_slice(bytes)
        .map_err(|error| Error::malformed("is not a rockpack plan").cause(error))?;
    if plan.schema != PLAN_SCHEMA {
        let message = format!("plan schema {} is unknown, expected {PLAN_SCHEMA}", plan.schema);
        let hint = "make the plan again with this version of rockpack";
        return Err(Error::new(Kind::Unsupported, message).hint(hint));
    }
    refuse_prefix(&plan.prefix)?;
    let packages = plan.packages.into_iter().chain(plan.kept).collect();
    checked(Listing::new(name, Some(plan.prefix), packages))
}

/// The packages of a receipt, including those it keeps from earlier builds.
pub fn of_receipt(receipt: &Receipt) -> Result<Vec<ListedPackage>> {
    of_records(receipt.all_packages(), receipt.all_code_objects())
}

/// Lists the packages of `records`, which hold `code_objects`.
pub fn of_records<'a>(
    records: impl Iterator<Item = &'a PackageRecord>,
    code_objects: impl Iterator<Item = &'a CodeObjectRecord>,
) -> Result<Vec<ListedPackage>> {
    let code = code_digests(code_objects);
    records.map(|record| of_record(record.clone(), &code)).collect()
}

/// Lists a package of a receipt. Its name and architecture are read from its file name.
fn of_record(record: PackageRecord, code: &BTreeMap<String, String>) -> Result<ListedPackage> {
    let Some((name, architecture)) = name_parts(record.format, &record.file_name) else {
        let message = format!("`{}` is not a package file name", record.file_name.escape_debug());
        return Err(Error::malformed(message).structure("packages"));
    };
    Ok(ListedPackage {
        name: name.to_owned(),
        version: record.version,
        architecture: architecture.to_owned(),
        format: record.format,
        file_name: record.file_name,
        role: Some(record.role),
        group: record.group,
        archs: record.archs,
        vendor: record.vendor,
        download: Size::exact(record.size),
        installed: Size::exact(record.installed_size),
        relations: record.relations,
        members: record.members.into_iter().map(|member| of_member(member, code)).collect(),
    })
}

fn of_member(record: MemberRecord, code: &BTreeMap<String, String>) -> ListedMember {
    ListedMember {
        code_sha256: code.get(record.path.as_str()).cloned(),
        path: record.path,
        kind: record.kind,
        mode: record.mode,
        size: record.size.map(Size::exact),
        sha256: record.sha256,
        target: record.target,
    }
}

/// Lists the packages in `folder`, and ignores all other files.
fn of_packages(folder: &Path, budget: &Budget) -> Result<Listing> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in list(folder)? {
        let path = entry?.path();
        if Format::of_file_name(&path).is_some() && is_file(&path)? {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        let hint = "name a folder of packages, a packages.json, or what `rockpack plan --json` \
                    wrote";
        return Err(Error::new(Kind::Usage, "has no packages").file(folder).hint(hint));
    }
    paths.sort();
    let results: Vec<Result<ListedPackage>> =
        paths.par_iter().map(|path| listed(path, budget)).collect();
    let packages: Result<Vec<ListedPackage>> = results.into_iter().collect();
    let name = folder.display().to_string();
    checked(Listing::new(name, None, packages?)).file(folder)
}

fn listed(path: &Path, budget: &Budget) -> Result<ListedPackage> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let content = Content::open(path, budget)?;
    package::listed(&content, &name).file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemberKind;

    /// A difference would have to choose one of the two, and ignore the other.
    #[test]
    fn what_is_there_twice_is_refused() {
        use crate::receipt::listing::tests::listed;
        fn package(version: &str, paths: &[(&str, MemberKind)]) -> ListedPackage {
            listed(Format::Deb, "rocm-blas", version, paths)
        }
        let one = [("/x", MemberKind::File)];
        listing(vec![package("2", &one), package("1", &one)]).unwrap();
        let error = listing(vec![package("1", &one), package("1", &[])]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("deb rocm-blas: is listed twice as 1 for amd64"), "{text}");
        // Package managers take `1` and `0:1` for one version.
        let error = listing(vec![package("1", &one), package("0:1", &[])]).unwrap_err();
        assert!(error.to_string().contains("is listed twice as"), "{error}");
        let copy = ListedPackage { file_name: "l.deb".to_owned(), ..package("1", &one) };
        assert_eq!(listing(vec![package("1", &one), copy]).unwrap().packages.len(), 1);
        let error =
            listing(vec![package("1", &[one[0], ("/y", MemberKind::File), one[0]])]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("deb rocm-blas 1 for amd64: has the path /x twice"), "{text}");
        let folders = [
            ("/x", MemberKind::Directory),
            ("/x/y", MemberKind::File),
            ("/x", MemberKind::Directory),
        ];
        let accepted = listing(vec![package("1", &folders)]).unwrap();
        assert_eq!(accepted.packages[0].members, package("1", &folders[..2]).members);
        let mut other = package("1", &folders);
        other.members[2].mode = 0o700;
        let error = listing(vec![other]).unwrap_err();
        assert!(error.to_string().contains("has the path /x twice"), "{error}");
        for kind in [MemberKind::File, MemberKind::Link] {
            let paths = [("/x", kind), ("/x", kind)];
            assert!(listing(vec![package("1", &paths)]).is_err(), "{kind:?}");
        }
    }

    fn listing(packages: Vec<ListedPackage>) -> Result<Listing> {
        checked(Listing::new("x".to_owned(), None, packages))
    }
}
