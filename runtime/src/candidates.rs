//! The files that may have the code objects of a binary, in the order in which they are searched, and the
//! environment variables that decide about them.

use std::ffi::CStr;
use std::fmt;

use rockpack_kpack::marker::ARCH_PLACEHOLDER;
use rockpack_kpack::target::compatible;
use rockpack_kpack::{Code, Names, OutOfMemory};

use crate::file;
use crate::memory::variable;
use crate::report::{self, Shown};

/// Most files that are tried for one load. A marker of 64 KiB and a target ID with sixteen features could
/// name a thousand million.
const LIMIT: usize = 4096;

/// Most bytes of a path: every system call refuses longer ones.
const PATH_LIMIT: usize = 4096;

/// The inputs that decide where a load searches.
pub struct Places<'a> {
    /// The settings from the environment.
    pub environment: &'a Environment,
    /// The path of the binary that has the marker.
    pub binary_path: &'a [u8],
    /// The search paths of the marker.
    pub search_paths: &'a Names,
    /// Target IDs of devices.
    pub arches: &'a [&'a CStr],
}

/// Appends bytes. Fails if memory is refused.
fn append(path: &mut Vec<u8>, bytes: &[u8]) -> Result<(), OutOfMemory> {
    path.try_reserve(bytes.len())?;
    path.extend_from_slice(bytes);
    Ok(())
}

/// The folder of a path, with the final `/`; empty without one.
fn folder(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

/// The offset of the placeholder.
fn placeholder(path: &[u8]) -> Option<usize> {
    path.windows(ARCH_PLACEHOLDER.len()).position(|part| part == ARCH_PLACEHOLDER.as_bytes())
}

/// Removes `.`, empty parts, and each `..` with the part before it from a relative path, without a look at
/// the file system.
fn normalized(path: &[u8], normal: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    let start = normal.len();
    for part in path.split(|byte| *byte == b'/') {
        let written = normal.get(start..).unwrap_or_default();
        let last = written.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if part.is_empty() || part == b"." {
            continue;
        }
        if part == b".." && !last.is_empty() && last != b".." {
            let end = normal.len() - last.len();
            normal.truncate(end.saturating_sub(1).max(start));
            continue;
        }
        if !written.is_empty() {
            append(normal, b"/")?;
        }
        append(normal, part)?;
    }
    Ok(())
}

/// Tells whether the start of a path, up to `slash`, is a folder.
fn is_folder(path: &[u8], slash: usize) -> Result<bool, OutOfMemory> {
    let mut start = Vec::new();
    append(&mut start, path.get(..slash.max(1)).unwrap_or_default())?;
    append(&mut start, b"\0")?;
    Ok(CStr::from_bytes_until_nul(&start).is_ok_and(file::is_folder))
}

/// The path that AMD's loader makes of one that does not exist: existing folders stay, and in the rest each
/// `..` removes the part before it. `None` if that is the same path.
fn without_missing_folders(path: &[u8]) -> Result<Option<Vec<u8>>, OutOfMemory> {
    let last = path.iter().rposition(|byte| *byte == b'/').filter(|_| goes_up(path));
    let Some(last) = last else { return Ok(None) };
    // Most missing candidates lie in a folder that exists.
    if is_folder(path, last)? {
        return Ok(None);
    }
    let mut there = 0;
    for (slash, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        if !is_folder(path, slash)? {
            break;
        }
        there = slash + 1;
    }
    let (there, rest) = path.split_at(there);
    if !goes_up(rest) {
        return Ok(None);
    }
    let mut resolved = Vec::new();
    append(&mut resolved, there)?;
    normalized(rest, &mut resolved)?;
    Ok(Some(resolved))
}

fn goes_up(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part == b"..")
}

