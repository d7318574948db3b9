//! The folders inside the install prefix in which the dynamic linker looks for the libraries of a file.
//!
//! In order: `DT_RPATH` if there is no `DT_RUNPATH`, `DT_RUNPATH`, and the linker paths. Source: ld.so(8).
//! Ignored: `LD_LIBRARY_PATH`, which belongs to the user, and the `DT_RPATH` of the loading file.

use std::collections::BTreeMap;

use rockpack_core::tree::{TreePath, resolved_names};
use rockpack_elf::Linking;

const PATH_MAX: usize = 4096;

/// A folder of a search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folder {
    /// A folder below the prefix, relative to it.
    Inside(TreePath),
    Prefix,
    /// An absolute path elsewhere, or one that leaves the prefix.
    Outside(String),
    /// A part that is relative to the working directory, has `$LIB` or `$PLATFORM`, which differ between
    /// systems, is too long to open, or is no valid path.
    Unknown(String),
}

/// The folders of a search path, relative to the prefix (empty for itself), each with its first position.
pub type Order = BTreeMap<String, usize>;

/// The [`Order`] of `folders`.
pub fn order(folders: Vec<Folder>) -> Order {
    let mut order = Order::new();
    for (index, folder) in folders.into_iter().enumerate() {
        let inside = match folder {
            Folder::Inside(folder) => folder.as_str().to_owned(),
            Folder::Prefix => String::new(),
            Folder::Outside(_) | Folder::Unknown(_) => continue,
        };
        order.entry(inside).or_insert(index);
    }
    order
}

/// The search path in a file: `DT_RUNPATH`, else `DT_RPATH`.
pub fn written(linking: &Linking) -> &str {
    linking.runpath.as_deref().or(linking.rpath.as_deref()).unwrap_or_default()
}

/// The folders of `text`, the search path of the file at `path` below `prefix` (without leading slashes).
pub fn folders(text: &str, path: &TreePath, prefix: &TreePath) -> Vec<Folder> {
    let parts = text.split(':').filter(|part| !part.is_empty());
    parts.map(|part| folder(part, path, prefix)).collect()
}

fn folder(text: &str, path: &TreePath, prefix: &TreePath) -> Folder {
    let origin = path.parent().map_or_else(|| format!("/{prefix}"), |f| format!("/{prefix}/{f}"));
    let origins = text.matches("$ORIGIN").count() + text.matches("${ORIGIN}").count();
    // No longer path can be opened, and a part may repeat `$ORIGIN` any number of times.
    if text.len().saturating_add(origins.saturating_mul(origin.len())) > PATH_MAX {
        return Folder::Unknown(text.to_owned());
    }
    let resolved = text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
    if resolved.contains('$') || !resolved.starts_with('/') {
        return Folder::Unknown(text.to_owned());
    }
    let parts = resolved_names(&resolved);
    let own: Vec<&str> = prefix.components().collect();
    match parts.strip_prefix(own.as_slice()) {
        Some([]) => Folder::Prefix,
        Some(rest) => TreePath::new(rest.join("/"))
            .map_or_else(|_| Folder::Unknown(text.to_owned()), Folder::Inside),
        None => Folder::Outside(format!("/{}", parts.join("/"))),
    }
}

/// The file below `prefix` that the file at `path` needs by the name `needed`, if that is a path from the folder of the
/// file: `$ORIGIN/../lib/libx.so`.
pub fn from_origin(needed: &str, path: &TreePath, prefix: &TreePath) -> Option<TreePath> {
    let is_path = needed.starts_with("$ORIGIN/") || needed.starts_with("${ORIGIN}/");
    match folder(needed, path, prefix) {
        Folder::Inside(file) if is_path => Some(file),
        _ => None,
    }
}

/// Folders at the root of a system. Below a prefix, they belong to a tree whose root was taken for the prefix.
const ROOT_FOLDERS: [&str; 5] = ["usr", "opt", "srv", "home", "stage"];

/// Names of library folders. Other library folders end in the name of a system.
const LIBRARY_FOLDERS: [&str; 3] = ["lib", "lib32", "lib64"];

/// The suffix of names of library folders for one system, such as `x86_64-linux-gnu`.
const SYSTEM_ENDING: &str = "-linux-gnu";

/// Whether a library with `soname`, in a folder (relative to the prefix; empty is the prefix itself)
/// that the loader does not search, was meant to be found by its name. This is false for modules, whose
/// sonames have no version and which are in separate folders, and for private libraries: files of other
/// folders have a search path with the folder, so that it `is_searched`.
pub fn is_misplaced(folder: &str, soname: &str, is_searched: bool) -> bool {
    is_public(folder, soname) && (is_wrong_place(folder) || !is_searched)
}

/// Whether programs of other folders may be meant to find a library with `soname` in `folder`. Only the
/// last name of `folder` matters.
fn is_public(folder: &str, soname: &str) -> bool {
    let is_versioned = soname.split_once(".so.").is_some_and(|(_, version)| !version.is_empty());
    is_versioned || is_library_folder(folder)
}

