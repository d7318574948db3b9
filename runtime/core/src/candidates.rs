//! The paths of archives that may have the code objects of a binary, and the environment variables that affect them.

use std::ffi::CStr;
use std::fmt;

use rockpack_kpack::marker::ARCH_PLACEHOLDER;
use rockpack_kpack::{Code, push};

use crate::file;
use crate::memory::variable;
use crate::report;

/// Appends bytes. Fails if memory is refused.
pub(crate) fn append(path: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Code> {
    path.try_reserve(bytes.len()).map_err(no_memory)?;
    path.extend_from_slice(bytes);
    Ok(())
}

/// A path of these parts. Fails if memory is refused.
pub(crate) fn joined(parts: &[&[u8]]) -> Result<Vec<u8>, Code> {
    let mut path = Vec::new();
    for part in parts {
        append(&mut path, part)?;
    }
    Ok(path)
}

pub(crate) fn no_memory<E>(_: E) -> Code {
    report::refused("the path of an archive")
}

/// The folder of a path, with the final `/`; empty without one.
pub fn folder(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

/// The path of a search path in the marker of a binary, which may have a placeholder.
pub fn pattern(binary_path: &[u8], search_path: &[u8]) -> Result<Vec<u8>, Code> {
    let is_absolute = search_path.first() == Some(&b'/');
    joined(&[if is_absolute { b"" } else { folder(binary_path) }, search_path])
}

/// The parts of a pattern before and after the placeholder.
pub fn around_placeholder(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let placeholder = ARCH_PLACEHOLDER.as_bytes();
    let at = pattern.windows(placeholder.len()).position(|part| part == placeholder)?;
    let (before, rest) = pattern.split_at_checked(at)?;
    Some((before, rest.strip_prefix(placeholder)?))
}

/// Whether the start of a path, up to `slash`, is a folder.
fn is_folder(path: &[u8], slash: usize) -> Result<bool, Code> {
    let start = joined(&[path.get(..slash.max(1)).unwrap_or_default(), b"\0"])?;
    Ok(CStr::from_bytes_until_nul(&start).is_ok_and(file::is_folder))
}

/// The path that AMD's loader derives from a missing one: existing folders stay, and in the rest each `..` removes the
/// part before it. `None` if that is the same path.
pub(crate) fn without_missing_folders(path: &[u8]) -> Result<Option<Vec<u8>>, Code> {
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
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in rest.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            _ => push(&mut parts, part).map_err(no_memory)?,
        }
    }
    let mut resolved = joined(&[there])?;
    for (index, part) in parts.iter().enumerate() {
        append(&mut resolved, if index == 0 { b"" } else { b"/" })?;
        append(&mut resolved, part)?;
    }
    Ok(Some(resolved))
}

fn goes_up(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part == b"..")
}

/// The settings that a cache reads from the environment, once. A privileged process ignores them, because its user
/// controls them.
#[derive(Debug, Default)]
pub struct Environment {
    /// Archives instead of those in markers: `ROCM_KPACK_PATH`.
    pub replacement_paths: Vec<u8>,
    /// Archives before those in markers: `ROCM_KPACK_PATH_PREFIX`.
    pub before: Vec<u8>,
    /// Every load fails: `ROCM_KPACK_DISABLE`.
    pub is_disabled: bool,
    /// Each step is written to the standard error: `ROCM_KPACK_DEBUG`.
    pub is_debugged: bool,
    /// Missing targets are not reported on the standard error: `ROCM_KPACK_QUIET`.
    pub is_quiet: bool,
}

/// Whether a variable switches something on: it is not empty and does not begin with `0`.
fn is_on(value: Option<Vec<u8>>) -> bool {
    value.is_some_and(|value| value.first().is_some_and(|first| *first != b'0'))
}

impl Environment {
    /// Reads the variables.
    pub fn read() -> Result<Self, Code> {
        Ok(Self {
            replacement_paths: setting(c"ROCM_KPACK_PATH")?.unwrap_or_default(),
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
pub(crate) fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b':').filter(|entry| !entry.is_empty())
}
