//! Debug files, which packages install where debuggers look and not where an artifact has them.
//!
//! A file may lie below `/usr/lib/debug/.build-id` (`.rpm`) or `/usr/lib/debug/<package>/.build-id`
//! (`.deb`) instead of below the prefix. A link by build-id in the artifact may be the path of the
//! installed file.

use rockpack_base::tree::TreePath;

use super::SetComparison;
use super::inputs::Plain;
use super::plain::same;
use crate::verify::own::installed::{Installed, InstalledNode};

/// The folder in which debuggers look for debug files.
const DEBUG_FOLDER: &str = "/usr/lib/debug/";

/// The folder in which builds put split debug files, relative to the prefix, and its name in the folder
/// of debuggers.
const BUILD_ID_FOLDER: &str = ".build-id/";

impl SetComparison<'_> {
    /// Whether what the artifacts have at `path` is among the installed debug files.
    pub(in crate::verify) fn is_debug_file(&self, path: &TreePath, plain: &Plain) -> bool {
        match plain {
            Plain::File { .. } => self.debug_files_like(plain).next().is_some(),
            Plain::Link { .. } => path.as_str().strip_prefix(BUILD_ID_FOLDER).is_some_and(|name| {
                let mut places = self.packages.iter().flat_map(|package| debug_files(package));
                places.any(|file| file.by_id == name)
            }),
            Plain::Directory => false,
        }
    }

    /// The installed debug files that are what an artifact has, with their paths.
    pub(super) fn debug_files_like(
        &self,
        plain: &Plain,
    ) -> impl Iterator<Item = (&str, &InstalledNode)> {
        let all = self.packages.iter().flat_map(|package| debug_files(package));
        let like = all.filter(move |file| same(plain, file.node));
        like.map(|file| (file.path, file.node))
    }
}

/// Whether debuggers look for a file by its build-id at an absolute path.
pub(super) fn is_place(path: &str) -> bool {
    path.strip_prefix(DEBUG_FOLDER).and_then(place_in).is_some()
}

/// The part of a path below the debug folder that begins behind `.build-id`: at the top, or in the
/// folder of a package.
fn place_in(path: &str) -> Option<&str> {
    let (folder, name) = path.split_once(BUILD_ID_FOLDER)?;
    (folder.matches('/').count() <= 1).then_some(name)
}

/// A debug file of a package.
struct DebugFile<'a> {
    path: &'a str,
    /// `xx/yyyy.debug` of its build-id.
    by_id: &'a str,
    node: &'a InstalledNode,
}

fn debug_files(package: &Installed) -> impl Iterator<Item = DebugFile<'_>> {
    let all = package.paths.range(DEBUG_FOLDER.to_owned()..);
    let inside = all.take_while(|(path, _)| path.starts_with(DEBUG_FOLDER));
    inside.filter_map(|(path, node)| {
        Some(DebugFile { path, by_id: place_in(path.strip_prefix(DEBUG_FOLDER)?)?, node })
    })
}
