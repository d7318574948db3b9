//! Rewrites the library search paths of files by the configuration's `runpath`.

use rockpack_core::content::Content;
use rockpack_core::error::{Result, abridged};
use rockpack_core::tree::TreePath;

use super::linked_file::LinkedFile;
use crate::config::Runpath;
use crate::settings::PlanSettings;
use rockpack_package::dependencies::runpath;
use rockpack_package::dependencies::search::{self, Folder};
use rockpack_report::{ComponentFile, DynamicPart, Finding, Findings, OutsideSearch};

/// The search path of a file as it will be installed.
#[derive(Debug, Default)]
pub(super) struct InstalledSearchPath {
    pub text: String,
    /// Whether it differs from the input's.
    pub is_new: bool,
}

/// The search path of the file `linked`. Notes folders outside of the prefix.
pub(super) fn search_path(
    setting: &PlanSettings,
    linked: &LinkedFile<'_>,
    content: &Content,
    component: &str,
    findings: &mut Findings,
) -> Result<InstalledSearchPath> {
    let Some(linking) = &linked.needs.linking else {
        return Ok(InstalledSearchPath::default());
    };
    let (path, prefix) = (linked.path, setting.prefix.path());
    let text = search::written(linking).to_owned();
    let file = ComponentFile::new(component, path);
    if setting.config.keys.runpath == Runpath::Keep {
        let outside = outside(&text, path, prefix);
        if !outside.is_empty() {
            let search = OutsideSearch::Folders(outside);
            findings.add(Finding::RunpathOutside { file, search });
        }
        return Ok(InstalledSearchPath { text, is_new: false });
    }
    let rewriting = match runpath::rewrite(content, path, prefix) {
        Ok(rewriting) => rewriting,
        Err(error) if error.is_of_reading() => return Err(error),
        Err(error) => {
            let (part, reason) = (DynamicPart::SearchPath, error.message().to_owned());
            findings.add(Finding::LibrariesUnreadable { file, part, reason });
            return Ok(InstalledSearchPath { text, is_new: false });
        }
    };
    for (before, after) in &rewriting.changed {
        let (before, after) = (abridged(before).into_owned(), abridged(after).into_owned());
        findings.add(Finding::RunpathRewritten { file: file.clone(), before, after });
    }
    for (before, reason) in &rewriting.refused {
        let (search_path, reason) = (abridged(before).into_owned(), (*reason).to_owned());
        let search = OutsideSearch::Stays { search_path, reason };
        findings.add(Finding::RunpathOutside { file: file.clone(), search });
    }
    let new = rewriting.changed.iter().find(|(before, _)| *before == text);
    let text = new.map_or(text, |(_, after)| after.clone());
    Ok(InstalledSearchPath { text, is_new: rewriting.content.is_some() })
}

/// The folders of a search path outside of the prefix, or without a fixed place.
fn outside(text: &str, path: &TreePath, prefix: &TreePath) -> Vec<String> {
    let folders = search::folders(text, path, prefix).into_iter();
    let outside = folders.filter_map(|folder| match folder {
        Folder::Outside(folder) => Some(folder),
        Folder::Unknown(text) if !text.contains('$') => Some(text),
        _ => None,
    });
    outside.collect()
}
