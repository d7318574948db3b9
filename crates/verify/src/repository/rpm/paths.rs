//! Files of packages by the list of files: packages that conflict by them, and required ones.

use std::collections::BTreeMap;

use rockpack_archive::rpm::Front;
use rockpack_core::content::Content;

use super::lists::{RpmEntry, RpmFiles};
use crate::problem::Problem;
use crate::repository::context::{Context, NamedFiles};
use crate::repository::owners;
use rockpack_package::differing_files::DifferingFiles;
use rockpack_package::offered::Offered;
use rockpack_package::owners::Owner;
use rockpack_package::{Format, required_paths};

/// Reports every path at which two packages of `primary` conflict, and every required one that clients do not
/// find. `files` has the files of each package by its digest.
pub(super) fn check(
    context: &mut Context<'_>,
    primary: &[RpmEntry],
    offered: Vec<Offered<'_>>,
    files: &BTreeMap<&str, &RpmFiles>,
) {
    let owners = primary.iter().zip(offered).map(|(entry, package)| {
        let files = files.get(&*entry.checksum);
        let paths = files.map_or(&[][..], |files| files.owned.as_slice()).to_vec();
        let shared = files.map_or(&[][..], |files| files.shared.as_slice()).to_vec();
        Owner { package, paths, shared }
    });
    let owners: Vec<Owner<'_>> = owners.collect();
    let named = context.files;
    let mut differing = DifferingFiles::new(|at| open_package(named, primary, at));
    let differ = |pair: (usize, usize), path: u64| differing.differ(pair, path);
    owners::check(context, Format::Rpm, &owners, differ, |at, is_it| {
        let front = Front::read(&open_package(named, primary, at)?).ok()?;
        let paths = front.metadata.get_file_paths().ok()?;
        paths.iter().filter_map(|path| path.to_str()).find(|path| is_it(path)).map(str::to_owned)
    });
    required_paths::each_hidden(&owners, |path, owner, requirers| {
        for at in requirers {
            let [file, owner] = [*at, owner].map(|at| primary[at].path.clone());
            let reason = format!(
                "requires {path}, which is in {owner}, but no package provides it and primary does not \
                 list it"
            );
            context.problems.add(Problem::DependencyOpen { file, reason });
        }
    });
}

fn open_package(named: NamedFiles<'_>, primary: &[RpmEntry], at: usize) -> Option<Content> {
    named.open(&primary.get(at)?.path).ok()?
}
