//! The GPUs of a machine, as sysfs shows them.
//!
//! | place below `/sys` | what it says | needs |
//! |---|---|---|
//! | `class/kfd/kfd/topology/nodes/*/properties` | the target (`gfx_target_version`) | the driver with compute support |
//! | `bus/pci/devices/*/ip_discovery/die/0/GC/0` | the version of the graphics core | the driver |
//! | `bus/pci/devices/*/{vendor,device,revision,class}` | the PCI id, for the table | nothing |
//!
//! A node of the compute driver belongs to the PCI device at its place; partitions of a GPU are several nodes at
//! one place. A container cannot read the nodes of GPUs that it was not given.
//!
//! Source: Linux, `drivers/gpu/drm/amd/amdkfd/kfd_topology.c` and `amdgpu/amdgpu_discovery.c`; for the variables,
//! ROCm's `rocr-runtime`.

use std::collections::BTreeSet;
use std::env::var_os;
use std::fs::{DirEntry, File};
use std::io::Read;
use std::path::Path;

use rockpack_core::content::list;
use rockpack_core::error::{Result, printable};
use rockpack_core::gfx::BaseArch;
use serde::Serialize;

use crate::table::{self, VENDOR};

/// The longest text of sysfs: a page of memory, of which there are larger ones on some machines.
const LONGEST: u64 = 65_536;

/// Classes of PCI devices that are GPUs: VGA, other display controllers, accelerators.
const CLASSES: [&str; 3] = ["0x0300", "0x0380", "0x1200"];

/// The PCI device that a virtual machine of Windows has in place of the GPU.
const WINDOWS: [(&str, &str); 2] = [("vendor", "0x1414"), ("device", "0x008e")];

/// Why that one is no answer.
const IN_WINDOWS: &str = "WSL2 does not show which GPU the machine has: `rocminfo` names the target if ROCm for WSL is \
                          installed, and Windows names the product";

/// Why nothing is known of a node of the compute driver.
const NO_NODE: &str = "cannot be read, as in a container without access to the GPU";

/// Why a GPU without a node is skipped where others have one.
const NOT_GIVEN: &str = "this container has no access to the GPU";

/// Why nothing is known of a GPU.
const UNKNOWN: &str = "is a GPU that neither the driver nor this version of rockpack knows";

/// The variable that makes the runtime take a GPU for one of another target: all, or with `_<node>` one.
const OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";

/// What sysfs says of the GPUs of a machine.
#[derive(Debug, Default, Serialize)]
pub struct Machine {
    /// The GPUs whose target is known, by their places.
    pub gpus: Vec<Gpu>,
    /// What else there is.
    pub skipped: Vec<Skipped>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// The product, or the products that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The target.
    pub target: BaseArch,
    /// The target whose code the runtime asks for instead, by the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<BaseArch>,
    /// The source of the target.
    pub known_by: KnownBy,
    /// The PCI id, as in `1002:744c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci_id: Option<String>,
    /// The place on the PCI bus, as in `0000:03:00.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
    /// Whether it is part of a processor.
    pub integrated: bool,
}

/// The source of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, derive_more::Display)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// The compute driver.
    #[display("compute driver")]
    Kfd,
    /// The version of the graphics core, as the driver reads it from the chip.
    #[display("graphics driver")]
    GraphicsCore,
    /// The table of PCI ids.
    #[display("PCI id")]
    PciId,
}

/// Something that is no GPU with a known target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The GPU, file or variable.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl Gpu {
    /// The targets whose code it may be asked for.
    pub fn targets(&self) -> impl Iterator<Item = &BaseArch> {
        [&self.target].into_iter().chain(&self.overridden_by)
    }
}

/// A node of the compute driver that is a GPU.
struct Node {
    /// The place on the bus, without the function.
    pci_address: String,
    gpu: Gpu,
}

/// Makes an entry of what is skipped; the text may be anybody's.
fn skipped(what: impl AsRef<str>, why: &str) -> Skipped {
    Skipped { what: printable(what.as_ref()).into_owned(), why: why.to_owned() }
}

