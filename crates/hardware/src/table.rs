//! The table of GPUs, `config/gpus.toml`, which documents its keys and the source of each row.

use std::sync::LazyLock;

use rockpack_core::gfx::{self, BaseArch};
use serde::Deserialize;

/// AMD's PCI vendor id.
pub const VENDOR: u16 = 0x1002;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuTarget {
    pub name: BaseArch,
    /// Code names of the chips.
    #[serde(default)]
    pub chips: Vec<String>,
    /// Further product names.
    #[serde(default)]
    pub also: Vec<String>,
    /// `gfx_target_version` of the compute driver; `None` if it does not support these chips.
    pub kfd: Option<u32>,
    /// Versions of the graphics core in the kernel's IP discovery.
    #[serde(default)]
    pub gc: Vec<String>,
    /// Whether the GPU is part of a processor.
    #[serde(default)]
    pub integrated: bool,
    #[serde(default)]
    pub devices: Vec<Device>,
    /// The reason why there are no devices.
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub id: u16,
    /// The only PCI revision that the row is for.
    pub revision: Option<u8>,
    /// The product of all revisions that are not in `names`.
    pub name: Option<String>,
    /// Products with their revisions: `C8 Radeon RX 7900 XTX`.
    #[serde(default)]
    pub names: Vec<String>,
    pub from: String,
    /// Whether no product is known, or the sources contradict each other.
    #[serde(default)]
    pub unreleased: bool,
    /// The difference between sources.
    pub note: Option<String>,
}

static TABLE: LazyLock<Vec<GpuTarget>> = LazyLock::new(|| gfx::compiled_rows(TEXT));

const TEXT: &str = include_str!("../../../config/gpus.toml");

impl Device {
    /// The product with this PCI revision; all candidates if the table does not determine one.
    pub fn product(&self, revision: Option<u8>) -> Option<String> {
        let own = self.names().filter(|(own, _)| Some(*own) == revision).map(|(_, name)| name);
        let own = distinct(own.chain(self.name.as_deref()));
        let known = if own.is_empty() { self.products() } else { own };
        (!known.is_empty()).then(|| known.join(" or "))
    }

    /// The revisions that the row distinguishes.
    pub fn revisions(&self) -> impl Iterator<Item = u8> {
        self.names().map(|(revision, _)| revision).chain(self.revision)
    }

    fn names(&self) -> impl Iterator<Item = (u8, &str)> {
        self.names.iter().filter_map(|text| {
            let (revision, name) = text.split_once(' ')?;
            Some((u8::from_str_radix(revision, 16).ok()?, name))
        })
    }

    pub fn products(&self) -> Vec<&str> {
        distinct(self.names().map(|(_, name)| name).chain(self.name.as_deref()))
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

pub fn hardware() -> &'static [GpuTarget] {
    &TABLE
}

/// The row of a target, qualified or not.
pub fn target_row(arch: &BaseArch) -> Option<&'static GpuTarget> {
    let plain = gfx::plain(arch)?;
    hardware().iter().find(|row| row.name == plain)
}

pub fn target_by_core(version: &str) -> Option<&'static GpuTarget> {
    hardware().iter().find(|row| row.gc.iter().any(|own| own == version))
}

/// The row of a PCI device. Some ids have several rows, by revision.
pub fn device_by_pci_id(
    id: u16,
    revision: Option<u8>,
) -> Option<(&'static GpuTarget, &'static Device)> {
    let rows = hardware().iter().flat_map(|row| row.devices.iter().map(move |it| (row, it)));
    let own =
        rows.filter(|(_, it)| it.id == id && (it.revision.is_none() || it.revision == revision));
    own.max_by_key(|(_, device)| device.revision)
}

/// The target that the compute driver states as `gfx_target_version`; `None` for a processor, which has 0.
/// Targets newer than the table have names by the same rule: major version in decimal, minor version and
/// stepping as one hexadecimal digit each.
pub fn target_of_kfd(version: u32) -> Option<BaseArch> {
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    let is_one = (1..100).contains(&major) && minor < 16 && stepping < 16;
    is_one.then(|| format!("gfx{major}{minor:x}{stepping:x}").parse().ok()).flatten()
}

/// The products with one of the targets, each once, in the order of the table.
pub fn products<'a>(archs: impl IntoIterator<Item = &'a BaseArch>) -> Vec<&'static str> {
    let rows = archs.into_iter().filter_map(target_row);
    distinct(rows.flat_map(|row| {
        let devices = released(row).flat_map(Device::products);
        devices.chain(row.also.iter().map(String::as_str))
    }))
}

/// The products and the code names of chips with one of the targets, each once.
pub fn product_and_chip_names(archs: &[BaseArch]) -> Vec<&'static str> {
    let rows = archs.iter().filter_map(target_row);
    let chips = rows.flat_map(|row| row.chips.iter().map(String::as_str));
    distinct(products(archs).into_iter().chain(chips))
}

/// The modalias patterns of the GPUs with one of the targets. A modalias has no revision, so devices that only the
/// revision distinguishes are left out.
pub fn modaliases<'a>(
    archs: impl IntoIterator<Item = &'a BaseArch>,
    with_integrated: bool,
) -> Vec<String> {
    let rows = archs.into_iter().filter_map(target_row);
    let wanted = rows.filter(|row| with_integrated || !row.integrated).flat_map(released);
    let wanted = wanted.filter(|device| device.revision.is_none());
    // sysfs writes upper case, and zypper compares by case.
    wanted.map(|it| format!("pci:v{VENDOR:08X}d{:08X}sv*sd*bc*sc*i*", it.id)).collect()
}

