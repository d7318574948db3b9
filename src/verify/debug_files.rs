//! Debug files, which are installed where debuggers look and not where an artifact has them.
//!
//! A file may lie below `/usr/lib/debug/.build-id` instead of below the prefix; a link by build-id
//! in the artifact may be that place; a folder may have held nothing else.

use super::against::{Comparison, same};
use super::inputs::Plain;
use crate::tree::TreePath;

/// Where debuggers look for debug files.
const DEBUG_FOLDER: &str = "/usr/lib/debug/.build-id/";

/// Where builds with split debug files put them, relative to the prefix.
const BUILD_ID_FOLDER: &str = ".build-id/";

impl Comparison<'_> {
    /// Whether what the artifacts have at `path` is among the installed debug files.
    pub(super) fn is_debug_file(&self, path: &TreePath, plain: &Plain) -> bool {
        match plain {
            Plain::File { .. } => self.packages.iter().any(|package| {
                let all = package.paths.range(DEBUG_FOLDER.to_owned()..);
                let mut inside = all.take_while(|(path, _)| path.starts_with(DEBUG_FOLDER));
                inside.any(|(_, node)| same(plain, node))
            }),
            Plain::Link { .. } => path.as_str().strip_prefix(BUILD_ID_FOLDER).is_some_and(|name| {
                let place = format!("{DEBUG_FOLDER}{name}");
                self.packages.iter().any(|package| package.paths.contains_key(&place))
            }),
            Plain::Directory => self.is_emptied(path),
        }
    }

    /// Whether a folder had something in it, and nothing but debug files.
    fn is_emptied(&self, folder: &TreePath) -> bool {
        let start = format!("{folder}/");
        let inside = self.inputs.plain.iter().filter(|(path, _)| path.as_str().starts_with(&start));
        let mut files = inside.flat_map(|(path, variants)| {
            let files = variants.iter().filter(|plain| !matches!(plain, Plain::Directory));
            files.map(move |plain| (path, plain))
        });
        let mut some = false;
        let all = files.all(|(path, plain)| {
            some = true;
            self.is_debug_file(path, plain)
        });
        some && all
    }
}
