//! The environment variables that decide how archives are found. A privileged process reads none of them: its
//! user has set them.

use std::ffi::CStr;
use std::fmt;

use rockpack_kpack::Code;

use crate::memory::variable;
use crate::report::{self, LineEnd};

/// The settings that a cache reads from the environment, once.
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
            report::line(format_args!("kpack: {text}"), LineEnd::PLAIN);
        }
    }
}

fn setting(name: &CStr) -> Result<Option<Vec<u8>>, Code> {
    variable(name).map_err(|_| report::refused("the environment"))
}

/// The entries of a list of paths, without empty ones.
pub fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b':').filter(|entry| !entry.is_empty())
}
