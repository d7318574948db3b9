//! The binary of a wrapper: its marker, and the installed archives with its code.

use std::ffi::{CStr, CString};
use std::sync::Mutex;

use rockpack_kpack::archive::try_key;
use rockpack_kpack::marker::MarkerFields;
use rockpack_kpack::target::SPIRV;
use rockpack_kpack::{Code, push};
use rocm_kpack_core::archive::OpenArchive;
use rocm_kpack_core::archives::{ArchiveHandle, Archives};
use rocm_kpack_core::candidates::{Environment, around_placeholder, folder, pattern};
use rocm_kpack_core::file;
use rocm_kpack_core::lookup::{Lookup, Request};
use rocm_kpack_core::report::{self, Escaped, Text};
use rustix::fs::{Dir, Mode, OFlags};

use crate::bundle::Mapped;
use crate::gpus::{Gpus, can_use};
use crate::hip_runtime::{Generation, HipRuntime, Object, Wrapper, generation};
use crate::locked;

/// The environment, archives and GPUs, which are read once per process.
pub struct ProcessState {
    environment: Environment,
    /// The archives that were opened.
    pub archives: Archives,
    pub gpus: Gpus,
}

impl ProcessState {
    fn get() -> Result<&'static Self, Code> {
        static READ: Mutex<Option<&'static ProcessState>> = Mutex::new(None);
        let mut read = locked(&READ);
        if let Some(there) = read.as_deref().copied().flatten() {
            return Ok(there);
        }
        let (environment, archives) = (Environment::read()?, Archives::new()?);
        let new: &Self = Box::leak(Box::new(Self { environment, archives, gpus: Gpus::read() }));
        if let Some(read) = read.as_deref_mut() {
            *read = Some(new);
        }
        Ok(new)
    }
}

/// The binary of a wrapper. Valid until an object is loaded or unloaded.
pub struct Binary {
    generation: Generation,
    marker_at: usize,
    pub marker: MarkerFields,
    /// The HIP runtime that the binary is bound to.
    pub runtime: Option<HipRuntime>,
    pub process_state: &'static ProcessState,
    /// The archives with code for GPUs of the machine, in the order in which they are searched.
    pub archives: Vec<ArchiveHandle>,
    /// The mapped archives, once they are needed.
    pub mapped: Option<Mapped>,
}

impl Binary {
    /// Whether this is still the binary of a wrapper.
    pub fn is_of(&self, wrapper: &Wrapper) -> bool {
        self.marker_at == wrapper.data.addr() && self.generation == generation()
    }

    /// The key of the rows of a wrapper.
    pub fn key(&self, co_index: u32) -> Result<Vec<u8>, Code> {
        let key = try_key(&self.marker.kernel_name, co_index);
        key.map_err(|_| report::refused("the key of a wrapper"))
    }

    pub fn of(wrapper: &Wrapper) -> Result<Self, Code> {
        let process_state = ProcessState::get()?;
        let at = std::ptr::from_ref(wrapper).addr();
        let name = Object::at(at).map(|object| object.name.to_bytes());
        let path = match (file::discover(at as u64), name) {
            (Ok((path, _)), _) => path,
            // By its name if /proc is unreadable.
            (Err(_), Some(name)) if name.starts_with(b"/") => name.to_vec(),
            (Err(code), _) => return Err(code),
        };
        let marker = wrapper.marker().map_err(|code| {
            report::fail(code, format_args!("{}: {}", Escaped(&path), report::draft()))
        })?;
        let archives = installed(process_state, &marker, &path)?;
        let runtime = HipRuntime::of(at);
        let (generation, marker_at) = (generation(), wrapper.data.addr());
        let mapped = None;
        Ok(Self { generation, marker_at, marker, runtime, process_state, archives, mapped })
    }
}

