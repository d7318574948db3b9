//! One lookup of the archives for a load: finds candidates in their order and opens them.

use std::ffi::CStr;

use rockpack_kpack::marker::MarkerFields;
use rockpack_kpack::target::{CompatibleTarget, compatible};
use rockpack_kpack::{Code, push};

use crate::archives::{ArchiveHandle, Archives};
use crate::candidates::{
    Environment, append, around_placeholder, entries, joined, no_memory, pattern,
    without_missing_folders,
};
use crate::file::{self, Fault, Identity};
use crate::report::{self, Escaped, Text};

/// Most files that are tried for one load. A marker of 64 KiB and a target ID with sixteen features could name a
/// billion.
const LIMIT: usize = 4096;

/// Most bytes of a path: every system call refuses longer ones.
const PATH_LIMIT: usize = 4096;

/// The inputs that determine where a load searches.
pub struct Request<'a> {
    /// The marker of the binary.
    pub marker: &'a MarkerFields,
    /// The path of the binary.
    pub binary_path: &'a [u8],
    /// Target IDs of devices, the preferred one first.
    pub arches: &'a [&'a CStr],
}

impl Request<'_> {
    /// The compatible targets, the best one first.
    pub(crate) fn targets(&self) -> impl Iterator<Item = CompatibleTarget<'_>> {
        self.arches.iter().flat_map(|arch| compatible(arch.to_bytes()))
    }
}

/// The outcome of a lookup.
pub struct Lookup<'a> {
    archives: &'a Archives,
    environment: &'a Environment,
    /// The number of files that may still be tried.
    left: usize,
    /// The paths that were tried, so that each is tried once.
    tried: Vec<Vec<u8>>,
    /// The files that are not valid archives.
    damaged: Vec<Identity>,
    /// The archives, in the order in which they are searched.
    pub found: Vec<ArchiveHandle>,
    /// The candidates, for messages.
    pub searched: Text,
    /// The message of the first file that exists but cannot be used.
    pub unusable: Option<Text>,
    /// The code and the message of the first system fault that hid a candidate.
    pub system_fault: Option<(Code, Text)>,
    /// Whether candidates depend on the working directory.
    pub is_relative: bool,
    /// Whether the lookup opened an archive.
    pub has_opened: bool,
}

impl<'a> Lookup<'a> {
    /// Looks up all candidates.
    pub fn new(
        archives: &'a Archives,
        environment: &'a Environment,
        request: &Request<'_>,
    ) -> Result<Self, Code> {
        let mut lookup = Self {
            archives,
            environment,
            left: LIMIT,
            tried: Vec::new(),
            damaged: Vec::new(),
            found: Vec::new(),
            searched: Text::new(),
            unusable: None,
            system_fault: None,
            is_relative: false,
            has_opened: false,
        };
        lookup.try_all(request)?;
        Ok(lookup)
    }

    fn try_all(&mut self, request: &Request<'_>) -> Result<(), Code> {
        let Environment { replacement_paths, before, .. } = self.environment;
        let replaces = entries(replacement_paths).next().is_some();
        for entry in entries(if replaces { replacement_paths } else { before }) {
            self.try_candidate(entry, false)?;
        }
        if replaces {
            return Ok(());
        }
        for search_path in request.marker.search_paths.iter() {
            let pattern = pattern(request.binary_path, search_path)?;
            let is_resolved = search_path.first() != Some(&b'/');
            let Some((before, after)) = around_placeholder(&pattern) else {
                self.try_candidate(&pattern, is_resolved)?;
                continue;
            };
            for target in request.targets() {
                if self.left == 0 {
                    break;
                }
                let mut path = joined(&[before])?;
                target.append_to(&mut path).map_err(no_memory)?;
                append(&mut path, after)?;
                let (from, to) = (Escaped(&pattern), Escaped(&path));
                self.environment.debug(format_args!("expanded pattern: {from} -> {to}"));
                self.try_candidate(&path, is_resolved)?;
            }
        }
        Ok(())
    }

    /// Tries a path as the kernel resolves it. If it does not exist, and AMD's loader resolves such paths, tries the
    /// path that the loader would use.
    fn try_candidate(&mut self, path: &[u8], is_resolved: bool) -> Result<(), Code> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(()) };
        self.left = left;
        if path.len() >= PATH_LIMIT || path.contains(&0) || self.take(path)? || !is_resolved {
            return Ok(());
        }
        if let Some(resolved) = without_missing_folders(path)? {
            self.take(&resolved)?;
        }
        Ok(())
    }

    /// Adds the archive at a path. Returns whether the file exists.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, Code> {
        if self.tried.iter().any(|tried| tried == bytes) {
            return Ok(true);
        }
        push(&mut self.tried, joined(&[bytes])?).map_err(no_memory)?;
        self.is_relative |= bytes.first() != Some(&b'/');
        let separator = if self.searched.as_bytes().is_empty() { "" } else { ", " };
        self.searched.append(format_args!("{separator}{}", Escaped(bytes)));
        let path = joined(&[bytes, b"\0"])?;
        let Ok(path) = CStr::from_bytes_with_nul(&path) else { return Ok(false) };
        let state = match file::identity_at(path) {
            Ok(state) => state,
            Err(fault) => return self.skip_candidate(fault).map(|()| false),
        };
        if self.damaged.contains(&state) {
            return Ok(true);
        }
        match self.open(path, &state) {
            Ok(place) if self.found.contains(&place) => {}
            Ok(place) => {
                push(&mut self.found, place).map_err(|_| report::refused("open archives"))?
            }
            Err(fault) => {
                push(&mut self.damaged, state).map_err(|_| report::refused("damaged archives"))?;
                self.skip_candidate(fault)?;
            }
        }
        Ok(true)
    }

    /// Returns the open archive with this identity, or opens it.
    fn open(&mut self, path: &CStr, state: &Identity) -> Result<ArchiveHandle, Fault> {
        if let Some(place) = self.archives.find(state) {
            return Ok(place);
        }
        let place = self.archives.open(path)?;
        self.has_opened = true;
        self.environment.debug(format_args!("archive opened: {}", Escaped(path.to_bytes())));
        self.archives.with(&place, |archive| {
            for arch in archive.table.arches().iter() {
                self.environment.debug(format_args!("its architecture: {}", Escaped(arch)));
            }
        });
        Ok(place)
    }

    /// Skips a candidate that does not open. Fails if out of memory: the HIP runtime would otherwise silently skip the
    /// device.
    fn skip_candidate(&mut self, fault: Fault) -> Result<(), Code> {
        if fault.code == Code::OutOfMemory && !fault.is_system_fault {
            return Err(fault.code);
        }
        let text = report::draft();
        self.environment.debug(format_args!("archive skipped: {text}"));
        if fault.code != Code::FileNotFound {
            self.searched.append(format_args!(" ({text})"));
            self.unusable.get_or_insert_with(|| text.clone());
        }
        if fault.is_system_fault {
            self.system_fault.get_or_insert((fault.code, text));
        }
        Ok(())
    }
}