/// The released devices of a row.
fn released(row: &GpuTarget) -> impl Iterator<Item = &Device> {
    row.devices.iter().filter(|device| !device.unreleased)
}

/// The rows with a product or chip called `text`, each with the matching names. Ignores case, spaces, and common words
/// such as `Radeon`. If no name is equal, those that contain the words.
pub fn find_by_name(text: &str) -> Vec<(&'static GpuTarget, Vec<&'static str>)> {
    let asked = words(text).concat();
    if asked.is_empty() {
        return Vec::new();
    }
    // "Radeon RX Series" and "Radeon RX Graphics" are no products.
    let is_range = |name: &str| [" Series", " Graphics"].iter().any(|end| name.ends_with(end));
    let exact = rows_with(|name| words(name).concat() == asked && !is_range(name));
    if !exact.is_empty() {
        return exact;
    }
    rows_with(|name| {
        let words = words(name);
        (1..=words.len()).any(|count| words.windows(count).any(|part| part.concat() == asked))
    })
}

/// The products and chips whose names begin with `text`, by the same rules.
pub fn names_with_prefix(text: &str) -> Vec<&'static str> {
    let squeezed = words(text).concat();
    if squeezed.is_empty() {
        return Vec::new();
    }
    let found = rows_with(|name| words(name).concat().starts_with(&squeezed));
    distinct(found.into_iter().flat_map(|(_, names)| names))
}

fn rows_with(is_it: impl Fn(&str) -> bool) -> Vec<(&'static GpuTarget, Vec<&'static str>)> {
    let rows = hardware().iter().map(|row| {
        let names = product_and_chip_names(std::slice::from_ref(&row.name)).into_iter();
        (row, names.filter(|name| is_it(name)).collect::<Vec<_>>())
    });
    rows.filter(|(_, names)| !names.is_empty()).collect()
}

/// Words that say nothing about a product.
const COMMON: [&str; 8] = ["amd", "ati", "gpu", "graphics", "instinct", "radeon", "series", "tm"];

fn words(name: &str) -> Vec<String> {
    let name = name.to_lowercase();
    let all = name.split(|c: char| !c.is_alphanumeric() && c != '+').filter(|it| !it.is_empty());
    all.filter(|word| !COMMON.contains(word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn every_target_has_devices_or_a_reason() {
        let table: BTreeMap<String, Vec<GpuTarget>> = toml::from_str(TEXT).unwrap();
        let target = &table["target"];
        assert!(target.is_sorted_by(|a, b| a.name < b.name));
        for row in gfx::processors().iter().filter(|row| !row.name.is_generic()) {
            let own = target_row(&row.name).unwrap_or_else(|| panic!("{} has no row", row.name));
            assert_ne!(own.devices.is_empty(), own.reason.is_none(), "{}", row.name);
        }
        let mut known = BTreeSet::new();
        for device in target.iter().flat_map(|row| &row.devices) {
            assert!(known.insert((device.id, device.revision)), "{:X} is listed twice", device.id);
            assert_eq!(device.names().count(), device.names.len(), "{:X}", device.id);
            assert!(!device.from.is_empty(), "{:X} has no source", device.id);
        }
    }

    #[test]
    fn the_driver_states_each_target_by_one_rule() {
        for row in hardware() {
            assert!(row.kfd.is_none_or(|it| target_of_kfd(it).as_ref() == Some(&row.name)));
        }
        assert_eq!(target_of_kfd(90010).unwrap().as_str(), "gfx90a");
        assert_eq!(target_of_kfd(0), None);
        assert_eq!(target_of_kfd(u32::MAX), None);
    }

    #[test]
    fn people_find_their_gpu_by_name() {
        let found =
            |text| Vec::from_iter(find_by_name(text).into_iter().map(|(row, _)| row.name.as_str()));
        for (text, archs) in [
            ("RX 7900 XTX", &["gfx1100"][..]),
            ("amd radeon rx7900xtx", &["gfx1100"]),
            ("MI300X", &["gfx942"]),
            ("Strix Halo", &["gfx1151"]),
            ("RX 7900", &["gfx1100"]),
            ("7900xtx", &["gfx1100"]),
            ("790", &[]),
            ("Radeon", &[]),
            ("", &[]),
        ] {
            assert_eq!(found(text), archs, "{text}");
        }
        assert!(find_by_name("Radeon RX").len() > 1);
        assert_eq!(device_by_pci_id(0x73FF, Some(0xDF)).unwrap().0.name.as_str(), "gfx1031");
        assert_eq!(device_by_pci_id(0x73FF, Some(0xC1)).unwrap().0.name.as_str(), "gfx1032");
        assert_eq!(device_by_pci_id(0x73FF, None).unwrap().0.name.as_str(), "gfx1032");
        assert_eq!(device_by_pci_id(0x0001, None).map(|_| ()), None);
        assert!(names_with_prefix("Instinct MI300").contains(&"Instinct MI300X"));
        assert!(names_with_prefix("Radeon").is_empty() && names_with_prefix("").is_empty());
        let (_, device) = device_by_pci_id(0x744C, None).unwrap();
        assert_eq!(device.product(Some(0xC8)).unwrap(), "Radeon RX 7900 XTX");
    }
}
