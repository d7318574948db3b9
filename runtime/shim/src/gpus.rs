//! The GPUs of this machine, as HIP runtimes see them: from the kernel's list, or from `HSA_OVERRIDE_GFX_VERSION`.
//!
//! Source: the kernel's `kfd_topology.c`; ROCr's `topology.c`, where a variable overrides all GPUs or one node.

use std::ffi::CStr;

use rocm_kpack_core::memory::{is_privileged, variable};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

/// Most nodes that are read; each processor and each GPU is one.
const NODES: usize = 1024;
/// Most bytes of the properties of a node: the kernel writes a page.
const PROPERTIES: usize = 4096;

/// The processors of the GPUs that need device code, such as `gfx90a`, each once. `None` if unknown: all code is used.
pub struct Gpus(pub Option<Vec<String>>);

/// A node of the kernel's list.
enum Node {
    /// A processor, or a GPU to which this process has no access.
    Other,
    /// A GPU; kernels before 5.17 do not state its version.
    Gpu(Option<Version>),
}

impl Gpus {
    /// Reads the list. In a privileged process it is unknown: this library ignores the variables, but the runtime does
    /// not.
    pub fn read() -> Self {
        Self(if is_privileged() { None } else { processors() })
    }

    /// Whether one of the GPUs can use code for `target`. Accepts too many generic targets and SPIR-V, of which the HIP
    /// runtime chooses.
    pub fn can_use(&self, target: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|gpus| gpus.iter().any(|gpu| can_use(gpu, target)))
    }
}

fn processors() -> Option<Vec<String>> {
    let for_all = overriding(c"HSA_OVERRIDE_GFX_VERSION");
    let mut known = Vec::new();
    for index in 0..NODES {
        match node(index) {
            Ok(Node::Other) => {}
            Ok(Node::Gpu(version)) => known.push(processor(for_all.or(version)?)),
            Err(Errno::NOENT) if index > 0 => break,
            Err(_) => return None,
        }
        // The runtime may number nodes in another way, without those that it cannot use.
        let name = format!("HSA_OVERRIDE_GFX_VERSION_{index}\0");
        let own = CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(overriding);
        known.extend(own.map(processor));
    }
    known.sort();
    known.dedup();
    Some(known)
}

/// Whether the GPU with this processor can use code for `target`.
pub fn can_use(gpu: &str, target: &[u8]) -> bool {
    let base = target.split(|byte| *byte == b':').next().unwrap_or_default();
    let Some(number) = base.strip_prefix(b"gfx") else { return true };
    // The last two digits are minor version and stepping.
    let major = gpu.len().checked_sub(2).and_then(|end| gpu.get("gfx".len()..end));
    let behind = base.strip_prefix(gpu.as_bytes());
    let behind_major = number.strip_prefix(major.unwrap_or_default().as_bytes());
    let is_generic = number.ends_with(b"-generic")
        && behind_major.is_some_and(|rest| rest.first() == Some(&b'-'));
    is_generic || behind.is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'-'))
}

/// Major, minor, stepping.
type Version = [u32; 3];

/// The name of a processor: `gfx90a` is 9.0.10.
fn processor([major, minor, stepping]: Version) -> String {
    format!("gfx{major}{minor:x}{stepping:x}")
}

/// The version in a variable: `10.3.0`.
fn overriding(name: &CStr) -> Option<Version> {
    let value = String::from_utf8(variable(name).ok()??).ok()?;
    let mut numbers = value.split('.').map(str::parse);
    let version = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
    numbers.next().is_none().then_some(version)
}

fn node(index: usize) -> Result<Node, Errno> {
    let path = format!("/sys/class/kfd/kfd/topology/nodes/{index}/properties");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut bytes = [0; PROPERTIES];
    let opened = retry_on_intr(|| rustix::fs::open(path.as_str(), flags, Mode::empty()));
    let read = opened.and_then(|file| retry_on_intr(|| rustix::io::read(&file, &mut bytes)));
    let len = match read {
        Ok(len) => len,
        // A container has no access to this GPU.
        Err(Errno::ACCESS | Errno::PERM) => return Ok(Node::Other),
        Err(errno) => return Err(errno),
    };
    let text = bytes.get(..len).unwrap_or_default();
    let number = |name: &[u8]| {
        let mut lines = text.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b" "))?;
        std::str::from_utf8(value).ok()?.trim().parse::<u32>().ok().filter(|number| *number > 0)
    };
    let version = number(b"gfx_target_version");
    let version = version.map(|it| [it / 10000, it / 100 % 100, it % 100]);
    let is_gpu = version.is_some() || number(b"simd_count").is_some();
    Ok(if is_gpu { Node::Gpu(version) } else { Node::Other })
}
