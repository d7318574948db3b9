//! `rocm-common`: the files that a set needs once, outside of the prefix.
//!
//! It holds the file that adds `<prefix>/lib` (or the configuration's `libdir`) to the dynamic loader's path,
//! so that programs anywhere find the libraries of the set. Every package with libraries there depends on it.
//! The file is a configuration file: an administrator who wants another order of libraries keeps it.
//!
//! It also holds a script that finds the packages with device code for the GPUs of a machine. The script knows
//! the packages of the whole set, so that a part of the set that is built again has the same script.
//!
//! If the set has a link to the newest installed series, the package marks its prefix with a file, by which the
//! common packages of all series recognise it.
//!
//! Source: ldconfig(8), and glibc's `elf/ldconfig.c` for the names that it considers.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::context;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};

use crate::drafts::{Draft, LinkVersions};
use crate::layout::{EXECUTABLE, EntriesByPath, Extras, file_mode};
use crate::outcome::FileSource;
use crate::settings::PlanSettings;
use rockpack_package::for_gpu::{GpuPackage, GpuPackages, script};
use rockpack_package::receipt::{KeptRecord, PackageRecord};
use rockpack_package::{Format, Formats, PackageEntry, RelationKind, Role, Treatment};

/// The file below the prefix that marks an installed series; it names the link.
pub(crate) const SERIES_MARKER: &str = "share/rockpack/series-link";

/// Adds the package, if the set has libraries in the linker path; their packages then depend on it.
pub(crate) fn add(setting: &PlanSettings, drafts: &mut Vec<Draft>) -> Result<()> {
    let names = setting.names.system()?;
    let mut components = BTreeSet::new();
    for draft in drafts.iter_mut().filter(|draft| has_linker_libraries(setting, draft)) {
        draft.links.insert(LinkVersions::SamePatch.link(RelationKind::Depends, &names));
        components.extend(draft.components.iter().cloned());
    }
    if components.is_empty() {
        return Ok(());
    }
    let libraries = setting.config.folders.libraries.as_str();
    let values = context! { prefix => setting.prefix.absolute(), libraries };
    let description = setting.texts.description("set", &names.deb, values)?;
    let line = format!("{}/{}\n", setting.prefix.absolute(), setting.config.folders.libraries);
    let node = text_file(line);
    // The loader's file is named after the package in each format.
    let mut outside = EntriesByPath::new();
    for format in Format::ALL {
        let path = loader_file(setting, names.of(format))?;
        let (treatment, formats) = (Treatment::Config, Formats::Only(format));
        let entry = PackageEntry { path: path.clone(), node: node.clone(), treatment, formats };
        outside.entry(path).and_modify(|known| known.formats = Formats::All).or_insert(entry);
    }
    let extras = Extras { outside, ..Extras::default() };
    let mut files = BTreeMap::new();
    if let Some(link) = &setting.series_link {
        files.insert(TreePath::new(SERIES_MARKER)?, text_file(format!("{link}\n")));
    }
    let (section, rpm_group) = ("libs", "System Environment/Libraries");
    let draft = Draft::new(names, Role::Support, description, section, rpm_group);
    drafts.push(Draft { components, native: false, is_common: true, files, extras, ..draft });
    Ok(())
}

fn text_file(text: String) -> Node<FileSource> {
    Node::File { data: FileSource::Text(text), mode: file_mode(0) }
}

/// The data by which the GPU script finds the packages that a machine needs, in each format.
pub(crate) fn offers(setting: &PlanSettings, drafts: &[Draft]) -> Vec<(Format, GpuPackage)> {
    let of = |format| drafts.iter().map(move |draft| (format, draft.offer(format, setting)));
    setting.formats.iter().copied().flat_map(of).collect()
}

/// Adds to the common package the script that finds packages for GPUs, if any package has device code: one of
/// the set (`offers`), or one that this run leaves as it is (`kept`).
pub(crate) fn add_gpu_script(
    setting: &PlanSettings,
    offers: &[(Format, GpuPackage)],
    kept: &KeptRecord,
    drafts: &mut [Draft],
) -> Result<()> {
    let Some(common) = drafts.iter_mut().find(|draft| draft.is_common) else { return Ok(()) };
    let prefix = setting.prefix.absolute();
    for format in &setting.formats {
        let kept = kept.packages.iter().filter(|record| record.format == *format);
        let kept = Vec::from_iter(kept.filter_map(PackageRecord::offer));
        let made = offers.iter().filter(|(of, _)| of == format).map(|(_, offer)| offer);
        let made = made.filter(|offer| !kept.iter().any(|it| it.name == offer.name)).cloned();
        let all = GpuPackages::new(*format, made.chain(kept.iter().cloned()));
        let Some(text) = script::text(&all, *format, Some(&prefix)) else { continue };
        let path = gpu_script(common.names.of(*format))?;
        let folder = path.parent().map(|path| (path, Node::Directory { mode: EXECUTABLE }));
        let file = (path, Node::File { data: FileSource::Text(text), mode: EXECUTABLE });
        let (treatment, formats) = (Treatment::Plain, Formats::Only(*format));
        let nodes = folder.into_iter().chain([file]);
        let entries = nodes.map(|(path, node)| PackageEntry { path, node, treatment, formats });
        common.extras.gpu_scripts.extend(entries);
    }
    Ok(())
}

/// The script that finds packages for GPUs, of the common package that is called `package`.
pub(crate) fn gpu_script(package: &str) -> Result<TreePath> {
    TreePath::new(format!("usr/share/{package}/gpu.sh"))
}

pub(crate) fn loader_file(setting: &PlanSettings, package: &str) -> Result<TreePath> {
    let name = file_name(package, setting.names.system_order().as_deref());
    TreePath::new(format!("etc/ld.so.conf.d/{name}"))
}

/// `rocm.conf` of `rocm-common`. Versions side by side have packages with different names, and so different
/// files: `rocm-99929998-7.1.conf` of `rocm-common7.1`. If two libraries have the same soname, the loader
/// uses the one of the first file by name, so the newest version sorts first.
fn file_name(package: &str, order: Option<&str>) -> String {
    let name = package.replacen("-common", "", 1);
    let Some(order) = order else { return format!("{name}.conf") };
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (word, version) = name.split_at(start);
    format!("{}-{order}-{version}.conf", word.trim_end_matches('-'))
}

pub(crate) fn has_linker_libraries(setting: &PlanSettings, draft: &Draft) -> bool {
    let mut files = draft.files.iter().filter(|(path, node)| is_library(path.name(), node));
    files.any(|(path, _)| setting.config.folders.is_public(path))
}

/// Whether ldconfig considers a file of that name. It finds the files of development links by another.
fn is_library<D>(name: &str, node: &Node<D>) -> bool {
    let is_plain = name.ends_with(".so") && matches!(node, Node::File { .. });
    let is_versioned = name.contains(".so.") && !matches!(node, Node::Directory { .. });
    name.starts_with("lib") && (is_plain || is_versioned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_a_file_of_its_own() {
        for (package, order, file) in [
            ("rocm-common", None, "rocm.conf"),
            ("rocm-common7.1", Some("99929998"), "rocm-99929998-7.1.conf"),
            ("amdrocm-common-asan7.15", Some("99929984"), "amdrocm-asan-99929984-7.15.conf"),
        ] {
            assert_eq!(file_name(package, order), file);
        }
    }
}
