//! The rewriting of search paths, so that only folders relative to the file itself stay, or so that they also
//! apply to the libraries that the file needs ([`with_rpath`]).
//!
//! | part of `DT_RUNPATH` or `DT_RPATH` | becomes |
//! |---|---|
//! | with `$ORIGIN` | unchanged |
//! | absolute, below the prefix | relative to `$ORIGIN` |
//! | absolute, with a folder `stage`: a build tree | the part after `stage`, relative to `$ORIGIN` |
//! | absolute, anything else; relative to the working directory; empty | removed |
//!
//! The new text must fit over the old one, so that nothing moves. A path that does not fit, or that shares
//! its bytes with other names, stays unchanged and is reported.

use std::borrow::Cow;
use std::collections::BTreeSet;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::tree::{TreePath, resolved_names};
use rockpack_elf::{ElfFile, SearchPath};

use super::search::{Folder, folders};

/// The folder of a build tree that takes the place of the prefix.
const STAGE: &str = "stage";

/// The name of clang's configuration, with the options for programs that users link. It is a text.
pub const COMPILER_CONFIG: &str = "rocm.cfg";

/// Maximum size in bytes of such a configuration; real ones have a few options.
const MAX_CONFIG: u64 = 1 << 20;

/// `content`, the file at `path`, with `DT_RPATH` in place of `DT_RUNPATH`, or with the linker option for that if
/// it is [`COMPILER_CONFIG`]; `None` if it has neither. A configuration grows by a byte for each option, and an
/// ELF file keeps its size.
pub fn with_rpath(content: &Content, path: &TreePath) -> Result<Option<Content>> {
    if path.name() == COMPILER_CONFIG {
        let bytes = content.read_vec(0..content.len(), MAX_CONFIG, COMPILER_CONFIG)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::malformed("is not UTF-8 text").at(&content.place(0)))?;
        // Source: ld(1), and TheRock's `runpath_to_rpath.py`.
        let [new, old] = ["enable-new-dtags", "disable-new-dtags"];
        return Ok(text.contains(new).then(|| Content::of_bytes(text.replace(new, old))));
    }
    ElfFile::read(content, elf::EM_X86_64)?.map_or(Ok(None), |file| rockpack_elf::with_rpath(&file))
}

#[derive(Debug, Default)]
pub struct Rewriting {
    /// The file with other search paths; `None` if they stay.
    pub content: Option<Content>,
    /// The changed search paths, before and after.
    pub changed: Vec<(String, String)>,
    /// The search paths that should change and cannot, with the reason.
    pub refused: Vec<(String, &'static str)>,
}

/// Rewrites the search paths of `content`, the file at `path` below `prefix`.
pub fn rewrite(content: &Content, path: &TreePath, prefix: &TreePath) -> Result<Rewriting> {
    let mut rewriting = Rewriting::default();
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Ok(rewriting);
    };
    let mut patched = content.clone();
    for found in SearchPath::read(&file)? {
        let text = relative(&found.text, path, prefix);
        if text == found.text {
            continue;
        }
        if found.is_shared {
            rewriting.refused.push((found.text, "its bytes are shared with another name"));
        } else if text.len() > found.text.len() {
            rewriting.refused.push((found.text, "the new one is longer"));
        } else {
            let mut bytes = text.clone().into_bytes();
            bytes.resize(found.text.len(), 0);
            patched = patched.patched(found.offset, bytes)?;
            rewriting.changed.push((found.text, text));
        }
    }
    rewriting.content = Some(patched).filter(|_| !rewriting.changed.is_empty());
    Ok(rewriting)
}

/// The search path `text` of the file at `path`, relative to `$ORIGIN`.
pub fn relative(text: &str, path: &TreePath, prefix: &TreePath) -> String {
    let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
    for part in text.split(':') {
        let kept = if part.contains("$ORIGIN") || part.contains("${ORIGIN}") {
            Some(Cow::Borrowed(part))
        } else {
            installed(part, path, prefix).map(|found| relative_path(&found, path).into())
        };
        parts.extend(kept.filter(|part: &Cow<'_, str>| seen.insert(part.clone())));
    }
    parts.join(":")
}

/// The path of an absolute folder below the prefix, empty for the prefix itself.
fn installed(part: &str, path: &TreePath, prefix: &TreePath) -> Option<String> {
    match folders(part, path, prefix).into_iter().next()? {
        Folder::Prefix => Some(String::new()),
        Folder::Inside(folder) => Some(folder.into()),
        Folder::Outside(folder) => {
            let parts = resolved_names(&folder);
            let stage = parts.iter().rposition(|part| *part == STAGE)?;
            Some(parts.get(stage + 1..).unwrap_or_default().join("/"))
        }
        Folder::Unknown(_) => None,
    }
}

/// The search path from the file at `path` to `folder`; `None` is the prefix itself.
pub fn from_origin(folder: Option<&TreePath>, path: &TreePath) -> String {
    relative_path(folder.map_or("", TreePath::as_str), path)
}

/// The relative path from the folder of the file at `path` to `folder`, both below the prefix.
fn relative_path(folder: &str, path: &TreePath) -> String {
    let (parent, folder) = (path.parent(), resolved_names(folder));
    let own: Vec<&str> = parent.iter().flat_map(TreePath::components).collect();
    let common = own.iter().zip(&folder).take_while(|(one, other)| one == other).count();
    let up = own.iter().skip(common).map(|_| "..");
    let down = folder.iter().skip(common).copied();
    std::iter::once("$ORIGIN").chain(up).chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_relative_to_the_file_stay() {
        let library = "lib/liba.so.1";
        assert_eq!(new_runpath("$ORIGIN:${ORIGIN}/x", library), "$ORIGIN:${ORIGIN}/x");
        assert_eq!(
            new_runpath("/opt/rocm-7.1/lib/sysdeps/lib:/usr/lib", library),
            "$ORIGIN/sysdeps/lib"
        );
        assert_eq!(new_runpath("/opt/rocm-7.1/lib", "bin/tool"), "$ORIGIN/../lib");
        assert_eq!(new_runpath("/opt/rocm-7.1", "bin/tool"), "$ORIGIN/..");
        assert_eq!(new_runpath("/build/math/BLAS/stage/lib:/opt/rocm-7.1/lib", library), "$ORIGIN");
        assert_eq!(new_runpath("/build/x:lib::", library), "");
    }

    #[test]
    fn options_of_the_linker_change_in_the_file_of_that_name_alone() {
        let changed = |path: &str, text: &[u8]| {
            let changed = with_rpath(&Content::of_bytes(text), &TreePath::new(path).unwrap())?;
            changed.map(|it| it.read_vec(0..it.len(), MAX_CONFIG, "text")).transpose()
        };
        let text = b"-Wl,--enable-new-dtags\n-Wl,--enable-new-dtags";
        let expected = b"-Wl,--disable-new-dtags\n-Wl,--disable-new-dtags".to_vec();
        assert_eq!(changed("lib/llvm/bin/rocm.cfg", text).unwrap(), Some(expected.clone()));
        assert_eq!(changed("rocm.cfg", &expected).unwrap(), None);
        assert_eq!(changed("bin/other.cfg", text).unwrap(), None);
        assert!(changed("rocm.cfg", b"\xff").is_err());
    }

    fn new_runpath(text: &str, file: &str) -> String {
        let [file, prefix] = [file, "opt/rocm-7.1"].map(|path| TreePath::new(path).unwrap());
        relative(text, &file, &prefix)
    }
}
