//! Memory whose ownership or lifetime the compiler cannot check (memory that C callers free, their pointers,
//! lists that threads share without locks), and calls of the C library without a safe form.

#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::alloc::Layout;
use std::convert::Infallible;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use rockpack_kpack::marker::{LIMIT, MarkerFields, load};
use rockpack_kpack::message_pack::Input;
use rockpack_kpack::{Code, OutOfMemory};

use crate::report;

/// Memory from `calloc`, so that callers can release it by `free`.
pub struct CallerMemory {
    start: NonNull<u8>,
    size: usize,
}

impl CallerMemory {
    /// Reserves `size` bytes, which are zero.
    pub fn new(size: u64) -> Result<Self, OutOfMemory> {
        let size = usize::try_from(size).map_err(|_| OutOfMemory)?;
        // SAFETY: calloc takes any size, and its result is checked for NULL.
        let start = unsafe { libc::calloc(size.max(1), 1) };
        let start = NonNull::new(start.cast()).ok_or(OutOfMemory)?;
        Ok(Self { start, size })
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: calloc gave and initialised `size` bytes, which are borrowed as long as `self`.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }

    /// Hands over the memory: the caller releases it by `free`.
    pub fn into_raw(self) -> (*mut c_void, usize) {
        let kept = ManuallyDrop::new(self);
        (kept.start.as_ptr().cast(), kept.size)
    }
}

impl Drop for CallerMemory {
    fn drop(&mut self) {
        // SAFETY: `start` came from calloc and was not handed over.
        unsafe { libc::free(self.start.as_ptr().cast()) }
    }
}

/// Moves a value into allocated memory. Unlike `Box::new`, it fails if memory is refused.
pub fn place<T>(value: T) -> Result<NonNull<T>, OutOfMemory> {
    const { assert!(size_of::<T>() > 0, "a value without bytes has no memory") }
    // SAFETY: the layout has bytes.
    let start = unsafe { std::alloc::alloc(Layout::new::<T>()) };
    let start = NonNull::new(start.cast::<T>()).ok_or(OutOfMemory)?;
    // SAFETY: the memory has the layout of the value and no other owner.
    unsafe { start.write(value) };
    Ok(start)
}

/// Drops a value that [`place`] moved.
///
/// # Safety
///
/// `value` came from [`place`], and is not used again.
pub unsafe fn remove<T>(value: NonNull<T>) {
    // SAFETY: `place` made it as `Box` does, from the global allocator with the layout of `T`, and it has no
    // other owner.
    drop(unsafe { Box::from_raw(value.as_ptr()) });
}

/// A list that only grows, up to a fixed number of elements, and that threads share without a lock. Elements
/// keep their addresses until the list is dropped.
pub struct SharedList<T> {
    slots: Vec<AtomicPtr<T>>,
}

// SAFETY: elements are shared with other threads by reference, and dropped by the thread that drops the list.
// `T: Send + Sync` allows both.
unsafe impl<T: Send + Sync> Sync for SharedList<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for SharedList<T> {}

impl<T> SharedList<T> {
    /// Reserves room for `capacity` elements, at 8 bytes each.
    pub fn new(capacity: usize) -> Result<Self, OutOfMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity)?;
        slots.resize_with(capacity, || AtomicPtr::new(ptr::null_mut()));
        Ok(Self { slots })
    }

    /// The element with this index.
    pub fn get(&self, index: usize) -> Option<&T> {
        let element = self.slots.get(index)?.load(Ordering::Acquire);
        // SAFETY: a slot is NULL, or has an element that lives as long as the list. Acquire makes
        // the writes before its publication visible.
        unsafe { element.as_ref() }
    }

    /// All elements, by index.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..).map_while(|index| self.get(index))
    }

    /// Appends `value`, and returns its index. Fails if the list is full or memory is refused.
    pub fn append(&self, value: T) -> Result<usize, OutOfMemory> {
        let placed = place(value)?;
        let empty = ptr::null_mut();
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let index = self.slots.iter().position(|slot| {
            slot.compare_exchange(empty, placed.as_ptr(), success, failure).is_ok()
        });
        index.ok_or_else(|| {
            // SAFETY: `placed` came from `place` and was not published.
            unsafe { remove(placed) };
            OutOfMemory
        })
    }
}

