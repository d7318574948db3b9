//! `rockpack inspect` shows the content of files; `rockpack extract` writes the code objects of archives, fat binaries
//! and bundles into files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use rockpack_core::content::{Content, is_file, is_folder};
use rockpack_core::error::{Error, Faults, Result, ResultExt, printable};
use rockpack_core::gfx::Target;
use rockpack_core::run::{Budget, interrupt};
use rockpack_core::tree::TreePath;
use rockpack_elf::amdgpu_metadata::KernelMetadata;
use rockpack_elf::kpm::Manifest;
use rockpack_files::new_file::WriteOutcome;
use rockpack_package::receipt;
use rockpack_report::words::counted;
use rockpack_split::input::tree::{InputPath, is_tarball};
use serde::Serialize;

use super::build::set_text;
use super::progress::Terminal;
use super::render::{bytes, words_or};
use super::{default_budget, members};
use crate::inspect::extract::{Extracted, Selection, extract};
use crate::inspect::{
    ArchiveReport, BundleReport, CodeObjectReport, DeviceCodeState, HostBinaryReport, Inspected,
    KernelIndex, WrapperReport, device_of_bundles, inspect, inspect_artifact, inspect_receipt,
    named_by_user,
};
use crate::settings::{PrefixArgument, input_path, output_path, target_id};

/// Show what is in packages, package sets, wheels, kernel archives and manifests, host binaries, code objects and
/// bundles.
///
/// For packages and wheels: fields, members and the device code in them; for wheels also the findings of `rockpack
/// wheel`; for a package set: the table that `build` printed; for host binaries: targets, code objects, markers, and
/// with -v wrappers and bundles; for code objects: target, kernels and their metadata.
///
/// Files that cannot be read do not stop the others from being shown. The exit code is then that of the first
/// such file: 2, or 64 if it does not exist.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Packages, package sets, wheels, kernel archives, manifests, binaries, artifacts, install trees
    ///
    /// .deb and .rpm packages, packages.json or its folder, .whl, .kpack archives, .kpm manifests, ELF files,
    /// offload bundles, .dat indexes of kernel databases, artifacts (folders, .tar.zst, .tar.xz), install trees
    /// (folders, tarballs)
    #[arg(required = true, value_name = "[NAME=]FILE", value_parser = input_path())]
    files: Vec<InputPath>,
    #[command(flatten)]
    prefix: PrefixArgument,
    /// Print JSON: a list with one object per file
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct InspectedFile {
    file: String,
    #[serde(flatten)]
    inspected: Inspected,
}

pub(super) fn run(arguments: Arguments, terminal: &Terminal) -> Result<()> {
    let (budget, prefix) = (default_budget(), arguments.prefix.prefix.as_ref());
    let mut all = Vec::new();
    let mut faults = Faults::default();
    for input in &arguments.files {
        if let Some(inspected) = faults.keep(inspect_input(input, prefix, &budget)) {
            all.push(InspectedFile { file: input.path.display().to_string(), inspected });
        }
    }
    // Faults of an interrupted run say nothing about the files.
    interrupt::check()?;
    for file in &all {
        match &file.inspected {
            Inspected::Artifact(artifact) => terminal.findings(&artifact.findings),
            Inspected::Wheel(wheel) => terminal.findings(&wheel.findings),
            Inspected::Receipt { receipt } => terminal.findings(&receipt.findings),
            _ => {}
        }
    }
    if all.is_empty() {
        // Nothing was read: only the faults are reported.
    } else if arguments.json {
        faults.keep(terminal.print_json(&all));
    } else {
        let several = arguments.files.len() > 1;
        faults.keep(terminal.print(&text(&all, several, terminal.is_verbose())));
    }
    faults.finish()
}

fn inspect_input(
    input: &InputPath,
    prefix: Option<&TreePath>,
    budget: &Budget,
) -> Result<Inspected> {
    let path = input.local()?;
    let step = || "looking for the files to inspect".to_owned();
    let is_folder = is_folder(path).context(step)?;
    let receipt = path.join(receipt::FILE_NAME);
    let is_set = is_folder && input.name.is_none() && is_file(&receipt).context(step)?;
    if !is_set && (is_folder || is_tarball(path) || input.name.is_some()) {
        return inspect_artifact(input, prefix, budget).map(Inspected::Artifact);
    }
    let path = if is_set { receipt.as_path() } else { path };
    let content = Content::open(path, budget).map_err(Error::named_by_user).context(step)?;
    let is_json = content.starts_with(b"{").file(path)?;
    let found = if is_json { inspect_receipt(&content) } else { inspect(&content) };
    let mut found = found.file(path).map_err(|e| named_by_user(e, path))?;
    if let Inspected::Wheel(wheel) = &mut found {
        wheel.add_split(path, budget)?;
    }
    Ok(found)
}

