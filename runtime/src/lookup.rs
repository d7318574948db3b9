//! One lookup of the archives for a load: finds candidates and opens them.

use std::ffi::CStr;

use rockpack_kpack::{Code, OutOfMemory};

use crate::archives::{ArchiveHandle, Archives};
use crate::candidates::{Environment, Places};
use crate::file::{self, Fault, Identity};
use crate::memory::copied;
use crate::report::{self, Shown, Text};

/// A fault of the machine, with its text.
pub struct MachineFault {
    code: Code,
    text: Text,
}

impl MachineFault {
    /// Drafts the fault again as that of the load, and returns its code.
    pub fn again(&self) -> Code {
        report::fail(self.code, format_args!("{}", self.text))
    }
}

/// The outcome of a lookup.
pub struct Lookup<'a> {
    archives: &'a Archives,
    environment: &'a Environment,
    /// The paths that were tried, so that each is tried once.
    tried: Vec<Vec<u8>>,
    /// The files that are no archives.
    damaged: Vec<Identity>,
    /// The archives, in the order in which they are searched.
    pub found: Vec<ArchiveHandle>,
    /// The candidates, for texts.
    pub looked: Text,
    /// The fault of the first candidate that the machine failed to look up or read.
    pub fault: Option<MachineFault>,
    /// Tells whether candidates depend on the working directory.
    pub is_relative: bool,
    /// Tells whether the lookup opened an archive.
    pub has_opened: bool,
}

impl<'a> Lookup<'a> {
    /// Looks up all candidates.
    pub fn new(
        archives: &'a Archives,
        environment: &'a Environment,
        places: &Places<'_>,
    ) -> Result<Self, Code> {
        let mut lookup = Self {
            archives,
            environment,
            tried: Vec::new(),
            damaged: Vec::new(),
            found: Vec::new(),
            looked: Text::new(),
            fault: None,
            is_relative: false,
            has_opened: false,
        };
        places.each(|path| lookup.take(path))?;
        Ok(lookup)
    }

    /// Tells whether later loads may use the archives without a new lookup.
    pub fn is_lasting(&self) -> bool {
        !self.found.is_empty() && !self.is_relative && self.fault.is_none()
    }

    /// Tries a candidate, and tells whether the file exists.
    fn take(&mut self, path: &CStr) -> Result<bool, Code> {
        let bytes = path.to_bytes();
        if self.tried.iter().any(|tried| tried == bytes) {
            return Ok(true);
        }
        self.remember(bytes).map_err(|_| report::refused("the path of an archive"))?;
        self.is_relative |= bytes.first() != Some(&b'/');
        let separator = if self.looked.as_bytes().is_empty() { "" } else { ", " };
        self.looked.append(format_args!("{separator}{}", Shown(bytes)));
        let state = match file::look(path) {
            Ok(state) => state,
            Err(fault) => return self.passed_over(fault).map(|()| false),
        };
        if self.damaged.contains(&state) {
            return Ok(true);
        }
        match self.open(path, &state) {
            Ok(place) if self.found.contains(&place) => {}
            Ok(place) => {
                self.found.try_reserve(1).map_err(|_| report::refused("open archives"))?;
                self.found.push(place);
            }
            Err(fault) => {
                self.damaged.try_reserve(1).map_err(|_| report::refused("damaged archives"))?;
                self.damaged.push(state);
                self.passed_over(fault)?;
            }
        }
        Ok(true)
    }

    fn remember(&mut self, path: &[u8]) -> Result<(), OutOfMemory> {
        let copy = copied(path)?;
        self.tried.try_reserve(1)?;
        self.tried.push(copy);
        Ok(())
    }

    /// Returns the open archive with this identity, or opens it.
    fn open(&mut self, path: &CStr, state: &Identity) -> Result<ArchiveHandle, Fault> {
        if let Some(place) = self.archives.find(state) {
            return Ok(place);
        }
        let place = self.archives.open(path)?;
        self.has_opened = true;
        self.environment.debug(format_args!("archive opened: {}", Shown(path.to_bytes())));
        self.archives.with(&place, |archive| {
            for arch in archive.table.arches().iter() {
                self.environment.debug(format_args!("its architecture: {}", Shown(arch)));
            }
        });
        Ok(place)
    }

    /// Continues after a candidate that does not open. Fails if memory was refused: the HIP runtime would
    /// otherwise skip the device without a trace.
    fn passed_over(&mut self, fault: Fault) -> Result<(), Code> {
        if fault.code == Code::OutOfMemory && !fault.is_of_machine {
            return Err(fault.code);
        }
        let text = report::draft();
        self.environment.debug(format_args!("archive skipped: {text}"));
        if fault.code != Code::FileNotFound {
            self.looked.append(format_args!(" ({text})"));
        }
        if fault.is_of_machine && self.fault.is_none() {
            self.fault = Some(MachineFault { code: fault.code, text });
        }
        Ok(())
    }
}
