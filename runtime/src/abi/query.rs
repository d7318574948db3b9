//! The functions for archives that callers open themselves.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use rockpack_kpack::archive::Archive;

use super::{ArchCallback, answer, archive as held, hand_out, invalid, place, text};
use rocm_kpack_core::archive::OpenArchive;
use rocm_kpack_core::memory;
use rocm_kpack_core::report;

/// Opens an archive.
///
/// # Safety
///
/// `path` is NULL or a text; `archive` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_open(path: *const c_char, archive: *mut *mut OpenArchive) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (path, archive) = (unsafe { text(path, "path")? }, place(archive, "archive")?);
        let opened = memory::place(OpenArchive::open(path)?)
            .map_err(|_| report::refused("an open archive"))?;
        // SAFETY: by the caller's promise, an output that is not NULL can be written.
        unsafe { archive.write(opened.as_ptr()) };
        Ok(())
    })
}

/// Closes an archive.
///
/// # Safety
///
/// `archive` is NULL or came from [`kpack_open`], and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_close(archive: *mut OpenArchive) {
    if let Some(archive) = NonNull::new(archive) {
        // SAFETY: `place` made the archive, and the caller hands it over.
        unsafe { memory::remove(archive) };
    }
}

/// Exports two functions for the names of one kind in an archive: how many there are, and each by its index.
macro_rules! names {
    ($names:path, $(#[$of_count:meta])* $count:ident, $(#[$of_name:meta])* $name:ident) => {
        $(#[$of_count])*
        ///
        /// # Safety
        ///
        /// `archive` is NULL or open; `output` is NULL or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $count(archive: *const OpenArchive, output: *mut usize) -> c_int {
            answer(|| {
                // SAFETY: the caller's promise.
                let (archive, output) = (unsafe { held(archive)? }, place(output, "count")?);
                // SAFETY: as above.
                unsafe { output.write($names(&archive.table).len()) };
                Ok(())
            })
        }

        $(#[$of_name])*
        ///
        /// # Safety
        ///
        /// `archive` is NULL or open; `output` is NULL or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            archive: *const OpenArchive,
            index: usize,
            output: *mut *const c_char,
        ) -> c_int {
            answer(|| {
                // SAFETY: the caller's promise.
                let (archive, output) = (unsafe { held(archive)? }, place(output, "the output")?);
                let name = $names(&archive.table).get_c(index).ok_or_else(|| invalid("index"))?;
                // SAFETY: as above. The name lives as long as the archive.
                unsafe { output.write(name.as_ptr()) };
                Ok(())
            })
        }
    };
}

names! {
    Archive::arches,
    /// Counts the targets that an archive answers for.
    kpack_get_architecture_count,
    /// Gives a target by its index in the order of the file.
    kpack_get_architecture
}

names! {
    Archive::keys,
    /// Counts the keys of the table.
    kpack_get_binary_count,
    /// Gives a key by its index in byte order.
    kpack_get_binary
}

/// Loads the code object of a row.
///
/// # Safety
///
/// `archive` is NULL or open; the texts are NULL or texts; the outputs are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_get_kernel(
    archive: *const OpenArchive,
    binary_name: *const c_char,
    arch: *const c_char,
    kernel_data: *mut *mut c_void,
    kernel_size: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let archive = held(archive)?;
            let (key, arch) = (text(binary_name, "binary_name")?, text(arch, "arch")?);
            let data = place(kernel_data, "kernel_data")?;
            let size = place(kernel_size, "kernel_size")?;
            hand_out(archive.load(key.to_bytes(), arch.to_bytes())?, data, size);
        }
        Ok(())
    })
}

/// Releases a code object.
///
/// # Safety
///
/// `kernel_data` is NULL or was handed out by this library, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_free_kernel(kernel_data: *mut c_void) {
    // SAFETY: by the caller's promise, it is NULL or came from calloc.
    unsafe { libc::free(kernel_data) }
}

/// Passes each target in an archive's list to `callback`.
///
/// # Safety
///
/// `archive_path` is NULL or a text; `callback` takes a text and `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kpack_enumerate_architectures(
    archive_path: *const c_char,
    callback: Option<ArchCallback>,
    user_data: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { text(archive_path, "archive_path")? };
        let callback = callback.ok_or_else(|| invalid("callback"))?;
        let archive = OpenArchive::open(path)?;
        let arches = archive.table.arches();
        for arch in (0..arches.len()).filter_map(|index| arches.get_c(index)) {
            // SAFETY: the caller's promise.
            if !unsafe { callback(arch.as_ptr(), user_data) } {
                break;
            }
        }
        Ok(())
    })
}

/// The text of the last error in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn kpack_last_error() -> *const c_char {
    report::last()
}