impl<T> Drop for SharedList<T> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            if let Some(element) = NonNull::new(*slot.get_mut()) {
                // SAFETY: the element came from `place`, and its owner is the list, which is borrowed
                // mutably.
                unsafe { remove(element) };
            }
        }
    }
}

/// The rest of a marker at a pointer of a C caller. Only the MessagePack value determines its length.
struct CallerBytes {
    next: *const u8,
    /// The most bytes that may follow.
    left: u64,
}

impl Input for CallerBytes {
    type Error = Infallible;

    fn left(&self) -> u64 {
        self.left
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Infallible> {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        // SAFETY: by the promise of `marker`, the bytes of the value can be read, or all that are left. The
        // decoder requests no others, and the buffer has room for them.
        unsafe { ptr::copy_nonoverlapping(self.next, buffer.as_mut_ptr(), count) };
        self.skip(count as u64)
    }

    fn skip(&mut self, count: u64) -> Result<(), Infallible> {
        let skipped = count.min(self.left);
        self.left -= skipped;
        // At most the limit of markers, which any address space holds; the skipped bytes are not read.
        self.next = self.next.wrapping_add(usize::try_from(skipped).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// Reads a marker.
///
/// # Safety
///
/// `metadata` points to a MessagePack value, or to `limit` bytes, that do not change.
pub unsafe fn marker(metadata: *const c_void, limit: u64) -> Result<MarkerFields, Code> {
    let bytes = CallerBytes { next: metadata.cast(), left: limit.min(LIMIT as u64) };
    load(bytes).map_err(|fault| match fault.code() {
        Code::OutOfMemory => report::refused("a marker"),
        code => {
            let wants = "a map with a text kernel_name and an array kpack_search_paths";
            report::fail(code, format_args!("the marker of the binary is not {wants}"))
        }
    })
}

unsafe extern "C" {
    /// Does what getenv does, but gives NULL for all variables in a privileged process. The crate `libc` lacks it.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// Whether the process has privileges that its user lacks, as secure_getenv decides it.
pub fn is_privileged() -> bool {
    // SAFETY: getauxval takes any number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A copy of an environment variable; `None` if it is not set, or the process is privileged.
pub fn variable(name: &CStr) -> Result<Option<Vec<u8>>, OutOfMemory> {
    // SAFETY: `name` ends with a NUL. As forevery reader of the environment, a thread that changes it
    // meanwhile breaks the rules of getenv, which the header states.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    // SAFETY: secure_getenv returns NULL or a text that ends with a NUL.
    let Some(value) = (unsafe { text(value) }) else { return Ok(None) };
    copied(value.to_bytes()).map(Some)
}

/// A copy of a list. Unlike `to_vec`, it fails if memory is refused.
pub fn copied<T: Copy>(list: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(list.len())?;
    copy.extend_from_slice(list);
    Ok(copy)
}

/// Signals for a failed write, which end the process by default: a pipe without a reader, a file at its size limit.
const OF_WRITES: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

fn signals(list: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set, and sigaddset takes any number.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        list.iter().for_each(|signal| _ = libc::sigaddset(set.as_mut_ptr(), *signal));
        set.assume_init()
    }
}

/// Runs `write` without signals from failed writes: blocks them, and consumes those of the write before it restores the
/// mask.
pub fn without_signals(write: impl FnOnce()) {
    let held = signals(&OF_WRITES);
    let (mut mask, mut pending) = (signals(&[]), signals(&[]));
    // SAFETY: all three are initialised sets, which the calls read or overwrite.
    let is_held = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut mask) == 0
            && libc::sigpending(&raw mut pending) == 0
    };
    write();
    if !is_held {
        return;
    }
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    for signal in OF_WRITES {
        let own = signals(&[signal]);
        // SAFETY: as above; a signal that was pending before is not from this write.
        unsafe {
            if libc::sigismember(&raw const pending, signal) != 1 {
                libc::sigtimedwait(&raw const own, ptr::null_mut(), &raw const at_once);
            }
        }
    }
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
}

/// A text of a C caller; `None` for NULL.
///
/// # Safety
///
/// `start` is NULL or points to bytes that end with a NUL, and that do not change during `'a`.
pub unsafe fn text<'a>(start: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller promises what `CStr::from_ptr` requires.
    (!start.is_null()).then(|| unsafe { CStr::from_ptr(start) })
}
