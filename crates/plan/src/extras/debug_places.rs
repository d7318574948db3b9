//! The places where debuggers look for debug files: by build-id, below `/usr/lib/debug/.build-id`.
//!
//! rockpack keeps the build-ids of the build, so several packages can have the same debug file: two families
//! with the same library, or two versions side by side in which a library did not change. (Fedora keeps them
//! apart by other build-ids for each release, Debian by a build-id for each build; both would change what was
//! built.) rpm lets several packages own an identical file. dpkg does not: a `.deb` has its debug files in a
//! folder of its own ([`own_place`]), and its scripts make the place by build-id a link to one of them. The
//! folder's layout also suits gdb's `debug-file-directory`.
//!
//! Source: gdb's manual, "Separate Debug Files".

use std::collections::BTreeMap;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::{ElfFile, build_id};

use crate::source::FileSource;

/// The folder that debuggers search for debug files.
pub(crate) const DEBUG_ROOT: &str = "usr/lib/debug";

/// The folder that debuggers search for debug files by build-id.
const DEBUG_FOLDER: &str = "usr/lib/debug/.build-id";

/// The folder where builds with split debug files put them, relative to the prefix.
const BUILD_ID_FOLDER: &str = ".build-id";

/// Whether `node` is a link by build-id to a debug file that moves to the very place of the link.
pub(crate) fn stood_in(
    path: &TreePath,
    node: &Node<FileSource>,
    moved: &BTreeMap<TreePath, TreePath>,
) -> bool {
    let Node::Link { target } = node else { return false };
    let below = path.as_str().strip_prefix(BUILD_ID_FOLDER);
    let place = path.resolve_link(target).and_then(|target| moved.get(&target));
    below.zip(place).is_some_and(|(below, place)| {
        place.as_str().strip_prefix(DEBUG_FOLDER).is_some_and(|own| own == below)
    })
}

/// The build-id of a debug file, in hex.
pub(crate) fn id_of(content: &Content) -> Result<Option<String>> {
    match ElfFile::read(content, elf::EM_X86_64)? {
        Some(file) => build_id(&file),
        None => Ok(None),
    }
}

/// The path `xx/yyyy….debug` of a build-id, as every debugger forms it.
pub(crate) fn place_of(id: &str) -> Result<TreePath> {
    let (folder, rest) = id.split_at_checked(2).unwrap_or((id, ""));
    TreePath::new(format!("{DEBUG_FOLDER}/{folder}/{rest}.debug"))
}

/// Whether debuggers find files by `path`.
pub(crate) fn is_debug_place(path: &TreePath) -> bool {
    path.as_str().strip_prefix(DEBUG_FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// The path of the debug file for `place` in the `.deb` called `package`.
pub(crate) fn own_place(package: &str, place: &TreePath) -> Result<TreePath> {
    let rest = place.as_str().strip_prefix(DEBUG_ROOT).unwrap_or_default();
    TreePath::new(format!("{DEBUG_ROOT}/{package}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_files_lie_where_gdb_looks() {
        let place = place_of("abcdef").unwrap();
        assert_eq!(place.as_str(), "usr/lib/debug/.build-id/ab/cdef.debug");
        assert!(is_debug_place(&place));
        let own = own_place("rocm-x-dbgsym", &place).unwrap();
        assert_eq!(own.as_str(), "usr/lib/debug/rocm-x-dbgsym/.build-id/ab/cdef.debug");
        assert!(!is_debug_place(&own));
    }
}
