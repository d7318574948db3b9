//! `rockpack gpu`: finds GPUs by product, PCI id or target, and prints what to install for them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_hardware::{
    Device, Gpu, GpuTarget, Machine, Skipped, VENDOR, find_by_name, hardware, names_with_prefix,
    products, target_row,
};
use rockpack_report::Progress;
use rockpack_report::words::{either, few};
use serde::Serialize;

use super::progress::Terminal;
use super::{Outcome, default_budget};
use crate::inspect::needed::{Install, Installer, PackageSource};

/// Show the GPUs of this machine, look others up, and print the command that installs what they need.
///
/// Without GPU, lists the GPUs of this machine with their targets, as reported by the compute driver, the graphics
/// driver or the PCI id. With --from, prints only the command. Names must match exactly: an unknown name is an error
/// (exit code 64). A GPU without packages is reported on stderr. Exits with 1, and prints nothing, if this machine has
/// no known GPU, or if no GPU has packages.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// GPUs by product ("RX 7900 XTX"), chip ("Strix Halo"), target (gfx1151) or PCI id (1002:744c)
    #[arg(value_name = "GPU")]
    gpus: Vec<String>,
    /// Set or repository to install from
    ///
    /// A folder that `build` or `wheel` wrote, with packages.json or wheels.json, or a repository that `repo`
    /// published. For a set, the command lists the files, including their dependencies in the set
    #[arg(long, value_name = "DIR", requires = "installer")]
    from: Option<PathBuf>,
    /// The program that installs it
    #[arg(long = "for", value_enum, value_name = "PROGRAM", requires = "from")]
    installer: Option<Installer>,
    /// apt suite
    ///
    /// Needed if the repository has several
    #[arg(long, value_name = "NAME", requires = "from")]
    suite: Option<String>,
    /// Folder to read instead of /sys
    #[arg(long, value_name = "DIR", default_value = "/sys", conflicts_with = "gpus")]
    sysfs: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct GpuOutput {
    #[serde(flatten)]
    gpus: Gpus,
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<Install>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Gpus {
    OfMachine(Machine),
    Named { targets: Vec<NamedTarget> },
}

/// A target, with the products and devices that the given word means.
#[derive(Debug, Serialize)]
pub(super) struct NamedTarget {
    target: BaseArch,
    products: Vec<&'static str>,
    chips: BTreeSet<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<&'static str>,
    /// The generic target whose code it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    generic: Option<&'static BaseArch>,
    pci_ids: BTreeSet<String>,
    /// Whether all GPUs with it are integrated into processors.
    integrated: bool,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Outcome> {
    let gpus = if arguments.gpus.is_empty() {
        Gpus::OfMachine(Machine::read(&arguments.sysfs))
    } else {
        let is_one = arguments.from.is_some();
        let found = Faults::all(arguments.gpus.iter().map(|word| find_targets(word, is_one)))?;
        Gpus::Named { targets: found.into_iter().flatten().collect() }
    };
    if let Gpus::OfMachine(Machine { gpus, skipped }) = &gpus {
        for Skipped { what, why } in skipped {
            terminal.note(&format!("{what}: {why}"));
        }
        if gpus.is_empty() {
            terminal.note_always("this machine has no GPU whose target is known");
        }
    }
    let install = install(arguments, &gpus, terminal)?;
    let text = match &install {
        Some(install) => text_line!("{}", install.command),
        None if arguments.from.is_some() => String::new(),
        None => gpus.text(),
    };
    let is_answered = !text.is_empty();
    if arguments.json {
        terminal.print_json(&GpuOutput { gpus, install })?;
    } else if is_answered {
        terminal.print(&text)?;
    }
    Ok(if is_answered { Outcome::Done } else { Outcome::ChecksFailed })
}

/// The targets that a word names; with `is_one`, several are an error.
fn find_targets(word: &str, is_one: bool) -> Result<Vec<NamedTarget>> {
    let found = look_up(word);
    if found.is_empty() {
        return Err(unknown_word(word));
    }
    if is_one && found.len() > 1 {
        let targets = Vec::from_iter(found.iter().map(|it| &it.target));
        let message = format!("`{word}` is ambiguous: {}", either(&targets, usize::MAX));
        return Err(Error::new(Kind::Usage, message).hint("give the target"));
    }
    Ok(found)
}

/// The packages of `--from` for the GPUs; `None` if no package serves any of them.
fn install(arguments: &Arguments, gpus: &Gpus, terminal: &Terminal) -> Result<Option<Install>> {
    let (Some(from), Some(installer)) = (&arguments.from, arguments.installer) else {
        return Ok(None);
    };
    let suite = arguments.suite.as_deref();
    let source = PackageSource::read(from, installer, suite, &default_budget())?;
    let mut names: Vec<&str> = Vec::new();
    for (target, product) in gpus.targets() {
        let (mut serving, unserved) = source.packages_for(target);
        let product = product.map(|it| format!(" ({it})")).unwrap_or_default();
        let from = from.display();
        if serving.is_empty() {
            terminal.note_always(&format!("{from} has no package for {target}{product}"));
        } else if !unserved.is_empty() {
            let libraries = few(&Vec::from_iter(unserved), MAX_LISTED);
            let text = format!("{from} has no code of {libraries} for {target}{product}");
            terminal.note_always(&text);
        }
        serving.retain(|name| !names.contains(name));
        names.extend(serving);
    }
    Ok((!names.is_empty()).then(|| source.install(&names)))
}

impl Gpus {
    /// The targets, each once, with a product.
    fn targets(&self) -> Vec<(&BaseArch, Option<&str>)> {
        let mut all: Vec<(&BaseArch, Option<&str>)> = Vec::new();
        match self {
            Self::OfMachine(machine) => {
                for gpu in &machine.gpus {
                    all.extend(gpu.targets().map(|target| (target, gpu.product.as_deref())));
                }
            }
            Self::Named { targets } => {
                all.extend(targets.iter().map(|it| (&it.target, it.products.first().copied())));
            }
        }
        let mut seen = BTreeSet::new();
        all.retain(|(target, _)| seen.insert(*target));
        all
    }

    fn text(&self) -> String {
        match self {
            Self::OfMachine(machine) => machine.gpus.iter().map(gpu_text).collect(),
            Self::Named { targets } => targets.iter().map(NamedTarget::text).collect(),
        }
    }
}

fn gpu_text(gpu: &Gpu) -> String {
    let product = gpu.product.as_deref().unwrap_or("AMD GPU");
    let mut text = format!("{product}: {}, known by the {}", gpu.target, gpu.known_by);
    if let Some(id) = &gpu.pci_id {
        text.push_str(&format!(", {id}"));
    }
    if let Some(pci_address) = &gpu.pci_address {
        text.push_str(&format!(" at {pci_address}"));
    }
    if gpu.integrated {
        text.push_str(", part of the processor");
    }
    if let Some(other) = &gpu.overridden_by {
        text.push_str(&format!("; runs code for {other} because of HSA_OVERRIDE_GFX_VERSION"));
    }
    text_line!("{text}")
}

impl NamedTarget {
    fn new(
        target: BaseArch,
        rows: &[&'static GpuTarget],
        products: Vec<&'static str>,
        devices: impl Iterator<Item = &'static Device>,
    ) -> Self {
        let plain = gfx::plain(&target);
        let generation =
            plain.as_ref().and_then(gfx::processor_row).map(|it| it.generation.as_str());
        Self {
            products,
            chips: rows.iter().copied().flat_map(|row| &row.chips).map(String::as_str).collect(),
            generation: generation.filter(|it| !it.is_empty()),
            generic: gfx::generic_of(&target),
            pci_ids: devices.map(|it| format!("{VENDOR:04x}:{:04x}", it.id)).collect(),
            integrated: !rows.is_empty() && rows.iter().all(|row| row.integrated),
            target,
        }
    }

    pub(super) fn text(&self) -> String {
        let generic = self.generic.map(BaseArch::as_str);
        let part = self.integrated.then_some("part of a processor");
        let mut text = text_line!("{}", self.target);
        for (name, values) in [
            ("products", self.products.clone()),
            ("chips", self.chips.iter().copied().collect()),
            ("generation", self.generation.into_iter().collect()),
            ("generic target", generic.into_iter().collect()),
            ("PCI ids", self.pci_ids.iter().map(String::as_str).collect()),
            ("place", part.into_iter().collect()),
        ] {
            if !values.is_empty() {
                text.push_str(&text_line!("  {name}: {}", values.join(", ")));
            }
        }
        text
    }
}

/// The targets that a PCI id, a target, a product or a chip names.
pub(super) fn look_up(word: &str) -> Vec<NamedTarget> {
    if let Some(id) = pci_id(word) {
        let of_row = |row: &'static GpuTarget| {
            let devices = Vec::from_iter(row.devices.iter().filter(|it| it.id == id));
            let products = devices.iter().copied().flat_map(Device::products).collect();
            let target = NamedTarget::new(row.name.clone(), &[row], products, devices.into_iter());
            (!target.pci_ids.is_empty()).then_some(target)
        };
        return hardware().iter().filter_map(of_row).collect();
    }
    if let Some(arch) = arch_of(word) {
        let is_member = |row: &&GpuTarget| gfx::generic_of(&row.name) == Some(&arch);
        let members = hardware().iter().filter(|row| arch.is_generic() && is_member(row));
        let rows: Vec<&GpuTarget> = target_row(&arch).into_iter().chain(members).collect();
        let products = products(rows.iter().map(|row| &row.name));
        let devices = rows.iter().copied().flat_map(|row| &row.devices).filter(|it| !it.unreleased);
        return vec![NamedTarget::new(arch.clone(), &rows, products, devices)];
    }
    find_by_name(word).into_iter().map(|(row, names)| named_target(row, names)).collect()
}

/// The known arch of a target ID, which rocminfo prints as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
fn arch_of(word: &str) -> Option<BaseArch> {
    let word = word.to_ascii_lowercase();
    let target: Target = word.strip_prefix("amdgcn-amd-amdhsa--").unwrap_or(&word).parse().ok()?;
    let arch = target.base();
    let is_known = gfx::is_known(arch) || target_row(arch).is_some();
    let can_fix = |name: &str| arch.supported_features().contains(&name);
    let is_own = is_known && target.features().iter().all(|(name, _)| can_fix(name));
    is_own.then(|| arch.clone())
}

/// The target of the products or chips `names`.
fn named_target(row: &'static GpuTarget, names: Vec<&'static str>) -> NamedTarget {
    let is_chip = row.chips.iter().any(|chip| names.contains(&chip.as_str()));
    let names = if is_chip { products([&row.name]) } else { names };
    let devices = row.devices.iter().filter(|device| {
        let has_name = device.products().iter().any(|product| names.contains(product));
        !device.unreleased && (is_chip || has_name)
    });
    let devices: Vec<&Device> = devices.collect();
    NamedTarget::new(row.name.clone(), &[row], names, devices.into_iter())
}

/// The device of a PCI id of AMD, such as `1002:744c`.
fn pci_id(word: &str) -> Option<u16> {
    let digits = word.strip_prefix(&format!("{VENDOR:04x}:"))?;
    let id = u16::from_str_radix(digits, 16).ok()?;
    digits.eq_ignore_ascii_case(&format!("{id:04x}")).then_some(id)
}

/// Maximum number of products or libraries that a message lists.
const MAX_LISTED: usize = 12;

/// The error about a word that names no GPU, with similar names.
pub(super) fn unknown_word(word: &str) -> Error {
    let similar = names_with_prefix(word);
    let error = Error::new(Kind::Usage, format!("no known GPU is called `{word}`"));
    if similar.is_empty() {
        return error.hint(
            "name a product (\"RX 7900 XTX\"), a chip (\"Navi 31\"), a target (gfx1100) or a PCI id \
             (1002:744c); `rockpack gpu` shows the GPUs of this machine",
        );
    }
    error.hint(format!("did you mean {}?", either(&similar, MAX_LISTED)))
}
