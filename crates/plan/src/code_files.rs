//! Code files of kernel databases that packages have compressed (`code_files`).

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::Result;
use rockpack_core::tree::TreePath;
use rockpack_package::Format;
use rockpack_report::{Findings, found};
use rockpack_split::code_file;
use rockpack_split::input::database::Compressible;

use crate::config::CodeFiles;
use crate::outcome::{FileSource, PlannedPackage};
use crate::recombine::Recombined;
use crate::settings::PlanSettings;

pub(crate) fn compressed(
    recombined: &Recombined,
    packages: &[PlannedPackage],
    setting: &PlanSettings,
    findings: &mut Findings,
) -> Result<BTreeSet<TreePath>> {
    let (config, version) = (&setting.config, setting.version.set_upstream());
    let files = packages.iter().flat_map(|package| &package.entries);
    let packed: BTreeSet<(&str, &TreePath)> = files
        .filter_map(|entry| match entry.node.data()? {
            FileSource::Database { component, path } => Some((&**component, path)),
            _ => None,
        })
        .collect();
    let mut compressed = BTreeSet::new();
    for component in &recombined.components {
        if config.code_files_of(&component.artifact, component.kind) == CodeFiles::Plain {
            continue;
        }
        let mut by_version: BTreeMap<&str, Vec<TreePath>> = BTreeMap::new();
        for file in &component.databases {
            let rule = config.databases.named(&file.rule);
            let compressible = rule.and_then(|rule| rule.compressible.as_ref());
            let compressible = compressible.filter(|it| it.has(file.path.name()));
            if let Some(Compressible { since, .. }) = compressible
                && packed.contains(&(&*component.id, &file.path))
                && code_file::compressible_target(&file.content)?.is_some()
            {
                by_version.entry(since).or_default().push(file.path.clone());
            }
        }
        for (since, files) in by_version {
            compressed.extend(files.iter().cloned());
            let is_too_old = Format::Deb.compare_versions(version, since).is_lt();
            let too_old = is_too_old.then(|| version.to_owned());
            let (component, since) = (component.id.to_string(), since.to_owned());
            findings.add(found::CodeFilesCompressed { component, files, since, too_old });
        }
    }
    Ok(compressed)
}
