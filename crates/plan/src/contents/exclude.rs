//! Archs that the configuration's `packages` leave out of a package's device code.
//!
//! A finding names everything left out. Refused: packages that do not exist, and binaries that would find no
//! code at all.

use std::collections::BTreeMap;

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;

use super::{OwnedDatabase, Portion};
use crate::config::ArchFilter;
use crate::naming::{PackageNames, index_of_package};
use crate::recombine::{
    Group, Kernel, LeftOutCode, LeftOutCounts, note_lost_fallbacks, wrapper_targets,
};
use crate::settings::PlanSettings;
use rockpack_report::words::list;
use rockpack_report::{ArchFilterTable, Findings, found};

pub(crate) fn apply(
    portions: &mut [Portion<'_>],
    groups: &[Group],
    setting: &PlanSettings,
    findings: &mut Findings,
) -> Result<()> {
    let mut faults = Faults::default();
    let names: Vec<PackageNames> =
        portions.iter().map(|portion| portion.host_names(&setting.names)).collect::<Result<_>>()?;
    for (package, filter) in &setting.config.packages {
        let stems = portions.iter().map(|portion| Some(&portion.stem));
        let found = index_of_package(names.iter().zip(stems), package);
        let Some(portion) = found.and_then(|index| portions.get_mut(index)) else {
            let known = portions.iter().map(|portion| &portion.stem.deb);
            let hint = format!("the packages are {}", list(known));
            let message = "no package with host files has this name";
            faults.add(setting.config.fault(&["packages", package], message).hint(hint));
            continue;
        };
        let archs = groups.iter().flat_map(|group| &group.archs);
        let archs: Vec<&BaseArch> = archs.filter(|arch| filter.has(arch)).collect();
        faults.keep(exclude_archs(portion, package, (filter, &archs), findings));
    }
    faults.finish()
}

fn exclude_archs(
    portion: &mut Portion<'_>,
    package: &str,
    (filter, archs): (&ArchFilter, &[&BaseArch]),
    findings: &mut Findings,
) -> Result<()> {
    let mut excluded: BTreeMap<BaseArch, LeftOutCode> = BTreeMap::new();
    let before = std::mem::take(&mut portion.kernels);
    let (kept, out): (Vec<&Kernel>, Vec<&Kernel>) =
        before.into_iter().partition(|kernel| filter.has(kernel.target.base()));
    let component = |binary: &TreePath| match portion.files.get(binary) {
        Some(owned) => (&*owned.component.id).into(),
        None => package.into(),
    };
    let [with, without] = [&kept, &out].map(|kernels| wrapper_targets(kernels.iter().copied()));
    note_lost_fallbacks(&with, &without, archs, component, findings);
    for kernel in out {
        if !kept.iter().any(|other| other.binary == kernel.binary) {
            let message = format!("packages.{package} leaves out all of its device code");
            let error = Error::new(Kind::Config, message).structure(kernel.binary.to_string());
            let hint = "keep at least one arch: no package would install the binary's archives";
            return Err(error.hint(hint));
        }
        let left = excluded.entry(kernel.target.base().clone()).or_default();
        left.add(kernel.binary.to_string(), &kernel.content);
    }
    portion.kernels = kept;
    for database in std::mem::take(&mut portion.databases) {
        let (archs, out): (Vec<BaseArch>, Vec<BaseArch>) =
            database.archs.into_iter().partition(|arch| filter.has(arch));
        // A file of several archs is left out only if no other arch needs it.
        for arch in out.iter().filter(|_| archs.is_empty()) {
            let left = excluded.entry(arch.clone()).or_default();
            left.add(database.file.path.to_string(), &database.file.content);
        }
        if !archs.is_empty() {
            portion.databases.push(OwnedDatabase { archs, ..database });
        }
    }
    for (arch, left) in excluded {
        let LeftOutCounts { count, different, places, code_objects } = left.counted()?;
        let table = ArchFilterTable::Package(package.to_owned());
        findings.add(found::ArchExcluded { table, arch, count, different, places, code_objects });
    }
    Ok(())
}
