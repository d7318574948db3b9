//! RECORD of installed split wheels, as pip 26.3 and uv 0.13 write it. Other distributions are not checked: two may own
//! one file, and only the last RECORD is right.

use std::collections::BTreeSet;
use std::path::Path;

use rockpack_archive::wheel::{ListingFault, Record, RecordRow, normalized};
use rockpack_core::content::{Content, is_file, read_small};
use rockpack_core::error::Result;
use rockpack_core::run::Budget;
use rockpack_package::device_wheel::{DEVICE, is_named_after};

use crate::problem::{Problem, ProblemPlace, Problems};
use crate::readers::facts::{Class, FileFacts};
use crate::readers::installed::{InstalledNode, PackageContents};
use crate::{folder_of, name_of};

pub(super) const RECORD: &str = ".dist-info/RECORD";

/// The longest RECORD that is read, in bytes.
pub(super) const LIMIT: u64 = 64 << 20;

/// Compares `read`, the content of `root`, with each RECORD in it, and reports files of split wheels that are in no
/// RECORD.
pub(super) fn check(root: &Path, read: &PackageContents, budget: &Budget, problems: &mut Problems) {
    let on_disk = |path: &str| root.join(path.trim_start_matches('/'));
    let stems = || read.paths.keys().filter_map(|path| path.strip_suffix(RECORD));
    let name = |stem: &str| normalized(name_of(stem).split('-').next().unwrap_or_default());
    let names: BTreeSet<String> = stems().map(name).collect();
    let split = read.files().filter(|(_, facts)| match &facts.class {
        Class::Host(host) => host.claims_to_be_transformed(),
        class => class.claims_to_be_archive(),
    });
    let mut stray: BTreeSet<&str> = split.map(|(path, _)| path).collect();
    let (mut sites, mut are_known) = (BTreeSet::new(), true);
    for stem in stems() {
        let (site, own, record) = (folder_of(stem), name(stem), format!("{stem}{RECORD}"));
        let is_named = own.contains(DEVICE) || names.iter().any(|it| is_named_after(it, &own));
        let bytes = read_small(&on_disk(&record), LIMIT, "RECORD");
        let rows = match bytes.and_then(|bytes| Record::parse(&bytes)) {
            Ok(record) => record.rows,
            Err(error) => {
                are_known = false;
                if is_named {
                    problems.add_unreadable(ProblemPlace::File(read.at(&record)), &error);
                }
                continue;
            }
        };
        let place = |row: &str| {
            let stated = format!("{site}/{row}");
            // `pip --target` moves files from outside the folder into it.
            let moved = format!("{site}/{}", row.trim_start_matches("../"));
            let exists = |path: &str| is_file(&on_disk(path)).unwrap_or(false);
            if !exists(&stated) && exists(&moved) { moved } else { stated }
        };
        let rows: Vec<_> = rows.iter().map(|(row, stated)| (place(row), stated)).collect();
        let owned = rows.iter().filter(|(path, _)| stray.remove(path.as_str())).count();
        if !is_named && owned == 0 {
            continue;
        }
        sites.insert(format!("{site}/"));
        for (path, stated) in rows {
            let facts = read.paths.get(&path).and_then(InstalledNode::facts);
            let file = read.at(&path);
            match fault(&on_disk(&path), stated, facts, budget) {
                Ok(None) => {}
                Ok(Some(fault)) => problems.add(Problem::WheelRecord { file, fault }),
                Err(error) => problems.add_unreadable(ProblemPlace::File(file), &error),
            }
        }
    }
    stray.retain(|path| are_known && sites.iter().any(|site| path.starts_with(site)));
    for file in stray.into_iter().map(|path| read.at(path)) {
        problems.add(Problem::WheelRecord { file, fault: ListingFault::InNoRecord });
    }
}

/// The difference between a row and its file, whose `facts` may be known. Compiled byte code may be missing.
fn fault(
    file: &Path,
    row: &RecordRow,
    facts: Option<&FileFacts>,
    budget: &Budget,
) -> Result<Option<ListingFault>> {
    if !is_file(file)? {
        let is_needed = row.digest.is_some() || file.extension().is_none_or(|it| it != "pyc");
        return Ok(is_needed.then_some(ListingFault::NotInstalled));
    }
    let content = Content::open(file, budget)?;
    if let Some(stated) = row.size.filter(|stated| *stated != content.len()) {
        return Ok(Some(ListingFault::Size { size: content.len(), stated }));
    }
    let Some(stated) = &row.digest else { return Ok(None) };
    let mut hasher = stated.hash.hasher();
    let digest = match facts {
        Some(facts) if hasher.output_size() == 32 => facts.sha256.to_vec(),
        _ => {
            content.each_window(|bytes| hasher.update(bytes))?;
            hasher.finalize().into_vec()
        }
    };
    let hash = stated.hash.to_string();
    Ok((digest != stated.bytes).then_some(ListingFault::Digest { hash }))
}