/// The installed archives of a binary. Reports GPUs without archives, and damaged archives.
fn installed(
    process_state: &ProcessState,
    marker: &MarkerFields,
    path: &[u8],
) -> Result<Vec<ArchiveHandle>, Code> {
    let ProcessState { environment, archives, gpus } = process_state;
    if environment.is_disabled {
        return Ok(Vec::new());
    }
    let paths = marker.search_paths.iter();
    let patterns = paths.map(|it| pattern(path, it)).collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<CString> = Vec::new();
    for pattern in &patterns {
        add_named(pattern, gpus, &mut names)?;
    }
    names.sort();
    names.dedup();
    let names: Vec<&CStr> = names.iter().map(CString::as_c_str).collect();
    let request = Request { marker, binary_path: path, arches: &names };
    let lookup = Lookup::new(archives, environment, &request)?;
    lookup.unusable.iter().for_each(report_unused);
    archives.release(|archive| lookup.found.contains(archive));
    let lacks = |can_use: &dyn Fn(&[u8]) -> bool| {
        let has_code = |it: &OpenArchive| it.table.arches().iter().any(can_use);
        !lookup.found.iter().any(|archive| archives.with(archive, has_code) == Some(true))
    };
    match &gpus.0 {
        _ if environment.is_quiet => {}
        None if lacks(&|_| true) => report_missing(None, path, &patterns),
        None => {}
        Some(known) => {
            let missing = known.iter().filter(|gpu| lacks(&|target| can_use(gpu, target)));
            missing.for_each(|gpu| report_missing(Some(gpu), path, &patterns));
        }
    }
    Ok(lookup.found)
}

/// Reports that no archive is installed for a GPU, or for any GPU; once per GPU and process.
fn report_missing(gpu: Option<&str>, path: &[u8], patterns: &[Vec<u8>]) {
    let name = gpu.unwrap_or("*");
    if !report::is_new(name.as_bytes()) {
        return;
    }
    let for_gpu = gpu.map_or(String::new(), |gpu| format!(" for {gpu}"));
    let pattern = patterns.first().map(Vec::as_slice).unwrap_or_default();
    let (before, behind) = around_placeholder(pattern).unwrap_or((pattern, b""));
    let (path, before, behind) = (Escaped(path), Escaped(before), Escaped(behind));
    let missing = format_args!("no kernels{for_gpu} of {path} are installed");
    let text =
        format_args!("rocm-kpack: {missing}; install the package with {before}{name}{behind}");
    report::line(text, " (ROCM_KPACK_QUIET=1 silences this)\n");
}

/// Reports the fault of an unused archive, code object or wrapper, once.
pub fn report_unused(fault: &Text) {
    if report::is_new(fault.as_bytes()) {
        report::line(format_args!("rocm-kpack: not used: {fault}"), "\n");
    }
}

/// Whether a part of a file name can be a target.
fn is_target(arch: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-:+".contains(byte);
    arch == SPIRV.as_bytes()
        || arch
            .strip_prefix(b"gfx")
            .is_some_and(|rest| !rest.is_empty() && rest.iter().all(is_part))
}

/// Adds the targets in the file names that match `pattern`, if GPUs of the machine can use them.
fn add_named(pattern: &[u8], gpus: &Gpus, names: &mut Vec<CString>) -> Result<(), Code> {
    let Some((before, behind)) = around_placeholder(pattern) else { return Ok(()) };
    let (folder, start) = before.split_at(folder(before).len());
    let end = behind.split(|byte| *byte == b'/').next().unwrap_or_default();
    let folder = if folder.is_empty() { &b"."[..] } else { folder };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    let entries = opened.and_then(Dir::new).into_iter().flatten();
    for entry in entries.map_while(Result::ok) {
        let name = entry.file_name().to_bytes();
        let arch = name.strip_prefix(start).and_then(|name| name.strip_suffix(end));
        let arch = arch.filter(|arch| is_target(arch) && gpus.can_use(arch));
        if let Some(arch) = arch.and_then(|arch| CString::new(arch).ok()) {
            push(names, arch).map_err(|_| report::refused("names of archives"))?;
        }
    }
    Ok(())
}
