//! Whether the libraries that come with a package have the symbol versions that are needed of them.

use std::collections::BTreeMap;

use super::brought::Brought;
use super::set::LinkedFile;
use crate::verify::checks::excuses::Excuses;
use crate::verify::problem::{PackagePath, Problem, Problems};

/// Checks the versions that these files of a package need. If several libraries with the same name
/// come along, one that has the version is enough.
pub(super) fn check(
    brought: &Brought<'_>,
    files: &[&LinkedFile<'_>],
    excuses: &Excuses,
    problems: &mut Problems,
) {
    let mut lacking: BTreeMap<(&str, &str), (&LinkedFile<'_>, PackagePath)> = BTreeMap::new();
    for file in files {
        let needed = file.linked.versions.iter().flat_map(|versions| &versions.needed);
        for (library, versions) in needed.filter(|(name, _)| file.linked.needed.contains(name)) {
            for version in versions.iter().filter(|v| !excuses.leaves_out_version(library, v)) {
                if let Some(at) = brought.without_version(library, version) {
                    lacking.entry((library, version)).or_insert((file, at));
                }
            }
        }
    }
    for ((library, version), (file, at)) in lacking {
        let [package, path, version] =
            [&file.package.file, file.path, version].map(|text: &str| text.to_owned());
        let library = library.into();
        problems.add(Problem::VersionMissing { package, path, library, version, at });
    }
}
