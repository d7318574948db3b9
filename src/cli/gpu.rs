//! `rockpack gpu`: GPUs by their products, PCI ids and targets, and what to install for them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_hardware::{
    Device, Gpu, GpuTarget, Machine, Skipped, VENDOR, beginning, hardware, named, of_arch, products,
};
use rockpack_report::Progress;
use rockpack_report::words::{either, few};
use serde::Serialize;

use super::progress::Terminal;
use super::{Outcome, default_budget};
use crate::inspect::needed::{Install, Installer, PackageSource};

/// Show the GPUs of this machine, look others up, and print the command that installs what they need.
///
/// Without GPU, the GPUs of this machine with their targets, as the compute driver, the graphics driver or the PCI
/// id says them. With --from, prints the command alone. There are no near matches: a name that no GPU has is refused
/// (exit code 64), and a GPU that no package serves is named on stderr. Exits with 1, and prints nothing, if this
/// machine has no known GPU, or if no package serves any.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// GPUs by product ("RX 7900 XTX"), chip ("Strix Halo"), target (gfx1151) or PCI id (1002:744c)
    #[arg(value_name = "GPU")]
    gpus: Vec<String>,
    /// Set or repository to install from
    ///
    /// A folder that `build` or `wheel` wrote, with packages.json or wheels.json, or a repository that `repo`
    /// published. Of a set, the command names the files, with all that they need of the set
    #[arg(long, value_name = "DIR", requires = "installer")]
    from: Option<PathBuf>,
    /// The program that installs it
    #[arg(long = "for", value_enum, value_name = "PROGRAM", requires = "from")]
    installer: Option<Installer>,
    /// apt suite
    ///
    /// Needed where the repository has several
    #[arg(long, value_name = "NAME", requires = "from")]
    suite: Option<String>,
    /// Folder to read in place of /sys
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

/// The GPUs that a run is about.
#[derive(Serialize)]
#[serde(untagged)]
enum Gpus {
    OfMachine(Machine),
    Named { targets: Vec<NamedTarget> },
}

/// A target, as far as a text names it.
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
    /// Whether all of its GPUs are parts of processors.
    integrated: bool,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Outcome> {
    let gpus = if arguments.gpus.is_empty() {
        Gpus::OfMachine(Machine::read(&arguments.sysfs))
    } else {
        let is_one = arguments.from.is_some();
        let found = Faults::all(arguments.gpus.iter().map(|word| found(word, is_one)))?;
        Gpus::Named { targets: found.into_iter().flatten().collect() }
    };
    if let Gpus::OfMachine(Machine { gpus, skipped }) = &gpus {
        for Skipped { what, why } in skipped {
            terminal.note(&format!("{what}: {why}"));
        }
        if gpus.is_empty() {
            terminal.say("this machine has no GPU whose target is known");
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

/// The targets that a word names; with `is_one`, they may not be several.
fn found(word: &str, is_one: bool) -> Result<Vec<NamedTarget>> {
    let found = look_up(word);
    if found.is_empty() {
        return Err(unknown(word));
    }
    if is_one && found.len() > 1 {
        let targets = Vec::from_iter(found.iter().map(|it| &it.target));
        let message = format!("`{word}` may be {}", either(&targets, usize::MAX));
        return Err(Error::new(Kind::Usage, message).hint("name the target"));
    }
    Ok(found)
}

/// What the packages of `--from` are for the GPUs; `None` if none serves any.
fn install(arguments: &Arguments, gpus: &Gpus, terminal: &Terminal) -> Result<Option<Install>> {
    let (Some(from), Some(installer)) = (&arguments.from, arguments.installer) else {
        return Ok(None);
    };
    let suite = arguments.suite.as_deref();
    let source = PackageSource::read(from, installer, suite, &default_budget())?;
    let mut names: Vec<&str> = Vec::new();
    for (target, product) in gpus.targets() {
        let (mut serving, unserved) = source.serving(target);
        let product = product.map(|it| format!(" ({it})")).unwrap_or_default();
        let from = from.display();
        if serving.is_empty() {
            terminal.say(&format!("{from} has no package for {target}{product}"));
        } else if !unserved.is_empty() {
            let libraries = few(&Vec::from_iter(unserved), NAMED);
            let text = format!("{from} has no code of {libraries} for {target}{product}");
            terminal.say(&text);
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
    if let Some(place) = &gpu.place {
        text.push_str(&format!(" at {place}"));
    }
    if gpu.integrated {
        text.push_str(", part of the processor");
    }
    if let Some(other) = &gpu.overridden_by {
        text.push_str(&format!("; runs code for {other} by HSA_OVERRIDE_GFX_VERSION"));
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
        let generation = plain.as_ref().and_then(gfx::describe).map(|it| it.generation.as_str());
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

    /// A target in lines.
    pub(super) fn text(&self) -> String {
        let generic = self.generic.map(BaseArch::as_str);
        let place = self.integrated.then_some("part of a processor");
        let mut text = text_line!("{}", self.target);
        for (name, values) in [
            ("products", self.products.clone()),
            ("chips", self.chips.iter().copied().collect()),
            ("generation", self.generation.into_iter().collect()),
            ("generic target", generic.into_iter().collect()),
            ("PCI ids", self.pci_ids.iter().map(String::as_str).collect()),
            ("place", place.into_iter().collect()),
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
            let named = NamedTarget::new(row.name.clone(), &[row], products, devices.into_iter());
            (!named.pci_ids.is_empty()).then_some(named)
        };
        return hardware().iter().filter_map(of_row).collect();
    }
    if let Some(arch) = arch_of(word) {
        let is_member = |row: &&GpuTarget| gfx::generic_of(&row.name) == Some(&arch);
        let members = hardware().iter().filter(|row| arch.is_generic() && is_member(row));
        let rows: Vec<&GpuTarget> = of_arch(&arch).into_iter().chain(members).collect();
        let products = products(rows.iter().map(|row| &row.name));
        let devices = rows.iter().copied().flat_map(|row| &row.devices).filter(|it| !it.unreleased);
        return vec![NamedTarget::new(arch.clone(), &rows, products, devices)];
    }
    named(word).into_iter().map(|(row, names)| named_target(row, names)).collect()
}

/// The known arch of a target ID, which rocminfo prints as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
fn arch_of(word: &str) -> Option<BaseArch> {
    let word = word.to_ascii_lowercase();
    let target: Target = word.strip_prefix("amdgcn-amd-amdhsa--").unwrap_or(&word).parse().ok()?;
    let arch = target.base();
    let is_known = gfx::is_known(arch) || of_arch(arch).is_some();
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

/// Most products or libraries that a message names.
const NAMED: usize = 12;

/// The error about a word that names nothing, with names that begin like it.
pub(super) fn unknown(word: &str) -> Error {
    let similar = beginning(word);
    let error = Error::new(Kind::Usage, format!("no known GPU is called `{word}`"));
    if similar.is_empty() {
        return error.hint(
            "name a product (\"RX 7900 XTX\"), a chip (\"Navi 31\"), a target (gfx1100) or a PCI id \
             (1002:744c); `rockpack gpu` shows the GPUs of this machine",
        );
    }
    error.hint(format!("there is {}", either(&similar, NAMED)))
}
