//! The C interface: checks arguments, stops panics, and writes outputs only on success.
//!
//! `include/rocm_kpack/kpack.h` documents each function for its callers.

#![allow(unsafe_code, reason = "C callers pass pointers; each block states what it relies on")]

mod load;
mod more;
mod query;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use rockpack_kpack::Code;

use crate::archive::OpenArchive;
use crate::memory::{self, Handed};
use crate::report;

pub use load::*;
pub use more::*;
pub use query::*;

/// A callback for targets or other names. It returns false to end the enumeration.
pub type NameCallback = unsafe extern "C" fn(name: *const c_char, user_data: *mut c_void) -> bool;

/// Runs `call` and returns its code. A panic, which is a bug here, must not cross the interface.
fn answer(call: impl FnOnce() -> Result<(), Code>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let why = format_args!("a bug in librocm_kpack; please report it with the archive");
        Err(report::fail(Code::InvalidFormat, why))
    });
    result.map_or_else(
        |code| {
            report::publish();
            code.number()
        },
        |()| 0,
    )
}

fn invalid(what: &str) -> Code {
    report::fail(Code::InvalidArgument, format_args!("{what} is NULL, zero or out of range"))
}

/// The text of a caller.
///
/// # Safety
///
/// `start` is NULL or ends with a NUL within memory of the caller.
unsafe fn text<'a>(start: *const c_char, what: &str) -> Result<&'a CStr, Code> {
    // SAFETY: the caller's promise.
    unsafe { memory::text(start) }.ok_or_else(|| invalid(what))
}

/// The place of a caller's output.
///
/// # Safety
///
/// `output` is NULL or can be written.
unsafe fn place<T>(output: *mut T, what: &str) -> Result<NonNull<T>, Code> {
    NonNull::new(output).ok_or_else(|| invalid(what))
}

/// The archive that a caller holds.
///
/// # Safety
///
/// `archive` is NULL or came from `kpack_open` and is not closed during `'a`.
unsafe fn archive<'a>(archive: *const OpenArchive) -> Result<&'a OpenArchive, Code> {
    // SAFETY: the caller's promise; archives are only read.
    unsafe { archive.as_ref() }.ok_or_else(|| invalid("archive"))
}

/// Hands a code object out.
///
/// # Safety
///
/// Both places can be written.
unsafe fn hand_out(handed: Handed, data: NonNull<*mut c_void>, size: NonNull<usize>) {
    let (start, len) = handed.into_raw();
    // SAFETY: the caller's promise.
    unsafe {
        data.write(start);
        size.write(len);
    }
}
