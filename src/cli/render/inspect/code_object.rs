//! Code objects and their kernels.

use std::collections::BTreeSet;

use rockpack_elf::amdgpu_metadata::KernelMetadata;

use crate::cli::render::units::bytes;
use crate::inspect::CodeObjectReport;

pub(super) fn code_object_text(code: &CodeObjectReport) -> String {
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

/// The resources of a kernel, on one line.
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