impl Machine {
    /// Reads the GPUs of a machine from the folder `sysfs`, and what the environment has them run as.
    pub fn read(sysfs: &Path) -> Self {
        let mut machine = Self::default();
        let nodes = machine.nodes(&sysfs.join("class/kfd/kfd/topology/nodes"));
        // Where some nodes can be read and others not, the others are of GPUs that were not given.
        let is_part = !nodes.is_empty() && machine.skipped.iter().any(|it| it.why == NO_NODE);
        let devices = sysfs.join("bus/pci/devices");
        let mut is_windows = false;
        let mut seen = BTreeSet::new();
        for pci_address in machine.names(&devices) {
            let device = devices.join(&pci_address);
            let is = |name, own| read(&device.join(name)).as_deref() == Some(own);
            is_windows |= WINDOWS.iter().all(|(name, own)| is(name, own));
            let Some(pci) = PciGpu::at(&device) else { continue };
            let without_function = pci_address.split('.').next().unwrap_or_default();
            let node = nodes.iter().find(|node| node.pci_address == without_function);
            seen.extend(node.map(|node| node.pci_address.as_str()));
            let known = match node {
                Some(node) => Some((node.gpu.target.clone(), KnownBy::Kfd)),
                None if is_part => None,
                None => pci.target(&device),
            };
            let Some((target, known_by)) = known else {
                let why = if is_part { NOT_GIVEN } else { UNKNOWN };
                machine.skipped.push(skipped(format!("{} at {pci_address}", pci.text()), why));
                continue;
            };
            let overridden_by = match node {
                Some(node) => node.gpu.overridden_by.clone(),
                None => machine.overridden(""),
            };
            machine.gpus.push(Gpu {
                pci_address: Some(printable(&pci_address).into_owned()),
                ..gpu(target, known_by, overridden_by, Some(&pci))
            });
        }
        let alone = nodes.iter().filter(|node| !seen.contains(&*node.pci_address));
        machine.gpus.extend(alone.map(|node| node.gpu.clone()));
        if machine.gpus.is_empty() && is_windows {
            machine.skipped.push(skipped("Microsoft's virtual GPU", IN_WINDOWS));
        }
        machine.skipped.dedup();
        machine
    }

    /// The GPUs that the compute driver offers, one for each place.
    fn nodes(&mut self, folder: &Path) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for name in self.names(folder) {
            let what = format!("node {name} of the compute driver");
            let Some(text) = read(&folder.join(&name).join("properties")) else {
                self.skipped.push(skipped(what, NO_NODE));
                continue;
            };
            let number = |key: &str| {
                let mut values =
                    text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
                values.find_map(|value| value.parse::<u64>().ok()).unwrap_or_default()
            };
            let (version, location) = (number("gfx_target_version"), number("location_id"));
            if number("simd_count") == 0 || version == 0 {
                continue;
            }
            let target = u32::try_from(version).ok().and_then(table::target_of_kfd);
            let Some(target) = target.map(|it| revised(it, number("capability"))) else {
                let why = format!("has the gfx_target_version {version}, which is not valid");
                self.skipped.push(skipped(what, &why));
                continue;
            };
            let (bus, slot) = (location >> 8 & 0xff, location >> 3 & 0x1f);
            let pci_address = format!("{:04x}:{bus:02x}:{slot:02x}", number("domain"));
            let id = u16::try_from(number("device_id")).ok().filter(|id| *id != 0);
            let pci = id.map(|id| PciGpu { id, revision: None });
            // Partitions of a GPU are nodes at one place.
            if !nodes
                .iter()
                .any(|node| node.pci_address == pci_address && node.gpu.target == target)
            {
                let overridden_by = self.overridden(&format!("_{name}"));
                let gpu = gpu(target, KnownBy::Kfd, overridden_by, pci.as_ref());
                nodes.push(Node { pci_address, gpu });
            }
        }
        nodes
    }

    /// The names in a folder: numbers by value, then others. None if there is no folder that can be listed.
    fn names(&mut self, folder: &Path) -> Vec<String> {
        if !folder.is_dir() {
            return Vec::new();
        }
        let name = |entry: Result<DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let found = list(folder).and_then(|it| it.map(name).collect::<Result<Vec<String>>>());
        let Ok(mut names) = found else {
            self.skipped.push(skipped(folder.to_string_lossy(), "cannot be listed"));
            return Vec::new();
        };
        names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(u32::MAX), name.clone()));
        names
    }

    /// The target by which the environment overrides that of a node, `_` and its number, or of all.
    fn overridden(&mut self, node: &str) -> Option<BaseArch> {
        let names = [format!("{OVERRIDE}{node}"), OVERRIDE.to_owned()];
        let (text, name) = names.into_iter().find_map(|name| Some((var_os(&name)?, name)))?;
        let text = text.to_string_lossy();
        let parts: Vec<u32> = text.split('.').map_while(|part| part.parse().ok()).collect();
        let is_whole = text.split('.').count() == 3;
        let target = match parts[..] {
            [major @ ..=63, minor @ ..=99, stepping @ ..=99] if is_whole => {
                table::target_of_kfd(major * 10_000 + minor * 100 + stepping)
            }
            _ => None,
        };
        if target.is_none() {
            let what = format!("{name}={text}");
            self.skipped.push(skipped(what, "is not a GPU version such as 11.0.0"));
        }
        target
    }
}

