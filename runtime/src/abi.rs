//! The C interface: checks arguments, stops panics, and writes outputs only on success.
//!
//! `include/rocm_kpack/kpack.h` documents each function for its callers. Those that the HIP runtime calls are here;
//! `query` has those for archives that callers open themselves.

#![allow(unsafe_code, reason = "C callers pass pointers; each block states what it relies on")]

mod query;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use rockpack_kpack::Code;

use rocm_kpack_core::archive::OpenArchive;
use rocm_kpack_core::cache::Cache;
use rocm_kpack_core::file;
use rocm_kpack_core::lookup::Request;
use rocm_kpack_core::memory::{self, CallerMemory, marker};
use rocm_kpack_core::report;

pub use query::*;

/// A callback for targets. It returns false to end the enumeration.
pub type ArchCallback = unsafe extern "C" fn(arch: *const c_char, user_data: *mut c_void) -> bool;

/// Runs `call` and returns its code. A panic, which is a bug here, must not cross the interface.
fn answer(call: impl FnOnce() -> Result<(), Code>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let why = format_args!("a bug in librocm_kpack; please report it with the archive");
        Err(report::fail(Code::InvalidFormat, why))
    });
    result.map_or_else(
        |code| {
            report::publish();
            code as c_int
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

/// The pointer to a caller's output, which must not be NULL.
fn place<T>(output: *mut T, what: &str) -> Result<NonNull<T>, Code> {
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

/// Gives a code object to the caller.
///
/// # Safety
///
/// Both places can be written.
unsafe fn hand_out(handed: CallerMemory, data: NonNull<*mut c_void>, size: NonNull<usize>) {
    let (start, len) = handed.into_raw();
    // SAFETY: the caller's promise.
    unsafe {
        data.write(start);
        size.write(len);
    }
}

/// Makes a cache of archives.
///
/// # Safety
///
/// `cache` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_cache_create(cache: *mut *mut Cache) -> c_int {
    answer(|| {
        let cache = place(cache, "cache")?;
        let made =
            memory::place(Cache::new()?).map_err(|_| report::refused("a cache of archives"))?;
        // SAFETY: the caller's promise.
        unsafe { cache.write(made.as_ptr()) };
        Ok(())
    })
}

/// Closes a cache and its archives. Code objects that were handed out stay.
///
/// # Safety
///
/// `cache` is NULL or came from [`kpack_cache_create`], and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_cache_destroy(cache: *mut Cache) {
    if let Some(cache) = NonNull::new(cache) {
        // SAFETY: `place` made the cache, and the caller hands it over.
        unsafe { memory::remove(cache) };
    }
}

/// The texts of a list, without NULL pointers.
///
/// # Safety
///
/// `list` points to `count` pointers, each NULL or to a text.
unsafe fn texts<'a>(list: *const *const c_char, count: usize) -> Result<Vec<&'a CStr>, Code> {
    // SAFETY: the caller's promise. No list is longer than an address space.
    let list = unsafe { std::slice::from_raw_parts(list, count.min(isize::MAX as usize / 16)) };
    let mut texts = Vec::new();
    texts.try_reserve_exact(list.len()).map_err(|_| report::refused("the list of archs"))?;
    // SAFETY: the caller's promise.
    texts.extend(list.iter().filter_map(|start| unsafe { memory::text(*start) }));
    Ok(texts)
}

/// Loads the code object of a wrapper for the first device that an archive has code for.
///
/// # Safety
///
/// `cache` is NULL or open; `hipk_metadata` is NULL or points to a MessagePack value; `binary_path` is NULL
/// or a text; `arch_list` is NULL or has `arch_count` pointers, each NULL or to a text; the outputs are NULL
/// or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_load_code_object(
    cache: *const Cache,
    hipk_metadata: *const c_void,
    binary_path: *const c_char,
    co_index: u32,
    arch_list: *const *const c_char,
    arch_count: usize,
    code_object_out: *mut *mut c_void,
    code_object_size_out: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let cache = cache.as_ref().ok_or_else(|| invalid("cache"))?;
            let binary_path = text(binary_path, "binary_path")?.to_bytes();
            let data = place(code_object_out, "code_object_out")?;
            let size = place(code_object_size_out, "code_object_size_out")?;
            if hipk_metadata.is_null() || arch_list.is_null() || arch_count == 0 {
                return Err(invalid("hipk_metadata, arch_list or arch_count"));
            }
            cache.enabled()?;
            let marker = marker(hipk_metadata, u64::MAX)?;
            let arches = texts(arch_list, arch_count)?;
            let request = Request { marker: &marker, binary_path, arches: &arches };
            hand_out(cache.load(&request, co_index)?, data, size);
        }
        Ok(())
    })
}

/// Releases a code object.
///
/// # Safety
///
/// `code_object` is NULL or was handed out by this library, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_free_code_object(code_object: *mut c_void) {
    // SAFETY: by the caller's promise, it is NULL or came from calloc.
    unsafe { libc::free(code_object) }
}

/// Finds the file that is mapped at an address.
///
/// # Safety
///
/// `path_out` is NULL or has `path_out_size` bytes that can be written; `offset_out` is NULL or can be
/// written. `address` is compared, never read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_discover_binary_path(
    address: *const c_void,
    path_out: *mut c_char,
    path_out_size: usize,
    offset_out: *mut usize,
) -> c_int {
    answer(|| {
        if address.is_null() || path_out.is_null() || path_out_size == 0 {
            return Err(invalid("address, path_out or path_out_size"));
        }
        let (path, offset) = file::discover(address.addr() as u64)?;
        if path.len() >= path_out_size {
            return Err(invalid("path_out_size"));
        }
        let offset = usize::try_from(offset).map_err(|_| invalid("the offset"))?;
        // SAFETY: the caller's promise; `path` and a NUL fit.
        unsafe {
            path_out.cast::<u8>().copy_from_nonoverlapping(path.as_ptr(), path.len());
            path_out.add(path.len()).write(0);
            if let Some(offset_out) = NonNull::new(offset_out) {
                offset_out.write(offset);
            }
        }
        Ok(())
    })
}
