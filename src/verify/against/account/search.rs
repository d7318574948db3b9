//! Library search paths that are written anew: only folders relative to the file itself stay.

use std::collections::{BTreeMap, BTreeSet};

use object::elf::{self, Dyn64};
use object::read::elf::SectionHeader as _;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result};
use rockpack_base::tree::TreePath;

use super::edits::Edits;
use super::patches::each_record;
use crate::verify::own::tables::{LE, Tables, bytes_of, is_in_file, record};
use crate::verify::paths::names_in;

/// The longest path that Linux opens, in bytes.
const LONGEST_PATH: usize = 4096;

/// The longest search path that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Most search paths of a file: one of each tag.
const MOST: usize = 2;

/// The ways in which the search paths of `content`, the file at `path` below the absolute `prefix`, are
/// written anew. Of two, one may have to stay.
pub(super) fn rewritten(
    content: &Content,
    tables: &Tables,
    path: &TreePath,
    prefix: &str,
) -> Result<Vec<Edits>> {
    let mut changes = Vec::new();
    for (at, old) in search_paths(content, tables)? {
        let Ok(text) = std::str::from_utf8(&old) else { continue };
        let mut new = relative(text, path, prefix).into_bytes();
        if new != old && new.len() <= old.len() {
            new.resize(old.len(), 0);
            changes.push((at, new));
        }
    }
    let mut ways = Vec::new();
    for chosen in 1..1_usize << changes.len().min(MOST) {
        let mut edits = Edits::default();
        let own = changes.iter().enumerate().filter(|(index, _)| chosen >> index & 1 == 1);
        for (_, (at, new)) in own {
            edits.write(*at, new)?;
        }
        ways.push(edits);
    }
    Ok(ways)
}

/// The search paths, by their offset in the file.
fn search_paths(content: &Content, tables: &Tables) -> Result<BTreeMap<u64, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let dynamic = tables
        .sections
        .iter()
        .filter(|section| section.sh_type(LE) == elf::SHT_DYNAMIC && is_in_file(section));
    for section in dynamic.take(MOST) {
        let link = usize::try_from(section.sh_link(LE)).unwrap_or(usize::MAX);
        let Some(strings) = tables.sections.get(link).filter(|strings| is_in_file(strings)) else {
            continue;
        };
        let strings = bytes_of(strings);
        let mut ended = false;
        each_record::<16>(content, section, &mut |_, bytes| {
            let entry: Dyn64<LE> = record(bytes)?;
            let tag = entry.d_tag.get(LE);
            ended |= tag == elf::DT_NULL;
            if !ended && matches!(tag, elf::DT_RPATH | elf::DT_RUNPATH) && found.len() < MOST {
                let at = strings.start.saturating_add(entry.d_val.get(LE));
                found.insert(at, text_at(content, at, strings.end)?);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The bytes from `at` up to the next zero, which lies before `end`.
fn text_at(content: &Content, at: u64, end: u64) -> Result<Vec<u8>> {
    let end = end.min(content.len()).min(at.saturating_add(LONGEST));
    let mut bytes = content.read_vec(at.min(end)..end, LONGEST, "search path")?;
    let len = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(len.ok_or_else(|| Error::malformed("has a search path without an end"))?);
    Ok(bytes)
}

/// The search path `text` in terms of the folder of the file.
fn relative(text: &str, path: &TreePath, prefix: &str) -> String {
    let (mut parts, mut known) = (Vec::new(), BTreeSet::new());
    for part in text.split(':') {
        let own = part.contains("$ORIGIN") || part.contains("${ORIGIN}");
        let new = if own { Some(part.to_owned()) } else { installed(part, path, prefix) };
        if let Some(new) = new.filter(|new| !known.contains(new)) {
            known.insert(new.clone());
            parts.push(new);
        }
    }
    parts.join(":")
}

/// The way to an absolute folder below the prefix, or below what a build took for it.
fn installed(folder: &str, path: &TreePath, prefix: &str) -> Option<String> {
    if !folder.starts_with('/') || folder.contains('$') || folder.len() > LONGEST_PATH {
        return None;
    }
    let (names, own) = (names_in(folder), names_in(prefix));
    let inside = match names.strip_prefix(own.as_slice()) {
        Some(rest) => rest.is_empty() || TreePath::new(rest.join("/")).is_ok(),
        None => true,
    };
    let below = names
        .strip_prefix(own.as_slice())
        .or_else(|| {
            let stage = names.iter().rposition(|name| *name == "stage")?;
            names.get(stage + 1..)
        })
        .filter(|_| inside)?;
    let folder = path.parent();
    let from: Vec<&str> = folder.iter().flat_map(TreePath::components).collect();
    let common = from.iter().zip(below).take_while(|(one, other)| one == other).count();
    let up = from.iter().skip(common).map(|_| "..");
    let way = up.chain(below.iter().skip(common).copied());
    Some(std::iter::once("$ORIGIN").chain(way).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The builder's own output has a test with the same paths.
    #[test]
    fn a_search_path_is_written_in_terms_of_the_file() {
        let library = "lib/liba.so.1";
        for (text, file, expected) in [
            ("$ORIGIN:${ORIGIN}/x", library, "$ORIGIN:${ORIGIN}/x"),
            ("/opt/rocm-7.1/lib/sysdeps/lib:/usr/lib", library, "$ORIGIN/sysdeps/lib"),
            ("/opt/rocm-7.1/lib", "bin/tool", "$ORIGIN/../lib"),
            ("/opt/rocm-7.1", "bin/tool", "$ORIGIN/.."),
            ("/build/math/BLAS/stage/lib:/opt/rocm-7.1/lib", library, "$ORIGIN"),
            ("/build/x:lib::", library, ""),
        ] {
            let path = TreePath::new(file).unwrap();
            assert_eq!(relative(text, &path, "/opt/rocm-7.1"), expected, "{text}");
        }
    }
}
