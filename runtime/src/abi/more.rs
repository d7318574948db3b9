//! Functions that AMD's library does not have.

use std::ffi::{c_char, c_int, c_void};

use super::query::each_name;
use super::{NameCallback, answer, archive as held, invalid, place, text};
use crate::archive::{OpenArchive, RowName};
use crate::kernels;
use crate::report;
use crate::rows;

/// A callback for rows. It returns false to end the enumeration.
pub type RowCallback = unsafe extern "C" fn(
    binary_name: *const c_char,
    arch: *const c_char,
    user_data: *mut c_void,
) -> bool;

/// The text of the last error in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn kpack_last_error() -> *const c_char {
    report::last()
}

/// Gives the size of a code object without loading it.
///
/// # Safety
///
/// As `kpack_get_kernel`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_get_kernel_size(
    archive: *const OpenArchive,
    binary_name: *const c_char,
    arch: *const c_char,
    kernel_size: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let archive = held(archive)?;
            let (key, arch) = (text(binary_name, "binary_name")?, text(arch, "arch")?);
            let output = place(kernel_size, "kernel_size")?;
            let size = archive.size(key.to_bytes(), arch.to_bytes())?;
            let size = usize::try_from(size).map_err(|_| report::refused("a code object"))?;
            output.write(size);
        }
        Ok(())
    })
}

/// Passes the target of each row of a key to `callback`.
///
/// # Safety
///
/// `archive` is NULL or open; `binary_name` is NULL or a text; `callback` takes a text and `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_enumerate_targets(
    archive: *const OpenArchive,
    binary_name: *const c_char,
    callback: Option<NameCallback>,
    user_data: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (archive, key) = unsafe { (held(archive)?, text(binary_name, "binary_name")?) };
        let callback = callback.ok_or_else(|| invalid("callback"))?;
        for (target, _) in archive.rows_of(key.to_bytes()) {
            // SAFETY: the caller's promise.
            if !unsafe { callback(target.as_ptr(), user_data) } {
                break;
            }
        }
        Ok(())
    })
}

/// Passes the name of each kernel in the code object of a row to `callback`.
///
/// # Safety
///
/// `archive` is NULL or open; the texts are NULL or texts; `callback` takes a text and `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_enumerate_kernels(
    archive: *const OpenArchive,
    binary_name: *const c_char,
    arch: *const c_char,
    callback: Option<NameCallback>,
    user_data: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let archive = unsafe { held(archive)? };
        // SAFETY: as above.
        let (key, arch) = unsafe { (text(binary_name, "binary_name")?, text(arch, "arch")?) };
        let callback = callback.ok_or_else(|| invalid("callback"))?;
        let code_object = archive.load(key.to_bytes(), arch.to_bytes())?;
        let row = RowName { key: key.to_bytes(), target: arch.to_bytes() };
        let what = format_args!("{}: {row}", archive.path());
        let names = kernels::names(code_object.bytes(), &what)?;
        // SAFETY: the caller's promise.
        unsafe { each_name(&names, callback, user_data) };
        Ok(())
    })
}

/// Passes each row whose code object has a kernel of this name to `callback`. Loads each code object once,
/// one at a time.
///
/// # Safety
///
/// `archive` is NULL or open; `kernel_name` is NULL or a text; `callback` takes two texts and `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_find_kernel(
    archive: *const OpenArchive,
    kernel_name: *const c_char,
    callback: Option<RowCallback>,
    user_data: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (archive, wanted) = unsafe { (held(archive)?, text(kernel_name, "kernel_name")?) };
        let callback = callback.ok_or_else(|| invalid("callback"))?;
        let has_it = |code_object: &[u8], row: &RowName<'_>| {
            let names = kernels::names(code_object, &format_args!("{}: {row}", archive.path()))?;
            Ok(names.iter().any(|name| name == wanted.to_bytes()))
        };
        rows::each(archive, has_it, |key, target, has_it| {
            // SAFETY: the caller's promise.
            !has_it || unsafe { callback(key.as_ptr(), target.as_ptr(), user_data) }
        })
    })
}

/// Loads each code object that has a row once, and frees it. Fails at the first fault.
///
/// # Safety
///
/// `archive` is NULL or open; `rows` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_verify(archive: *const OpenArchive, rows: *mut usize) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let archive = unsafe { held(archive)? };
        let mut count = 0;
        rows::each(
            archive,
            |_, _| Ok(()),
            |_, _, ()| {
                count += 1;
                true
            },
        )?;
        if !rows.is_null() {
            // SAFETY: the caller's promise.
            unsafe { rows.write(count) };
        }
        Ok(())
    })
}