impl Places<'_> {
    /// Passes each candidate to `take`, which tells whether the file exists.
    pub fn each(&self, mut take: impl FnMut(&CStr) -> Result<bool, Code>) -> Result<(), Code> {
        let mut left = LIMIT;
        let Environment { instead, before, .. } = self.environment;
        let replaces = entries(instead).next().is_some();
        for entry in entries(if replaces { instead } else { before }) {
            candidate(&mut copied(&[entry])?, false, &mut left, &mut take)?;
        }
        if replaces {
            return Ok(());
        }
        for search_path in self.search_paths.iter() {
            let is_absolute = search_path.first() == Some(&b'/');
            let from = if is_absolute { &b""[..] } else { folder(self.binary_path) };
            let pattern = copied(&[from, search_path])?;
            self.expanded(&pattern, !is_absolute, &mut left, &mut take)?;
        }
        Ok(())
    }

    fn expanded(
        &self,
        pattern: &[u8],
        is_resolved: bool,
        left: &mut usize,
        take: &mut impl FnMut(&CStr) -> Result<bool, Code>,
    ) -> Result<(), Code> {
        let Some(at) = placeholder(pattern) else {
            return candidate(&mut copied(&[pattern])?, is_resolved, left, take);
        };
        let (before, rest) = pattern.split_at(at);
        let behind = rest.get(ARCH_PLACEHOLDER.len()..).unwrap_or_default();
        for target in self.arches.iter().flat_map(|arch| compatible(arch.to_bytes())) {
            if *left == 0 {
                break;
            }
            let mut path = copied(&[before])?;
            let appended = target.append_to(&mut path).map_err(OutOfMemory::from);
            appended.and_then(|()| append(&mut path, behind)).map_err(|_| no_memory())?;
            let (from, to) = (Shown(pattern), Shown(&path));
            self.environment.debug(format_args!("expanded pattern: {from} -> {to}"));
            candidate(&mut path, is_resolved, left, take)?;
        }
        Ok(())
    }
}

fn no_memory() -> Code {
    report::refused("the path of an archive")
}

fn copied(parts: &[&[u8]]) -> Result<Vec<u8>, Code> {
    let mut path = Vec::new();
    for part in parts {
        append(&mut path, part).map_err(|_| no_memory())?;
    }
    Ok(path)
}

/// Takes a path as the kernel resolves it. If that does not exist, and AMD's loader resolves such paths,
/// takes the path that it would make.
fn candidate(
    path: &mut Vec<u8>,
    is_resolved: bool,
    left: &mut usize,
    take: &mut impl FnMut(&CStr) -> Result<bool, Code>,
) -> Result<(), Code> {
    let Some(rest) = left.checked_sub(1) else { return Ok(()) };
    *left = rest;
    if path.len() >= PATH_LIMIT || path.contains(&0) || with_nul(path, take)? || !is_resolved {
        return Ok(());
    }
    path.pop();
    match without_missing_folders(path).map_err(|_| no_memory())? {
        Some(mut resolved) => with_nul(&mut resolved, take).map(|_| ()),
        None => Ok(()),
    }
}

fn with_nul(
    path: &mut Vec<u8>,
    take: &mut impl FnMut(&CStr) -> Result<bool, Code>,
) -> Result<bool, Code> {
    append(path, b"\0").map_err(|_| no_memory())?;
    CStr::from_bytes_until_nul(path).map_or(Ok(false), take)
}

/// The settings that a cache reads from the environment, once. A privileged process reads none of them: its
/// user has set them.
#[derive(Debug, Default)]
pub struct Environment {
    /// Archives in place of those in markers: `ROCM_KPACK_PATH`.
    pub instead: Vec<u8>,
    /// Archives before those in markers: `ROCM_KPACK_PATH_PREFIX`.
    pub before: Vec<u8>,
    /// Every load fails: `ROCM_KPACK_DISABLE`.
    pub is_disabled: bool,
    /// Each step is written to the standard error: `ROCM_KPACK_DEBUG`.
    pub is_debugged: bool,
    /// Missing targets are not reported on the standard error: `ROCM_KPACK_QUIET`.
    pub is_quiet: bool,
}

/// Tells whether a variable switches something on: it is not empty and does not begin with `0`.
fn is_on(value: Option<Vec<u8>>) -> bool {
    value.is_some_and(|value| value.first().is_some_and(|first| *first != b'0'))
}

impl Environment {
    /// Reads the variables.
    pub fn read() -> Result<Self, Code> {
        Ok(Self {
            instead: setting(c"ROCM_KPACK_PATH")?.unwrap_or_default(),
            before: setting(c"ROCM_KPACK_PATH_PREFIX")?.unwrap_or_default(),
            is_disabled: is_on(setting(c"ROCM_KPACK_DISABLE")?),
            is_debugged: is_on(setting(c"ROCM_KPACK_DEBUG")?),
            is_quiet: is_on(setting(c"ROCM_KPACK_QUIET")?),
        })
    }

    /// Writes a step to the standard error, if debug lines are on.
    pub fn debug(&self, text: fmt::Arguments<'_>) {
        if self.is_debugged {
            report::line(format_args!("kpack: {text}"), "\n");
        }
    }
}

fn setting(name: &CStr) -> Result<Option<Vec<u8>>, Code> {
    variable(name).map_err(|_| report::refused("the environment"))
}

/// The entries of a list of paths, without empty ones.
fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b':').filter(|entry| !entry.is_empty())
}