/// The text of all files, each under its name if there are several.
fn text(all: &[InspectedFile], several: bool, is_verbose: bool) -> String {
    let texts = all.iter().map(|file| {
        let heading = if several { format!("{}:\n", printable(&file.file)) } else { String::new() };
        heading + &inspect_text(&file.inspected, is_verbose)
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Write the code objects of kernel archives, fat binaries, offload bundles, kernel packages and wheels into
/// separate files.
///
/// Files are named <binary>-<index>-<target>.hsaco. <binary> is the name in the archive's key, the path of a wheel's
/// file, or the name of FILE; characters other than letters, digits and ._-+ become %XX. <index> is the number of the
/// wrapper, or of the bundle in a file of bundles; if the key has no index, the name has none. A bundle without a
/// wrapper is numbered bundle<offset>. <target> has a - before each feature. SPIR-V files end in .spv. If two archives
/// of a package have different code for one key, <binary> of the second begins with its path and %3A. Nothing is
/// overwritten: an existing file must have the same content.
#[derive(Debug, Args)]
pub(super) struct ExtractArguments {
    /// .kpack archives, fat binaries, offload bundles (also CCOB), .deb and .rpm packages, .whl
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Folder for the code objects; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    out: PathBuf,
    /// Only code for this target, e.g. gfx1100 or gfx90a:xnack+
    ///
    /// May be given several times. An arch without features means all of its variants
    #[arg(long, value_name = "TARGET", value_parser = target_id)]
    target: Vec<Target>,
    /// Only code objects that define this kernel; may be given several times
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Print JSON: a list with one object per code object
    #[arg(long)]
    json: bool,
}

pub(super) fn run_extract(arguments: ExtractArguments, terminal: &Terminal) -> Result<()> {
    let selection = Selection { targets: arguments.target, kernels: arguments.kernel };
    let extracted = extract(&arguments.files, &arguments.out, &selection, &default_budget())?;
    terminal.print_result(arguments.json, &extracted, || extract_text(&extracted))
}

/// The text that `inspect` prints for a file; with `is_verbose`, also the wrappers and bundles of a host binary.
pub fn inspect_text(inspected: &Inspected, is_verbose: bool) -> String {
    match inspected {
        Inspected::Archive(archive) => archive_text(archive),
        Inspected::Manifest(manifest) => manifest_text(manifest),
        Inspected::HostBinary(binary) => host_binary_text(binary, is_verbose),
        Inspected::CodeObject(code) => code_object_text(code),
        Inspected::OffloadBundles { bundles } => bundles_text(bundles),
        Inspected::Artifact(folder) => members::artifact_text(folder),
        Inspected::Index(index) => index_text(index),
        Inspected::Package(package) => members::package_text(package),
        Inspected::Wheel(wheel) => members::wheel_text(wheel),
        Inspected::Receipt { receipt } => set_text(receipt),
    }
}

fn archive_text(archive: &ArchiveReport) -> String {
    let ArchiveReport { group_name, gfx_arch_family, .. } = archive;
    let mut text = text_line!("Kernel archive: {group_name} for {gfx_arch_family}");
    text.push_str(&text_line!("Targets: {}", archive.gfx_arches.join(" ")));
    text.push_str(&text_line!("Compression: {}", archive.compression_scheme));
    text.push_str(&text_line!(
        "Code objects: {} ({} in {})",
        archive.code_objects,
        bytes(archive.uncompressed_size),
        bytes(archive.size),
    ));
    for (key, targets) in &archive.rows {
        text.push_str(&text_line!("  {key}"));
        for (target, row) in targets {
            let size = bytes(row.original_size);
            text.push_str(&text_line!("    {target} → code object {} ({size})", row.ordinal));
        }
    }
    text
}

/// The summary of a host binary; with `is_verbose`, then the lists of its wrappers and bundles.
fn host_binary_text(binary: &HostBinaryReport, is_verbose: bool) -> String {
    let size = bytes(binary.size);
    match binary.state {
        DeviceCodeState::HostOnly => text_line!("Host binary: no device code ({size})"),
        DeviceCodeState::SeparateDebug => text_line!("Host binary: separate debug file ({size})"),
        DeviceCodeState::Fat => {
            let code = device_of_bundles("fat-binary", &binary.bundles);
            let mut text = text_line!("Host binary: fat ({size})");
            text.push_str(&text_line!("Archs: {}", words_or(&code.targets, "none")));
            let (count, size) = (code.code_objects, bytes(code.uncompressed_size));
            text.push_str(&text_line!("Code objects: {count} ({size})"));
            if is_verbose {
                let wrappers = wrappers_text(&binary.wrappers, &|wrapper| {
                    wrapper.bundle_offset.map(|offset| format!("bundle at {offset:#x}"))
                });
                return text + &wrappers + &bundles_text(&binary.bundles);
            }
            let (wrappers, bundles) = (binary.wrappers.len(), binary.bundles.len());
            text + &text_line!("Wrappers: {wrappers}, bundles: {bundles} (listed with -v)")
        }
        DeviceCodeState::Transformed => transformed_text(binary, is_verbose),
    }
}

fn transformed_text(binary: &HostBinaryReport, is_verbose: bool) -> String {
    let mut text = text_line!("Host binary: transformed ({})", bytes(binary.size));
    let marker = binary.marker.as_ref();
    let kernel_name = marker.and_then(|marker| marker.kernel_name.as_ref());
    if let Some(kernel_name) = kernel_name {
        text.push_str(&text_line!("Kernel name: {kernel_name}"));
    }
    for path in marker.into_iter().flat_map(|marker| &marker.kpack_search_paths) {
        text.push_str(&text_line!("Search path: {path}"));
    }
    if let Some(library) = &binary.registers_with {
        text.push_str(&text_line!("Registers with {library}: any HIP runtime"));
    }
    if !is_verbose {
        return text + &text_line!("Wrappers: {} (listed with -v)", binary.wrappers.len());
    }
    text + &wrappers_text(&binary.wrappers, &|wrapper| {
        kernel_name.map(|name| format!("rows of {name}#{}", wrapper.index))
    })
}

/// The list of wrappers; `target_of` describes the bundle or rows that a wrapper refers to.
fn wrappers_text(
    wrappers: &[WrapperReport],
    target_of: &dyn Fn(&WrapperReport) -> Option<String>,
) -> String {
    let mut text = text_line!("Wrappers: {}", wrappers.len());
    for wrapper in wrappers {
        let target = target_of(wrapper).map(|target| format!(" → {target}")).unwrap_or_default();
        text.push_str(&text_line!("  #{}{target}", wrapper.index));
    }
    text
}

fn bundles_text(bundles: &[BundleReport]) -> String {
    let mut text = text_line!("Bundles: {}", bundles.len());
    bundles.iter().for_each(|bundle| text.push_str(&bundle_text(bundle)));
    text
}

fn bundle_text(bundle: &BundleReport) -> String {
    let compression = bundle.compression.as_ref().map_or(String::new(), |header| {
        let (version, method) = (header.compressed_version, header.compression_method);
        let size = bytes(header.uncompressed_size);
        format!(", CCOB version {version}, {method}, {size} uncompressed")
    });
    let mut text = text_line!("  at {:#x} ({}{compression})", bundle.offset, bytes(bundle.size));
    for entry in &bundle.entries {
        let digest = match entry.size {
            0 => String::new(),
            // Twelve digits identify the code object; the JSON output has all.
            _ => format!(", SHA-256 {:.12}…", entry.sha256.to_string()),
        };
        text.push_str(&text_line!("    {} ({}{digest})", entry.id, bytes(entry.size)));
    }
    text
}

fn code_object_text(code: &CodeObjectReport) -> String {
    let target = match &code.target {
        Some(target) => target.clone(),
        None => format!("an unknown processor (flags {:#x})", code.flags),
    };
    let mut text = text_line!("Code object: {target} ({})", bytes(code.size));
    text.push_str(&text_line!("Kernels: {}", code.kernels.len()));
    let metadata: Vec<&KernelMetadata> =
        code.metadata.iter().flat_map(|note| &note.kernels).collect();
    for kernel in &metadata {
        let name = kernel.symbol.strip_suffix(".kd").unwrap_or(&kernel.symbol);
        let missing = if code.kernels.contains(name) { "" } else { " (without descriptor)" };
        text.push_str(&text_line!("  {name}{missing}"));
        text.push_str(&text_line!("    {}", resources(kernel)));
    }
    let described: BTreeSet<&str> =
        metadata.iter().filter_map(|kernel| kernel.symbol.strip_suffix(".kd")).collect();
    for name in code.kernels.iter().filter(|name| !described.contains(name.as_str())) {
        text.push_str(&text_line!("  {name} (without metadata)"));
    }
    text
}

fn resources(kernel: &KernelMetadata) -> String {
    let accumulators = kernel.agpr_count.map_or(String::new(), |count| format!(", {count} AGPRs"));
    format!(
        "arguments {}, group segment {}, private segment {}, {} SGPRs, {} VGPRs{accumulators}, \
         wavefront {}, work-group up to {}",
        bytes(kernel.kernarg_segment_size),
        bytes(kernel.group_segment_fixed_size),
        bytes(kernel.private_segment_fixed_size),
        kernel.sgpr_count,
        kernel.vgpr_count,
        kernel.wavefront_size,
        kernel.max_flat_workgroup_size,
    )
}

fn index_text(index: &KernelIndex) -> String {
    let mut text = text_line!("Kernel index ({})", bytes(index.size));
    let index = &index.description;
    let archs = index.archs.iter().map(|arch| arch.as_str());
    text.push_str(&text_line!("Archs: {}", words_or(archs, "none named")));
    text.push_str(&text_line!("Solutions: {}", index.solutions));
    for (what, names) in [
        ("Operations", &index.operations),
        ("Code object files", &index.code_object_files),
        ("Libraries loaded when needed", &index.libraries),
    ] {
        text.push_str(&text_line!("{what}: {}", names.len()));
        names.iter().for_each(|name| text.push_str(&text_line!("  {name}")));
    }
    text
}

/// Minimum width of the column of archs, in characters.
const ARCH_WIDTH: usize = 12;

/// The text that `inspect` prints for a manifest; sizes are in units of 1,000,000 bytes.
fn manifest_text(manifest: &Manifest) -> String {
    let archives = manifest.by_generation();
    let mut text = text_line!("Component: {}", manifest.component_name);
    text.push_str("Format Version: 1\n");
    text.push_str(&text_line!("Prefix: {}", manifest.prefix));
    text.push_str(&format!("\nAvailable Architectures: {}\n\nArchitectures:\n", archives.len()));
    let widths = archives.iter().map(|(arch, _)| arch.len());
    let width = widths.max().unwrap_or_default().max(ARCH_WIDTH);
    for (arch, archive) in archives {
        let (size, kernels) = (megabytes(archive.size), counted(archive.kernel_count, "kernel"));
        text.push_str(&text_line!("  - {arch:width$} → {} ({size} MB, {kernels})", archive.file));
    }
    text
}

/// Millions of bytes with two digits, rounded half up.
fn megabytes(bytes: u64) -> String {
    let hundredths = bytes / 10_000 + u64::from(bytes % 10_000 >= 5_000);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// One line per file, then a line with the total.
fn extract_text(extracted: &[Extracted]) -> String {
    let mut text = String::new();
    for object in extracted {
        let action = match object.outcome {
            WriteOutcome::Written => "wrote",
            WriteOutcome::Identical => "kept",
        };
        text.push_str(&text_line!("{action} {} ({})", object.file.display(), bytes(object.size)));
    }
    let total = extracted.iter().map(|object| object.size).sum();
    text + &text_line!("{}, {}", counted(extracted.len(), "code object"), bytes(total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockpack_elf::kpm::ManifestArchive;

    #[test]
    fn manifest_text_has_the_documented_layout() {
        let archive = |arch: &str, size| {
            let file = format!("blas_lib_{arch}.kpack");
            let archive = ManifestArchive { file, size, kernel_count: 4 };
            (arch.to_owned(), archive)
        };
        let text = manifest_text(&Manifest {
            component_name: "blas_lib".to_owned(),
            prefix: "lib".to_owned(),
            archives: [archive("gfx1100", 3_894_999), archive("gfx942", 3_935_000)].into(),
        });
        let expected = "\
Component: blas_lib
Format Version: 1
Prefix: lib

Available Architectures: 2

Architectures:
  - gfx942       → blas_lib_gfx942.kpack (3.94 MB, 4 kernels)
  - gfx1100      → blas_lib_gfx1100.kpack (3.89 MB, 4 kernels)
";
        assert_eq!(text, expected);
    }
}
