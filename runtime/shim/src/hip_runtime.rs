//! The object whose wrapper is registered, and the HIP runtime that it is bound to.
//!
//! The functions are those that the dynamic linker would have found for the object: in the global scope, which
//! `LD_PRELOAD` begins, or among what the object needs. Which of the two comes first depends on how it was loaded
//! (`RTLD_DEEPBIND`), so imports that are bound already decide.

#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ops::Range;
use std::ptr;

use rockpack_kpack::Code;
use rockpack_kpack::marker::MarkerFields;
use rocm_kpack_core::report;

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, PT_DYNAMIC, PT_LOAD, dl_phdr_info};

/// A wrapper of device code.
#[repr(C)]
pub struct Wrapper {
    magic: u32,
    version: u32,
    /// The bundle, or the marker.
    pub data: *const c_void,
    /// The number of the wrapper in its binary.
    pub co_index: u32,
    reserved: u32,
}

impl Wrapper {
    /// The wrapper of an offload bundle: "HIPF".
    pub fn of_bundle(data: *const c_void) -> Self {
        Self { magic: 0x4849_5046, version: 1, data, co_index: 0, reserved: 0 }
    }

    /// Whether its data is a marker: "HIPK".
    pub fn is_of_archives(&self) -> bool {
        self.magic == 0x4b50_4948 && self.version == 1
    }

    pub fn marker(&self) -> Result<MarkerFields, Code> {
        let place = self.data.addr();
        let mut end = None;
        each_object(|info, headers| {
            let segments = segments(info, headers);
            end = segments.filter(|segment| segment.contains(&place)).map(|it| it.end).next();
            end.is_some()
        });
        let Some(end) = end else {
            return Err(report::fail(Code::InvalidMetadata, format_args!("no marker is loaded")));
        };
        // SAFETY: a segment is loaded up to its end, and markers do not change.
        unsafe { rocm_kpack_core::memory::marker(self.data, (end - place) as u64) }
    }
}

type Register = unsafe extern "C" fn(*const Wrapper) -> *mut c_void;
/// Ends the registration of a handle.
pub type Unregister = unsafe extern "C" fn(*mut c_void);

/// The functions of a HIP runtime.
#[derive(Clone, Copy)]
pub struct HipRuntime {
    /// `__hipRegisterFatBinary`.
    pub register: Register,
    /// `__hipUnregisterFatBinary`.
    pub unregister: Option<Unregister>,
}

/// The numbers of loaded and unloaded objects so far. While they stay the same, addresses stay valid.
pub type Generation = (u64, u64);

pub struct Object {
    /// The name for `dlopen`. It stays as long as the object is loaded.
    pub name: &'static CStr,
    base: usize,
    loaded: Range<usize>,
    dynamic: usize,
}

/// Passes the description of each loaded object to `look`, until it returns true.
fn each_object<F: FnMut(&dl_phdr_info, &[Elf64_Phdr]) -> bool>(mut look: F) {
    unsafe extern "C" fn call<F: FnMut(&dl_phdr_info, &[Elf64_Phdr]) -> bool>(
        info: *mut dl_phdr_info,
        _size: usize,
        look: *mut c_void,
    ) -> c_int {
        // SAFETY: the dynamic linker passes a description with its program headers, and `look` as it got it.
        unsafe {
            let (info, look) = (&*info, &mut *look.cast::<F>());
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            c_int::from(look(info, headers))
        }
    }
    // SAFETY: `look` lives longer than the call. It does not panic.
    unsafe { libc::dl_iterate_phdr(Some(call::<F>), (&raw mut look).cast()) };
}

/// The current generation of loaded objects.
pub fn generation() -> Generation {
    let mut numbers = (0, 0);
    each_object(|info, _| {
        numbers = (info.dlpi_adds, info.dlpi_subs);
        true
    });
    numbers
}

/// The addresses of the segments of an object.
fn segments(info: &dl_phdr_info, headers: &[Elf64_Phdr]) -> impl Iterator<Item = Range<usize>> {
    let loads = headers.iter().filter(|header| header.p_type == PT_LOAD);
    loads.map(|load| {
        let start = address(info.dlpi_addr).wrapping_add(address(load.p_vaddr));
        start..start + address(load.p_memsz)
    })
}

