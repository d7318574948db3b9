//! Where debuggers look for debug files: by build-id, below `/usr/lib/debug/.build-id`.
//!
//! Build-ids stay as the build made them, so packages can have one debug file in common: those of
//! two families with one library, and those of two versions side by side in which a library did
//! not change. (Fedora keeps them apart by other build-ids for each release, Debian by a build-id
//! for each build; both would change what was built.) rpm lets packages own a file together that
//! is the same. dpkg does not: a `.deb` has its debug files in a folder of its own
//! ([`own_place`]), and its scripts keep the place by build-id a link to one of them. The folder
//! is laid out so that it is one for gdb's `debug-file-directory`, too.
//!
//! Source: gdb's manual, "Separate Debug Files".

use std::collections::BTreeMap;

use object::elf;
use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::elf::{ElfFile, build_id};
use rockpack_base::tree::{Node, TreePath};

use crate::plan::source::FileSource;

/// What debuggers look into for debug files.
pub(in crate::plan) const DEBUG_ROOT: &str = "usr/lib/debug";

/// Where debuggers look for debug files by their build-ids.
const DEBUG_FOLDER: &str = "usr/lib/debug/.build-id";

/// Where builds with split debug files put them, relative to the prefix.
const BUILD_ID_FOLDER: &str = ".build-id";

/// Whether `node` is a link by build-id to a file that is where the link would lead a debugger.
pub(in crate::plan) fn stood_in(
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
pub(in crate::plan) fn id_of(content: &Content) -> Result<Option<String>> {
    match ElfFile::read(content, elf::EM_X86_64)? {
        Some(file) => build_id(&file),
        None => Ok(None),
    }
}

/// `xx/yyyy….debug`, as every debugger writes it.
pub(in crate::plan) fn place_of(id: &str) -> Result<TreePath> {
    let (folder, rest) = id.split_at_checked(2).unwrap_or((id, ""));
    TreePath::new(format!("{DEBUG_FOLDER}/{folder}/{rest}.debug"))
}

/// Whether `path` is one by which debuggers find a file.
pub(in crate::plan) fn is_debug_place(path: &TreePath) -> bool {
    path.as_str().strip_prefix(DEBUG_FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// Where the `.deb` called `package` has the debug file of `place`.
pub(in crate::plan) fn own_place(package: &str, place: &TreePath) -> Result<TreePath> {
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
