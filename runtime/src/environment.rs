//! The environment variables that decide how archives are found.

use std::fmt;

use rockpack_kpack::Code;

use crate::memory::variable;
use crate::report::{self, LineEnd};

/// What a cache takes from the environment, once.
#[derive(Debug, Default)]
pub struct Environment {
    /// Archives instead of those that markers name: `ROCM_KPACK_PATH`.
    pub instead: Vec<u8>,
    /// Archives before those that markers name: `ROCM_KPACK_PATH_PREFIX`.
    pub before: Vec<u8>,
    /// Every load fails: `ROCM_KPACK_DISABLE`.
    pub is_disabled: bool,
    /// Each step is told on the standard error: `ROCM_KPACK_DEBUG`.
    pub is_debugged: bool,
    /// Missing targets are not told on the standard error: `ROCM_KPACK_QUIET`.
    pub is_quiet: bool,
}

/// Whether a variable switches something on: it is not empty and does not begin with `0`.
fn is_on(value: Option<Vec<u8>>) -> bool {
    value.is_some_and(|value| value.first().is_some_and(|first| *first != b'0'))
}

impl Environment {
    /// Reads it.
    pub fn read() -> Result<Self, Code> {
        let read = |name| variable(name).map_err(|_| report::refused("the environment"));
        Ok(Self {
            instead: read(c"ROCM_KPACK_PATH")?.unwrap_or_default(),
            before: read(c"ROCM_KPACK_PATH_PREFIX")?.unwrap_or_default(),
            is_disabled: is_on(read(c"ROCM_KPACK_DISABLE")?),
            is_debugged: is_on(read(c"ROCM_KPACK_DEBUG")?),
            is_quiet: is_on(read(c"ROCM_KPACK_QUIET")?),
        })
    }

    /// Tells a step on the standard error, if that was asked for.
    pub fn debug(&self, text: fmt::Arguments<'_>) {
        if self.is_debugged {
            report::line(format_args!("kpack: {text}"), LineEnd::PLAIN);
        }
    }
}

/// The entries of a list of paths; empty ones are none.
pub fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b':').filter(|entry| !entry.is_empty())
}
