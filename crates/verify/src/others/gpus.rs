//! The GPUs of this machine, and the libraries of an installed prefix that have no code for them.
//!
//! A library is a host binary whose device code was moved into archives. It serves a GPU if an archive that it finds
//! has a row for the GPU's target, its generic target or SPIR-V. Kernel databases are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rockpack_archive::wheel::{Metadata, Record};
use rockpack_core::content::{list, read_small, real_path};
use rockpack_core::gfx::{BaseArch, generic_of};
use rockpack_hardware::Machine;
use rockpack_package::device_wheel::EXTRA;
use rockpack_package::for_gpu::script::answers_in;

use super::records::{self, RECORD};
use super::{LIMIT, METADATA};
use crate::checks::manifests::listings;
use crate::checks::set_archives::{archives, kernel_name, transformed};
use crate::folder_of;
use crate::partial::base_of;
use crate::problem::{GpuCoverage, Report, UnservedLibrary};
use crate::readers::installed::PackageContents;

/// The longest script that is read for its table, in bytes.
const SCRIPT_LIMIT: u64 = 4 << 20;

#[derive(Default)]
struct Library {
    /// Archs with rows for the library.
    archs: BTreeSet<BaseArch>,
    /// Archs of the archives that it finds.
    installed: BTreeSet<BaseArch>,
    /// Archs of listed archives that are not installed.
    absent: BTreeSet<BaseArch>,
    /// The extras of its wheel that bring device wheels, as in `torch[device-gfx1100]`.
    extras: Vec<String>,
}

/// Adds the GPUs in `sysfs`, with the libraries of `read`, the prefix at `root`, that serve them.
pub(super) fn add(root: &Path, read: &PackageContents, sysfs: &Path, report: &mut Report) {
    let libraries = libraries(root, read);
    if libraries.is_empty() {
        return;
    }
    let machine = Machine::read(sysfs);
    for gpu in machine.gpus {
        let target = gpu.overridden_by.as_ref().unwrap_or(&gpu.target);
        let serve = |archs: &BTreeSet<BaseArch>| {
            archs.iter().any(|it| it == target || generic_of(target) == Some(it) || it.is_spirv())
        };
        let (extra, of_root) = (format!("[{EXTRA}{target}]"), packages_of_root(root, target));
        let rest = libraries.iter().filter(|(_, library)| !serve(&library.archs));
        let unserved = rest.map(|(path, library)| {
            let packages = if serve(&library.absent) {
                of_root.clone()
            } else if serve(&library.installed) {
                Vec::new()
            } else {
                library.extras.iter().filter(|it| it.ends_with(&extra)).cloned().collect()
            };
            UnservedLibrary { library: path.trim_start_matches('/').to_owned(), packages }
        });
        let unserved: Vec<UnservedLibrary> = unserved.collect();
        let (prefix, served) = (root.display().to_string(), libraries.len() - unserved.len());
        report.gpus.push(GpuCoverage { prefix, gpu, served, unserved });
    }
    report.skipped_gpus = machine.skipped;
}

/// The libraries that have code, or can get some from packages, by path.
fn libraries<'a>(root: &Path, read: &'a PackageContents) -> BTreeMap<&'a str, Library> {
    let (archives, listings) = (archives(&[read]), listings(&[read]));
    let mut libraries: BTreeMap<&str, Library> = BTreeMap::new();
    for binary in transformed(&[read]) {
        let library = libraries.entry(binary.path).or_default();
        for (path, (_, archive)) in &archives {
            if binary.leads_to(path, &listings) {
                library.installed.extend(archive.listed.iter().filter_map(|text| base_of(text)));
                let name = &binary.marker.kernel_name;
                let rows = archive.rows.iter().filter(|(key, _)| kernel_name(key) == name);
                library
                    .archs
                    .extend(rows.flat_map(|(_, row)| row.keys()).filter_map(|text| base_of(text)));
            }
        }
        for listing in &listings {
            let files = listing.manifest.archives.iter();
            let absent = files.filter(|(_, stated)| {
                let path = listing.sibling_path(&stated.file);
                !archives.contains_key(path.as_str()) && binary.leads_to(&path, &listings)
            });
            library.absent.extend(absent.filter_map(|(arch, _)| arch.parse::<BaseArch>().ok()));
        }
    }
    add_extras(root, read, &mut libraries);
    libraries
        .retain(|_, it| !it.archs.is_empty() || !it.absent.is_empty() || !it.extras.is_empty());
    libraries
}

/// Adds the extras of the wheels that own the libraries. Unreadable metadata is ignored.
fn add_extras(root: &Path, read: &PackageContents, libraries: &mut BTreeMap<&str, Library>) {
    for stem in read.paths.keys().filter_map(|path| path.strip_suffix(METADATA)) {
        let text = |ending: &str, limit| {
            let path = format!("{stem}{ending}");
            read_small(&root.join(path.trim_start_matches('/')), limit, ending)
        };
        let metadata = text(METADATA, LIMIT).and_then(|bytes| Metadata::parse(&bytes));
        let Ok(metadata) = metadata else { continue };
        let extras = metadata.extras().filter(|extra| extra.starts_with(EXTRA));
        let extras: Vec<String> =
            extras.map(|extra| format!("{}[{extra}]", metadata.name())).collect();
        if extras.is_empty() {
            continue;
        }
        let record = text(RECORD, records::LIMIT).and_then(|bytes| Record::parse(&bytes));
        for row in record.iter().flat_map(|record| record.rows.keys()) {
            if let Some(library) = libraries.get_mut(&*format!("{}/{row}", folder_of(stem))) {
                library.extras.clone_from(&extras);
            }
        }
    }
}

/// The packages for a target, from the script `gpu.sh` of the common package. The system root of a prefix is the
/// nearest parent folder with a script for this prefix; each installed version has its own script.
fn packages_of_root(prefix: &Path, target: &BaseArch) -> Vec<String> {
    let Ok(Some(prefix)) = real_path(prefix) else { return Vec::new() };
    let mut packages = BTreeSet::new();
    for root in prefix.ancestors() {
        let share = root.join("usr/share");
        let (Ok(folders), Ok(inside)) = (list(&share), prefix.strip_prefix(root)) else { continue };
        let inside = format!("/{}", inside.display());
        for folder in folders.filter_map(Result::ok) {
            let script = read_small(&folder.path().join("gpu.sh"), SCRIPT_LIMIT, "gpu.sh");
            let Ok(script) = script else { continue };
            let text = String::from_utf8_lossy(&script);
            let answers = answers_in(&text, &inside, target);
            packages.extend(answers.into_iter().map(str::to_owned));
        }
        if !packages.is_empty() {
            break;
        }
    }
    packages.into_iter().collect()
}
