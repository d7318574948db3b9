//! `librocm_kpack_shim.so.0`: gives device code from kernel archives to HIP runtimes that cannot read them.
//!
//! A binary that was made for any HIP runtime calls the two functions here instead of the runtime's. For a wrapper with
//! kernel archives, the library makes an ordinary offload bundle of the installed code that a GPU of this machine can
//! use, and registers it with the runtime.
//!
//! ```text
//! calling     the object with the wrapper, and the functions of its HIP runtime  (unsafe)
//! binary      the marker and the installed archives of that object
//! gpus        the GPUs of this machine
//! bundle      an offload bundle in memory: code is decompressed into it, or mapped (unsafe)
//! registered  registrations, and bundles that wait for the next one
//! ```
//!
//! Bundles stay in memory until the process ends. Locks are tried a number of times, never waited for: in a child of
//! `fork` they may stay locked.

#![deny(unsafe_code)]

mod binary;
mod bundle;
mod gpus;
mod hip_runtime;
mod registered;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use rockpack_kpack::Code;
use rocm_kpack_core::report;

use binary::{Binary, report_unused};
use bundle::Bundle;
use hip_runtime::{HipRuntime, Wrapper};

/// Attempts to take a lock, which is only held for a moment.
const ATTEMPTS: usize = 1000;

/// Takes a lock; `None` if it stays locked, as in a child that was forked meanwhile.
fn locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..ATTEMPTS {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// The binary of the last wrapper, whose other wrappers mostly follow.
static LAST: Mutex<Option<Binary>> = Mutex::new(None);

/// Registers a wrapper, as `__hipRegisterFatBinary` does, and returns the handle of the HIP runtime.
///
/// # Safety
///
/// `wrapper` is what that function takes: a wrapper that stays in memory until its handle is unregistered.
#[allow(unsafe_code, reason = "called from C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocm_kpack_register_fat_binary(wrapper: *const Wrapper) -> *mut c_void {
    // SAFETY: the caller's promise.
    let given = unsafe { wrapper.as_ref() };
    // A panic would be a bug; it must not cross the interface.
    let prepared = catch_unwind(AssertUnwindSafe(|| prepare(given)));
    let (runtime, bundle) = prepared.unwrap_or_default();
    let Some(runtime) = runtime.or_else(|| HipRuntime::of(wrapper.addr())) else {
        report::line(format_args!("rocm-kpack: no HIP runtime is loaded"), "\n");
        return std::ptr::null_mut();
    };
    let image = bundle.map_or(wrapper, |bundle| &raw const bundle.wrapper);
    // SAFETY: the function is the runtime's; the wrapper is the caller's, or one that stays in memory.
    let handle = unsafe { (runtime.register)(image) };
    registered::add(handle, runtime, bundle);
    handle
}

/// Ends the registration of a wrapper, as `__hipUnregisterFatBinary` does.
///
/// # Safety
///
/// `handle` came from [`rocm_kpack_register_fat_binary`].
#[allow(unsafe_code, reason = "called from C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocm_kpack_unregister_fat_binary(handle: *mut c_void) {
    let end = || {
        registered::remove(handle, |unregister| {
            // SAFETY: the function is that of the runtime which gave the handle.
            unsafe { unregister(handle) }
        })
    };
    drop(catch_unwind(AssertUnwindSafe(end)));
}

/// The HIP runtime of a wrapper, and the bundle that replaces its archives. Without a bundle, the runtime gets the
/// wrapper itself.
fn prepare(wrapper: Option<&Wrapper>) -> (Option<HipRuntime>, Option<&'static Bundle>) {
    let Some(wrapper) = wrapper.filter(|wrapper| wrapper.is_of_archives()) else {
        return (None, None);
    };
    let last = locked(&LAST).and_then(|mut last| last.take());
    let binary = match last.filter(|last| last.is_of(wrapper)) {
        Some(same) => Ok(same),
        None => Binary::of(wrapper),
    };
    let bundle = binary.and_then(|mut binary| {
        let key = binary.key(wrapper.co_index)?;
        let bundle = match registered::idle(&binary, &key) {
            Some(idle) => Ok(idle),
            None => Bundle::new(&mut binary, key),
        };
        let runtime = binary.runtime;
        if let Some(mut last) = locked(&LAST) {
            *last = Some(binary);
        }
        bundle.map(|bundle| (runtime, Some(bundle)))
    });
    bundle.unwrap_or_else(|_: Code| {
        report_unused(&report::draft());
        (None, None)
    })
}
