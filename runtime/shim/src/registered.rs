//! Registrations with HIP runtimes, and bundles whose registration has ended. These are reused by the next registration
//! of the same wrapper, because a HIP runtime may access a bundle until the process ends.

use std::ffi::c_void;
use std::sync::Mutex;

use crate::binary::Binary;
use crate::bundle::Bundle;
use crate::hip_runtime::{HipRuntime, Unregister};
use crate::locked;

/// A wrapper that is registered, or the bundle of one that was.
struct Registration {
    /// The address of what the HIP runtime returned; `None` once it is not registered any more.
    handle: Option<usize>,
    unregister: Option<Unregister>,
    /// The bundle that was registered instead of the wrapper.
    bundle: Option<&'static Bundle>,
}

static REGISTERED: Mutex<Vec<Registration>> = Mutex::new(Vec::new());

pub fn add(handle: *mut c_void, runtime: HipRuntime, bundle: Option<&'static Bundle>) {
    if let Some(mut registered) = locked(&REGISTERED)
        && registered.try_reserve(1).is_ok()
    {
        let (handle, unregister) = (Some(handle.addr()), runtime.unregister);
        registered.push(Registration { handle, unregister, bundle });
    }
}

/// Ends a registration by the function of its HIP runtime.
pub fn remove(handle: *mut c_void, end: impl FnOnce(Unregister)) {
    let find = |registered: &[Registration]| {
        registered.iter().rposition(|it| it.handle == Some(handle.addr()))
    };
    let known = locked(&REGISTERED)
        .and_then(|registered| Some(registered.get(find(&registered)?)?.unregister));
    // Another copy of this library may have registered it.
    let unregister =
        known.unwrap_or_else(|| HipRuntime::of(handle.addr()).and_then(|it| it.unregister));
    unregister.map(end);
    if let Some(mut registered) = locked(&REGISTERED)
        && let Some(index) = find(&registered)
    {
        match registered.get_mut(index) {
            Some(ended) if ended.bundle.is_some() => ended.handle = None,
            _ => drop(registered.swap_remove(index)),
        }
    }
}

/// Takes the bundle that waits for a wrapper, whose rows have this key.
pub fn idle(binary: &Binary, key: &[u8]) -> Option<&'static Bundle> {
    let mut registered = locked(&REGISTERED)?;
    let is_idle = |it: &Registration| {
        it.handle.is_none() && it.bundle.is_some_and(|bundle| bundle.is_of(binary, key))
    };
    let index = registered.iter().position(is_idle)?;
    registered.swap_remove(index).bundle
}
