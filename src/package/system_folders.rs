//! The folders of the system above an install prefix: folders that may be links, and folders below them that
//! belong to vendors.

use rockpack_base::tree::TreePath;

use super::Format;

/// Directories that belong to the system. Each may be a link: to `/usr/bin`, to `/var/opt` on a system that
/// is an image, or to another disk.
///
/// Source: Filesystem Hierarchy Standard 3.0; Debian's package base-files and Fedora's package
/// filesystem for `lib32`, `libx32`, `afs` and the folders of one architecture.
const SYSTEM: &str = "afs bin boot dev etc etc/opt home lib lib/x86_64-linux-gnu lib32 lib64 \
    libx32 media mnt opt proc root run sbin srv sys tmp usr usr/bin usr/games usr/include usr/lib \
    usr/lib/x86_64-linux-gnu usr/lib32 usr/lib64 usr/libexec usr/libx32 usr/local usr/local/bin \
    usr/local/etc usr/local/games usr/local/include usr/local/lib usr/local/lib64 \
    usr/local/libexec usr/local/sbin usr/local/share usr/local/src usr/sbin usr/share usr/src var \
    var/cache var/lib var/local var/opt var/spool";

/// Directories that do not survive a reboot, or are no place for files.
pub const TRANSIENT: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// Whether a path, without leading slash, is a directory of the system.
pub fn is_one(path: &str) -> bool {
    SYSTEM.split(' ').any(|folder| folder == path)
}

/// Whether `prefix` is below `/opt`, where administrators may want to move it.
pub fn is_add_on(prefix: &TreePath) -> bool {
    prefix.components().next() == Some("opt")
}

/// The system folders at which a search for links upwards from `prefix` ends: the innermost one above it, or
/// all of them if rpm may move the prefix.
pub fn search_ends(prefix: &TreePath, format: Format) -> Vec<String> {
    let is_moved = format == Format::Rpm && is_add_on(prefix);
    let mut above = std::iter::successors(prefix.parent(), TreePath::parent);
    let own = above.find(|folder| is_one(folder.as_str()));
    let lasting = SYSTEM.split(' ').filter(|folder| !TRANSIENT.contains(folder));
    let ends = lasting
        .filter(|folder| is_moved || own.as_ref().is_some_and(|own| own.as_str() == *folder));
    ends.map(|folder| format!("/{folder}")).collect()
}

/// The folders between `/opt` and `prefix`, innermost first. No distribution has them.
pub fn of_vendors_above(prefix: &TreePath) -> Vec<String> {
    let above = std::iter::successors(prefix.parent(), TreePath::parent);
    let own = above.filter(|folder| folder.as_str().starts_with("opt/"));
    own.map(|folder| format!("/{folder}")).collect()
}