fn address(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

impl Object {
    /// The object that is loaded at an address.
    pub fn at(place: usize) -> Option<Self> {
        let mut found = None;
        each_object(|info, headers| {
            let base = address(info.dlpi_addr);
            let all = segments(info, headers)
                .reduce(|all, range| all.start.min(range.start)..all.end.max(range.end));
            let Some(loaded) = all.filter(|all| all.contains(&place)) else { return false };
            let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC);
            // SAFETY: the name is NULL or a text of the dynamic linker. Memory is not allocated here: an allocator
            // may ask for the loaded objects, too.
            let name = unsafe { rocm_kpack_core::memory::text(info.dlpi_name) }.unwrap_or_default();
            found = Some(Self {
                name,
                base,
                loaded,
                dynamic: dynamic.map_or(0, |it| base + address(it.p_vaddr)),
            });
            true
        });
        found
    }

    /// An import of the HIP runtime that is bound already, with the address of its function.
    fn bound_import(&self) -> Option<(&CStr, usize)> {
        let [mut relocations, mut size, mut symbols, mut names] = [0; 4];
        let mut entry = self.dynamic as *const [u64; 2];
        loop {
            // SAFETY: the dynamic section ends with DT_NULL; the dynamic linker has read it in this way.
            let [tag, value] = if entry.is_null() { return None } else { unsafe { entry.read() } };
            match tag {
                DT_JMPREL => relocations = self.pointer(value),
                DT_PLTRELSZ => size = address(value),
                DT_SYMTAB => symbols = self.pointer(value),
                DT_STRTAB => names = self.pointer(value),
                DT_NULL => break,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        if [relocations, symbols, names].contains(&0) {
            return None;
        }
        let count = size / size_of::<Elf64_Rela>();
        // SAFETY: the dynamic linker has applied these relocations, or will do so.
        let relocations =
            unsafe { std::slice::from_raw_parts(relocations as *const Elf64_Rela, count) };
        relocations.iter().find_map(|relocation| {
            let symbol =
                (symbols as *const Elf64_Sym).wrapping_add(address(relocation.r_info >> 32));
            let slot = self.base.wrapping_add(address(relocation.r_offset)) as *const usize;
            // SAFETY: the relocation names a symbol of the table, the symbol a text, and the slot is loaded.
            let (name, value) = unsafe {
                let name = address(u64::from((*symbol).st_name));
                (CStr::from_ptr((names as *const c_char).wrapping_add(name)), slot.read())
            };
            let is_bound = value != 0 && !self.loaded.contains(&value);
            (is_bound && name.to_bytes().starts_with(b"__hip")).then_some((name, value))
        })
    }

    /// The address in a dynamic tag, to which some dynamic linkers have added the base.
    fn pointer(&self, value: u64) -> usize {
        let value = address(value);
        if value < self.base { self.base + value } else { value }
    }
}

const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_JMPREL: u64 = 23;

fn symbol(scope: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the scope is open, and the name is a text.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl HipRuntime {
    /// The runtime of the object that holds the wrapper at an address.
    pub fn of(wrapper: usize) -> Option<Self> {
        let object = Object::at(wrapper);
        let bound = object.as_ref().and_then(Object::bound_import);
        // The object that a function comes from is searched, too: others may bring it along.
        let home = bound.and_then(|(_, value)| Object::at(value));
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: nothing is loaded. NULL is the program, and the name of an object ends with a NUL.
        let open = |name: Option<&CStr>| unsafe {
            libc::dlopen(name.map_or(ptr::null(), CStr::as_ptr), flags)
        };
        let [global, home, own] = [
            open(None),
            home.map_or(ptr::null_mut(), |home| open(Some(home.name))),
            object.as_ref().map_or(ptr::null_mut(), |object| open(Some(object.name))),
        ];
        // If the dynamic linker did not bind it from the global scope, the object was loaded with RTLD_DEEPBIND.
        let is_deep = bound.is_some_and(|(name, value)| {
            symbol(global, name).is_some_and(|found| found.addr() != value)
        });
        // RTLD_DEFAULT, which is NULL, is the last.
        let scopes = if is_deep { [home, own, global] } else { [global, home, own] };
        let found = Self::in_scopes(&scopes);
        // SAFETY: they were opened here. The objects stay loaded: they are in use. An error that was left behind
        // would be shown to a caller of dlerror whose dlopen succeeds.
        unsafe {
            for scope in scopes.into_iter().filter(|scope| !scope.is_null()) {
                libc::dlclose(scope);
            }
            libc::dlerror();
        }
        found
    }

    /// The functions, each from the first scope that has it.
    fn in_scopes(scopes: &[*mut c_void]) -> Option<Self> {
        let scopes = || scopes.iter().filter(|scope| !scope.is_null()).chain([&libc::RTLD_DEFAULT]);
        let find = |name| scopes().find_map(|scope| symbol(*scope, name));
        let register = find(c"__hipRegisterFatBinary")?;
        let unregister = find(c"__hipUnregisterFatBinary");
        // SAFETY: functions of these names have these types in every HIP runtime.
        unsafe {
            Some(Self {
                register: transmute::<*mut c_void, Register>(register),
                unregister: unregister.map(|it| transmute::<*mut c_void, Unregister>(it)),
            })
        }
    }
}