/// Whether no build puts libraries into `folder` on purpose, except for the linker path: the prefix
/// itself, a tree installed below it, another folder for the libraries of a prefix.
pub fn is_wrong_place(folder: &str) -> bool {
    folder.is_empty() || is_in_root(folder) || is_prefix_libraries(folder)
}

/// Whether `folder` is inside one that belongs to the root of a system.
pub fn is_in_root(folder: &str) -> bool {
    ROOT_FOLDERS.contains(&folder.split('/').next().unwrap_or_default())
}

/// The probable intended prefix of a library folder, or of a folder inside: `usr` for `usr/lib`.
pub fn installed_prefix(folder: &str) -> Option<&str> {
    let mut ends = folder.match_indices('/').filter_map(|(at, _)| folder.split_at_checked(at));
    let (above, _) = ends
        .find(|(_, rest)| LIBRARY_FOLDERS.contains(&rest.split('/').nth(1).unwrap_or_default()))?;
    Some(above)
}

/// Whether builds put libraries into a folder of this name, or the folder is the prefix itself.
pub fn is_library_folder(folder: &str) -> bool {
    let name = folder.rsplit('/').next().unwrap_or_default();
    folder.is_empty() || LIBRARY_FOLDERS.contains(&name) || name.ends_with(SYSTEM_ENDING)
}

/// Whether builds put the libraries of a whole prefix into `folder`: `lib64`, `lib/x86_64-linux-gnu`.
pub fn is_prefix_libraries(folder: &str) -> bool {
    let (above, name) = folder.rsplit_once('/').unwrap_or(("", folder));
    match above {
        "" => LIBRARY_FOLDERS.contains(&name),
        above => above == "lib" && name.ends_with(SYSTEM_ENDING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_resolved_against_the_install_path() {
        let library = "lib/liba.so.1";
        assert_eq!(
            shown_folders("$ORIGIN:$ORIGIN/rocm_sysdeps/lib", library),
            ["lib", "lib/rocm_sysdeps/lib"]
        );
        assert_eq!(shown_folders("${ORIGIN}/../lib64/./x", "bin/a"), ["lib64/x"]);
        assert_eq!(shown_folders("/opt/rocm-7.1/lib:/opt/rocm-7.1", "a"), ["lib", "."]);
        assert_eq!(shown_folders("/usr/lib", library), ["outside /usr/lib"]);
        assert_eq!(shown_folders("$ORIGIN/../..", library), ["outside /opt"]);
        assert_eq!(shown_folders("$LIB:lib::", library), ["unknown $LIB", "unknown lib"]);
    }

    #[test]
    fn libraries_are_needed_by_paths_from_the_folder_of_the_file() {
        let [file, prefix] = ["lib/a/libx.so", "opt/rocm"].map(|path| TreePath::new(path).unwrap());
        for (needed, expected) in [
            ("$ORIGIN/../b/liby.so.1", Some("lib/b/liby.so.1")),
            ("${ORIGIN}/liby.so.1", Some("lib/a/liby.so.1")),
            ("$ORIGIN/../../../liby.so.1", None),
            ("$ORIGINAL/liby.so.1", None),
            ("/opt/rocm/lib/liby.so.1", None),
            ("liby.so.1", None),
        ] {
            let found = from_origin(needed, &file, &prefix);
            assert_eq!(found.as_ref().map(TreePath::as_str), expected, "{needed}");
        }
    }

    fn shown_folders(text: &str, file: &str) -> Vec<String> {
        let [file, prefix] = [file, "opt/rocm-7.1"].map(|path| TreePath::new(path).unwrap());
        let folders = folders(text, &file, &prefix);
        let shown = folders.iter().map(|folder| match folder {
            Folder::Inside(path) => path.to_string(),
            Folder::Prefix => ".".to_owned(),
            Folder::Outside(path) => format!("outside {path}"),
            Folder::Unknown(text) => format!("unknown {text}"),
        });
        shown.collect()
    }

    #[test]
    fn libraries_with_a_version_belong_where_something_leads() {
        for (folder, soname, is_searched, expected) in [
            ("", "libx.so", false, true),
            ("usr/lib", "libx.so", true, true),
            ("lib64", "libx.so.1", false, true),
            ("share/x", "libx.so.1", false, true),
            ("share/x", "libx.so", false, false),
            ("lib64", "libx.so.1", true, true),
            ("lib/x/plugins", "libx.so", false, false),
            ("lib/llvm/lib", "libomp.so", true, false),
            ("lib/llvm/lib", "libLLVM.so.19.1", true, false),
        ] {
            assert_eq!(is_misplaced(folder, soname, is_searched), expected, "{folder} {soname}");
        }
        assert!(is_prefix_libraries("lib64") && is_prefix_libraries("lib/x86_64-linux-gnu"));
        assert!(!is_prefix_libraries("lib/llvm/lib") && !is_prefix_libraries(""));
        assert_eq!(installed_prefix("opt/rocm/lib/x86_64-linux-gnu"), Some("opt/rocm"));
        assert_eq!(installed_prefix("lib"), None);
        assert_eq!(installed_prefix("usr/lib/private"), Some("usr"));
        assert_eq!(installed_prefix("build/libx-1.0/lib"), Some("build/libx-1.0"));
    }
}