/// Chips of revision 0 with the target gfx1250 run code for `gfx1250-strict`.
fn revised(target: BaseArch, capability: u64) -> BaseArch {
    let is_strict = target.as_str() == "gfx1250" && capability >> 22 & 0xf == 0;
    let strict = is_strict.then(|| "gfx1250-strict".parse().ok()).flatten();
    strict.unwrap_or(target)
}

fn gpu(
    target: BaseArch,
    known_by: KnownBy,
    overridden_by: Option<BaseArch>,
    pci: Option<&PciGpu>,
) -> Gpu {
    Gpu {
        product: pci
            .and_then(|it| table::device_by_pci_id(it.id, it.revision)?.1.product(it.revision)),
        integrated: table::target_row(&target).is_some_and(|row| row.integrated),
        overridden_by: overridden_by.filter(|own| *own != target),
        target,
        known_by,
        pci_id: pci.map(PciGpu::text),
        pci_address: None,
    }
}

/// A GPU of AMD on the PCI bus.
struct PciGpu {
    id: u16,
    revision: Option<u8>,
}

impl PciGpu {
    /// The GPU in the folder of a device; `None` of other devices.
    fn at(device: &Path) -> Option<Self> {
        let number = |name: &str| {
            let text = read(&device.join(name))?;
            u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        let class = read(&device.join("class"))?;
        let is_gpu = CLASSES.iter().any(|known| class.starts_with(known));
        let is_own = is_gpu && number("vendor") == Some(VENDOR);
        let revision = number("revision").and_then(|it| u8::try_from(it).ok());
        is_own.then(|| Some(Self { id: number("device")?, revision })).flatten()
    }

    /// The PCI id.
    fn text(&self) -> String {
        format!("{VENDOR:04x}:{:04x}", self.id)
    }

    /// The target, as far as it is known without the compute driver.
    fn target(&self, device: &Path) -> Option<(BaseArch, KnownBy)> {
        let core = device.join("ip_discovery/die/0/GC/0");
        let parts = ["major", "minor", "revision"].map(|name| read(&core.join(name)));
        let version = parts.into_iter().collect::<Option<Vec<String>>>().map(|it| it.join("."));
        let by_core =
            version.and_then(|it| Some((table::target_by_core(&it)?, KnownBy::GraphicsCore)));
        let by_id = || Some((table::device_by_pci_id(self.id, self.revision)?.0, KnownBy::PciId));
        let (row, by) = by_core.or_else(by_id)?;
        Some((row.name.clone(), by))
    }
}

/// A text of sysfs without its last line end; `None` if it cannot be read.
fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
